"""The slots that are enough for bursts that keep a rhythm, and whether keeping them is cheaper than following it.

A pool that follows a wave dismisses its workers in each pause and starts them again for the next. Where the pause is
short, the pool whose size never changes costs less. Its jobs wait through the wave, as long as the objective lets them.
"""

import math
from bisect import bisect_left
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import NamedTuple

from headway.scaling.arithmetic import COUNT_MAX, ROUNDING
from headway.scaling.forecasts.rhythm import BINS, ODD_BURSTS, RHYTHM_TOGETHER_BINS, Rhythm

RHYTHM_PERIODS_MAX = 8  # that a job may outlast
BURSTS_BEFORE = 3  # what they leave to the next shows by then


@dataclass(frozen=True, slots=True, kw_only=True)
class Keeping:
    """What a pool of constant size must do."""

    cycle_s: float
    """Of a slot, from one start to the next while jobs wait."""
    wait_s: float
    """How long a job may wait."""
    tick_s: float
    start_cost_s: float
    """What dismissing a slot and starting it again costs, in slot-seconds."""
    beside_per_s: float
    """Arrivals beside the rhythm."""
    deviations: float
    """How many standard deviations more than bursts bring on average are counted on."""


class Enough(NamedTuple):
    """The slots that are enough for a rhythm, by what each is for; their sum is rounded up once."""

    burst_slots: float
    """For the span of a burst that needs most."""
    beside_slots: float
    """Busy on average with what comes beside the rhythm."""
    lacking_slots: int
    """More of them, because slots still have jobs of one burst when the next begins."""

    @property
    def slots(self) -> int:
        """All together, with one standard deviation of what comes beside the rhythm."""
        scatter_slots = math.sqrt(self.beside_slots)
        return math.ceil(self.burst_slots + self.beside_slots + scatter_slots - ROUNDING) + self.lacking_slots


def enough_slots(rhythm: Rhythm, keeping: Keeping) -> Enough | None:
    """The fewest slots, always there, that start every job of bursts like the newest in time.

    ``None`` where that is not known, as without a service time, or where following the bursts costs less than keeping
    the slots in the pauses.

    Source: R. L. Cruz, "A Calculus for Network Delay", IEEE Transactions on Information Theory 37 (1991): a server that
    starts the most arrivals of every span within that span and the permitted wait starts each in time.
    """
    counts = _counts(rhythm, keeping.deviations)
    if not counts or len(counts) >= BINS:  # of a burst that goes on for longer nobody knows how much it brings
        return None
    if sum(counts) > COUNT_MAX:  # no pool has slots for so many, and no float counts them to a job
        return None
    if math.isinf(keeping.cycle_s):  # no job has ended, and nobody has guessed how long one takes
        return None
    burst_slots = max(_of_spans(counts, rhythm.period_s, keeping))
    beside_slots = keeping.beside_per_s * keeping.cycle_s
    lacking_slots = _short(counts, _usual(rhythm), rhythm.period_s, math.ceil(burst_slots - ROUNDING), keeping)
    enough = Enough(burst_slots, beside_slots, lacking_slots)
    work_s = sum(counts) * keeping.cycle_s + beside_slots * rhythm.period_s
    return enough if enough.slots * rhythm.period_s - work_s <= enough.slots * keeping.start_cost_s else None


def _counts(rhythm: Rhythm, deviations: float) -> list[float]:
    """What a burst may have brought by each tick, as counts of each tick: no less than any of the newest has."""
    length = max(map(len, rhythm.bursts), default=0)
    known = [burst for burst in rhythm.bursts if burst]
    sums: list[float] = []
    for tick in range(length):
        totals = _by_tick(known, tick)
        likely = _likely(totals[:-1], deviations)  # the newest may go on
        sums.append(max(*totals, likely, sums[-1] if sums else 0.0))
    counts = [later - before for before, later in zip((0.0, *sums), sums, strict=False)]
    while counts and not counts[-1]:
        counts.pop()
    return counts


def _by_tick(bursts: Sequence[Sequence[int]], tick: int) -> list[int]:
    """What each burst had brought by then."""
    return [burst[min(tick, len(burst) - 1)] for burst in bursts]


def _likely(totals: Sequence[int], deviations: float) -> float:
    """The most that ``totals`` make likely, as far as they scatter."""
    number, total = len(totals), sum(totals)
    if number < ODD_BURSTS:
        return 0.0
    # Of whole numbers, so that sums are exact. Fractions, as of `statistics`, took a fifth of deciding.
    variance = (number * sum(each * each for each in totals) - total * total) / (number * (number - 1))
    return total / number + deviations * math.sqrt(variance)


def _of_spans(counts: Sequence[float], period_s: float, keeping: Keeping) -> Iterator[float]:
    """The slots that every span from one tick of a burst to another needs, and those of bursts that jobs outlast."""
    widths_s = _widths_s(counts, keeping.tick_s)
    for first in range(len(counts)):
        jobs, span_s = 0.0, 0.0
        for count, width_s in zip(counts[first:], widths_s[first:], strict=True):
            jobs, span_s = jobs + count, span_s + width_s
            yield jobs / _starts(span_s, keeping)
    total_jobs, total_s = sum(counts), sum(widths_s)
    yield total_jobs * keeping.cycle_s / period_s
    for bursts in range(2, 2 + math.ceil(min(RHYTHM_PERIODS_MAX, keeping.cycle_s / period_s))):
        yield bursts * total_jobs / _starts((bursts - 1) * period_s + total_s, keeping)


def _usual(rhythm: Rhythm) -> list[float]:
    """What a burst brings in each tick, on average."""
    known = [burst for burst in rhythm.bursts if burst]
    length = max(map(len, known))
    sums = [sum(_by_tick(known, tick)) / len(known) for tick in range(length)]
    return [later - before for before, later in pairwise((0.0, *sums))]


def _short(counts: Sequence[float], usual: Sequence[float], period_s: float, slots: int, keeping: Keeping) -> int:
    """How many more than ``slots`` it takes because those still have jobs of one burst when the next begins.

    The bound on spans has every slot free at the beginning of each. Slots that hardly rest are not: some bursts as
    they ``usual``ly are come before one that brings as much as ``counts``.
    """
    last_s = (len(usual) - 1) * keeping.tick_s
    if slots and last_s + math.ceil(sum(usual) / slots) * keeping.cycle_s <= period_s:
        return 0  # they are done before
    bursts = [*[usual] * BURSTS_BEFORE, counts]

    def are_enough(more: int) -> bool:
        return _start_in_time(bursts, period_s, slots + more, keeping)

    if are_enough(0):
        return 0
    most = 1
    while not are_enough(most):
        most *= 2
    return bisect_left(range(most), x=True, lo=most // 2 + 1, key=are_enough)


def _start_in_time(bursts: Sequence[Sequence[float]], period_s: float, slots: int, keeping: Keeping) -> bool:
    """Whether ``slots`` start the jobs of ``bursts`` in time, to a tick: those of a tick come together, at its end."""
    free = deque([(0.0, slots)])  # from when on how many are; jobs take equally long, so that it stays in order
    for number, burst in enumerate(bursts):
        sums = [math.ceil(each - ROUNDING) for each in accumulate(burst, initial=0.0)]
        for tick, (before, after) in enumerate(pairwise(sums)):
            at_s, jobs = number * period_s + tick * keeping.tick_s, after - before
            while jobs:
                free_s, group = free.popleft()
                start_s, starting = max(at_s, free_s), min(group, jobs)
                if start_s - at_s > keeping.wait_s + keeping.tick_s:
                    return False
                free.append((start_s + keeping.cycle_s, starting))
                if group > starting:
                    free.appendleft((free_s, group - starting))
                jobs -= starting
    return True


def _starts(span_s: float, keeping: Keeping) -> float:
    """Jobs that a free slot starts in time of those that come within ``span_s``."""
    return 1.0 + math.floor((span_s + keeping.wait_s) / keeping.cycle_s)


def _widths_s(counts: Sequence[float], tick_s: float) -> list[float]:
    """For how long jobs came within each tick: for a part of the first and the last, at the burst's own pace."""
    if len(counts) <= RHYTHM_TOGETHER_BINS:
        return [0.0] * len(counts)  # they may have come all at once, and have been cut in two by a tick
    most = max(counts)
    edges = {0, len(counts) - 1}
    return [tick_s * count / most if tick in edges else tick_s for tick, count in enumerate(counts)]
