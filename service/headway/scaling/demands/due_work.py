"""Work that is due later, at a time that is known: workers stand ready for it, start-up included, and nobody before.

A job that is due later can start from its due time on, and must start within the objective of it. So slots count from
then on only: what they could start before is of no use to it.

Source: S. K. Baruah, L. E. Rosier, R. R. Howell, "Algorithms and Complexity Concerning the Preemptive Scheduling of
Periodic, Real-Time Tasks on One Processor", Real-Time Systems 2 (1990): in each interval, the work that comes and is
due within it must not exceed what can be done in it.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from headway.scaling.demands.deadlines import Due, waiting
from headway.scaling.demands.needs import Need, Supply, greatest, need
from headway.scaling.model import QueueMetrics
from headway.scaling.reading.pool_times import MARGIN_S


@dataclass(frozen=True, slots=True, kw_only=True)
class _Interval:
    """So many jobs come at ``from_s`` from now or later, and must have started by ``until_s``."""

    jobs: float
    from_s: float
    until_s: float


def due_work(queue: QueueMetrics, given: Supply, *, target_s: float, slow_start_s: float, price_s: float) -> Need:
    """The slots that start each job within ``target_s`` of its due time.

    New ones are for jobs that are due before a worker that is asked for at the next evaluation would be up, and are
    asked for as late as that allows: once such a worker would come too late for one of them, or so late that more
    workers were needed. Idle ones stay while to let them go and to start them again, which costs ``price_s``
    worker-seconds, would cost more than their time.
    """
    ready_in_s, soon_s = given.start_up_s, given.reaction_s
    waits = waiting(queue, target_s=target_s, slow_start_s=slow_start_s, tick_s=given.tick_s)

    def needed(intervals: Iterable[_Interval], *, ready_in_s: float) -> Need:
        # What is known before it is due need not be late.
        return greatest(
            need(each.jobs, each.until_s, given, start_up_s=ready_in_s, from_s=each.from_s, late_s=0.0)
            for each in intervals
        )

    kept = needed(_intervals(queue, waits, target_s=target_s, before_s=soon_s + price_s), ready_in_s=ready_in_s)
    soon = tuple(_intervals(queue, waits, target_s=target_s, before_s=soon_s))
    now = needed(soon, ready_in_s=ready_in_s)
    if needed(soon, ready_in_s=soon_s).new_slots == now.new_slots:
        now = needed((each for each in soon if each.until_s < soon_s + slow_start_s), ready_in_s=ready_in_s)
    return Need(kept_slots=kept.kept_slots, new_slots=now.new_slots, kept_for=kept.kept_for, new_for=now.new_for)


def is_due_soon(queue: QueueMetrics, given: Supply) -> bool:
    """Whether a worker that is asked for at the next evaluation would not be up when the first job is due."""
    return bool(queue.delayed) and queue.delayed[0].due_in_s < given.reaction_s


def _intervals(queue: QueueMetrics, waits: Sequence[Due], *, target_s: float, before_s: float) -> Iterator[_Interval]:
    """Each interval that begins with a due time within ``before_s``, or now, and ends with the last moment of one."""
    soon = [each for each in queue.delayed if each.due_in_s < before_s]
    left_s = max(0.0, target_s - MARGIN_S)
    for last in range(len(soon)):
        until_s = soon[last].due_in_s + left_s
        jobs = 0.0
        for each in reversed(soon[: last + 1]):
            jobs += each.jobs
            if each.due_in_s > 0:
                yield _Interval(jobs=jobs, from_s=each.due_in_s, until_s=until_s)
        jobs += sum(each.jobs for each in waits if each.within_s <= until_s)
        yield _Interval(jobs=jobs, from_s=0.0, until_s=until_s)
