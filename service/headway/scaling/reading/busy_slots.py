"""Work that is taken and not finished is work: the slots that have a job, or are between two."""

from headway.scaling.model import QueueMetrics
from headway.scaling.view import PoolView, copied


def occupied(queue: QueueMetrics, view: PoolView) -> int:
    """Slots that have a job or are between two: these seem idle and are not. Only a measured overhead counts.

    Source: J. D. C. Little, "A Proof for the Queuing Formula L = λW", Operations Research 9 (1961).
    """
    busy_slots = busy(queue, view)
    if not view.dispatch_overhead_s or not queue.start_rate_per_s:
        return busy_slots
    rate_per_s = min(queue.start_rate_per_s, (queue.arrived_jobs or 0) / view.tick_s)  # of late, and still
    serving_slots = min(busy_slots, rate_per_s * (queue.service_time_s or 0.0))
    return max(busy_slots, round(serving_slots + rate_per_s * view.dispatch_overhead_s))


def busy(queue: QueueMetrics, view: PoolView) -> int:
    """Slots that have a job: as many as the broker counts, and never fewer than workers certainly run.

    Where the broker knows a lower bound only, all slots of each worker that is not known to be idle: the most that can
    run. Jobs that workers have begun since the sample are in ``taken_jobs``, and not here.
    """
    # Whoever has reserved a job and begun none is about to begin it.
    reserved_slots = min(1, queue.reserved_jobs or 0)
    if queue.running_jobs is not None:
        return max(queue.running_jobs, reserved_slots, view.certain_jobs)
    least_slots = queue.in_flight_least_jobs - (queue.reserved_jobs or 0)
    return max(least_slots, reserved_slots, busy_by_workers(view) - view.taken_jobs)


def busy_by_workers(view: PoolView) -> int:
    """Slots that have a job by what is known of the workers: all that run where that is nothing."""
    if view.busy_slots is not None:
        return view.busy_slots
    workers = view.running_workers if view.busy_workers is None else view.busy_workers
    return workers * view.slots_per_worker


def is_any_slot_idle(view: PoolView) -> bool:
    """Whether a slot of a running worker is known to have no job."""
    slots = view.running_workers * view.slots_per_worker
    return bool(view.idle_workers) or busy_by_workers(view) + view.helping_slots < slots


def with_unknown_as_idle(view: PoolView) -> PoolView:
    """``view`` as it would be if every worker of which nobody knows what it does were idle: the least work there is."""
    unknown = view.unknown_activity_workers
    workers = view.running_workers if view.busy_workers is None else view.busy_workers
    slots = busy_by_workers(view) - unknown * view.slots_per_worker
    return copied(
        view,
        busy_workers=max(0, workers - unknown),
        busy_slots=max(0, slots),
        unknown_activity_workers=0,
    )
