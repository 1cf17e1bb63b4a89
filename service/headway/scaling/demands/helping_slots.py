"""Slots that run jobs of queues which other pools own: neither free nor a demand, and how soon they are free again."""

import math

from headway.scaling.arithmetic import SHORTEST_S
from headway.scaling.model import QueueMetrics, QueueOrder
from headway.scaling.model.queue_order import is_earlier
from headway.scaling.reading.pool_times import dispatch_s
from headway.scaling.view import PoolView

SHARED_TURNS = 0.5  # of the slots that get done, those that take a job of the pool itself next, if queues take turns


def freed_slots_per_s(view: PoolView) -> float:
    """How fast slots get done with jobs of other pools' queues and take a job of the pool's own queues next.

    0 where it is not known how long such jobs take, or where others that wait come first.
    """
    if not view.helping:
        return 0.0
    cycles_s = {queue.queue: _cycle_s(queue, view) for queue in view.helped_queues}
    return _own_share(view) * sum([each.jobs / cycles_s.get(each.queue, math.inf) for each in view.helping])


def _cycle_s(queue: QueueMetrics, view: PoolView) -> float:
    if queue.service_time_s is None:
        return math.inf
    return max(SHORTEST_S, queue.service_time_s) + dispatch_s(view)


def _own_share(view: PoolView) -> float:
    """The part of those slots that take a job of the pool itself next, by the order in which its workers take jobs."""
    waiting = [queue for queue in view.helped_queues if queue.waiting_least_jobs]
    match view.queue_order:
        case _ if not waiting:
            return 1.0
        case QueueOrder.STRICT:
            is_behind = any(is_earlier(other, own, view.strict_queues) for other in waiting for own in view.queues)
            return 0.0 if is_behind else 1.0
        case QueueOrder.IN_TURN | QueueOrder.RANDOM:
            return SHARED_TURNS
        case QueueOrder.BY_ARRIVAL | None:
            return 0.0
