"""Starts beside each other on few cores take longer: how many at once still help the jobs that wait.

``n`` workers that each need ``c`` CPU seconds to start are up after ``n × c ÷ cores`` at the earliest, and then start
``w`` seconds of waiting work in ``w ÷ n``. The sum is least at ``√(w × cores ÷ c)``: with more, the last job starts
later, not sooner. So whatever could be in time with more starts is in time with so many.

Source: L. Kleinrock, "Queueing Systems", volume 2 (1976), chapter 4: processor sharing.
"""

import math

from headway.scaling.demands.needs import Need, Supply
from headway.scaling.reading.pool_times import batch_cycle_s
from headway.scaling.view import PoolView, copied


def helpful_starts(view: PoolView) -> float:
    """The most workers whose start at once still helps the waiting jobs; infinite where that is not known.

    Never below the number of cores, on which they do not delay each other.
    """
    # Each queue's own service time: the pool's mean is that of the jobs that end most often, not of those that wait.
    waiting = [queue for queue in view.queues if queue.waiting_least_jobs]
    slot_s = sum(queue.waiting_least_jobs * batch_cycle_s(queue, view) for queue in waiting)
    work_s = slot_s / view.slots_per_worker
    if not view.host_cores or not view.start_up_cpu_s or math.isinf(work_s):
        return math.inf
    return math.ceil(max(view.host_cores, math.sqrt(work_s * view.host_cores / view.start_up_cpu_s)))


def helpful_slots(view: PoolView) -> float:
    """The slots of the most workers whose start at once still helps; infinite where that is not known."""
    return helpful_starts(view) * view.slots_per_worker


def without_vain_starts(drain: Need, given: Supply, *, helpful_slots: float) -> Need:
    """``drain`` with no more new slots than, with those that start already, still help."""
    room_slots = max(0.0, helpful_slots - given.coming_slots)
    return drain if drain.new_slots <= room_slots else copied(drain, new_slots=int(room_slots))


def vain_starts_note(asked: Need, left: Need, view: PoolView) -> tuple[str, ...]:
    """What was taken away and why, where anything was."""
    if asked.new_slots == left.new_slots:
        return ()
    why = f"on {view.host_cores:g} cores, more starts at once would start the waiting jobs later, not sooner"
    return (f"{why}: {left.new_slots} of {asked.new_slots} new slots are requested",)
