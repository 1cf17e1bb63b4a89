"""What a pause keeps. The count is that of the moment at which the pause began; lost hosts do not change it."""

from headway.scaling.model import Mode

PAUSES = frozenset({Mode.PAUSE, Mode.PAUSE_UP, Mode.PAUSE_DOWN})
NEVER_DOWN = frozenset({Mode.PAUSE, Mode.PAUSE_DOWN})


def begun(count: int, *, last_workers: int, existing_workers: int) -> int:
    """The count that a pause keeps which begins now.

    That is the last target. While hosts are unreachable the target is perhaps only what the others can hold: what may
    run on the unreachable ones counts as well, as far as ``count`` still asks for it.
    """
    return max(last_workers, min(count, existing_workers))


def kept(mode: Mode, count: int, *, paused_workers: int, busy_workers: int) -> int:
    """What a pause makes of ``count``. A pause asks no busy worker to leave, whatever its own count."""
    if mode is Mode.PAUSE:
        return max(paused_workers, busy_workers)
    if mode is Mode.PAUSE_DOWN:
        return max(count, paused_workers, busy_workers)
    if mode is Mode.PAUSE_UP:
        return min(count, max(paused_workers, busy_workers))
    return count


def after(mode: Mode, *, paused_workers: int, asked_workers: int, target_workers: int) -> int | None:
    """The count that the pause keeps from now on; ``None`` where nothing is paused.

    A pause of one direction goes along with moves in the other: up with the target, down with what demand, people and
    the clock ask for (``asked_workers``). What ceilings and lost hosts take away is no such move.
    """
    if mode is Mode.PAUSE:
        return paused_workers
    if mode is Mode.PAUSE_DOWN:
        return max(paused_workers, target_workers)
    if mode is Mode.PAUSE_UP:
        return min(paused_workers, asked_workers)
    return None
