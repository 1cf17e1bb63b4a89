"""The values that deciding is about. Units end the names; ``None`` means "not known" and is never zero.

A value that exists is valid: ``__post_init__`` refuses nonsense. Times called ``at_s`` are Unix seconds.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from headway.errors import Invalid


class Mode(StrEnum):
    """What Headway may do with a pool."""

    ACT = "act"
    RECOMMEND = "recommend"
    PAUSE = "pause"
    PAUSE_UP = "pause_up"
    PAUSE_DOWN = "pause_down"


class WorkerState(StrEnum):
    """Where a worker is in its life; the moves are drawn in ``agent/workers/lifecycle.py``."""

    STARTING = "starting"
    RUNNING = "running"
    DRAINING = "draining"
    BACKING_OFF = "backing_off"
    UNKNOWN = "unknown"
    """A process that says it is a worker, of which its agent has no record: it takes a place and is left alone."""
    GONE = "gone"


class HostState(StrEnum):
    """What people have said of a host. A cordoned one keeps what runs and gets nothing new; a draining one empties."""

    SERVING = "serving"
    CORDONED = "cordoned"
    DRAINING = "draining"


class HostProblemKind(StrEnum):
    """What of a host keeps its agent from its work."""

    STATE_FOLDER = "state_folder"
    """The folder in which it records what runs takes no more: it starts no worker."""
    LOG_FOLDER = "log_folder"
    """The folder of what workers print takes no more."""
    HOST_FILE = "host_file"
    """The changed host file has mistakes, and the one before is in force."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostProblem:
    """One thing that keeps an agent from its work, and the errno that the system gave for it, 0 where none."""

    kind: HostProblemKind
    error_number: int = 0


class EventKind(StrEnum):
    """What happened to a job, or ``sample`` for a reading of a queue."""

    ENQUEUED = "enqueued"
    STARTED = "started"
    FINISHED = "finished"
    FAILED = "failed"
    RETRIED = "retried"
    SAMPLE = "sample"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobEvent:
    """One thing that happened to one job.

    Starts carry when it was enqueued, ends when it started: no join is needed.
    """

    queue: str
    job_id: str
    kind: EventKind
    at_s: float
    enqueued_at_s: float | None = None
    started_at_s: float | None = None
    job_class: str | None = None
    attempt: int | None = None
    """Which attempt of the job it is about, 1 the first; ``None``: not known, and taken for the first."""

    def __post_init__(self) -> None:
        breaches = [f"{name} is empty" for name in ("queue", "job_id") if not getattr(self, name)]
        if self.attempt is not None and self.attempt < 1:
            breaches.append(f"event of job {self.job_id!r}: attempt={self.attempt} is below 1, the first")
        if self.kind is EventKind.SAMPLE:
            breaches.append(f"kind 'sample' of job {self.job_id!r} is no job event; send a queue sample")
        if breaches:
            raise Invalid(*breaches)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueSample:
    """One reading of a queue in its broker.

    ``oldest_age_s`` is 0 when nothing waits, ``None`` when it cannot be known; reserved jobs wait as well.
    """

    queue: str
    at_s: float
    waiting_jobs: int
    in_flight_jobs: int | None = None
    delayed_jobs: int | None = None
    oldest_age_s: float | None = None
    reserved_jobs: int | None = None
    """Of those in flight, the ones that a worker has taken and not begun: no other worker can have them."""
    oldest_age_max_s: float | None = None
    """Where the age is not exact, the most that it may be; ``None``: it is exact."""
    reports_arrivals: bool | None = None
    """Whether the source reports each arrival as an event; ``None``: it does not say."""
    reports_starts: bool | None = None
    reports_ends: bool | None = None
    poll_interval_s: float | None = None
    """From one reading of the queue to the next, by now; ``None``: the source does not say."""

    def __post_init__(self) -> None:
        breaches = [] if self.queue else ["queue is empty"]
        for name in (
            "waiting_jobs",
            "in_flight_jobs",
            "delayed_jobs",
            "oldest_age_s",
            "reserved_jobs",
            "oldest_age_max_s",
            "poll_interval_s",
        ):
            value = getattr(self, name)
            if value is not None and value < 0:
                breaches.append(f"sample of queue {self.queue!r}: {name}={value} is negative")
        if breaches:
            raise Invalid(*breaches)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueCounts:
    """How many jobs of a queue there were since the counters of its producer began; ``None``: not counted."""

    queue: str
    at_s: float
    epoch: str
    """Names one life of the counters: they begin at 0 with a new one, and never fall within one."""
    arrived_jobs: int | None = None
    started_jobs: int | None = None
    finished_jobs: int | None = None
    """Ends without a failure."""
    failed_jobs: int | None = None

    def __post_init__(self) -> None:
        breaches = [] if self.queue else ["queue is empty"]
        if not self.epoch:
            breaches.append(f"counts of queue {self.queue!r}: epoch is empty")
        breaches += [
            f"counts of queue {self.queue!r}: {name}={getattr(self, name)} is negative"
            for name in ("arrived_jobs", "started_jobs", "finished_jobs", "failed_jobs")
            if (getattr(self, name) or 0) < 0
        ]
        if breaches:
            raise Invalid(*breaches)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerActivity:
    """What a broker knows of one worker process: whether it has a job. Joined to a host's workers by host and pid."""

    host: str
    pid: int
    is_busy: bool
    busy_since_s: float | None = None
    ended_jobs: int | None = None
    """Jobs that it has ended since it began; ``None`` where the broker does not count them."""
    running_jobs: int | None = None
    """Jobs that it has begun and not ended, without what it has reserved; ``None`` where the broker does not say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TelemetryBatch:
    """What one producer sends at once. ``(producer, sequence)`` identifies it: sent twice, it counts once."""

    producer: str
    sequence: int
    sent_at_s: float
    events: tuple[JobEvent, ...] = ()
    samples: tuple[QueueSample, ...] = ()
    activities: tuple[WorkerActivity, ...] = ()
    counts: tuple[QueueCounts, ...] = ()
    dropped_events: int = 0
    """Events that the producer lost since its last batch: it had no room for them."""

    def __post_init__(self) -> None:
        breaches = [] if self.producer else ["producer is empty"]
        breaches += [
            f"batch of producer {self.producer!r}: {name}={getattr(self, name)} is negative"
            for name in ("sequence", "dropped_events")
            if getattr(self, name) < 0
        ]
        if breaches:
            raise Invalid(*breaches)


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """What became of a batch: it is durable. A duplicate was counted when it first came, and adds nothing."""

    is_duplicate: bool
    accepted_events: int = 0
    accepted_samples: int = 0
    corrected_times: int = 0
    refused_items: int = 0
    """Events and samples that were left out, because there is no room for their queues."""
    refused: str = ""
    """Why they were, and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective:
    """The objective: ``percentile`` % of the jobs of a window of ``window_s`` start within ``target_s``."""

    target_s: float = 10.0
    percentile: float = 99.0
    window_s: float = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureLimit:
    """From when on failures are an incident: more than ``share`` of the jobs that ended in ``window_s`` failed."""

    share: float = 0.2
    window_s: float = 300.0
    jobs_min: int = 3
    """Fewer failed jobs than these are none: a single job that fails at night must wake nobody."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrivals:
    """Jobs that arrived in one short span, and how long ago the span ended."""

    jobs: int
    ended_ago_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueMetrics:
    """What is known of one queue at a moment.

    ``sampled_at_s`` dates the depths; rates are over the ``window_s`` before now.
    """

    queue: str
    sampled_at_s: float | None = None
    waiting_jobs: int | None = None
    in_flight_jobs: int | None = None
    reserved_jobs: int | None = None
    """Of those in flight, the ones that a worker has taken and not begun: they wait, and no other can have them."""
    delayed_jobs: int | None = None
    oldest_age_s: float | None = None
    oldest_age_max_s: float | None = None
    """Where the age is not exact, the most it may be; ``None``: it is exact, or no bound is known."""
    has_unknown_rates: bool = False
    """Whether its source leaves arrivals, starts or ends unreported: a rate that is ``None`` is then not known, and
    deciding estimates it from depths. ``False``: every event is reported."""
    in_flight_mean_jobs: float | None = None
    """Over the window."""
    window_s: float = 60.0
    arrived_jobs: int | None = None
    """In the newest whole span, which ended at ``arrived_until_s``."""
    arrived_until_s: float | None = None
    retried_jobs: int | None = None
    """Of ``arrived_jobs``, those that came back for another attempt: work like any, and no news of what will come."""
    arrival_rate_per_s: float | None = None
    retry_rate_per_s: float | None = None
    """The part of ``arrival_rate_per_s`` that came back."""
    start_rate_per_s: float | None = None
    late_rate_per_s: float | None = None
    """Jobs that started later than the objective allows."""
    completion_rate_per_s: float | None = None
    failure_rate_per_s: float | None = None
    arrival_trend_per_s2: float | None = None
    service_time_s: float | None = None
    service_batch_s: float | None = None
    """Mean service time of the jobs that ended in one span, over spans by their work: where long jobs come in batches
    among many short ones, that of the batches."""
    service_p95_s: float | None = None
    pickup_p50_s: float | None = None
    pickup_p95_s: float | None = None
    pickup_p99_s: float | None = None
    pickup_objective_s: float | None = None
    """The objective's percentile of finished waits over the objective's window."""
    arrivals: tuple[Arrivals, ...] = ()
    """Recent arrivals by span, newest first: with the depth they give the age of every waiting job."""

    @property
    def running_jobs(self) -> int | None:
        """Those in flight that have begun: each has a slot. What is reserved and not begun has none yet."""
        return None if self.in_flight_jobs is None else max(0, self.in_flight_jobs - (self.reserved_jobs or 0))

    @property
    def fresh_jobs(self) -> int | None:
        """``arrived_jobs`` without those that came back: what a forecast learns from."""
        return None if self.arrived_jobs is None else max(0, self.arrived_jobs - (self.retried_jobs or 0))

    @property
    def fresh_rate_per_s(self) -> float | None:
        """``arrival_rate_per_s`` without those that came back."""
        if self.arrival_rate_per_s is None:
            return None
        return max(0.0, self.arrival_rate_per_s - (self.retry_rate_per_s or 0.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """How a host starts one worker, as the host reports it: never its argv, only what placing needs."""

    name: str
    content_hash: str
    slots: int = 1
    cpu_cores: float = 0.1
    memory_bytes: int = 128 * 1024 * 1024
    gpus: int = 0
    labels: Mapping[str, str] = field(default_factory=dict)
    isolation_drain_after_s: float | None = None
    """Cut off from the control plane for this long, the host drains its workers; ``None``: never."""
    drain_timeout_s: float | None = None
    """For how long one that drains may work on before it is ended; ``None``: for ever, or not known."""
    start_up_s: float | None = None
    """Measured time from spawn to ready on that host."""
    start_up_p95_s: float | None = None
    """What 95 % of its last start-ups there took at most."""
    start_up_cpu_s: float | None = None
    """Measured CPU seconds from spawn to ready there."""
    exit_s: float | None = None
    """Measured time there from the request to stop to the end of the process, of workers without a job."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostCapacity:
    """What a host can give to workers, its reserve taken off and its present workers not."""

    cpu_cores: float
    memory_bytes: int
    gpus: int = 0
    cpu_pressure: float | None = None
    """Share of the last seconds in which some task waited for a processor, 0 to 1; ``None``: not known."""
    memory_pressure: float | None = None
    """The same for memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """One worker process as its agent last reported it. ``is_busy`` None is unknown and treated as busy."""

    worker_id: str
    pool: str
    template: str
    pid: int
    state: WorkerState
    started_at_s: float
    is_burst: bool = False
    is_busy: bool | None = None
    busy_since_s: float | None = None
    running_jobs: int | None = None
    """Jobs that it has begun and not ended, by its broker; ``None``: not known."""
    restart_generation: int = 0
    template_hash: str = ""
    """Of the template that it was started from; empty where that is not known."""
    memory_bytes: int | None = None
    """What it and its children take; ``None``: not measured."""
    is_forced: bool | None = None
    """Its drain deadline is over, and so it is or was ended by force; ``None``: not known."""
    state_since_s: float | None = None
    """When it came into its state, by the clock of ``started_at_s``; ``None``: not known."""
    state_reported_s: float | None = None
    """When that was known here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StartUp:
    """One start of a worker, from spawn to ready."""

    template: str
    start_up_s: float
    cpu_s: float | None = None
    """What the worker and its children took of processors until then; ``None``: not measured."""
    waited_s: float | None = None
    """How long of ``start_up_s`` it could have gone on and had no core; ``None``: not measured."""

    @property
    def alone_s(self) -> float | None:
        """What the start would have taken with a core of its own; ``None``: not measured."""
        return None if self.waited_s is None else max(0.0, self.start_up_s - self.waited_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Exit:
    """One end of a worker that had no job when it was asked to stop, from the request to the end of its process."""

    template: str
    exit_s: float
    cpu_s: float | None = None
    """What the worker took of processors meanwhile; ``None``: not measured."""
    waited_s: float | None = None
    """How long of ``exit_s`` it could have gone on and had no core; ``None``: not measured."""

    @property
    def alone_s(self) -> float | None:
        """What the end would have taken with a core of its own; ``None``: not measured."""
        return None if self.waited_s is None else max(0.0, self.exit_s - self.waited_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """One host as the control plane knows it.

    ``is_known`` False: its lease ended, so its workers are unknown, not zero.
    """

    host_id: str
    name: str
    capacity: HostCapacity
    templates: tuple[Template, ...] = ()
    workers: tuple[Worker, ...] = ()
    is_known: bool = True
    labels: Mapping[str, str] = field(default_factory=dict)
    state: HostState = HostState.SERVING
    silent_s: float | None = None
    """Since its last report; ``None``: it never reported."""
    failing: frozenset[str] = frozenset()
    """Templates whose workers, of late, have done nothing here but end too early."""
    is_undecided: bool = False
    """Nobody has decided yet what it is to run: it is new, was forgotten, or acts on orders that were lost."""
    is_confirmed: bool = True
    """False: the database was perhaps restored since its last report, and what is known of it may be of long ago."""
    problems: tuple[HostProblem, ...] = ()
    """What keeps its agent from its work."""

    @property
    def can_write(self) -> bool:
        """Whether its agent can record what it starts, and workers can print; else it gets nothing new."""
        return all(each.kind is HostProblemKind.HOST_FILE for each in self.problems)


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """What one host runs of one pool. Base workers stay; burst workers exit by themselves when the queue is empty."""

    pool: str
    host_id: str
    template: str
    base_workers: int
    burst_workers: int = 0
    restart_generation: int = 0
    is_exclusive: bool = False
    """No more may ever exist, those that drain included: where one is replaced, it ends before the next starts."""

    def __post_init__(self) -> None:
        if self.base_workers < 0 or self.burst_workers < 0:
            raise Invalid(
                f"assignment of pool {self.pool!r} to host {self.host_id!r}: "
                f"base_workers={self.base_workers}, burst_workers={self.burst_workers}; neither may be negative"
            )

    @property
    def workers(self) -> int:
        """Base and burst together."""
        return self.base_workers + self.burst_workers


@dataclass(frozen=True, slots=True, kw_only=True)
class Hint:
    """What the broker says of one worker process of a host."""

    pid: int
    is_busy: bool
    since_age_s: float | None
    """How long it has been busy; ``None`` where the broker does not say."""
    age_s: float
    """How old this knowledge is."""
    ended_jobs: int | None = None
    """Jobs that it has ended since it began; ``None`` where the broker does not count them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """A reason to want workers, in slots (jobs at once), fractional, at least 0."""

    name: str
    slots: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A limit and the number of workers it left."""

    name: str
    workers: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DayBudget:
    """A decision's figures of the day's budget, in worker-seconds."""

    day: str
    """As ``2026-11-27``, of the profile's ``budget_time_zone``."""
    budget_worker_s: float
    paid_worker_s: float
    overrun_worker_s: float = 0.0
    """Paid beyond the budget: jobs that ran when it was spent are not ended."""
    finishing_workers: int = 0
    """Workers that are there though nothing is left: they finish their jobs."""
    is_whole: bool = True
    """Whether all of the day is known; else these are of the part that is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """How many workers a pool should have, and the whole story of why. The stored value is the only story."""

    pool: str
    at_s: float
    target_workers: int
    burst_workers: int = 0
    """How many of them are burst: they exit by themselves when the queue is empty."""
    binding: str
    """The demand or limit that gave the number its last word."""
    mode: Mode = Mode.ACT
    """What Headway was allowed to do with the pool."""
    objective: Objective | None = None
    """The objective it was decided for."""
    demands: tuple[Demand, ...] = ()
    steps: tuple[Step, ...] = ()
    metrics: tuple[QueueMetrics, ...] = ()
    recalled_jobs: float | None = None
    """Jobs that the past predicts for this time and that have not come yet, where the pool is exposed."""
    recalled_weeks: int | None = None
    """How many weeks predict them; ``None`` where earlier days do."""
    running_workers: int = 0
    starting_workers: int = 0
    unknown_workers: int = 0
    leaving_workers: int = 0
    """Those that were asked to stop and still run."""
    is_fresh: bool = True
    metrics_age_s: float | None = None
    """How old the metrics were, where they were not fresh; ``None``: they were, or nothing was ever seen."""
    is_failing: bool = False
    """Its template's workers, of late, have only ended too early, wherever they could be."""
    predicted_pickup_s: float | None = None
    day_budget: DayBudget | None = None
    """``None`` where the profile sets no budget of the day."""
    notes: tuple[str, ...] = ()


MEMORY_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """How many workers the demands and bounds asked for at a moment."""

    at_s: float
    workers: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LastMove:
    """When a target last changed, and whether it rose."""

    at_s: float
    is_up: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldCosts:
    """What each of the waits before scaling down that are tried has cost, in worker-seconds, and the count it keeps."""

    began_at_s: float
    """Newer costs weigh more, by their distance from this time."""
    at_s: float
    levels: tuple[int, ...]
    """By wait, the shortest first."""
    bands: tuple[tuple[float, ...], ...] = ()
    """Costs by band of workers, each by wait."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DayPaid:
    """What a pool's workers have been paid for on a day, up to a moment; from then on ``workers`` are paid."""

    day: str
    """As ``2026-11-27``, of the profile's ``budget_time_zone``."""
    at_s: float
    paid_worker_s: float
    workers: int
    since_s: float
    """From when on all is counted: of a day that is known as a whole, its beginning."""
    service_s: float | None = None
    """The service time that was measured last, to two digits: of jobs of hours none may end for long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """Jobs that one sample of a queue showed first and that, as far as is known, still wait."""

    at_s: float
    since_s: float | None
    """Of the sample before, which did not show them; ``None``: there was none."""
    jobs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueDepths:
    """What the samples of one queue showed whose source does not report every event."""

    queue: str
    sampled_at_s: float
    sightings: tuple[Sighting, ...] = ()
    """Of the jobs that wait, the oldest first."""
    part_jobs: float = 0.0
    """What is estimated to have started beyond whole jobs, below 1."""
    arrived_jobs: int = 0
    """From the sample before to the newest, estimated."""
    arrival_rate_per_s: float = 0.0
    """Estimated, over about a minute."""
    start_rate_per_s: float = 0.0
    """The same of starts."""

    @property
    def waiting_jobs(self) -> int:
        """Jobs that the newest sample showed."""
        return sum(each.jobs for each in self.sightings)


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolDepths:
    """What the samples showed of those queues of a pool whose sources do not report every event."""

    queues: tuple[QueueDepths, ...] = ()
    """Empty where nothing waited and no slot was busy."""
    busy_slots: int = 0
    """When the newest samples were taken."""
    cycle_s: float | None = None
    """From one start to the next in a slot while jobs wait, at most; ``None``: no drain has shown it yet."""
    ended_jobs: float = 0.0
    """At least so many ended in the drain that goes on; old ones fade."""
    busy_slot_s: float = 0.0
    """Slots worked for so long meanwhile, at most; this fades likewise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredService:
    """How long the jobs of a pool took that ended last, to two digits."""

    time_s: float
    """Their mean service time."""
    batch_s: float | None = None
    """The same weighted by work; ``None``: not measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """What deciding must remember between two evaluations of a pool.

    Stored when it changes; a version that does not fit is dropped, and deciding holds.
    """

    version: int = MEMORY_VERSION
    target_workers: int | None = None
    paused_workers: int | None = None
    """The count that a pause keeps, apart from the last target, which lost hosts lower; ``None``: nothing is paused."""
    wanted: tuple[Wanted, ...] = field(default=())
    """Recent wants, newest last, for the hold before scaling down."""
    lows: tuple[Wanted, ...] = ()
    """Recent wants that no later one was below, newest last, for the hold before scaling up."""
    last_move: LastMove | None = None
    hold_costs: HoldCosts | None = None
    """What each wait before scaling down would have cost; ``None`` where the profile sets the wait."""
    missed_evaluations: int = 0
    """In a row without fresh metrics, where the profile waits for so many: no further than it does."""
    held_since_s: float | None = None
    """Since when too few jobs to wake the pool have been there; ``None``: it is awake, or has none."""
    day_paid: DayPaid | None = None
    """``None`` where the profile sets no budget of the day."""
    depths: PoolDepths | None = None
    """``None`` where the sources of all queues report events."""
    service: MeasuredService | None = None
    """``None`` until a job has ended."""
    strategy_state: Mapping[str, Any] = field(default_factory=dict)
    """What the strategy asked to be given next time: JSON-able."""
