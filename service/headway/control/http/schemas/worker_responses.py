"""Worker processes, as agents and brokers report them."""

from headway.control.http.schemas.schema_base import Given
from headway.scaling.conditions.job_troubles import CutRow, cut_sentence
from headway.scaling.model import ActivitySource, CutCause, Inability, RunningJob, StartFailure, WorkerState
from headway.store.hosts.hosts import WorkerRow


class WorkerOut(Given):
    """A worker process; null is not known."""

    worker_id: str
    pool: str
    host: str
    template: str
    state: WorkerState
    pid: int
    started_s: float
    is_burst: bool
    is_busy: bool | None
    """Null is treated as busy."""
    busy_since_s: float | None
    running_jobs: int | None
    running: tuple[RunningJob, ...]
    """Those of its running jobs that the worker named."""
    activity_source: ActivitySource | None
    """Who says whether it is busy: only the worker's own report and its broker may say that it is idle."""
    activity_known_at_s: float | None
    """When that was so, Unix seconds."""
    memory_bytes: int | None
    state_since_s: float | None
    restart_generation: int
    is_left_behind: bool
    """It is what a worker has left that ended: it counts until it is gone."""
    inability: Inability | None
    """Why it takes no jobs; null: it can, as far as is known."""
    goes_to_background: bool
    """A start that ended well has left it, and no other of its template is made while it is there."""
    start_failure: StartFailure | None
    """Of one that starts or backs off, why starts of its kind fail; null: not known, or they do not."""
    moves_due_jobs: bool
    """Whether it holds the lock of RQ's scheduler, and so moves the jobs that are due for all workers."""
    is_reachable: bool
    """Whether its host reports; else it may be gone."""
    seen_age_s: float | None
    """Since its host reported last."""

    @classmethod
    def of(cls, row: WorkerRow) -> "WorkerOut":
        """``row`` as it is given."""
        return cls.taken_from(row, row.worker, started_s=row.worker.started_at_s)


class CutOut(Given):
    """A job that the end of a worker has cut, or a worker that may have lost one."""

    pool: str
    host: str
    template: str
    worker_id: str
    cause: CutCause
    is_certain: bool
    """Whether the worker had the job for certain; else nobody knows whether it had one."""
    job_id: str | None
    """Null: not known."""
    queue: str | None
    job_class: str | None
    attempt: int | None
    job_started_at_s: float | None
    cut_at_s: float
    recorded_at_s: float
    """When the agent's report of it came."""
    sentence: str
    """The same for people."""

    @classmethod
    def of(cls, row: CutRow) -> "CutOut":
        """``row`` as it is given."""
        return cls.taken_from(row, sentence=cut_sentence([row]))


class CutsOut(Given):
    """Cuts, the newest first."""

    cuts: list[CutOut]


class PoisonJobOut(Given):
    """A job whose workers died with it three times or more in the last day."""

    job_id: str
    queue: str | None
    job_class: str | None
    deaths: int
    """Workers, or their processes for the job, that ended with it."""
    last_at_s: float
    """When the last death was reported."""


class WorkersOut(Given):
    """Workers, by their ids."""

    workers: list[WorkerOut]
    next: str | None
    """The following page's `after`; null: there is none."""
