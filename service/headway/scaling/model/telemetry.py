"""What sources report of queues, jobs and workers, and what becomes of it."""

from dataclasses import dataclass
from enum import StrEnum
from itertools import repeat
from operator import attrgetter, lt

from headway.errors import Invalid
from headway.scaling.model.due_jobs import DueJobs, due_breaches
from headway.scaling.model.redelivery import Redelivery
from headway.scaling.model.suspension import Suspension


class EventKind(StrEnum):
    """What happened to a job, or ``sample`` for a reading of a queue."""

    ENQUEUED = "enqueued"
    STARTED = "started"
    FINISHED = "finished"
    FAILED = "failed"
    RETRIED = "retried"
    REVOKED = "revoked"
    """It left its queue without a start: revoked by a person, or expired."""
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
    received_at_s: float | None = None
    """Of a start: when a worker first took this attempt from its queue; ``None``: not known."""
    is_redelivered: bool | None = None
    """Another worker had it before, and put it back: ``received_at_s`` is of the worker that began it."""

    def __post_init__(self) -> None:
        breaches = [] if self.queue else ["queue is empty"]
        if not self.job_id:
            breaches.append("job_id is empty")
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
    waiting_jobs: int | None
    """``None`` where the source knows only ``waiting_min_jobs``."""
    in_flight_jobs: int | None = None
    """``None`` where the source knows only ``in_flight_min_jobs``, or nothing."""
    delayed_jobs: int | None = None
    oldest_age_s: float | None = None
    reserved_jobs: int | None = None
    """Of those in flight, the ones that a worker has taken and not begun: no other worker can have them."""
    oldest_age_max_s: float | None = None
    """Where the age is not exact, the most that it may be; ``None``: it is exact."""
    reports_arrivals: bool | None = None
    """Whether each arrival is reported as an event, by this source or by another; ``None``: that is not said."""
    reports_starts: bool | None = None
    reports_ends: bool | None = None
    poll_interval_s: float | None = None
    """From one reading of the queue to the next, by now; ``None``: the source does not say."""
    listed_workers: int | None = None
    """Workers that serve the queue, whoever started them, as the broker lists them; ``None``: it cannot say."""
    suspension: Suspension | None = None
    """What keeps workers from taking its jobs, by the word of the broker; ``None``: the broker cannot say."""
    useful_workers: int | None = None
    """At most so many workers get its jobs at a time, however many serve it; ``None``: no such bound is known."""
    message_ttl_s: float | None = None
    """The broker itself drops a job that has waited so long, as its queue is configured; ``None``: it does not, or the
    source does not say."""
    redelivery: Redelivery | None = None
    """What becomes of a job whose worker died; ``None``: the broker gives it back at once, or nobody says so."""
    waiting_min_jobs: int | None = None
    """At least so many jobs wait, where ``waiting_jobs`` is not known. Where it is, the others of them were delayed,
    are due, and are not in the queue yet: no worker takes them before somebody has moved them."""
    in_flight_min_jobs: int | None = None
    """Workers have at least so many jobs, where ``in_flight_jobs`` is not known."""
    due: tuple[DueJobs, ...] = ()
    """When those of ``delayed_jobs`` are due, or at least so many where that is ``None``. Of those beyond the last
    count nothing is said but that they are due later; empty: it is not known when any is."""

    @property
    def overdue_jobs(self) -> int:
        """Of those that wait, the ones that are due and not in the queue yet."""
        if self.waiting_jobs is None or self.waiting_min_jobs is None:
            return 0
        return self.waiting_jobs - self.waiting_min_jobs

    def __post_init__(self) -> None:
        breaches = [] if self.queue else ["queue is empty"]
        if self.waiting_jobs is None and self.waiting_min_jobs is None:
            breaches.append(f"sample of queue {self.queue!r}: give waiting_jobs, or at least waiting_min_jobs")
        figures = _figures_of(self)
        if any(map(lt, filter(None, figures), repeat(0))):  # a collector makes thousands of samples per second
            breaches += [
                f"sample of queue {self.queue!r}: {name}={value} is negative"
                for name, value in zip(_FIGURES, figures, strict=True)
                if value is not None and value < 0
            ]
        if self.waiting_min_jobs is not None or self.in_flight_min_jobs is not None:
            breaches += [
                f"sample of queue {self.queue!r}: {name}_min_jobs={least} exceeds {name}_jobs={exact}"
                for name, least, exact in (
                    ("waiting", self.waiting_min_jobs, self.waiting_jobs),
                    ("in_flight", self.in_flight_min_jobs, self.in_flight_jobs),
                )
                if least is not None and exact is not None and least > exact
            ]
        if self.due:
            wrong = due_breaches(self.due, delayed_jobs=self.delayed_jobs)
            breaches += [f"sample of queue {self.queue!r}: {breach}" for breach in wrong]
        if breaches:
            raise Invalid(*breaches)


_FIGURES = (
    "waiting_jobs",
    "in_flight_jobs",
    "delayed_jobs",
    "oldest_age_s",
    "reserved_jobs",
    "oldest_age_max_s",
    "poll_interval_s",
    "listed_workers",
    "useful_workers",
    "message_ttl_s",
    "waiting_min_jobs",
    "in_flight_min_jobs",
)
_figures_of = attrgetter(*_FIGURES)


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
    busy_queue: str | None = None
    """The queue of its running jobs, where all of them are of one; ``None``: not known."""
    is_withdrawn: bool = False
    """The broker does not say this any more: from now on what the worker does is not known, whatever the rest says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EnteredJob:
    """One attempt of a job that a reading of its queue found for the first time."""

    job_id: str
    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PolledQueue:
    """A queue as one reading of its broker found it."""

    queue: str
    waiting_jobs: int
    held_jobs: int | None = None
    """What workers have taken and not acknowledged; ``None``: not known."""
    consumers: int | None = None
    entered: tuple[EnteredJob, ...] = ()
    """The jobs that the reading before did not find."""
    is_complete: bool = False
    """Whether this reading and those before it have named each job that waits."""
    is_ordered: bool = False
    """Whether the broker hands out jobs in the order in which they entered, and the figures are of this moment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerPoll:
    """One reading of a broker, for when jobs entered.

    Of each queue of the connection that is not named, no job waits and no worker holds one.
    """

    connection: str
    at_s: float
    """Before the first question."""
    until_s: float
    """After the last answer."""
    after_s: float | None = None
    """``at_s`` of the reading before; ``None``: there was none, or it may have been of another server."""
    queues: tuple[PolledQueue, ...] = ()
    finds_all: bool = False
    """Whether every queue that was there at ``at_s`` was read: one that is read later was not there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueReceptions:
    """When the workers of one host took jobs of a queue, from ``since_s`` to ``until_s``."""

    queue: str
    since_s: float
    """``until_s`` of the message before."""
    until_s: float
    received_at_s: tuple[float, ...] = ()
    workers: int = 0
    """Workers of the host that consume the queue and report."""
    is_prompt: bool = False
    """Whether each of them notices a job as soon as the broker hands it out."""
    is_whole: bool = False
    """Whether nothing is known to be missing."""


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
    polls: tuple[BrokerPoll, ...] = ()
    receptions: tuple[QueueReceptions, ...] = ()
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
