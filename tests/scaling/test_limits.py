from dataclasses import replace
from typing import Any

import pytest

from headway.scaling import limits
from headway.scaling.limits import Ground
from headway.scaling.model import Memory, Mode, Wanted
from scaling.pools import NOW_S, profile, view


def ground(*, last: int = 0, wanted: tuple[Wanted, ...] = (), is_fresh: bool = True, **values: Any) -> Ground:
    pool = {key: values.pop(key) for key in list(values) if key in {"capacity_workers", "unknown_workers"}}
    seen = replace(view(**pool), profile=profile(**values))
    return Ground(view=seen, memory=Memory(wanted=wanted), last_workers=last, is_fresh=is_fresh, now_s=NOW_S)


def test_stale_metrics_never_lower_but_may_raise() -> None:
    assert limits.hold_stale(3, ground(last=8, is_fresh=False)) == 8
    assert limits.hold_stale(9, ground(last=8, is_fresh=False)) == 9
    assert limits.hold_stale(3, ground(last=8)) == 3


def test_the_hold_delays_scaling_down_but_never_up() -> None:
    recent = (Wanted(at_s=NOW_S - 14, workers=6),)
    assert limits.hold_down(2, ground(last=8, wanted=recent, hold_down_s=15.0)) == 6
    assert limits.hold_down(12, ground(last=8, wanted=recent, hold_down_s=15.0)) == 12


def test_the_hold_forgets_wants_older_than_itself() -> None:
    old = (Wanted(at_s=NOW_S - 16, workers=6),)
    assert limits.hold_down(2, ground(last=8, wanted=old, hold_down_s=15.0)) == 2


def test_the_hold_never_raises_above_the_last_target() -> None:
    recent = (Wanted(at_s=NOW_S - 1, workers=50),)
    assert limits.hold_down(2, ground(last=8, wanted=recent, hold_down_s=15.0)) == 8


@pytest.mark.parametrize(
    ("mode", "wanted", "left"),
    [
        (Mode.ACT, 9, 9),
        (Mode.ACT, 1, 1),
        (Mode.RECOMMEND, 9, 9),  # what to do is said as ever; not doing it is the work of whoever writes assignments
        (Mode.PAUSE, 9, 5),
        (Mode.PAUSE, 1, 5),
        (Mode.PAUSE_UP, 9, 5),
        (Mode.PAUSE_UP, 1, 1),
        (Mode.PAUSE_DOWN, 9, 9),
        (Mode.PAUSE_DOWN, 1, 5),
    ],
)
def test_a_pause_keeps_the_last_target_in_its_direction(mode: Mode, wanted: int, left: int) -> None:
    assert limits.pause(wanted, ground(last=5, mode=mode)) == left


def test_bounds_hold() -> None:
    assert limits.workers_min(0, ground(workers_min=2)) == 2
    assert limits.workers_max(30, ground(workers_max=20)) == 20


def test_unknown_workers_count_against_the_ceiling() -> None:
    """Workers of a host that went silent may still run: together they must not pass the ceiling."""
    assert limits.workers_max(20, ground(workers_max=20, unknown_workers=6)) == 14


def test_capacity_is_never_exceeded_and_unknown_capacity_holds() -> None:
    assert limits.capacity(20, ground(last=4, capacity_workers=7)) == 7
    assert limits.capacity(20, ground(last=4, capacity_workers=None)) == 4
