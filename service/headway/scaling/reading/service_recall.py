"""How long jobs take, once none has ended for minutes: as long as those that ended last.

Without it, each job that comes after a pause would ask for a worker of its own, as before the first job ever ended.
"""

from headway.scaling.model import MeasuredService, QueueMetrics
from headway.scaling.view import PoolView, copied

DIGITS = 2  # more would change the memory with every job


def learned(before: MeasuredService | None, queue: QueueMetrics) -> MeasuredService | None:
    """What to recall of a pool whose queues are ``queue`` together: what is measured now, else what was before."""
    if queue.service_time_s is None:
        return before
    batch_s = queue.service_batch_s
    return MeasuredService(
        time_s=_rounded_s(queue.service_time_s), batch_s=None if batch_s is None else _rounded_s(batch_s)
    )


def with_times(view: PoolView, queue: QueueMetrics, recalled: MeasuredService | None) -> PoolView:
    """``view``, whose queues together are ``queue``, with the times of ``recalled`` in each of its queues.

    The very ``view`` where a job of any of them has ended of late, or nothing is recalled.
    """
    if recalled is None or queue.service_time_s is not None:
        return view
    queues = [copied(each, service_time_s=recalled.time_s, service_batch_s=recalled.batch_s) for each in view.queues]
    return copied(view, queues=tuple(queues))


def _rounded_s(time_s: float) -> float:
    return float(f"{time_s:.{DIGITS}g}")
