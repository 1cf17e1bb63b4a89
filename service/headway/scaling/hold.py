"""How long a count stays up after it was last wanted, chosen by what each wait would have cost this pool.

A worker that is kept idles; one that is let go may have to be started again. Which is dearer depends on how soon the
next job needs it, and that is a property of the pool. So every wait is tried on what was wanted of late, and the
cheapest is taken.

Source: A. Gandhi, M. Harchol-Balter, R. Raghunathan, M. A. Kozuch, "AutoScale", ACM TOCS 30 (2012): delayed-off.
"""

import math
from collections.abc import Iterable
from operator import attrgetter

from headway.scaling.model import HoldTrial, Wanted

HOLDS_TICKS = (0, 1, 2, 3, 6)
START_WORKER_S = 30.0  # what a start costs beyond its own time: processor, memory and connections all at once
START_UP_SHARE = 2.5  # and for each second of start-up, in which a worker is paid for and of no use
MEMORY_S = 3600.0  # the last hour tells which wait is cheapest
SLACK_S = 1e-6  # looks are a tick apart but for rounding

_at_s = attrgetter("at_s")


def longest_s(tick_s: float) -> float:
    """The longest wait that is tried."""
    return HOLDS_TICKS[-1] * tick_s


def tried(
    before: HoldTrial | None, recent: Iterable[Wanted], *, workers: int, now_s: float, tick_s: float, start_up_s: float
) -> HoldTrial:
    """``before`` with this look: ``workers`` are wanted now, ``recent`` were before.

    A wait costs the worker-seconds it keeps beyond what is wanted, and a start for each worker it let go too soon.
    """
    known = before or HoldTrial(at_s=now_s - tick_s, costs=(0.0,) * len(HOLDS_TICKS), levels=(0,) * len(HOLDS_TICKS))
    passed_s = max(0.0, now_s - known.at_s)
    kept = math.exp(-passed_s / MEMORY_S)
    start_cost = START_WORKER_S + START_UP_SHARE * start_up_s
    peaks = sorted(recent, key=_at_s, reverse=True)
    costs, levels = [], []
    level, next_peak = workers, 0
    for ticks, cost, was in zip(HOLDS_TICKS, known.costs, known.levels, strict=True):
        since_s = now_s - ticks * tick_s - SLACK_S
        while next_peak < len(peaks) and peaks[next_peak].at_s >= since_s:
            level = max(level, peaks[next_peak].workers)
            next_peak += 1
        started = level - was if level > was else 0
        costs.append(cost * kept + (level - workers) * passed_s + started * start_cost)
        levels.append(level)
    return HoldTrial(at_s=now_s, costs=tuple(costs), levels=tuple(levels))


def cheapest_s(trial: HoldTrial, *, tick_s: float) -> float:
    """The wait that has cost least; of equals the shortest."""
    return HOLDS_TICKS[trial.costs.index(min(trial.costs))] * tick_s
