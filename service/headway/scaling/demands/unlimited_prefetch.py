"""Jobs that arrive at workers which take whatever is ready: none waits in the queue, so only their number shows it.

What a worker has reserved no other can run, and asks for nobody. What will arrive, others would get a part of. Jobs
that grow in number beside an idle slot are due later: Celery's workers take those with a countdown or an ETA at once,
raise their prefetch by one for each, and hold them until they are due.
"""

from headway.scaling.demands.formulas import demand, steady_state
from headway.scaling.model import Demand, QueueMetrics, TakenJobs
from headway.scaling.reading.pool_times import PoolTimes

GROWING_S = 30.0  # a publisher takes 10 to 15 s for one burst of thousands of jobs


def arrivals_at_workers(
    taken: TakenJobs | None, queue: QueueMetrics, times: PoolTimes, *, running_slots: int
) -> Demand | None:
    """The slots that what arrives keeps busy: the ``running_slots``, and those for growth that goes on without a pause.

    That of the last two readings counts, the lesser. One burst grows for as long as its publisher needs: nothing more
    arrives then, and no other worker can have any of it.
    """
    if taken is None or taken.growing_since_s is None or taken.at_s - taken.growing_since_s < GROWING_S:
        return None
    terms = {
        "present_slots": running_slots,
        "arrival_rate_per_s": min(taken.growth_per_s, taken.growth_before_per_s),
        "service_time_s": times.service_time_s(queue),
    }
    return demand(steady_state, terms)
