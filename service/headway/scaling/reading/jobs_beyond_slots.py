"""Jobs that workers have beyond the slots that there are: reserved, whatever their source calls them.

A RabbitMQ consumer without ``basic.qos``, or with a large prefetch, takes whatever is ready. The broker counts all of
it as in flight and does not know what has begun. What does not fit into slots has not.
"""

from collections.abc import Mapping, Sequence

from headway.scaling.model import QueueMetrics, QueueSample
from headway.scaling.view import copied


def with_reserved_beyond_slots(
    queues: Sequence[QueueMetrics], samples: Mapping[str, QueueSample], *, slots: int
) -> tuple[QueueMetrics, ...]:
    """``queues`` with no more jobs running than ``slots``; the others that workers have are reserved.

    Args:
        queues: Of one pool, whose workers share their slots.
        samples: The newest reading of each queue, by name.
        slots: All that may have a job, of workers that leave or may run unseen as well; 0: not known.
    """
    running = [max(0, queue.in_flight_least_jobs - (queue.reserved_jobs or 0)) for queue in queues]
    if not slots or sum(running) <= slots or any(_counts_begun(queue, samples) for queue in queues):
        return tuple(queues)
    return tuple(
        _with_reserved(queue, queue.in_flight_least_jobs - jobs) if queue.in_flight_least_jobs else queue
        for queue, jobs in zip(queues, _shared(slots, running), strict=True)
    )


def _with_reserved(queue: QueueMetrics, jobs: int) -> QueueMetrics:
    """``queue`` with ``jobs`` reserved. How long these have waited is unknown where the source counts none of them."""
    age_s = queue.oldest_age_s
    if jobs and not queue.reserved_jobs and not queue.waiting_least_jobs:
        age_s = None
    # What was in flight on average had not begun either, and how much of it had is not known.
    return copied(queue, reserved_jobs=jobs, in_flight_mean_jobs=None, oldest_age_s=age_s)


def _counts_begun(queue: QueueMetrics, samples: Mapping[str, QueueSample]) -> bool:
    """Whether all that is in flight has begun: that is so where the number is exact and starts are reported.

    A source that counts reserved jobs counts what workers hold, also where the workers themselves report starts.
    """
    if not queue.in_flight_jobs:
        return False
    sample = samples.get(queue.queue)
    return sample is None or (sample.reports_starts is not False and sample.reserved_jobs is None)


def _shared(slots: int, running: Sequence[int]) -> list[int]:
    """``slots`` divided by how many jobs of each queue workers have, the last ones by the largest rests."""
    total = sum(running)
    shares = [slots * jobs // total for jobs in running]
    rests = sorted(range(len(running)), key=lambda number: -(slots * running[number] % total))
    for number in rests[: slots - sum(shares)]:
        shares[number] += 1
    return shares
