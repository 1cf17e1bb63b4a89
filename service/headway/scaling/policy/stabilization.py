"""How long a count stays up after it was last wanted, chosen by what each wait would have cost this pool.

A worker that is kept idles; one that is let go may have to be started again. Which is dearer depends on how soon the
next job needs it, and that differs within a pool: the first worker may be needed every minute and the fortieth once an
hour. So workers are priced in bands, the first, the second, the third and fourth, the next four and so on: every wait
is tried on what each band was wanted for of late, and each band takes the cheapest.

Source: A. Gandhi, M. Harchol-Balter, R. Raghunathan, M. A. Kozuch, "AutoScale", ACM TOCS 30 (2012): delayed-off.
"""

import math
from collections.abc import Iterable, Sequence
from operator import attrgetter

from headway.scaling.arithmetic import HOUR_S
from headway.scaling.model import HoldCosts, QueueMetrics, Wanted
from headway.scaling.policy.ground import Ground
from headway.scaling.policy.limit import limit
from headway.scaling.profile import Profile
from headway.scaling.reading.pool_times import PoolTimes

HOLDS_TICKS = (0, 1, 2, 3, 6, 12, 24, 60, 120)
HOLD_CORE_PRICE = 16.0  # worker-seconds that a second of a core is worth: a start takes it from the jobs of others
START_CORE_S = 1.5  # initial estimate of what a start takes of a core: interpreter, imports, connections
HOLD_START_UP_SHARE = 2.5  # for each second from spawn to ready and from stop to end: paid for and of no use
HOLD_MEMORY_S = HOUR_S  # the last hour decides which wait is cheapest
HOLD_FORGOTTEN_S = 12 * HOLD_MEMORY_S  # what was known so long ago weighs nothing
HOLD_WEIGHT_MAX = 1e6  # before newer costs outgrow what doubles hold exactly, all are scaled back
HOLD_SLACK_S = 1e-6  # evaluations are a tick apart but for rounding

_at_s = attrgetter("at_s")


def longest_s(tick_s: float) -> float:
    """The longest wait that is tried."""
    return HOLDS_TICKS[-1] * tick_s


def start_cost_s(times: PoolTimes) -> float:
    """What one start and its exit cost, in worker-seconds."""
    core_s = START_CORE_S if times.start_up_cpu_s is None else times.start_up_cpu_s
    return HOLD_CORE_PRICE * core_s + HOLD_START_UP_SHARE * (times.start_up_s + times.exit_s)


def tried(
    before: HoldCosts | None, recent: Iterable[Wanted], *, workers: int, now_s: float, tick_s: float, start_cost: float
) -> HoldCosts:
    """``before`` with this evaluation: ``workers`` are wanted now, ``recent`` were before.

    A wait costs the worker-seconds it kept beyond what was wanted, and a start for each worker it let go too soon.
    While every wait keeps what it kept, the very value comes back: its time is counted when that changes.
    """
    if before is None or now_s - before.at_s > HOLD_FORGOTTEN_S:
        before = HoldCosts(began_at_s=now_s, at_s=now_s, levels=(0,) * len(HOLDS_TICKS))
    levels = _levels(recent, workers=workers, now_s=now_s, tick_s=tick_s)
    if levels == before.levels:
        return before
    weight = math.exp((now_s - before.began_at_s) / HOLD_MEMORY_S)
    # No wait keeps anything for longer than the longest: who was not evaluated meanwhile kept nothing on purpose.
    idle_s = weight * min(max(0.0, now_s - before.at_s), longest_s(tick_s))
    bands = [*before.bands, *[(0.0,) * len(levels)] * (_bands(levels[-1]) - len(before.bands))]
    start = weight * start_cost
    # Below, the shortest wait kept whole bands, and so did all others; above, none kept or keeps anybody: no wait costs
    # more there.
    for band in range(_whole_bands(before.levels[0]), _bands(max(before.levels[-1], levels[-1]))):
        bands[band] = _with_more(bands[band], band, before.levels, levels, idle_s=idle_s, start=start)
    if weight <= HOLD_WEIGHT_MAX:
        return HoldCosts(began_at_s=before.began_at_s, at_s=now_s, levels=levels, bands=tuple(bands))
    scaled = tuple(tuple(cost / weight for cost in costs) for costs in bands)
    return HoldCosts(began_at_s=now_s, at_s=now_s, levels=levels, bands=scaled)


def _with_more(
    costs: Sequence[float], band: int, before: Sequence[int], levels: Sequence[int], *, idle_s: float, start: float
) -> tuple[float, ...]:
    """The ``costs`` of a band by wait, with what it costs more from one evaluation that changed a level to the next."""
    had_parts, parts = _parts(before, band), _parts(levels, band)
    wanted = had_parts[0]  # the shortest wait keeps what is wanted
    more = []
    for cost, had, part in zip(costs, had_parts, parts, strict=True):
        started = (part - had) * start if part > had else 0.0
        more.append(cost + ((had - wanted) * idle_s + started))
    return tuple(more)


def _levels(recent: Iterable[Wanted], *, workers: int, now_s: float, tick_s: float) -> tuple[int, ...]:
    """The count that each wait keeps: the most that was wanted within it."""
    peaks = sorted(recent, key=_at_s, reverse=True)
    levels, level, next_peak = [], workers, 0
    for ticks in HOLDS_TICKS:
        since_s = now_s - ticks * tick_s - HOLD_SLACK_S
        while next_peak < len(peaks) and peaks[next_peak].at_s >= since_s:
            level = max(level, peaks[next_peak].workers)
            next_peak += 1
        levels.append(level)
    return tuple(levels)


def kept_workers(costs: HoldCosts) -> int:
    """The count that stays up when every band waits as long as has cost it least; of equals the shortest."""
    # Every wait keeps the bands that the shortest keeps whole, and none keeps what the longest does not.
    whole = _whole_bands(costs.levels[0])
    kept = 1 << whole >> 1
    for band in range(whole, _bands(costs.levels[-1])):
        chosen = costs.levels[_cheapest(costs.bands[band])]
        kept += _parts((chosen,), band)[0]
    return kept


def _cheapest(costs: Sequence[float]) -> int:
    return costs.index(min(costs))


def _bands(workers: int) -> int:
    """How many bands ``workers`` reach into."""
    return (workers - 1).bit_length() + 1 if workers else 0


def _whole_bands(workers: int) -> int:
    """How many bands ``workers`` fill."""
    return workers.bit_length()


def _parts(levels: Sequence[int], band: int) -> list[int]:
    """How many of each level are in a band: the first, the second, the third and fourth, the next four and so on."""
    below = 1 << band >> 1
    upto = 1 << band
    # No calls here: nothing else is done so often.
    return [0 if workers <= below else upto - below if workers >= upto else workers - below for workers in levels]


# --- the limits ------------------------------------------------------------------------------------------------------


@limit()  # what it remembers is compared besides
def hold_down(count: int, ground: Ground) -> int:
    """Down only to what was enough for the whole of the hold, the profile's or the cheapest. Up never waits."""
    if count >= ground.last_workers:
        return count
    hold_s = ground.view.profile.hold_down_s
    if hold_s is None:
        return min(ground.last_workers, max(count, ground.kept_workers))
    recent = [each.workers for each in ground.memory.wanted if each.at_s >= ground.now_s - hold_s - HOLD_SLACK_S]
    return min(ground.last_workers, max([count, *recent]))


@limit(is_in_force=lambda ground: ground.is_overdue)
def hold_overdue(count: int, ground: Ground) -> int:
    """While a job waits that has no time left, nothing goes down: who is there is about to take it."""
    does_hold = is_overdue(ground.view.queues, ground.view.profile)  # without jobs that no worker can take
    return max(count, ground.last_workers) if does_hold else count


def is_overdue(queues: Iterable[QueueMetrics], profile: Profile) -> bool:
    """Whether a waiting job of any of the pool's ``queues`` has used up its objective."""
    return any(
        (queue.waiting_least_jobs or queue.reserved_jobs)
        and (queue.oldest_age_s or 0.0) >= profile.objective_of(queue.queue).target_s
        for queue in queues
    )


# It remembers something new at every evaluation where it is in force.
@limit(is_in_force=lambda ground: ground.view.profile.hold_up_s > 0)
def hold_up(count: int, ground: Ground) -> int:
    """Up only to what was wanted for the whole of ``hold_up_s``."""
    if count <= ground.last_workers or not ground.view.profile.hold_up_s:
        return count
    since_s = ground.now_s - ground.view.profile.hold_up_s
    lows = [low.workers for low in ground.memory.lows if low.at_s >= since_s]
    # Without a memory nothing was wanted for any time yet.
    return max(ground.last_workers, min([count, *lows])) if lows else ground.last_workers
