"""What `hybrid` makes of a rhythm whose pauses are short: it keeps what is enough, and no more."""

from dataclasses import replace
from typing import Any

import pytest

from headway.scaling.decide import decide
from headway.scaling.demands.safety_stock import SafetyStock
from headway.scaling.forecasts.rhythm_detection import Periods, seen
from headway.scaling.model import Arrivals, Memory, Objective, Wanted
from headway.scaling.profile import Forecast
from headway.scaling.strategies.hybrid import HYBRID, HYBRID_SILENT_S
from headway.scaling.view import PoolView
from support.pools import NOW_S, profile, queue, view

TICK_S = 5.0
WAVE = (200, 200, 200, 0, 0, 0)
ENOUGH = 24  # 600 jobs in 15 s + 9.5 s of 1 s each: 25 a slot


def waves(count: int, *, jobs: tuple[int, ...] = WAVE) -> Periods:
    """What is known of so many waves, the last of which ended 15 s ago."""
    known: Periods | None = None
    for tick in range(count * len(jobs)):
        at_s = NOW_S - (count * len(jobs) - 1 - tick) * TICK_S
        known = seen(known, jobs[tick % len(jobs)], at_s=at_s, tick_s=TICK_S)
    assert known is not None
    return known


STATE = {"periods": waves(12)}


def pool(*, policy: dict[str, Any] | None = None, workers: int = ENOUGH, **values: Any) -> PoolView:
    in_queue = {"in_flight_jobs": 0, **values}
    exposed = {"start_up_s": in_queue.pop("start_up_s", 1.0)}
    plain = profile(hold_down_s=None, **(policy or {}))
    return view(queue(**in_queue), profile=plain, running_workers=workers, assigned_workers=workers, **exposed)


def demanded(seen_now: PoolView, state: Any = STATE, *, now_s: float = NOW_S) -> dict[str, float]:
    advice = HYBRID.advise(seen_now.queues[0], seen_now, state, now_s)
    return {demand.name: demand.slots for demand in advice.demands}


def test_what_is_enough_is_kept_in_the_pause() -> None:
    assert demanded(pool())["rhythm"] == ENOUGH


def test_nothing_is_kept_before_a_rhythm_is_believed_or_once_it_is_over() -> None:
    assert "rhythm" not in demanded(pool(), {})
    assert "rhythm" not in demanded(pool(), {"periods": waves(3)})
    assert "rhythm" not in demanded(pool(), now_s=NOW_S + 4 * 30.0)
    assert "rhythm" not in demanded(pool(), now_s=NOW_S + HYBRID_SILENT_S + 1)


@pytest.mark.parametrize("policy", [{"hold_down_s": 60.0}, {"forecast": Forecast.OFF}])
def test_a_profile_that_says_how_to_hold_or_not_to_foresee_is_obeyed(policy: dict[str, Any]) -> None:
    asked = replace(pool(), profile=replace(pool().profile, **policy))
    assert "rhythm" not in demanded(asked)


def test_pauses_dearer_than_a_start_are_not_kept_through() -> None:
    rare = (200, 200, 200, *[0] * 21)  # 120 s, of which each of 24 workers is idle for 95
    assert "rhythm" not in demanded(pool(), {"periods": waves(12, jobs=rare)})


def wave_at_work(*, workers: int, waiting_jobs: int, oldest_age_s: float) -> PoolView:
    arrivals = tuple(Arrivals(ended_ago_s=ago * TICK_S, jobs=200) for ago in range(3))
    return pool(
        workers=workers,
        in_flight_jobs=workers,
        waiting_jobs=waiting_jobs,
        oldest_age_s=oldest_age_s,
        arrivals=arrivals,
    )


def test_jobs_of_a_wave_that_the_kept_slots_start_in_time_ask_for_no_more() -> None:
    wave = wave_at_work(workers=ENOUGH, waiting_jobs=200, oldest_age_s=6.0)
    assert demanded(wave)["backlog_drain"] == ENOUGH  # 200 ÷ 24 = 8.3 s, and 9.5 s are left for the newest
    assert demanded(wave, {})["backlog_drain"] > ENOUGH


def test_a_wave_that_is_greater_asks_for_what_its_newest_job_needs() -> None:
    wave = wave_at_work(workers=ENOUGH, waiting_jobs=260, oldest_age_s=6.0)
    assert demanded(wave)["backlog_drain"] == ENOUGH + 4  # 260 − 24 × 9.5 = 32 more, nine or so a new slot


@pytest.mark.parametrize(("workers", "oldest_age_s"), [(ENOUGH - 1, 6.0), (ENOUGH, 9.6)])
def test_without_the_kept_slots_or_without_time_left_the_backlog_is_drained_as_ever(
    workers: int, oldest_age_s: float
) -> None:
    wave = wave_at_work(workers=workers, waiting_jobs=200, oldest_age_s=oldest_age_s)
    assert demanded(wave)["backlog_drain"] == demanded(wave, {})["backlog_drain"] > ENOUGH


def test_workers_beyond_what_is_enough_are_not_held() -> None:
    wanted = tuple(Wanted(at_s=NOW_S - ago_s, workers=60) for ago_s in (20.0, 15.0))
    busy = replace(pool(workers=60, in_flight_jobs=0))
    memory = Memory(target_workers=60, wanted=wanted, strategy_state=STATE)
    decision, after = decide(busy, memory, now_s=NOW_S)
    assert decision.target_workers == ENOUGH
    assert max(each.workers for each in after.wanted) == ENOUGH


def test_a_busy_worker_beyond_what_is_enough_stays() -> None:
    decision, _ = decide(
        pool(workers=60, in_flight_jobs=60), Memory(target_workers=60, strategy_state=STATE), now_s=NOW_S
    )
    assert decision.target_workers == 60


def test_no_spare_stands_beside_what_is_enough() -> None:
    slow = pool(start_up_s=8.0)
    first = HYBRID.advise(slow.queues[0], slow, {}, NOW_S)
    guard = {**first.state["guard"], "periods": STATE["periods"]}
    asked = demanded(slow, {"guard": guard})
    assert asked["rhythm"] == ENOUGH
    assert "standing" not in asked


def test_a_rhythm_is_read_against_the_clock_and_no_decision_stands_on_it() -> None:
    assert not HYBRID.is_at_rest(STATE, NOW_S)
    assert HYBRID.is_at_rest({"periods": waves(1)}, NOW_S)
    assert not HYBRID.is_at_rest({"periods": waves(1), "asked": [[NOW_S, 1]]}, NOW_S)


@pytest.mark.parametrize("service_time_s", [0.05, 0.3, 1.0, 20.0])
def test_an_objective_shorter_than_the_way_to_a_first_job_lets_no_job_of_a_burst_wait(service_time_s: float) -> None:
    """Each slot starts one of ten jobs that come together: the next would be late, however short the first is."""
    policy = {"objective": Objective(target_s=0.2)}
    impatient = pool(policy=policy, service_time_s=service_time_s)
    guard = SafetyStock(began_at_s=0.0, at_s=NOW_S - TICK_S, periods=waves(12, jobs=(10, 0, 0, 0, 0, 0)))
    slots = demanded(impatient, {"guard": guard.stored()}).get("rhythm")
    assert slots is None or slots >= 10


def test_retries_make_no_rhythm() -> None:
    came = {"arrived_jobs": 3, "arrived_until_s": NOW_S}
    fresh, again = pool(**came), pool(**came, retried_jobs=3)
    assert "periods" in HYBRID.advise(fresh.queues[0], fresh, {}, NOW_S).state
    assert "periods" not in HYBRID.advise(again.queues[0], again, {}, NOW_S).state


def test_retries_beside_a_rhythm_are_work_that_slots_are_kept_for() -> None:
    assert demanded(pool(retry_rate_per_s=4.0))["rhythm"] == ENOUGH + 4 + 2  # 4/s × 1 s, and the root of it
