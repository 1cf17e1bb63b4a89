"""The slots that are enough for a rhythm, always there, and when following it costs less."""

import math
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from headway.scaling.demands.rhythm_capacity import Keeping
from headway.scaling.demands.rhythm_capacity import enough_slots as enough
from headway.scaling.forecasts.rhythm import BINS, Rhythm

KEEPING = Keeping(cycle_s=1.0, wait_s=9.5, tick_s=5.0, start_cost_s=35.0, beside_per_s=0.0, deviations=1.65)


def enough_slots(rhythm: Rhythm, keeping: Keeping) -> int | None:
    """The number of slots that are enough."""
    found = enough(rhythm, keeping)
    return None if found is None else found.slots


def rhythm(*burst: int, period_s: float, bursts: int = 5) -> Rhythm:
    """Bursts that bring the same each time; ``burst`` is what came up to each tick."""
    return Rhythm(period_s=period_s, at_s=0.0, beat=0, hits=((0, 0.0),), stray_s=0.0, bursts=(burst,) * bursts)


@pytest.mark.parametrize(
    ("burst", "period_s", "changes", "slots"),
    [
        ((200, 400, 600), 30.0, {}, 24),  # 600 jobs in 15 s + 9.5 s: 25 starts a slot; 600 × 1 s in 30 s: 20
        ((200, 400, 600, 800, 1000), 50.0, {}, 29),  # 1000 / 35 = 28.6
        ((100, 300, 500, 550), 30.0, {}, 23),  # at its pace it came in 2.5 + 5 + 5 + 1.25 s: 550 / 24
        ((7,), 82.0, {"cycle_s": 60.0}, 7),  # at once, and each outlasts the wait: a slot each
        ((1,), 65.0, {"cycle_s": 20.0, "start_cost_s": 50.0}, 1),  # idle for 45 s, which is less than a start costs
        ((1,), 65.0, {"cycle_s": 20.0}, None),  # and here more
        ((50,), 300.0, {"cycle_s": 0.2}, None),  # idle for nearly all of five minutes
        ((7,), 82.0, {"cycle_s": 100.0}, 14),  # the next burst comes before the first jobs are done
        ((7,), 82.0, {"cycle_s": 94.0}, 14),  # 2.5 s before, which is more than a job may wait
        ((7,), 82.0, {"cycle_s": math.inf}, None),  # no job has ended yet
        ((200, 400, 600), 30.0, {"cycle_s": math.inf, "beside_per_s": 4.0}, None),
        ((200, 400, 600), 30.0, {"beside_per_s": 4.0}, 30),  # 24 + 4 × 1 s + √4
    ],
)
def test_the_busiest_span_of_a_burst_says_how_many_slots_are_enough(
    burst: tuple[int, ...], period_s: float, changes: dict[str, float], slots: int | None
) -> None:
    assert enough_slots(rhythm(*burst, period_s=period_s), replace(KEEPING, **changes)) == slots


def test_bursts_that_scatter_ask_for_more_than_the_greatest_of_them() -> None:
    scattered = replace(rhythm(600, period_s=30.0), bursts=((560,), (600,), (640,), (600,), (600,)))
    # Of the four that are over: mean 600, deviation 32.7, so 654 at once, each slot starting ten of them.
    assert enough_slots(scattered, KEEPING) == 66
    assert enough_slots(rhythm(640, period_s=30.0), KEEPING) == 64


def test_the_newest_burst_counts_though_it_may_go_on() -> None:
    greater = replace(rhythm(600, period_s=30.0), bursts=((600,), (600,), (600,), (600,), (700,)))
    assert enough_slots(greater, KEEPING) == 70


def test_a_burst_that_outlasts_what_is_counted_is_followed() -> None:
    sums = tuple(50 * tick for tick in range(1, BINS + 1))
    assert enough_slots(rhythm(*sums, period_s=80.0), KEEPING) is None
    assert enough_slots(rhythm(*sums[:-1], period_s=80.0), KEEPING) is not None


def test_a_rush_of_any_size_is_calculated_at_once() -> None:
    """Slots that have jobs of one burst when the next begins are as many times more as the burst is greater."""
    outlasting = replace(KEEPING, cycle_s=13.0, start_cost_s=1e9)
    small = enough_slots(rhythm(1_000, 2_000, 11_000, period_s=25.0), outlasting)
    great = enough_slots(rhythm(10_000_000, 20_000_000, 110_000_000, period_s=25.0), outlasting)
    assert small is not None
    assert small == 5_720 + 480  # the busiest span needs the former
    assert great == pytest.approx(10_000 * small, rel=1e-3)


def test_more_jobs_than_anybody_has_slots_for_are_followed() -> None:
    endless = replace(KEEPING, start_cost_s=1e9)
    assert enough_slots(rhythm(10**9, period_s=30.0), endless) is not None
    assert enough_slots(rhythm(10**9 + 1, period_s=30.0), endless) is None
    assert enough_slots(rhythm(2**63 - 1, period_s=30.0), endless) is None


def started_in_time(burst: list[int], period_s: float, slots: int, *, cycle_s: float) -> bool:
    """Whether ``slots`` start each of three bursts' jobs within the wait, those of a tick coming at its end."""
    free_s = [0.0] * slots
    for number in range(3):
        for tick, jobs in enumerate(burst):
            at_s = number * period_s + tick * KEEPING.tick_s
            for _ in range(jobs):
                start_s = max(at_s, min(free_s))
                if start_s - at_s > KEEPING.wait_s + KEEPING.tick_s:  # as exact as a tick
                    return False
                free_s[free_s.index(min(free_s))] = start_s + cycle_s
    return True


@example(burst=[1, 1, 9], pause_ticks=2, cycle_s=13.0)  # six slots have the same work, and the ninth waits for 15 s
@example(burst=[22, 9, 2, 4, 24], pause_ticks=4, cycle_s=26.3)
@given(
    burst=st.lists(st.integers(min_value=1, max_value=30), min_size=1, max_size=6),
    pause_ticks=st.integers(min_value=2, max_value=12),
    cycle_s=st.floats(min_value=0.2, max_value=40.0),
)
def test_the_slots_that_are_kept_start_every_job_of_the_bursts_in_time_to_a_tick(
    burst: list[int], pause_ticks: int, cycle_s: float
) -> None:
    sums = tuple(sum(burst[: tick + 1]) for tick in range(len(burst)))
    period_s = (len(burst) + pause_ticks) * KEEPING.tick_s
    slots = enough_slots(rhythm(*sums, period_s=period_s), replace(KEEPING, cycle_s=cycle_s, start_cost_s=1e9))
    assert slots is not None
    assert started_in_time(burst, period_s, slots, cycle_s=cycle_s)
