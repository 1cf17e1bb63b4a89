"""Jobs that arrive at workers which take whatever is ready: none waits in the queue, so only their number shows it.

What a worker has reserved no other can run, and asks for nobody. What will arrive, others would get a part of. Jobs
that grow in number beside an idle slot are due later: Celery's workers take those with a countdown or an ETA at once,
raise their prefetch by one for each, and hold them until they are due.
"""

from headway.scaling.demands.busy_slots import is_any_slot_idle
from headway.scaling.demands.formulas import demand, steady_state
from headway.scaling.model import Demand, QueueMetrics, TakenJobs
from headway.scaling.reading.pool_times import service_time_s
from headway.scaling.view import PoolView

RESERVED_PER_SLOT = 10  # more than a worker with a sensible prefetch holds
GROWING_S = 30.0  # a publisher takes 10 to 15 s for one burst of thousands of jobs


def taken_jobs_of(queue: QueueMetrics, view: PoolView, before: TakenJobs | None) -> TakenJobs | None:
    """How many jobs workers have, and how fast these grow; ``None`` where they have no more than a usual prefetch.

    They do not grow, whatever their number, while a slot is known to be idle: it would run any job that is due.
    """
    slots = view.running_workers * view.slots_per_worker
    if queue.sampled_at_s is None or not slots or (queue.reserved_jobs or 0) <= RESERVED_PER_SLOT * slots:
        return None
    if before is not None and before.at_s >= queue.sampled_at_s:
        return before
    jobs = queue.in_flight_least_jobs
    if before is None:
        return TakenJobs(at_s=queue.sampled_at_s, jobs=jobs)
    growth_per_s = max(0.0, (jobs - before.jobs) / (queue.sampled_at_s - before.at_s))
    since_s = queue.sampled_at_s if before.growing_since_s is None else before.growing_since_s
    return TakenJobs(
        at_s=queue.sampled_at_s,
        jobs=jobs,
        growth_per_s=growth_per_s,
        growth_before_per_s=before.growth_per_s,
        growing_since_s=since_s if growth_per_s > 0 and not is_any_slot_idle(view) else None,
    )


def arrivals_at_workers(taken: TakenJobs | None, queue: QueueMetrics, view: PoolView) -> Demand | None:
    """The slots that what arrives keeps busy: those there are, and those for growth that goes on without a pause.

    That of the last two readings counts, the lesser. One burst grows for as long as its publisher needs: nothing more
    arrives then, and no other worker can have any of it.
    """
    if taken is None or taken.growing_since_s is None or taken.at_s - taken.growing_since_s < GROWING_S:
        return None
    terms = {
        "present_slots": view.running_workers * view.slots_per_worker,
        "arrival_rate_per_s": min(taken.growth_per_s, taken.growth_before_per_s),
        "service_time_s": service_time_s(queue, view),
    }
    return demand(steady_state, terms)
