"""The installation's own parts, as the HTTP API gives them: each with its age."""

from collections.abc import Iterable, Sequence
from typing import Literal

from headway import __version__
from headway.control.http.schemas.responses import HealthOut, PipelineOut, ReasonKind, TelemetryHealth
from headway.control.http.schemas.schema_base import Given
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
from headway.scaling.model import HostState
from headway.store.events.event_sources import SeenCollector
from headway.store.hosts.host_lease import HOST_LEASE_S

StageName = Literal["brokers", "event_log", "pipeline", "minutes", "scheduler", "agents"]


class StageOut(Given):
    """One stage of the way from a broker to a worker, in that order."""

    stage: StageName
    lag_s: float | None
    """How old its newest result is, or for how long something has been waiting for it; null: not known."""
    lag_max_s: float
    """The most that is in order."""
    is_late: bool


class LeaderOut(Given):
    """The control plane that decides."""

    name: str
    epoch: int
    age_s: float | None
    """Since it last showed itself; null while nobody ever led."""


class CollectorOut(Given):
    """A collector, and a broker that it reads."""

    connection: str
    producer: str
    seen_age_s: float
    began_age_s: float
    """Since it began to read, without a silence."""
    is_silent: bool
    """It has ended, was replaced, or cannot reach its broker or this control plane."""


class AgentOut(Given):
    """The agent of a host."""

    host: str
    version: str
    state: HostState
    is_known: bool
    """False: its lease has ended."""
    report_age_s: float | None
    """Null: it has never reported."""
    hung_up_s: float | None
    certificate_left_s: float | None
    problems: list[str]

    @classmethod
    def of(cls, row: HostRow) -> "AgentOut":
        """The agent of the host ``row``."""
        host = row.host
        return cls.taken_from(
            row,
            host,
            host=host.name,
            version=row.agent_version,
            report_age_s=host.silent_s,
            problems=problems_of(row),
        )


class SystemOut(Given):
    """The installation's own parts at one moment."""

    at_s: float
    version: str
    """Of the control plane that answers."""
    status: Literal["ok", "degraded"]
    reasons: list[str]
    kinds: list[ReasonKind]
    leader: LeaderOut
    stages: list[StageOut]
    pipelines: list[PipelineOut]
    telemetry: TelemetryHealth | None
    collectors: list[CollectorOut]
    """Those of the last day, by broker and then by name."""
    agents: list[AgentOut]
    """By host."""

    @classmethod
    def of(
        cls,
        health: HealthOut,
        row: HealthRow,
        hosts: Sequence[HostRow],
        collectors: Iterable[SeenCollector],
        *,
        now_s: float,
    ) -> "SystemOut":
        """The parts, put together from what health and hosts are judged by."""
        return cls.taken_from(
            health,
            at_s=now_s,
            version=__version__,
            leader=LeaderOut(name=row.leader, epoch=row.epoch, age_s=row.leader_age_s),
            stages=_stages(health, row, hosts),
            collectors=[CollectorOut.model_validate(each) for each in collectors],
            agents=[AgentOut.of(each) for each in hosts],
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
