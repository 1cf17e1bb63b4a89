"""Jobs that workers of one pool run from a queue of another."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedJobs:
    """Running jobs of one queue that workers of a pool have which does not own it."""

    queue: str
    pool: str | None
    """The other pool: in what its owner shows the one whose workers run them, in what that one shows the owner;
    ``None``: no pool owns the queue."""
    jobs: int
    """Those that the workers report: at least so many."""
    most_jobs: int
    """So many at most: a worker that does not report its jobs may have any."""
    is_reported: bool = True
    """Whether each of the workers reports its jobs."""
