"""How long a job that arrives now will wait: only workers that will exist are counted on. It is scored afterwards."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from headway.scaling.demands.jobs_in_front import jobs_in_front
from headway.scaling.model import MemberPickup, QueueMetrics, is_suspended
from headway.scaling.model.queue_order import OrderedQueues
from headway.scaling.reading.busy_slots import WorkerSlots
from headway.scaling.reading.pool_times import PoolTimes
from headway.scaling.view import PoolView


class Pickups(NamedTuple):
    """How long a job that arrives now will wait, with the workers that will exist and no others."""

    predicted_pickup_s: float | None = None
    """``None`` where the backlog is not known, or where no worker will exist to take the job: of a template that fails
    on every host, nobody knows whether a worker stays for long enough, and of a suspended pool when one takes jobs
    again."""
    member_pickups: tuple[MemberPickup, ...] = ()
    """The same of a job of each queue, by the order in which workers take from them, where a pool has several. Of an
    unknown order it is the longest that the job may wait."""


def pickups_of(
    queue: QueueMetrics, view: PoolView, times: PoolTimes, of_workers: WorkerSlots, *, target_workers: int
) -> Pickups:
    """The waits of the jobs that arrive now.

    Args:
        queue: All queues of the pool as one.
        view: The pool.
        times: Of the pool.
        of_workers: The slots of its workers.
        target_workers: What is decided.
    """
    coming_workers = min(target_workers, view.running_workers + view.starting_workers) or target_workers
    if view.useful_workers is not None:
        coming_workers = min(coming_workers, view.useful_workers)
    slots = coming_workers * view.slots_per_worker
    if queue.waiting_jobs is None or slots == 0 or view.is_failing or is_suspended(view.suspension):
        return Pickups()
    taken_jobs = queue.in_flight_jobs
    if taken_jobs is None:
        taken_jobs = of_workers.busy(queue) + (queue.reserved_jobs or 0)
    first_free_s = 0.0 if view.running_workers else times.start_up_s
    among = OrderedQueues(
        queues=(*view.queues, *view.helped_queues), order=view.queue_order, strict_queues=view.strict_queues
    )
    # Slots that run jobs of other pools' queues are not free either.
    helped = {each.queue: each for each in view.helped_queues}
    helping = [(each.jobs, helped[each.queue]) for each in view.helping if each.queue in helped]
    if view.helped_queues:
        # Of several queues of its own, each has a prediction with the jobs of other pools that are in front of it.
        others = among if len(view.queues) == 1 else replace(among, queues=())
        before = [*_in_front(queue, taken_jobs, queue, others), *helping]
        predicted_pickup_s = first_free_s + _behind_s(before, times, slots=slots)
    else:
        ahead_jobs = queue.waiting_jobs + taken_jobs + 1 - slots
        predicted_pickup_s = first_free_s + max(0, ahead_jobs) / slots * _cycle_s(queue, times)
    if len(view.queues) < 2:
        return Pickups(predicted_pickup_s)
    of_members = [
        MemberPickup(
            queue=member.queue,
            objective=view.profile.objective_of(member.queue),
            predicted_pickup_s=first_free_s
            + _behind_s([*_in_front(member, taken_jobs, queue, among), *helping], times, slots=slots),
        )
        for member in view.queues
        if member.waiting_jobs is not None
    ]
    return Pickups(predicted_pickup_s, tuple(of_members))


def _in_front(
    member: QueueMetrics, taken_jobs: int, together: QueueMetrics, among: OrderedQueues
) -> list[tuple[float, QueueMetrics]]:
    """How many jobs of which queue start, or have started, before a new job of ``member``."""
    own_jobs = member.waiting_jobs or 0
    others = jobs_in_front(member, own_jobs + 1, among)
    return [(own_jobs, member), (taken_jobs, together), *[(each.jobs, each.queue) for each in others]]


def _behind_s(before: Sequence[tuple[float, QueueMetrics]], times: PoolTimes, *, slots: int) -> float:
    """How long ``slots`` take until the next job starts; each job before it keeps one for its queue's mean time."""
    jobs = sum(jobs for jobs, _ in before)
    if jobs + 1 <= slots:
        return 0.0
    mean_cycle_s = sum(jobs * _cycle_s(queue, times) for jobs, queue in before) / jobs
    return (jobs + 1 - slots) / slots * mean_cycle_s


def _cycle_s(queue: QueueMetrics, times: PoolTimes) -> float:
    return times.service_time_s(queue) + (times.overhead_s or 0.0)
