"""Hosts, their templates and workers as agents report them, and what a host is to run."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from headway.errors import Invalid
from headway.scaling.model.queue_order import QueueOrder
from headway.scaling.model.start_failure import StartFailure


class WorkerState(StrEnum):
    """Where a worker is in its life; the moves are drawn in ``agent/workers/lifecycle.py``."""

    STARTING = "starting"
    RUNNING = "running"
    DRAINING = "draining"
    BACKING_OFF = "backing_off"
    UNKNOWN = "unknown"
    """A process that says it is a worker, of which its agent has no record: it takes a place and is left alone."""
    GONE = "gone"


class ActivitySource(StrEnum):
    """Who says whether a worker is busy. Only the first two may say that it is idle; the others only prove it busy."""

    REPORTER = "reporter"
    """The worker's own report, through the agent's pipe."""
    BROKER = "broker"
    """The broker's record of this worker."""
    CPU = "cpu"
    """The processor time that its processes take."""
    CHILD = "child"
    """A child process of a library that forks one per job."""


class Inability(StrEnum):
    """Why a worker takes no jobs."""

    STOPPED = "stopped"
    """Its process was stopped by a signal, as by a debugger."""
    ZOMBIE = "zombie"
    """Its main process has ended, and the process that started it takes no note."""
    CONSUMERS_CANCELLED = "consumers_cancelled"
    """It consumes none of its queues."""
    POOL_SHRUNK = "pool_shrunk"
    """It runs fewer jobs at once than its template says."""


class CutCause(StrEnum):
    """What ended a worker that may have had a job."""

    DRAIN_DEADLINE = "drain_deadline"
    """The deadline that a person has set for such workers."""
    KILLED = "killed"
    """A person, who asked Headway for it."""
    SIGNAL = "signal"
    """A signal that Headway did not send, as that of a kernel that is short of memory."""
    VANISHED = "vanished"
    """It was gone when its agent came back, or has ended under an agent that could not see how."""
    ENDED = "ended"
    """The worker, or the process that ran the job, ended before the job did, without having been killed by Headway."""
    REBOOT = "reboot"
    """Its host booted."""


RUNNING_JOBS_NAMED_MAX = 100  # of one worker; of more running jobs only the number is told

COUNTED = frozenset({WorkerState.STARTING, WorkerState.RUNNING, WorkerState.BACKING_OFF, WorkerState.UNKNOWN})
"""Of workers that an assignment counts: one that drains is on its way out."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """How a host starts one worker, as the host reports it: never its argv, only what placing needs."""

    name: str
    content_hash: str
    slots: int = 1
    """Jobs that one worker runs at once: as its workers report, once one has, else what host.toml says."""
    written_slots: int | None = None
    """What host.toml says, where its workers report another number; ``None``: the same, or none has reported one."""
    cpu_cores: float = 0.1
    memory_bytes: int = 128 * 1024 * 1024
    gpus: int = 0
    labels: Mapping[str, str] = field(default_factory=dict)
    isolation_drain_after_s: float | None = None
    """Cut off from the control plane for this long, the host drains its workers; ``None``: never."""
    drain_timeout_s: float | None = None
    """For how long one that drains may work on before it is ended; ``None``: for ever, or not known."""
    job_limit_s: float | None = None
    """After how long the library of its workers cuts a job by itself; ``None``: never, or not known."""
    job_limit: str = ""
    """The option that sets that."""
    leaves_due_jobs: bool = False
    """Whether its workers never move jobs that are due later into their queue: RQ's without ``--with-scheduler``."""
    queue_order: QueueOrder | None = None
    """In what order one of its workers takes from its queues; ``None``: not known."""
    strict_queues: tuple[str, ...] = ()
    """Of ``STRICT``: its queues from the first to the last, by the library's own names."""
    queues_allowed: tuple[str, ...] = ()
    """Patterns of the queues whose names its workers' command lines take from the control plane; empty: they name
    their queues themselves."""
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
class RunningJob:
    """A job that a worker reported to have begun, and not to have ended."""

    job_id: str
    queue: str
    job_class: str | None = None
    attempt: int | None = None
    """Which attempt of the job it is, 1 the first; ``None``: not known."""
    started_at_s: float
    """Unix seconds."""


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
    """Jobs that it has begun and not ended, by its own report or its broker; ``None``: not known."""
    running: tuple[RunningJob, ...] = ()
    """Those of them that it named, at most ``RUNNING_JOBS_NAMED_MAX``."""
    busy_queue: str | None = None
    """The queue of its running jobs, by its broker's record; ``None``: not known."""
    other_jobs: int = 0
    """Jobs of queues of other pools that it runs, where they are in no other figure here."""
    activity_source: ActivitySource | None = None
    """Who says whether it is busy; ``None``: nobody does."""
    activity_known_at_s: float | None = None
    """When that was so, by the clock of ``started_at_s``; ``None``: not known."""
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
    is_left_behind: bool = False
    """It is what a worker has left that ended: it counts until it is gone."""
    inability: Inability | None = None
    """Why it takes no jobs; ``None``: it can, as far as is known."""
    moves_due_jobs: bool = False
    """It alone moves jobs that are due into their queue, and another takes minutes to begin with that."""
    goes_to_background: bool = False
    """A start that ended well has left it: no further worker of its template is started while it is there."""
    start_failure: StartFailure | None = None
    """Of one that starts or backs off, why starts of its kind fail; ``None``: not known, or they do not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CutJob:
    """The end of a worker that had a job, or may have had one, by other means than the worker's own."""

    cut_id: str
    worker_id: str
    pool: str
    template: str
    cause: CutCause
    is_certain: bool
    """Whether the worker had the job for certain; else nobody knows whether it had one."""
    cut_at_s: float | None = None
    """When that was, by the clock of the workers' starts; ``None``: not known."""
    job: RunningJob | None = None
    """``None``: not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KillOrder:
    """A worker that a person wants to be killed."""

    worker_id: str
    requested_by: str


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
    is_suspended: bool = False
    """Something beside Headway keeps the pool's workers from taking jobs: none is started, and none is replaced."""

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
class PoolQueues:
    """The queues from which the workers of one pool take jobs, in the profile's order: its own, then helped ones."""

    pool: str
    queues: tuple[str, ...]


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
