"""How many of the jobs that ended have failed, and from when on that is an incident."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from headway.scaling.arithmetic import MINUTE_S, PERCENT
from headway.scaling.measure import BucketRow
from headway.scaling.model import FailureLimit

RECENT_FRACTION = 0.2  # of the window: where all jobs begin to fail, a fifth of a window does not wait for the window
RECENT_SHARE_FACTOR = 2.5  # of the limit's share, half of the jobs by default: a minute has fewer jobs than five
RECENT_SHARE_MAX = 0.9


@dataclass(frozen=True, slots=True, kw_only=True)
class Failures:
    """The jobs of a window that ended, how many of them failed, and the same of the window's last fifth.

    An attempt that another one of its job follows is neither an end of the job nor a failure.
    """

    ended_jobs: int = 0
    failed_jobs: int = 0
    recent_ended_jobs: int = 0
    recent_failed_jobs: int = 0
    retried_jobs: int = 0
    """Attempts of the window that failed and are followed by another one."""

    @property
    def share(self) -> float | None:
        """Of the jobs that ended, 0 to 1; ``None`` where none did."""
        return self.failed_jobs / self.ended_jobs if self.ended_jobs else None


def failures_of(rows: Iterable[BucketRow], *, until_s: float, window_s: float) -> Failures:
    """Those of one queue in (until - window, until], whole buckets: of each that the window touches."""
    ended, failed, retried = [0, 0], [0, 0], [0, 0]
    lengths_s = (window_s, RECENT_FRACTION * window_s)
    for row in rows:
        for each, length_s in enumerate(lengths_s):
            if until_s - length_s < row.bucket_s + row.span_s and row.bucket_s <= until_s:
                ended[each] += row.finished_jobs + row.failed_jobs
                failed[each] += row.failed_jobs
                retried[each] += row.retried_attempts
    return Failures(
        ended_jobs=ended[0],
        failed_jobs=failed[0],
        recent_ended_jobs=ended[1],
        recent_failed_jobs=failed[1],
        retried_jobs=retried[0],
    )


def together(each: Sequence[Failures]) -> Failures:
    """Those of several queues."""
    return Failures(
        ended_jobs=sum(one.ended_jobs for one in each),
        failed_jobs=sum(one.failed_jobs for one in each),
        recent_ended_jobs=sum(one.recent_ended_jobs for one in each),
        recent_failed_jobs=sum(one.recent_failed_jobs for one in each),
        retried_jobs=sum(one.retried_jobs for one in each),
    )


def is_failing(failures: Failures, limit: FailureLimit) -> bool:
    """Whether more fail than ``limit`` allows; of very few jobs it takes ``jobs_min``, for one of one is 100 %.

    Where 2.5 times as large a share failed in the window's last fifth, that is enough: all jobs that begin to fail
    would fill a fifth of the window only when that has passed.
    """
    return _is_over(failures, limit) or _is_recently_over(failures, limit)


def failures_text(failures: Failures, limit: FailureLimit) -> str:
    """In words: ``40 of 40 jobs (100 %) failed in the last 5 min``; of the last fifth where that alone is too much."""
    ended, failed, window_s = failures.ended_jobs, failures.failed_jobs, limit.window_s
    if not _is_over(failures, limit) and _is_recently_over(failures, limit):
        ended, failed = failures.recent_ended_jobs, failures.recent_failed_jobs
        window_s *= RECENT_FRACTION
    per_cent = math.floor(PERCENT * failed / ended) if ended else 0
    window = f"{window_s / MINUTE_S:g} min" if window_s % MINUTE_S == 0 else f"{window_s:g} s"
    return f"{failed} of {ended} jobs ({per_cent} %) failed in the last {window}"


def _is_over(failures: Failures, limit: FailureLimit) -> bool:
    return failures.failed_jobs >= limit.jobs_min and failures.failed_jobs > limit.share * failures.ended_jobs


def _is_recently_over(failures: Failures, limit: FailureLimit) -> bool:
    share = min(RECENT_SHARE_FACTOR * limit.share, RECENT_SHARE_MAX)
    failed = failures.recent_failed_jobs
    return failed >= limit.jobs_min and failed > share * failures.recent_ended_jobs
