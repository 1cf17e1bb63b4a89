"""How long jobs take, once none has ended for minutes: as long as those that ended last.

Without it, each job that comes after a pause would ask for a worker of its own, as before the first job ever ended. How
long the jobs of a batch of long ones took is recalled for longer, also while short jobs end: batches that come each
quarter of an hour are out of every window when the next one waits.
"""

import math

from headway.scaling.measure import SERVICE_WINDOW_S
from headway.scaling.model import MeasuredService, QueueMetrics
from headway.scaling.view import copied

DIGITS = 2  # more would change the memory with every job
BATCH_HALF_LIFE_S = 600.0
"""After so long a batch counts half: jobs of 30 s count 7.5 s when they come again after 20 min, and for an objective
of 10 s each of them still gets a slot. With 900 s the load ``blips_and_blocks`` starts 0.04 points more in time for 3 %
more worker-hours: short jobs that wait long after the last batch get workers as if they were long.
"""


def learned(before: MeasuredService | None, queue: QueueMetrics, *, now_s: float) -> MeasuredService | None:
    """What to recall of a pool whose queues are ``queue`` together: what is measured now, else what was before."""
    if queue.service_time_s is None:
        return before
    batch_s = None if queue.service_batch_s is None else _rounded_s(queue.service_batch_s)
    longest_s, at_s = (None, 0.0) if before is None else (before.longest_batch_s, before.longest_at_s)
    is_same = batch_s == longest_s and now_s - at_s < SERVICE_WINDOW_S  # a newer time would change the memory each time
    if batch_s is not None and not is_same and batch_s >= _longest_batch_s(before, now_s=now_s):
        longest_s, at_s = batch_s, now_s
    return MeasuredService(
        time_s=_rounded_s(queue.service_time_s), batch_s=batch_s, longest_batch_s=longest_s, longest_at_s=at_s
    )


def with_times(
    queues: tuple[QueueMetrics, ...], together: QueueMetrics, recalled: MeasuredService | None, *, now_s: float
) -> tuple[QueueMetrics, ...]:
    """``queues`` with the times of ``recalled`` in each of them.

    The very ``queues`` where nothing longer is recalled than is measured. Of several queues nobody knows which had
    the long jobs: while a job of any of them ends, what is measured of each holds.
    """
    if recalled is None:
        return queues
    longest_s = _longest_batch_s(recalled, now_s=now_s)
    if together.service_time_s is None:
        batch_s = max(recalled.batch_s or 0.0, longest_s) or None
        return tuple(copied(each, service_time_s=recalled.time_s, service_batch_s=batch_s) for each in queues)
    measured_s = together.service_batch_s or 0.0
    if len(queues) > 1 or longest_s <= _rounded_s(measured_s):
        return queues
    return (copied(queues[0], service_batch_s=max(longest_s, measured_s)),)


def _longest_batch_s(recalled: MeasuredService | None, *, now_s: float) -> float:
    if recalled is None or recalled.longest_batch_s is None:
        return 0.0
    return recalled.longest_batch_s * math.exp2(min(0.0, recalled.longest_at_s - now_s) / BATCH_HALF_LIFE_S)


def _rounded_s(time_s: float) -> float:
    return float(f"{time_s:.{DIGITS}g}")
