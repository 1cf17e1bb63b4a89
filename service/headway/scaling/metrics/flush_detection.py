"""Waiting jobs that are gone and that no worker has taken: a broker that was flushed, or lost its data.

The number is a difference between two samples and the starts that were reported meanwhile. Each of these is off by a
few jobs at times: a start belongs to the bucket of its own clock, which may be the one before or after; a worker that
reports nothing takes a job; a pipe of an agent drops a line; a collector finds a job that came and went between two
polls. Such an error has the size of a small loss, and no later row shows which of both it was, so that fewer than
``LOST_JOBS_MIN`` are not reported, not as "at least" either.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from headway.scaling.measure import BucketRow

LOST_JOBS_MIN = 10  # above what differences of samples and starts are off by
FLUSH_LOST_FRACTION_MIN = 0.5  # of those that waited; some cancelled by hand are no incident
FLUSH_SETTLED_S = 4.0  # starts of the same moment may come in a later batch
SHOWN_AFTER_S = 10.0  # such a batch came 6 s later where a machine had much else to do, and somebody was paged
SHOWN_S = 120.0
RAN_WITHIN_S = 150.0  # so that workers that left since do not make expired jobs lost ones while these are shown


@dataclass(frozen=True, slots=True)
class BacklogDrop:
    """Two neighbouring samples of a queue, between which most of what waited went."""

    before: BucketRow
    after: BucketRow
    empty_at_s: float | None = None
    """When the queue was last seen empty before, so that every job has entered since; ``None``: not known."""

    def is_shown(self, now_s: float) -> bool:
        """Whether it is of late, and old enough for its starts and revoked jobs to be known."""
        return SHOWN_AFTER_S <= now_s - (self.after.sampled_at_s or now_s) <= SHOWN_S

    def lost_jobs(self, accounted_jobs: int) -> int:
        """Of those that went, the ones that no worker can have taken.

        Args:
            accounted_jobs: Starts and revoked jobs in the buckets of both samples and between them: all are taken to
                be of those that waited, so that no job is called lost that was not.
        """
        lost = _waiting(self.before) - _waiting(self.after) - accounted_jobs
        return lost if lost >= _least(self.before) else 0

    def may_have_expired(self, message_ttl_s: float | None) -> bool:
        """Whether the jobs may have waited so long that the broker dropped them, as their queue is configured."""
        if message_ttl_s is None:
            return False
        if self.empty_at_s is None or self.after.sampled_at_s is None:
            return True
        return self.after.sampled_at_s - self.empty_at_s >= message_ttl_s


class RecentWorkers:
    """Pools whose workers run, or ran moments ago: these may have dropped jobs that had expired."""

    def __init__(self) -> None:
        self._ran_at_s: dict[str, float] = {}

    def take(self, pools: Iterable[str], *, now_s: float) -> None:
        """``pools`` have workers at ``now_s``."""
        recent = {pool: at_s for pool, at_s in self._ran_at_s.items() if now_s - at_s <= RAN_WITHIN_S}
        self._ran_at_s = {**recent, **dict.fromkeys(pools, now_s)}

    def __contains__(self, pool: str) -> bool:
        return pool in self._ran_at_s


def fall_of(before: BucketRow | None, after: BucketRow, *, empty_at_s: float | None = None) -> BacklogDrop | None:
    """The fall from one bucket's sample to a later one's; ``None`` where too few jobs went to be one.

    ``empty_at_s`` is when the queue was last seen empty before.
    """
    if before is None or _waiting(before) - _waiting(after) < _least(before):
        return None
    return BacklogDrop(before, after, empty_at_s)


def _waiting(row: BucketRow) -> int:
    return row.waiting_jobs or 0


def _least(row: BucketRow) -> float:
    return max(LOST_JOBS_MIN, FLUSH_LOST_FRACTION_MIN * _waiting(row))
