"""Slots that run jobs of queues which other pools own: neither free nor a demand, and how soon they are free again."""

from collections.abc import Sequence

from headway.scaling.arithmetic import SHORTEST_S
from headway.scaling.demands.needs import Coming
from headway.scaling.model import QueueMetrics, QueueOrder, SharedJobs
from headway.scaling.model.queue_order import OrderedQueues, is_earlier

SHARED_TURNS = 0.5  # of the slots that get done, those that take a job of the pool itself next, if queues take turns


def freed_slots(
    helping: Sequence[SharedJobs], helped_queues: Sequence[QueueMetrics], own: OrderedQueues, *, dispatch_s: float
) -> tuple[Coming, ...]:
    """When slots that run jobs of other pools' queues take a job of the pool's own queues next.

    Args:
        helping: The jobs that the slots run.
        helped_queues: Their queues. A job is done once nearly all jobs of its queue are; if their service time is not
            known, nobody knows when it is.
        own: The pool's own queues.
        dispatch_s: From the end of a job to the next start in the same slot.
    """
    own_share = _share_of_own(own, helped_queues)
    known = {queue.queue: queue for queue in helped_queues if queue.service_time_s is not None}
    found = []
    for each in helping:
        queue, slots = known.get(each.queue), int(own_share * each.jobs)
        if queue is not None and slots:
            longest_s = max(SHORTEST_S, queue.service_time_s or 0.0, queue.service_p95_s or 0.0)
            found.append(Coming(slots=slots, ready_in_s=longest_s + dispatch_s))
    return tuple(found)


def _share_of_own(own: OrderedQueues, helped_queues: Sequence[QueueMetrics]) -> float:
    """The part of those slots that take a job of ``own`` queues next, by the order in which workers take jobs."""
    waiting = [queue for queue in helped_queues if queue.waiting_least_jobs]
    if not waiting:
        return 1.0
    match own.order:
        case QueueOrder.STRICT:
            are_earlier = (is_earlier(other, each, own.strict_queues) for other in waiting for each in own.queues)
            return float(not any(are_earlier))
        case QueueOrder.IN_TURN | QueueOrder.RANDOM:
            return SHARED_TURNS
        case QueueOrder.BY_ARRIVAL | None:
            return 0.0
