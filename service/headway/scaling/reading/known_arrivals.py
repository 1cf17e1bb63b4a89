"""Arrivals that were known before they came: jobs that were delayed until they were due.

They are work like any and no news of what will come. A forecast that learned from them would keep workers for the next
ten thousand jobs that nobody has scheduled.
"""

from collections.abc import Iterable

from headway.scaling.model import DelayedJobs, KnownArrivals, QueueMetrics
from headway.scaling.view import copied

KEPT_S = 75.0  # as long as the window of rates, and what rows are behind
SOON_S = 30.0  # the next evaluation is no later, unless nobody led for so long
BESIDE_S = 5.0  # a sample and the span of rows that shows the same arrivals may be so far apart


def learned(
    before: KnownArrivals | None,
    queue: QueueMetrics,
    members: Iterable[QueueMetrics],
    *,
    tick_s: float,
    now_s: float,
) -> KnownArrivals | None:
    """``before`` and the delayed jobs of ``queue`` that have come since; ``None`` if there is nothing to remember.

    Jobs that are gone have come, at most as many as were due soon: the others were removed. How many more were delayed
    meanwhile is not known, so at least so many have come. ``members`` are the queues that ``queue`` is the sum of.
    """
    delayed_jobs = queue.delayed_jobs
    if delayed_jobs is None:  # not known, which is not none
        return None if before is None else copied(before, due_jobs=None)
    gone_jobs = 0 if before is None else before.delayed_jobs - delayed_jobs
    come_jobs = gone_jobs if before is None or before.due_jobs is None else min(gone_jobs, before.due_jobs)
    kept = tuple(each for each in before.came if each[0] > now_s - KEPT_S - tick_s) if before else ()
    came = (*kept, (now_s, come_jobs)) if come_jobs > 0 else kept
    if not (delayed_jobs or came):
        return None
    return KnownArrivals(delayed_jobs=delayed_jobs, came=came, due_jobs=sum(map(_due_soon_jobs, members)))


def _due_soon_jobs(member: QueueMetrics) -> int:
    """The delayed jobs that are due before the next evaluation, or may be: where no time is known, all of them."""
    if not member.delayed:
        return member.delayed_jobs or 0
    return sum(each.jobs for each in member.delayed if each.due_in_s <= SOON_S)


def with_known(queue: QueueMetrics, known: KnownArrivals | None, *, tick_s: float, now_s: float) -> QueueMetrics:
    """``queue`` with how many of its arrivals were known before; the very ``queue`` where none was.

    Delayed jobs that have come since the last evaluation, and show nowhere, may be on their way: one of them is due
    now, so that the worker which they need stays until the next evaluation.
    """
    if known is None or not known.came:
        return queue
    until_s, window_s = queue.arrived_until_s, queue.window_s
    in_window_jobs = sum(jobs for at_s, jobs in known.came if at_s > now_s - window_s - BESIDE_S)
    in_span_jobs = 0
    if until_s is not None:
        from_s = until_s - tick_s - BESIDE_S
        in_span_jobs = sum(jobs for at_s, jobs in known.came if from_s < at_s <= until_s + tick_s + BESIDE_S)
    queue = copied(queue, scheduled_jobs=in_span_jobs, scheduled_rate_per_s=in_window_jobs / window_s)
    if known.came[-1][0] < now_s or queue.waiting_least_jobs or queue.in_flight_least_jobs:
        return queue
    delayed = sorted((DelayedJobs(jobs=1, due_in_s=0.0), *queue.delayed), key=lambda each: each.due_in_s)
    return copied(queue, delayed=tuple(delayed))
