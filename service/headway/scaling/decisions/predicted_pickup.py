"""How long a job that arrives now will wait: only workers that will exist are counted on. It is scored afterwards."""

from headway.scaling.demands.busy_slots import busy
from headway.scaling.demands.deadlines import service_time_s, start_up_s
from headway.scaling.model import QueueMetrics, is_suspended
from headway.scaling.view import PoolView, pooled


def predicted_pickup_s(view: PoolView, *, target_workers: int) -> float | None:
    """How long a job that arrives now will wait, with the workers that will exist and no others.

    ``None`` where the backlog is not known, or where no worker will exist to take the job: of a template that fails on
    every host, nobody knows whether a worker stays for long enough, and of a suspended pool when one takes jobs again.
    """
    return predicted_pickup_of(pooled(view.queues), view, target_workers=target_workers)


def predicted_pickup_of(queue: QueueMetrics, view: PoolView, *, target_workers: int) -> float | None:
    """The same where ``queue``, which is all of the pool's queues together, has been made already."""
    if queue.waiting_jobs is None or view.is_failing or is_suspended(view.suspension):
        return None
    coming_workers = min(target_workers, view.running_workers + view.starting_workers) or target_workers
    slots = coming_workers * view.slots_per_worker
    if slots == 0:
        return None
    first_free_s = 0.0 if view.running_workers else start_up_s(view)
    taken_jobs = queue.in_flight_jobs
    if taken_jobs is None:
        taken_jobs = busy(queue, view) + (queue.reserved_jobs or 0)
    ahead_jobs = queue.waiting_jobs + taken_jobs + 1 - slots
    cycle_s = service_time_s(queue, view) + (view.dispatch_overhead_s or 0.0)
    return first_free_s + max(0, ahead_jobs) / slots * cycle_s
