"""Reasons to change the number of workers. They fold in a written order, and the order is policy.

Each limit moves the count in its declared way only. Having no ground to lower and an operator's pause come first; what
must never be exceeded, bounds and capacity, has the last word.
"""

from collections.abc import Callable
from dataclasses import dataclass

from headway.scaling.model import Memory, Mode
from headway.scaling.view import PoolView


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """What limits stand on: the pool, what is remembered, the last target, and whether the metrics can be trusted."""

    view: PoolView
    memory: Memory
    last_workers: int
    is_fresh: bool
    now_s: float


Limit = Callable[[int, Ground], int]


def hold_stale(count: int, ground: Ground) -> int:
    """No data is not zero load: without fresh metrics nothing goes down."""
    return count if ground.is_fresh else max(count, ground.last_workers)


def hold_down(count: int, ground: Ground) -> int:
    """Down only to what was enough for the whole of ``hold_down_s``. Up never waits."""
    if count >= ground.last_workers:
        return count
    since_s = ground.now_s - ground.view.profile.hold_down_s
    recent = [wanted.workers for wanted in ground.memory.wanted if wanted.at_s >= since_s]
    return min(ground.last_workers, max([count, *recent]))


def pause(count: int, ground: Ground) -> int:
    """An operator's pause keeps the last target, in one direction or both."""
    mode = ground.view.profile.mode
    if mode is Mode.PAUSE:
        return ground.last_workers
    if mode is Mode.PAUSE_UP:
        return min(count, ground.last_workers)
    if mode is Mode.PAUSE_DOWN:
        return max(count, ground.last_workers)
    return count


def workers_min(count: int, ground: Ground) -> int:
    """Never below the profile's floor."""
    return max(count, ground.view.profile.workers_min)


def workers_max(count: int, ground: Ground) -> int:
    """Never above the profile's ceiling, less the workers that may still run on hosts that went silent."""
    return min(count, max(0, ground.view.profile.workers_max - ground.view.unknown_workers))


def capacity(count: int, ground: Ground) -> int:
    """Never more than known hosts can hold. While no host is known, what runs is held: unknown is not zero."""
    room = ground.view.capacity_workers
    return min(count, ground.last_workers if room is None else room)


def in_order(come_down: Limit) -> tuple[Limit, ...]:
    """Every limit, in the order in which they fold; ``come_down`` is the strategy's own way to take a lower count."""
    return (hold_stale, come_down, pause, workers_min, workers_max, capacity)


LIMITS: tuple[Limit, ...] = in_order(hold_down)
"""The order as it is for a strategy that holds before it comes down."""
