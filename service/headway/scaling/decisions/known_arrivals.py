"""Arrivals that were known before they came: jobs that were delayed until they were due.

They are work like any and no news of what will come. A forecast that learned from them would keep workers for the next
ten thousand jobs that nobody has scheduled.
"""

from headway.scaling.model import KnownArrivals, QueueMetrics
from headway.scaling.view import copied

KEPT_S = 75.0  # as long as the window of rates, and what rows are behind
BESIDE_S = 5.0  # a sample and the span of rows that shows the same arrivals may be so far apart


def learned(before: KnownArrivals | None, queue: QueueMetrics, *, tick_s: float, now_s: float) -> KnownArrivals | None:
    """``before`` and the delayed jobs that are gone since: they have come. ``None`` where there is nothing to remember.

    How many more were delayed meanwhile is not known, so that at least so many have come. Jobs that were removed are
    among them.
    """
    delayed_jobs = queue.delayed_jobs
    if delayed_jobs is None:  # not known, which is not none
        return before
    gone_jobs = 0 if before is None else before.delayed_jobs - delayed_jobs
    kept = tuple(each for each in before.came if each[0] > now_s - KEPT_S - tick_s) if before else ()
    came = (*kept, (now_s, gone_jobs)) if gone_jobs > 0 else kept
    return KnownArrivals(delayed_jobs=delayed_jobs, came=came) if delayed_jobs or came else None


def with_known(queue: QueueMetrics, known: KnownArrivals | None, *, tick_s: float, now_s: float) -> QueueMetrics:
    """``queue`` with how many of its arrivals were known before; the very ``queue`` where none was."""
    if known is None or not known.came:
        return queue
    until_s, window_s = queue.arrived_until_s, queue.window_s
    in_window_jobs = sum(jobs for at_s, jobs in known.came if at_s > now_s - window_s - BESIDE_S)
    in_span_jobs = 0
    if until_s is not None:
        from_s = until_s - tick_s - BESIDE_S
        in_span_jobs = sum(jobs for at_s, jobs in known.came if from_s < at_s <= until_s + tick_s + BESIDE_S)
    return copied(queue, scheduled_jobs=in_span_jobs, scheduled_rate_per_s=in_window_jobs / window_s)
