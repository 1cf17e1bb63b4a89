"""Starts beside each other on few cores take longer: how many at once still help the jobs that wait.

``n`` workers that each need ``c`` CPU seconds to start are up after ``n × c ÷ cores`` at the earliest, and then start
``w`` seconds of waiting work in ``w ÷ n``. The sum is least at ``√(w × cores ÷ c)``: with more, the last job starts
later, not sooner. So whatever could be in time with more starts is in time with so many.

Source: L. Kleinrock, "Queueing Systems", volume 2 (1976), chapter 4: processor sharing.
"""

import math
from collections.abc import Iterable

from headway.scaling.arithmetic import SHORTEST_S
from headway.scaling.demands.needs import Need, Supply
from headway.scaling.model import QueueMetrics
from headway.scaling.reading.pool_times import PoolTimes
from headway.scaling.view import copied


def helpful_starts(
    queues: Iterable[QueueMetrics], times: PoolTimes, *, host_cores: float | None, slots_per_worker: int
) -> float:
    """The most workers whose start at once still helps the jobs that wait in ``queues``; infinite if that is unknown.

    Never below the number of cores, on which they do not delay each other.
    """
    # Each queue's own service time: the pool's mean is that of the jobs that end most often, not of those that wait.
    waiting = [queue for queue in queues if queue.waiting_least_jobs]
    slot_s = sum(queue.waiting_least_jobs * times.batch_cycle_s(queue) for queue in waiting)
    work_s = slot_s / slots_per_worker
    if not host_cores or times.start_up_cpu_s is None or math.isinf(work_s):
        return math.inf
    if times.start_up_cpu_s < SHORTEST_S:  # starts that take next to no processor time do not delay each other
        return math.inf
    return math.ceil(max(host_cores, math.sqrt(work_s * host_cores / times.start_up_cpu_s)))


def without_vain_starts(drain: Need, given: Supply, *, helpful_slots: float) -> Need:
    """``drain`` with no more new slots than, with those that start already, still help."""
    room_slots = max(0.0, helpful_slots - given.coming_slots)
    return drain if drain.new_slots <= room_slots else copied(drain, new_slots=int(room_slots))


def vain_starts_note(asked: Need, left: Need, *, host_cores: float | None) -> tuple[str, ...]:
    """What was taken away and why, where anything was."""
    if asked.new_slots == left.new_slots:
        return ()
    why = f"on {host_cores:g} cores, more starts at once would start the waiting jobs later, not sooner"
    return (f"{why}: {left.new_slots} of {asked.new_slots} new slots are requested",)
