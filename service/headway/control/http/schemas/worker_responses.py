"""Worker processes, as agents and brokers report them."""

from headway.control.http.schemas.schema_base import Given
from headway.scaling.model import ActivitySource, RunningJob, WorkerState
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
    is_reachable: bool
    """Whether its host reports; else it may be gone."""
    seen_age_s: float | None
    """Since its host reported last."""

    @classmethod
    def of(cls, row: WorkerRow) -> "WorkerOut":
        """``row`` as it is given."""
        return cls.taken_from(row, row.worker, started_s=row.worker.started_at_s)


class WorkersOut(Given):
    """Workers, by their ids."""

    workers: list[WorkerOut]
    next: str | None
    """The following page's `after`; null: there is none."""
