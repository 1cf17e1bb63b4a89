"""How the installation is: `ok`, or `degraded` with a reason for each thing that is not as it should be.

A reason has a kind, which alerts and dashboards of one's own can distinguish, and a sentence for people. No sentence
names a pool, a queue or a host: health is shown without a token.
"""

from collections.abc import Iterable, Mapping, Sequence

from headway.control.http.overview.agent_problems import counted_problems
from headway.control.http.overview.pool_places import expired_s, has_hung_up, is_overdue
from headway.control.http.schemas.responses import HealthOut, PipelineOut, TelemetryHealth
from headway.control.ingest.ingest import Ingest
from headway.scaling.conditions.condition_table import CLOCK_OFF_S, HEARTBEAT_MISSED_S, PIPELINE_SILENT_S
from headway.scaling.conditions.pool_conditions import Cause
from headway.scaling.conditions.pool_sentences import ago
from headway.scaling.explain import counted, duration
from headway.store.overview import HealthRow, HostRow, PipelineRow

HEALTH_LEADER_SILENT_S = 10.0  # a standby ends a leader silent for 8 s
HEALTH_PIPELINE_BEHIND_S = 10.0  # two buckets; a batch takes a second
HEALTH_PARTITION_DAYS_MIN = 6  # upkeep makes seven ahead, every ten minutes
HEALTH_READ_LATE_S = 10.0  # collectors report every queue each 5 s
HEALTH_ROLLUPS_LATE_S = 900.0  # they are made every minute; after a rebuild of two hours within a few
HEALTH_UNREAD_LATE_S = 60.0  # a batch takes a second


ROLE_PAGE = "docs/how-to/postgres-role.md says what its role needs"


def health_of(
    row: HealthRow,
    *,
    has_event_log: bool,
    telemetry: TelemetryHealth | None = None,
    now_s: float | None = None,
    more: Iterable[Cause] = (),
) -> HealthOut:
    """The installation's condition.

    Args:
        row: What the database knows.
        has_event_log: Whether this control plane sees the event log.
        telemetry: How telemetry comes in here.
        now_s: The time by this control plane's clock, when ``row`` was read.
        more: What else this control plane knows of.
    """
    refused = _telemetry(telemetry, has_event_log=has_event_log)
    # What collectors read is telemetry too: where that is refused, they and their brokers are not to blame.
    unread = [] if any(each.kind == "event_log" for each in refused) else _brokers(row.read_ages_s)
    reasons = [*_leader(row), *_pipelines(row.pipelines), *unread, *_collectors(row), *_upkeep(row), *_tokens(row)]
    reasons += [*refused, *_clock(row, now_s=now_s), *more]
    return with_reasons(
        HealthOut(
            status="ok",
            reasons=[],
            kinds=[],
            event_log="ok" if has_event_log else "missing",
            leader=row.leader,
            leader_epoch=row.epoch,
            leader_age_s=row.leader_age_s,
            pipelines=[PipelineOut.model_validate(each) for each in row.pipelines],
            telemetry=telemetry,
        ),
        reasons,
    )


def with_reasons(health: HealthOut, reasons: Sequence[Cause]) -> HealthOut:
    """``health`` with more ``reasons`` why it is not as it should be."""
    if not reasons:
        return health
    return health.model_copy(
        update={
            "status": "degraded",
            "reasons": [*health.reasons, *(each.text for each in reasons)],
            "kinds": [*health.kinds, *(each.kind for each in reasons)],
        }
    )


def telemetry_of(ingest: Ingest, *, now_s: float) -> TelemetryHealth:
    """How telemetry comes in, and what waits for the pipeline."""
    waiting = ingest.unread.waiting
    return TelemetryHealth(
        refused=ingest.problem or ingest.unread.problem,
        flush_s=ingest.flush_s,
        unread_files=waiting.files,
        unread_bytes=waiting.size_bytes,
        oldest_unread_s=None if waiting.oldest_s is None else max(0.0, now_s - waiting.oldest_s),
    )


def ailing_pipeline(row: PipelineRow) -> str | None:
    """What is not well with a pipeline; ``None`` of one that is well."""
    name = f"pipeline {row.pipeline}"
    if row.stage == "stopped":
        return f"{name} was stopped {row.written_age_s:.0f} s ago: start `headway pipeline`"
    if row.stage == "crashed":
        return f"{name} crashed {row.written_age_s:.0f} s ago: nothing is measured until it is restarted"
    if row.beat_age_s is not None and row.beat_age_s > HEARTBEAT_MISSED_S:
        return (
            f"{name} not responding: no heartbeat for {row.beat_age_s:.0f} s, so nothing is measured; "
            "it is stopped, hung or killed, and its log may say why"
        )
    if row.stage == "restarting":
        return f"{name} crashed, restarting: nothing is measured until it is ready"
    if row.is_ready:
        return _hanging(row, name)
    stage = row.stage.replace("_", " ")
    if row.written_age_s > PIPELINE_SILENT_S:
        return f"{name} has reported nothing for {row.written_age_s:.0f} s since it was {stage}: see its log"
    return f"{name} is {stage}: nothing is measured yet"


def ailing_hosts(hosts: Iterable[HostRow]) -> list[Cause]:
    """Hosts that do not report, report what they may not, or cannot do their work."""
    found = list(hosts)
    away = [row.host.silent_s for row in found if not row.host.is_known and row.host.silent_s is not None]
    late = [row.host.silent_s for row in found if is_overdue(row) and row.host.silent_s is not None]
    cut = [row.hung_up_s for row in found if has_hung_up(row) and row.hung_up_s is not None]
    found_reasons = []
    if away:
        found_reasons.append(
            f"{_are(len(away), 'host')} unreachable, the last report {ago(min(away))}: see `headway get hosts`"
        )
    if cut:
        whose = f"{counted(len(cut), 'host')} {'has' if len(cut) == 1 else 'have'} lost the connection"
        found_reasons.append(f"{whose}, {ago(max(cut))}, and not reported since: see `headway get hosts`")
    if late:
        found_reasons.append(
            f"{_are(len(late), 'host')} overdue with a report, the last one {ago(max(late))}: see `headway get hosts`"
        )
    more = sum(1 for row in found if row.refused)
    if more:
        who = f"{counted(more, 'host')} {'reports' if more == 1 else 'report'}"
        found_reasons.append(f"{who} labels or templates that no join token allowed there: see `headway get hosts`")
    unable = [Cause(kind, text) for kind, text in counted_problems(found)]
    return [*(Cause("host", text) for text in found_reasons), *unable, *_host_certificates(found)]


def _host_certificates(rows: Iterable[HostRow]) -> list[Cause]:
    since_s = [each_s for each_s in map(expired_s, rows) if each_s is not None]
    if not since_s:
        return []
    whose = f"the certificates of {len(since_s)} hosts that do not report have expired, the last one"
    if len(since_s) == 1:
        whose = "the certificate of a host that does not report expired"
    return [
        Cause(
            "certificate",
            f"{whose} {ago(min(since_s))}: `headway keys client NAME` makes another; see `headway get hosts`",
        )
    ]


def _leader(row: HealthRow) -> list[Cause]:
    if row.leader_age_s is None:
        return [Cause("leader", "no control plane has led yet: nothing is decided")]
    if row.leader_age_s > HEALTH_LEADER_SILENT_S:
        silent = f"the last one, {row.leader}, has sent no heartbeat for {row.leader_age_s:.0f} s"
        return [Cause("leader", f"no control plane leads: {silent}")]
    return []


def _pipelines(rows: Sequence[PipelineRow]) -> list[Cause]:
    if not rows:
        return [
            Cause("pipeline", "no pipeline has written yet: nothing is measured; start `headway pipeline`"),
        ]
    lacking = [
        Cause("upkeep", f"pipeline {each.pipeline} lacks a right in Postgres and leaves out {each.lacks}: {ROLE_PAGE}")
        for each in rows
        if each.lacks is not None
    ]
    return [*(Cause("pipeline", text) for each in rows if (text := ailing_pipeline(each)) is not None), *lacking]


def _hanging(row: PipelineRow, name: str) -> str | None:
    """Of a pipeline that is ready: it answers, and yet its batches may not get on."""
    if row.lag_s <= HEALTH_PIPELINE_BEHIND_S:
        return None
    said = f"has not written for {row.lag_s:.0f} s while samples arrive"
    if row.beat_age_s is None:
        return f"{name} {said}"
    return f"{name} hangs in a batch: it answers, and {said}, so nothing is measured; its log may say why"


def _brokers(read_ages_s: Mapping[str, float]) -> list[Cause]:
    late = [age_s for age_s in read_ages_s.values() if age_s > HEALTH_READ_LATE_S]
    if not late:
        return []
    if len(late) == len(read_ages_s):
        read = f"no queue that a profile names has been read for {min(late):.0f} s"
        return [Cause("broker", f"{read}: check that `headway collect` runs and reaches its broker")]
    some = f"{len(late)} of {len(read_ages_s)} brokers {'has' if len(late) == 1 else 'have'} not been read for"
    return [
        Cause("broker", f"{some} {max(late):.0f} s: check that `headway collect` reaches it; `headway top` names it")
    ]


def _collectors(row: HealthRow) -> list[Cause]:
    if not row.shared_connections:
        return []
    polled = f"{counted(row.shared_connections, 'broker')} {'is' if row.shared_connections == 1 else 'are'} polled by"
    ways = "one counts, the others stand by: end them; `headway describe queue` names them"
    return [Cause("collectors", f"{polled} several collectors, of which {ways}")]


def _upkeep(row: HealthRow) -> list[Cause]:
    return [*_partitions(row), *_rollups(row)]


def _rollups(row: HealthRow) -> list[Cause]:
    if row.rollups_behind_s is None or row.rollups_behind_s <= HEALTH_ROLLUPS_LATE_S:
        return []
    late = f"metrics are not rolled up for {duration(row.rollups_behind_s)}, and old rows are not deleted"
    return [Cause("upkeep", f"{late}: see the pipeline's log, and docs/how-to/postgres-role.md where it lacks a right")]


def _partitions(row: HealthRow) -> list[Cause]:
    if row.partition_days is None or row.partition_days >= HEALTH_PARTITION_DAYS_MIN:
        return []
    return [
        Cause(
            "upkeep",
            f"decisions can be stored for {max(0, row.partition_days)} days more: upkeep fails, most likely because "
            "a right in Postgres is missing; see the control plane's log and docs/how-to/postgres-role.md",
        )
    ]


def _tokens(row: HealthRow) -> list[Cause]:
    if not row.expiring_tokens or row.expires_in_s is None:
        return []
    is_one = row.expiring_tokens == 1
    when = f"{'' if is_one else 'the first '}in {duration(row.expires_in_s)}"
    what = f"{counted(row.expiring_tokens, 'token')} {'expires' if is_one else 'expire'} within a day, {when}"
    return [Cause("credentials", f"{what}: `headway token list` names what to replace")]


def _telemetry(telemetry: TelemetryHealth | None, *, has_event_log: bool) -> list[Cause]:
    if telemetry is not None and telemetry.refused is not None:  # which says more: that the disk is full, for one
        return [Cause("event_log", f"telemetry is refused: {telemetry.refused}")]
    if not has_event_log:
        text = "the event log is not the one that this database knows: telemetry is refused"
        return [Cause("event_log", text)]
    if telemetry is None:
        return []
    if (telemetry.oldest_unread_s or 0.0) > HEALTH_UNREAD_LATE_S:
        waiting = f"{telemetry.unread_files} files of events wait for the pipeline"
        return [Cause("pipeline", f"{waiting}, the oldest for {telemetry.oldest_unread_s:.0f} s")]
    return []


def _clock(row: HealthRow, *, now_s: float | None) -> list[Cause]:
    if now_s is None or row.clock_s is None or abs(now_s - row.clock_s) <= CLOCK_OFF_S:
        return []
    off_s = now_s - row.clock_s
    way = "ahead of" if off_s > 0 else "behind"
    off = f"the clock of this control plane is {duration(abs(off_s))} {way} that of Postgres"
    return [Cause("clock", f"{off}: ages and waits are off by as much; set both right")]


def _are(number: int, noun: str) -> str:
    return f"{counted(number, noun)} {'is' if number == 1 else 'are'}"
