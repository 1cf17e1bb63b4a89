"""Reasons to want workers, in slots, by deadlines: every job must start within the objective.

Each is monotone: more waiting, longer waiting, slower jobs or more arrivals never lower it. What a slot will start is
calculated from what is surely done by then, and only the jobs that cannot wait for the next evaluation ask for new
workers now.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from headway.scaling.demands.needs import NO_NEED, Coming, Need, Supply, greatest, need
from headway.scaling.group import smallest
from headway.scaling.model import QueueMetrics
from headway.scaling.reading.busy_slots import WorkerSlots
from headway.scaling.reading.pool_times import MARGIN_S, PoolTimes
from headway.scaling.view import PoolView


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """So many jobs that must start within so many seconds from now."""

    jobs: float
    within_s: float


def supply(
    queue: QueueMetrics,
    slots: WorkerSlots,
    times: PoolTimes,
    *,
    coming: Sequence[Coming],
    freed: Sequence[Coming] = (),
    caution: float,
) -> Supply:
    """What will start jobs of ``queue`` without one more worker.

    ``freed`` are those slots that get done with jobs of other pools' queues and take one of the pool's own.
    """
    busy_slots = slots.occupied(queue, times)
    return Supply(
        busy_slots=busy_slots,
        idle_slots=max(0, slots.running_slots - busy_slots - slots.helping_slots),
        helping_slots=slots.helping_slots,
        freed=tuple(freed),
        coming=tuple(coming),
        completions_per_s=completions_per_s(queue, times, busy_slots),
        cycle_s=times.cycle_s(queue),
        caution=caution,
        reserved_jobs=queue.reserved_jobs or 0,
        start_up_s=times.start_up_s,
        tick_s=times.tick_s,
    )


def completions_per_s(queue: QueueMetrics, times: PoolTimes, busy_slots: int) -> float:
    """How fast ``busy_slots`` get done: as they did of late, or by the mean service time, whichever is less.

    Where a few long jobs make the mean, most of the busy slots are busy for longer than it says.
    """
    per_slot_s = 1.0 / times.cycle_s(queue)
    if queue.in_flight_mean_jobs is not None and queue.completion_rate_per_s is not None:
        mean_slots = queue.in_flight_mean_jobs + (times.overhead_s or 0.0) * queue.completion_rate_per_s
        of_late = queue.completion_rate_per_s / mean_slots if mean_slots > 0 else 0.0
        per_slot_s = min(per_slot_s, of_late)
    return busy_slots * per_slot_s


def waiting(queue: QueueMetrics, *, target_s: float, slow_start_s: float, tick_s: float) -> tuple[Due, ...]:
    """The jobs that wait, by how long they may still, the most urgent first; a start may be late by ``slow_start_s``.

    Jobs start in the order in which they came, so those that wait are the newest arrivals. What the counts of arrivals
    do not explain has waited as long as the oldest.
    """
    margin_s = MARGIN_S + slow_start_s
    waiting_jobs = queue.waiting_least_jobs
    oldest_s = queue.oldest_age_s if queue.oldest_age_max_s is None else queue.oldest_age_max_s
    found: list[Due] = []
    left_jobs = waiting_jobs
    for arrivals in queue.arrivals:
        if left_jobs <= 0:
            break
        jobs = min(left_jobs, arrivals.jobs)
        age_s = arrivals.ended_ago_s + tick_s  # that of the first: jobs of a span are not distinguished
        waited_s = age_s if oldest_s is None else min(age_s, oldest_s)
        found.append(Due(jobs=jobs, within_s=target_s - waited_s - margin_s))
        left_jobs -= jobs
    if left_jobs > 0:
        found.append(Due(jobs=left_jobs, within_s=target_s - (oldest_s or 0.0) - margin_s))
    found.reverse()
    return tuple(found)


def taking(queue: QueueMetrics, given: Supply) -> Need:
    """The idle slots that are about to take a waiting job: a sample shows both, and neither is at rest."""
    return Need(kept_slots=min(given.idle_slots, queue.waiting_least_jobs))


def backlog_drain(due: Iterable[Due], given: Supply, *, slots_max: int) -> Need:
    """The slots that start every waiting job in time.

    A job that a worker asked for at the next evaluation would still start in time asks for nothing now: until then, the
    slots there are may have taken it. But where ``slots_max``, the most that the pool may have, would not be enough by
    then, the time that is left is used from now on.

    Source: docs/why/demand.md, "Draining a backlog".
    """
    needs, ahead_jobs = [], 0.0
    for each in due:
        ahead_jobs += each.jobs
        if each.within_s < given.reaction_s or _is_too_late_next(ahead_jobs, each.within_s, given, slots_max=slots_max):
            needs.append(need(ahead_jobs, each.within_s, given, start_up_s=given.start_up_s))
    return greatest(needs)


def _is_too_late_next(jobs: float, within_s: float, given: Supply, *, slots_max: int) -> bool:
    """Whether ``slots_max`` could not start ``jobs`` in time if nobody were asked for before the next evaluation."""
    if jobs <= slots_max:  # a slot each is always enough
        return False
    later = need(jobs, within_s - given.tick_s, given, start_up_s=given.start_up_s)
    return given.busy_slots + later.slots + given.helping_slots > slots_max


def standing(
    given: Supply, *, waiting_jobs: int, exposed_s: float, target_s: float, arrivals_per_tick: float, spare_jobs: float
) -> Need:
    """The slots that start in time even the jobs that a worker asked for at the next evaluation would come too late
    for.

    They come behind ``waiting_jobs`` within ``exposed_s``: ``arrivals_per_tick`` are expected, and ``spare_jobs`` more
    are guarded against. Where tick and start-up fit into ``target_s``, there are no such jobs, and nothing stands.

    Source: docs/why/demand.md, "Pre-warmed workers".
    """
    found, ahead_jobs, from_s = NO_NEED, float(waiting_jobs), 0.0
    while from_s < exposed_s:
        ahead_jobs += arrivals_per_tick * min(given.tick_s, exposed_s - from_s) / given.tick_s
        within_s = from_s + target_s - MARGIN_S
        # What has not come need not be late: with a floor here, standing workers come and go.
        more = need(ahead_jobs + spare_jobs, within_s, given, start_up_s=given.start_up_s, late_s=0.0)
        found = greatest((found, more))
        from_s += given.tick_s
    return found


def ceiling_slots(view: PoolView, now_s: float) -> int:
    """The most slots that the pool may have now."""
    workers = view.profile.bounds_at(now_s, view.zones).workers_max
    if view.capacity_workers is not None:
        workers = min(workers, view.capacity_workers)
    if view.groups:
        workers = min(workers, smallest(view.groups, view.slots_per_worker).ceiling_workers(view.slots_per_worker))
    return workers * view.slots_per_worker
