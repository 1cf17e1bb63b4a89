"""What the conditions of the installation are read off: what Postgres knows, and what one control plane knows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

CLOCK_OFF_S = 5.0  # of Postgres's clock, which dates what agents and pipelines do, or of the control plane's
ENDED_SHOWN_S = 120.0  # whoever goes on asking asks more often
EXPIRES_WITHIN_S = 86_400.0  # from then on it is an incident; the log and /metrics warn weeks before
HEALTH_LEADER_SILENT_S = 10.0  # a standby ends a leader silent for 8 s
HEALTH_PARTITION_DAYS_MIN = 6  # upkeep makes seven ahead, every ten minutes
HEALTH_PIPELINE_BEHIND_S = 10.0  # two buckets; a batch takes a second
HEALTH_READ_LATE_S = 10.0  # collectors report every queue each 5 s
HEALTH_ROLLUPS_LATE_S = 900.0  # they are made every minute; after a rebuild of two hours within a few
HEALTH_UNREAD_LATE_S = 60.0  # a batch takes a second
HEARTBEAT_MISSED_S = 5.0  # of a pipeline, which has one every second
PIPELINE_SILENT_S = 180.0  # longer than a warm-up may take without a word
WRONG_SHOWN_S = 60.0


class PipelineTrouble(StrEnum):
    """Why a pipeline measures nothing: what health says after its name, with its figures in the braces."""

    STOPPED = "was stopped {written_age_s:.0f} s ago: start `headway pipeline`"
    CRASHED = "crashed {written_age_s:.0f} s ago: nothing is measured until it is restarted"
    NOT_RESPONDING = (
        "not responding: no heartbeat for {beat_age_s:.0f} s, so nothing is measured; it is stopped, hung or killed, "
        "and its log may say why"
    )
    RESTARTING = "crashed, restarting: nothing is measured until it is ready"
    HANGING = (
        "hangs in a batch: it answers, and has not written for {lag_s:.0f} s while samples arrive, so nothing is "
        "measured; its log may say why"
    )
    BEHIND = "has not written for {lag_s:.0f} s while samples arrive"
    """It has no heartbeat that could show whether it answers."""
    SILENT = "has reported nothing for {written_age_s:.0f} s since it was {stage}: see its log"
    STARTING = "is {stage}: nothing is measured yet"


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineRow:
    """How far one pipeline is. ``lag_s`` is how long something newer has been waiting for it, 0 when nothing has."""

    pipeline: str
    is_ready: bool
    written_age_s: float
    batch_s: float
    lag_s: float
    stage: str = "ready"
    rows_lag_s: float | None = None
    """How old the newest event was when its rows were there, in the last batch that brought any."""
    beat_age_s: float | None = None
    """Since it last answered; ``None`` of one that has no heartbeat."""
    lacks: str | None = None
    """What it leaves out for want of a right in Postgres."""

    @property
    def trouble(self) -> PipelineTrouble | None:
        """What is not well with it; ``None`` of one that is well."""
        if self.stage in {"stopped", "crashed"}:
            return PipelineTrouble[self.stage.upper()]
        if self.beat_age_s is not None and self.beat_age_s > HEARTBEAT_MISSED_S:
            return PipelineTrouble.NOT_RESPONDING
        if self.stage == "restarting":
            return PipelineTrouble.RESTARTING
        if not self.is_ready:
            return PipelineTrouble.SILENT if self.written_age_s > PIPELINE_SILENT_S else PipelineTrouble.STARTING
        if self.lag_s <= HEALTH_PIPELINE_BEHIND_S:
            return None
        return PipelineTrouble.BEHIND if self.beat_age_s is None else PipelineTrouble.HANGING


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthRow:
    """The installation's own condition. ``leader_age_s`` is ``None`` while nobody ever led."""

    leader: str
    epoch: int
    leader_age_s: float | None
    pipelines: tuple[PipelineRow, ...]
    read_ages_s: Mapping[str, float] = field(default_factory=dict)
    """Broker connection -> since a reading of any of its queues that a profile names came last, where one ever did."""
    clock_s: float | None = None
    """Postgres's clock when this was read."""
    partition_days: int | None = None
    """For how many days more, today's not counted, decisions have a place to be stored."""
    rollups_behind_s: float | None = None
    """How much of what the pipeline has written is not in minutes yet; ``None`` where it has written nothing."""
    expiring_tokens: int = 0
    """Tokens of people and programs that expire within a day, though they were made for longer."""
    expires_in_s: float | None = None
    """The first of them."""
    shared_connections: int = 0
    """Broker connections that several collectors poll."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessFacts:
    """What one control plane has met by itself: no other can say so for it."""

    has_event_log: bool = True
    """Whether it sees the event log that the database knows."""
    refused: str | None = None
    """Why it refuses telemetry; ``None`` while it is accepted."""
    flush_s: float | None = None
    """From receiving a batch to its being durable, in the last group; ``None`` before the first."""
    unread_files: int = 0
    """That wait for the pipeline."""
    unread_bytes: int = 0
    oldest_unread_s: float | None = None
    """How long the oldest of them has been waiting; ``None`` where none waits."""
    failing_upkeep: Mapping[str, str] = field(default_factory=dict)
    """Part of upkeep -> why it fails."""
    certificate_left_s: float | None = None
    """Until its certificate ends, below 0 once it has; ``None``: it has none."""
    ended_calls: int = 0
    """Calls of the last ``ENDED_SHOWN_S`` with a token or credential that was revoked or has expired."""
    wrong_clocks_s: Sequence[float] = ()
    """By how far the clocks of senders are behind its own, negative where ahead, the farthest first."""
    future_times: int = 0
    """Times of jobs of the last ``WRONG_SHOWN_S`` that lay in the future."""
    backward_waits: int = 0
    """Jobs of the last ``WRONG_SHOWN_S`` that were started before they were enqueued."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InstallationFacts:
    """What is known of the installation at one moment."""

    known: HealthRow
    process: ProcessFacts = ProcessFacts()
    now_s: float | None = None
    """By this control plane's clock, when ``known`` was read; ``None``: the clock is not judged."""

    @property
    def is_led(self) -> bool:
        """Whether a leader has shown itself of late."""
        return self.known.leader_age_s is not None and self.known.leader_age_s <= HEALTH_LEADER_SILENT_S

    @property
    def is_telemetry_refused(self) -> bool:
        """Whether this control plane takes no telemetry."""
        return self.process.refused is not None or not self.process.has_event_log

    @property
    def unread_brokers_s(self) -> Sequence[float]:
        """Since when each broker was not read that is late.

        What collectors read is telemetry too: where that is refused, they and their brokers are not to blame.
        """
        ages_s = () if self.is_telemetry_refused else self.known.read_ages_s.values()
        return [age_s for age_s in ages_s if age_s > HEALTH_READ_LATE_S]

    @property
    def clock_off_s(self) -> float:
        """By how far this control plane's clock is ahead of Postgres's; 0 where that is in order, or not known."""
        if self.now_s is None or self.known.clock_s is None:
            return 0.0
        off_s = self.now_s - self.known.clock_s
        return off_s if abs(off_s) > CLOCK_OFF_S else 0.0
