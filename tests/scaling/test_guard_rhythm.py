"""A guard that knows when bursts come keeps workers for them then, and not all the time."""

from dataclasses import replace

import pytest

from headway.scaling.decide import decide
from headway.scaling.demands.safety_stock import SafetyStock, learned, spare_jobs
from headway.scaling.forecasts.shortfalls import STOCK_BAND_TIME_S
from headway.scaling.model import Memory
from headway.scaling.profile import Forecast
from headway.scaling.view import PoolView
from scaling.bands import changed, parts, reloaded, watched
from support.pools import NOW_S, exposed_of, profile, queue, view

TICK_S = 5.0
EACH_TICKS = 24  # a burst each two minutes


def pool(**of_profile: object) -> PoolView:
    """Its objective is 10 s and its start-up 8 s: it is exposed for 3.5 s."""
    return view(profile=profile(**of_profile), start_up_s=8.0)


def after(ticks: int, *, jobs: int = 20, missing: int | None = None) -> SafetyStock:
    """Twenty jobs at once each two minutes, but for the burst number ``missing``."""
    guard = None
    for tick in range(ticks):
        now_s = NOW_S + TICK_S * tick
        came = jobs if tick % EACH_TICKS == 0 and tick // EACH_TICKS != missing else 0
        rate = jobs / 60.0 if tick % EACH_TICKS < 12 else 0.0
        seen = queue(sampled_at_s=now_s, arrived_until_s=now_s, arrived_jobs=came, arrival_rate_per_s=rate)
        guard = learned(guard, exposed_of(seen, pool(), now_s=now_s))
    assert guard is not None
    return guard


@pytest.fixture(scope="module")
def known() -> SafetyStock:
    """After half an hour, at the evaluation that sees a burst."""
    return after(15 * EACH_TICKS + 1)


def ready_for(guard: SafetyStock, *, after_ticks: int, at: PoolView | None = None) -> float:
    """The jobs to be ready for, the expected ones and the spare, so many evaluations later, with nothing in use."""
    now_s = NOW_S + TICK_S * (15 * EACH_TICKS + after_ticks)
    guard = changed(guard, at_s=now_s, used_jobs=None, recalled_jobs=None)
    return guard.expected_jobs * 3.5 / TICK_S + spare_jobs(guard, exposed_of(queue(), at or pool(), now_s=now_s))


def test_workers_are_kept_for_a_burst_when_it_comes_and_not_between(known: SafetyStock) -> None:
    assert ready_for(known, after_ticks=EACH_TICKS // 2) == pytest.approx(0.0, abs=0.5)
    assert ready_for(known, after_ticks=EACH_TICKS - 1) == pytest.approx(20.0, abs=1.0)


def test_a_rhythm_counts_once_it_was_watched_and_never_where_the_profile_forbids_it(known: SafetyStock) -> None:
    between = EACH_TICKS // 2
    new = changed(known, by_rhythm=watched(for_s=STOCK_BAND_TIME_S - 1))
    assert ready_for(new, after_ticks=between) > 15
    assert ready_for(known, after_ticks=between, at=pool(forecast=Forecast.OFF)) > 15


def test_no_less_is_enough_while_a_burst_is_due_than_the_rhythm_brings(known: SafetyStock) -> None:
    """Standing for all of it all the time is not worth it, but through the moments in which it may come it is."""
    thrifty = replace(known, by_rate=watched(3.0, for_s=100 * STOCK_BAND_TIME_S))
    assert ready_for(thrifty, after_ticks=EACH_TICKS - 1) == pytest.approx(20.0, abs=1.0)
    assert ready_for(thrifty, after_ticks=EACH_TICKS // 2) == pytest.approx(0.0, abs=0.5)
    surprised = changed(thrifty, by_rhythm=watched(7.0, 7.0))
    assert ready_for(surprised, after_ticks=EACH_TICKS // 2) == pytest.approx(20 / 60 * 3.5)  # by the rate: none is due


def test_what_a_rhythm_fell_short_of_is_guarded_against(known: SafetyStock) -> None:
    surprised = changed(known, by_rhythm=watched(7.0, 7.0))
    assert ready_for(surprised, after_ticks=EACH_TICKS // 2) == pytest.approx(7.0, abs=0.5)


def test_a_rhythm_that_ends_is_let_go() -> None:
    quiet = after(15 * EACH_TICKS + 1 + 10 * EACH_TICKS, missing=None)
    assert parts(quiet).rhythmic_jobs is not None
    guard = after(15 * EACH_TICKS + 1)
    for _ in range(10 * EACH_TICKS):
        now_s = guard.at_s + TICK_S
        seen = queue(sampled_at_s=now_s, arrived_until_s=now_s, arrived_jobs=0)
        guard = learned(guard, exposed_of(seen, pool(), now_s=now_s))
    assert parts(guard).rhythmic_jobs is None


def test_a_rhythm_comes_back_as_it_was_stored(known: SafetyStock) -> None:
    assert SafetyStock.of(reloaded(known)) == known


def test_a_pool_is_ready_for_a_cron_and_at_rest_between() -> None:
    """Fifty jobs of 0.2 s each 5 min: after an hour workers stand for a fraction of the time, and never too late."""
    memory, targets = Memory(), []
    cron = profile(hold_down_s=0.0)
    for tick in range(18 * 60):
        now_s = NOW_S + TICK_S * tick
        came = 50 if tick % 60 == 0 else 0
        seen = queue(
            sampled_at_s=now_s,
            arrived_until_s=now_s,
            arrived_jobs=came,
            arrival_rate_per_s=50 / 60 if tick % 60 < 12 else 0.0,
            start_rate_per_s=50 / 60 if tick % 60 < 12 else 0.0,
            service_time_s=0.2,
        )
        running = (targets or [0])[-1]
        now_view = view(seen, profile=cron, start_up_s=8.0, running_workers=running)
        decision, memory = decide(now_view, memory, now_s=now_s)
        targets.append(decision.target_workers)
    later = targets[12 * 60 :]
    assert sum(later) < 0.5 * len(later)  # one worker at most half the time
    # One that is asked for at the evaluation before a burst starts all of it in time.
    assert all(later[tick - 1] >= 1 for tick in range(60, len(later), 60))
