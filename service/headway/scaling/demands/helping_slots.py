"""Slots that run jobs of queues which other pools own: neither free nor a demand, and how soon they are free again."""

from collections.abc import Sequence

from headway.scaling.arithmetic import SHORTEST_S
from headway.scaling.demands.needs import Coming
from headway.scaling.model import QueueMetrics, QueueOrder, SharedJobs
from headway.scaling.model.queue_order import is_earlier

SHARED_TURNS = 0.5  # of the slots that get done, those that take a job of the pool itself next, if queues take turns


def freed_slots(
    helping: Sequence[SharedJobs], helped_queues: Sequence[QueueMetrics], *, dispatch_s: float, own_share: float
) -> tuple[Coming, ...]:
    """When slots that run jobs of other pools' queues take a job of the pool's own queues next.

    Args:
        helping: The jobs that the slots run.
        helped_queues: Their queues. A job is done once nearly all jobs of its queue are; if their service time is not
            known, nobody knows when it is.
        dispatch_s: From the end of a job to the next start in the same slot.
        own_share: As of ``share_of_own``.
    """
    known = {queue.queue: queue for queue in helped_queues if queue.service_time_s is not None}
    found = []
    for each in helping:
        queue, slots = known.get(each.queue), int(own_share * each.jobs)
        if queue is not None and slots:
            longest_s = max(SHORTEST_S, queue.service_time_s or 0.0, queue.service_p95_s or 0.0)
            found.append(Coming(slots=slots, ready_in_s=longest_s + dispatch_s))
    return tuple(found)


def share_of_own(
    queues: Sequence[QueueMetrics],
    helped_queues: Sequence[QueueMetrics],
    *,
    order: QueueOrder | None,
    strict_queues: Sequence[str],
) -> float:
    """The part of those slots that take a job of ``queues`` next, by the order in which workers take jobs."""
    waiting = [queue for queue in helped_queues if queue.waiting_least_jobs]
    if not waiting:
        return 1.0
    match order:
        case QueueOrder.STRICT:
            return float(not any(is_earlier(other, own, strict_queues) for other in waiting for own in queues))
        case QueueOrder.IN_TURN | QueueOrder.RANDOM:
            return SHARED_TURNS
        case QueueOrder.BY_ARRIVAL | None:
            return 0.0
