"""The installation's parts, put together from what health and hosts are judged by."""

from collections.abc import Iterable, Sequence

from headway import __version__
from headway.control.http.schemas.responses import HealthOut
from headway.control.http.schemas.system_responses import (
    AgentOut,
    CollectorOut,
    LeaderOut,
    StageName,
    StageOut,
    SystemOut,
)
from headway.scaling.conditions.host_facts import HostRow
from headway.scaling.conditions.host_table import problems_of
from headway.scaling.conditions.installation_facts import (
    HEALTH_LEADER_SILENT_S,
    HEALTH_PIPELINE_BEHIND_S,
    HEALTH_READ_LATE_S,
    HEALTH_ROLLUPS_LATE_S,
    HEALTH_UNREAD_LATE_S,
    HealthRow,
)
from headway.store.events.event_sources import SeenCollector
from headway.store.hosts.host_lease import HOST_LEASE_S


def system_of(
    health: HealthOut, row: HealthRow, hosts: Sequence[HostRow], collectors: Iterable[SeenCollector], *, now_s: float
) -> SystemOut:
    """The parts, their ages and what is wrong with them."""
    return SystemOut.taken_from(
        health,
        at_s=now_s,
        version=__version__,
        leader=LeaderOut(name=row.leader, epoch=row.epoch, age_s=row.leader_age_s),
        stages=_stages(health, row, hosts),
        collectors=[CollectorOut.model_validate(each) for each in collectors],
        agents=[_agent(each) for each in hosts],
    )


def _stages(health: HealthOut, row: HealthRow, hosts: Sequence[HostRow]) -> list[StageOut]:
    unread_s = None if health.telemetry is None else health.telemetry.oldest_unread_s or 0.0
    reports = [each.host.silent_s for each in hosts if each.host.silent_s is not None]
    lags: Sequence[tuple[StageName, float | None, float]] = (
        ("brokers", max(row.read_ages_s.values(), default=None), HEALTH_READ_LATE_S),
        ("event_log", unread_s, HEALTH_UNREAD_LATE_S),
        ("pipeline", max((each.lag_s for each in row.pipelines), default=None), HEALTH_PIPELINE_BEHIND_S),
        ("minutes", row.rollups_behind_s, HEALTH_ROLLUPS_LATE_S),
        ("scheduler", row.leader_age_s, HEALTH_LEADER_SILENT_S),
        ("agents", max(reports, default=None), HOST_LEASE_S),
    )
    return [
        StageOut(stage=stage, lag_s=lag_s, lag_max_s=most_s, is_late=lag_s is not None and lag_s > most_s)
        for stage, lag_s, most_s in lags
    ]


def _agent(row: HostRow) -> AgentOut:
    host = row.host
    return AgentOut.taken_from(
        row,
        host,
        host=host.name,
        version=row.agent_version,
        report_age_s=host.silent_s,
        problems=problems_of(row),
    )
