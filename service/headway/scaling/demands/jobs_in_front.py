"""Jobs of other queues that start before a queue's own, by the order in which workers take from the pool's queues.

The library of a worker sets the order. Where it is not known, the order that promises least is calculated with: every
job that waits in another queue starts first.

Source: docs/why/demand.md, "Several queues in one pool".
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from headway.scaling.arithmetic import ROUNDING
from headway.scaling.demands.deadlines import Due, backlog_drain, completions_per_s
from headway.scaling.demands.needs import LATE_S, Coming, Need, Supply, greatest
from headway.scaling.model import QueueMetrics, QueueOrder
from headway.scaling.model.queue_order import OrderedQueues, is_earlier
from headway.scaling.reading.pool_times import PoolTimes

RANDOM_DEVIATIONS = 2.3  # standard deviations above the mean that 99 % of the draws stay below


@dataclass(frozen=True, slots=True, kw_only=True)
class InFront:
    """So many waiting jobs of another queue."""

    queue: QueueMetrics
    jobs: float


def jobs_in_front(
    member: QueueMetrics, jobs: float, among: OrderedQueues, *, deviations: float = 0.0
) -> tuple[InFront, ...]:
    """How many jobs of each other queue of the pool start before the ``jobs``-th next job of ``member``.

    Never falls as more jobs wait in another queue, or as ``jobs`` rises.

    Args:
        member: One of the queues.
        jobs: Of ``member``, those that start before included.
        among: All queues from which workers of the pool take jobs.
        deviations: Of a random order, how many standard deviations above the mean.
    """
    return tuple(
        InFront(queue=other, jobs=found)
        for other in among.queues
        if other.waiting_least_jobs  # first: of a thousand queues few have waiting jobs
        and other.queue != member.queue
        and (found := min(other.waiting_least_jobs, _most(other, member, jobs, among, deviations=deviations))) > 0
    )


def _most(other: QueueMetrics, member: QueueMetrics, jobs: float, among: OrderedQueues, *, deviations: float) -> float:
    """How many jobs of ``other`` would start first if any number waited there."""
    match among.order:
        case QueueOrder.STRICT:
            return math.inf if is_earlier(other, member, among.strict_queues) else 0.0
        case QueueOrder.IN_TURN:
            return jobs
        case QueueOrder.RANDOM:
            # Between two jobs of a queue the draws of another are geometric: their mean is 1, their variance 2.
            return jobs + deviations * math.sqrt(2.0 * jobs)
        case QueueOrder.BY_ARRIVAL | None:
            return math.inf


def drain_behind(
    member: QueueMetrics,
    due: Sequence[Due],
    given: Supply,
    among: OrderedQueues,
    times: PoolTimes,
    *,
    slots_max: int,
) -> Need:
    """The slots that start the waiting jobs of ``member`` in time, and before them those of other queues.

    Args:
        member: One of the queues.
        due: Its waiting jobs, the most urgent first.
        given: What starts its jobs without one more worker.
        among: All queues of the pool.
        times: Of the pool.
        slots_max: The most that the pool may have.
    """
    needs, jobs = [], 0.0
    for each in due:
        jobs += each.jobs
        taken_slots = slots_in_front(member, jobs, each.within_s, given, among, times)
        if not taken_slots:
            continue
        left, idle_slots = _without_free_slots(given, taken_slots)
        own_due = Due(jobs=jobs, within_s=each.within_s)
        own = backlog_drain((own_due,), left, slots_max=max(0, slots_max - taken_slots))
        # Where a worker asked for at the next evaluation would be in time, nothing is asked for now.
        if own.slots or each.within_s < given.reaction_s:
            there_slots = given.busy_slots - left.busy_slots + given.coming_slots - left.coming_slots
            new_slots = taken_slots - idle_slots - there_slots
            needs.append(own.behind(idle_slots=idle_slots, new_slots=new_slots))
    return greatest(needs)


def slots_in_front(
    member: QueueMetrics, jobs: float, within_s: float, given: Supply, among: OrderedQueues, times: PoolTimes
) -> int:
    """The slots that jobs of other queues take from ``jobs`` of ``member`` that are to start ``within_s`` from now.

    A slot that has started a job of ``member`` takes one of another queue next, if the order says so. So of an order in
    turn twice as many count: those before, and those that the same slots go on with.
    """
    slots = 0
    for each in jobs_in_front(member, 2 * jobs, among, deviations=RANDOM_DEVIATIONS):
        left_jobs = each.jobs - _surely_started(each.queue, within_s, given, times)
        if left_jobs > ROUNDING:
            per_slot = 1 + math.floor(max(LATE_S, within_s - given.start_up_s) / times.cycle_s(each.queue))
            slots += math.ceil(left_jobs / per_slot - ROUNDING)
    return slots


def _surely_started(other: QueueMetrics, within_s: float, given: Supply, times: PoolTimes) -> float:
    """Jobs that the slots which run jobs of ``other`` surely go on with."""
    running_slots = max(0, other.in_flight_least_jobs - (other.reserved_jobs or 0))
    if not running_slots:
        return 0.0
    expected = completions_per_s(other, times, running_slots) * max(0.0, within_s)
    return max(0.0, expected - given.caution * math.sqrt(expected))


def without_slots(given: Supply, slots: int) -> tuple[Supply, int]:
    """``given`` without ``slots`` of those that are idle or come, and how many of them are idle."""
    idle_slots = min(slots, given.idle_slots)
    coming = tuple(_later(given, slots - idle_slots))
    return replace(given, idle_slots=given.idle_slots - idle_slots, coming=coming), idle_slots


def _without_free_slots(given: Supply, slots: int) -> tuple[Supply, int]:
    """``given`` without the ``slots`` that are free first, and how many of them are idle.

    These are the idle ones, those that get done with a job, and those that come.
    """
    busy_slots = min(max(0, slots - given.idle_slots), given.busy_slots)
    left, idle_slots = without_slots(given, slots - busy_slots)
    if busy_slots:
        share = busy_slots / given.busy_slots
        left = replace(
            left,
            busy_slots=given.busy_slots - busy_slots,
            completions_per_s=given.completions_per_s * (1.0 - share),
        )
    return left, idle_slots


def _later(given: Supply, taken_slots: int) -> Iterator[Coming]:
    for each in sorted(given.coming, key=lambda each: each.ready_in_s):
        gone_slots = min(taken_slots, each.slots)
        taken_slots -= gone_slots
        if each.slots > gone_slots:
            yield replace(each, slots=each.slots - gone_slots)
