"""How many jobs workers have taken beyond a usual prefetch, and how fast these grow."""

from headway.scaling.model import QueueMetrics, TakenJobs
from headway.scaling.reading.busy_slots import is_any_slot_idle
from headway.scaling.view import PoolView

RESERVED_PER_SLOT = 10  # more than a worker with a sensible prefetch holds


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
