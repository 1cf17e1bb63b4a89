"""Jobs that arrive at workers which take whatever is ready: none waits in the queue, so only their number shows it.

What a worker has reserved no other can run, and asks for nobody. What will arrive, others would get a part of.
"""

from headway.scaling.demands.deadlines import service_time_s
from headway.scaling.model import Demand, QueueMetrics, TakenJobs
from headway.scaling.view import PoolView

RESERVED_PER_SLOT = 10  # more than a worker with a sensible prefetch holds


def taken_jobs_of(queue: QueueMetrics, view: PoolView, before: TakenJobs | None) -> TakenJobs | None:
    """How many jobs workers have, and how fast these grow; ``None`` where they have no more than a usual prefetch."""
    slots = view.running_workers * view.slots_per_worker
    if queue.sampled_at_s is None or not slots or (queue.reserved_jobs or 0) <= RESERVED_PER_SLOT * slots:
        return None
    if before is not None and before.at_s >= queue.sampled_at_s:
        return before
    jobs = queue.in_flight_least_jobs
    if before is None:
        return TakenJobs(at_s=queue.sampled_at_s, jobs=jobs)
    growth_per_s = max(0.0, (jobs - before.jobs) / (queue.sampled_at_s - before.at_s))
    return TakenJobs(
        at_s=queue.sampled_at_s, jobs=jobs, growth_per_s=growth_per_s, growth_before_per_s=before.growth_per_s
    )


def arrivals_at_workers(taken: TakenJobs | None, queue: QueueMetrics, view: PoolView) -> Demand | None:
    """The slots that what arrives keeps busy: those there are, and those for the growth of two readings in a row.

    One burst grows once: nothing more arrives, and no other worker can have any of it.
    """
    if taken is None:
        return None
    growth_per_s = min(taken.growth_per_s, taken.growth_before_per_s)
    if growth_per_s <= 0:
        return None
    slots = view.running_workers * view.slots_per_worker
    return Demand(name="steady_state", slots=slots + growth_per_s * service_time_s(queue, view))
