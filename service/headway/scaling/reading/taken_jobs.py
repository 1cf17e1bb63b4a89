"""How many jobs workers have taken beyond a usual prefetch, and how fast these grow."""

from headway.scaling.model import QueueMetrics, TakenJobs
from headway.scaling.reading.busy_slots import WorkerSlots

RESERVED_PER_SLOT = 10  # more than a worker with a sensible prefetch holds


def taken_jobs_of(queue: QueueMetrics, slots: WorkerSlots, before: TakenJobs | None) -> TakenJobs | None:
    """How many jobs workers have, and how fast these grow; ``None`` where they have no more than a usual prefetch.

    They do not grow, whatever their number, while a slot is known to be idle: it would run any job that is due.
    """
    running = slots.running_slots
    if queue.sampled_at_s is None or not running or (queue.reserved_jobs or 0) <= RESERVED_PER_SLOT * running:
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
        growing_since_s=since_s if growth_per_s > 0 and not slots.is_any_idle else None,
    )
