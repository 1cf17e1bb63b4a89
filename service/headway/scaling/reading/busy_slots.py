"""Work that is taken and not finished is work: the slots that have a job, or are between two."""

from dataclasses import dataclass

from headway.scaling.model import QueueMetrics
from headway.scaling.reading.pool_times import PoolTimes
from headway.scaling.view import PoolView, copied


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSlots:
    """The slots of the running workers of a pool, and what is known of the workers that have a job."""

    running_slots: int
    busy_by_workers: int
    """Slots that have a job by what is known of the workers: all that run where that is nothing."""
    certain_jobs: int = 0
    """Jobs that workers certainly run."""
    taken_jobs: int = 0
    """Jobs that workers have begun since the sample: there they still wait, or are not yet to be seen."""
    helping_slots: int = 0
    """Slots that have jobs of queues of other pools: not free, and no demand of this pool."""
    idle_slots: int | None = None
    """Those of workers that are known to be idle; ``None``: nobody reports what workers do."""

    @property
    def is_any_idle(self) -> bool:
        """Whether a slot of a running worker is known to have no job."""
        return bool(self.idle_slots) or self.busy_by_workers + self.helping_slots < self.running_slots

    def busy(self, queue: QueueMetrics) -> int:
        """Slots that have a job: as many as the broker counts, and never fewer than workers certainly run.

        Where the broker knows a lower bound only, all slots of each worker that is not known to be idle: the most that
        can run. Jobs that workers have begun since the sample are in ``taken_jobs``, and not here.
        """
        # Whoever has reserved a job and begun none is about to begin it.
        reserved_slots = min(1, queue.reserved_jobs or 0)
        if queue.running_jobs is not None:
            return max(queue.running_jobs, reserved_slots, self.certain_jobs)
        least_slots = queue.in_flight_least_jobs - (queue.reserved_jobs or 0)
        return max(least_slots, reserved_slots, self.busy_by_workers - self.taken_jobs)

    def occupied(self, queue: QueueMetrics, times: PoolTimes) -> int:
        """Slots that have a job or are between two: these seem idle and are not. Only a measured overhead counts.

        Source: J. D. C. Little, "A Proof for the Queuing Formula L = λW", Operations Research 9 (1961).
        """
        busy_slots = self.busy(queue)
        if not times.overhead_s or not queue.start_rate_per_s:
            return busy_slots
        rate_per_s = min(queue.start_rate_per_s, (queue.arrived_jobs or 0) / times.tick_s)  # of late, and still
        serving_slots = min(busy_slots, rate_per_s * (queue.service_time_s or 0.0))
        return max(busy_slots, round(serving_slots + rate_per_s * times.overhead_s))


def slots_of(view: PoolView) -> WorkerSlots:
    """The slots of the workers of ``view``."""
    per_worker = view.slots_per_worker
    busy_workers = view.running_workers if view.busy_workers is None else view.busy_workers
    return WorkerSlots(
        running_slots=view.running_workers * per_worker,
        busy_by_workers=busy_workers * per_worker if view.busy_slots is None else view.busy_slots,
        certain_jobs=view.certain_jobs,
        taken_jobs=view.taken_jobs,
        helping_slots=view.helping_slots,
        idle_slots=None if view.idle_workers is None else view.idle_workers * per_worker,
    )


def with_unknown_as_idle(view: PoolView, slots: WorkerSlots) -> PoolView:
    """``view`` as it would be if every worker of unknown activity were idle: the least work there is.

    ``slots`` are those of its workers.
    """
    unknown = view.unknown_activity_workers
    workers = view.running_workers if view.busy_workers is None else view.busy_workers
    return copied(
        view,
        busy_workers=max(0, workers - unknown),
        busy_slots=max(0, slots.busy_by_workers - unknown * view.slots_per_worker),
        unknown_activity_workers=0,
    )
