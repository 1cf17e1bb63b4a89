"""How long a job that arrives now will wait: only workers that will exist are counted on. It is scored afterwards."""

from collections.abc import Sequence

from headway.scaling.demands.jobs_in_front import jobs_in_front
from headway.scaling.model import MemberPickup, QueueMetrics, is_suspended
from headway.scaling.reading.busy_slots import busy
from headway.scaling.reading.pool_times import service_time_s, start_up_s
from headway.scaling.view import PoolView


def predicted_pickup_of(queue: QueueMetrics, view: PoolView, *, target_workers: int) -> float | None:
    """How long a job that arrives now will wait, with the workers that will exist and no others.

    ``queue`` is all of the pool's queues together. ``None`` where the backlog is not known, or where no worker will
    exist to take the job: of a template that fails on every host, nobody knows whether a worker stays for long enough,
    and of a suspended pool when one takes jobs again.
    """
    slots = _slots(view, target_workers=target_workers)
    if queue.waiting_jobs is None or slots == 0:
        return None
    if view.helped_queues:
        # Of several queues of its own, each has a prediction with the jobs of other pools that are in front of it.
        others = view.helped_queues if len(view.queues) == 1 else ()
        taken_jobs = _taken_jobs(queue, view)
        return _first_free_s(view) + _behind_others_s(queue, taken_jobs, queue, view, slots=slots, others=others)
    ahead_jobs = queue.waiting_jobs + _taken_jobs(queue, view) + 1 - slots
    return _first_free_s(view) + max(0, ahead_jobs) / slots * _cycle_s(queue, view)


def member_pickups(queue: QueueMetrics, view: PoolView, *, target_workers: int) -> tuple[MemberPickup, ...]:
    """The same of a job of each queue, by the order in which workers take from them, where a pool has several.

    ``queue`` is all of them together. Of an unknown order it is the longest that the job may wait.
    """
    slots = _slots(view, target_workers=target_workers)
    if len(view.queues) < 2 or queue.waiting_jobs is None or slots == 0:
        return ()
    taken_jobs, others = _taken_jobs(queue, view), (*view.queues, *view.helped_queues)
    return tuple(
        MemberPickup(
            queue=member.queue,
            objective=view.profile.objective_of(member.queue),
            predicted_pickup_s=_first_free_s(view)
            + _behind_others_s(member, taken_jobs, queue, view, slots=slots, others=others),
        )
        for member in view.queues
        if member.waiting_jobs is not None
    )


def _behind_others_s(
    member: QueueMetrics,
    taken_jobs: int,
    together: QueueMetrics,
    view: PoolView,
    *,
    slots: int,
    others: Sequence[QueueMetrics],
) -> float:
    """How long ``slots`` take until a new job of ``member`` starts; each job before it keeps one for its mean time.

    Those that run jobs of other pools' queues are not free either.
    """
    own_jobs = member.waiting_jobs or 0
    before: list[tuple[float, QueueMetrics]] = [(own_jobs, member), (taken_jobs, together)]
    before += [(each.jobs, each.queue) for each in jobs_in_front(member, own_jobs + 1, view, others=others)]
    helped = {each.queue: each for each in view.helped_queues}
    before += [(each.jobs, helped[each.queue]) for each in view.helping if each.queue in helped]
    jobs = sum(jobs for jobs, _ in before)
    if jobs + 1 <= slots:
        return 0.0
    mean_cycle_s = sum(jobs * _cycle_s(each, view) for jobs, each in before) / jobs
    return (jobs + 1 - slots) / slots * mean_cycle_s


def _slots(view: PoolView, *, target_workers: int) -> int:
    """The slots that will exist and take jobs; 0 where nobody knows of any."""
    if view.is_failing or is_suspended(view.suspension):
        return 0
    coming_workers = min(target_workers, view.running_workers + view.starting_workers) or target_workers
    if view.useful_workers is not None:
        coming_workers = min(coming_workers, view.useful_workers)
    return coming_workers * view.slots_per_worker


def _first_free_s(view: PoolView) -> float:
    return 0.0 if view.running_workers else start_up_s(view)


def _taken_jobs(queue: QueueMetrics, view: PoolView) -> int:
    """The jobs that workers have."""
    if queue.in_flight_jobs is not None:
        return queue.in_flight_jobs
    return busy(queue, view) + (queue.reserved_jobs or 0)


def _cycle_s(queue: QueueMetrics, view: PoolView) -> float:
    return service_time_s(queue, view) + (view.dispatch_overhead_s or 0.0)
