"""``fixed``, the examples, and what holds of every strategy that is installed."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.scaling.model import Memory, Objective
from support.installed import INSTALLED, decide, decided, pool
from support.pools import NOW_S, profile, queue, view

# --- fixed and the examples -------------------------------------------------------------------------------------------


def test_fixed_is_the_floor_whatever_waits() -> None:
    assert decided(pool("fixed", {"waiting_jobs": 9_000}, workers_min=7)).target_workers == 7


@pytest.mark.parametrize(
    ("hour", "options", "crew"),
    [
        (8.0, {}, 4.0),
        (7.99, {}, 1.0),
        (18.0, {}, 1.0),
        (7.0, {"utc_offset_h": 1.0}, 4.0),  # eight in the morning one hour east
        (23.0, {"day_from_h": 22.0, "day_until_h": 6.0}, 4.0),  # a day past midnight
        (6.0, {"day_from_h": 22.0, "day_until_h": 6.0}, 1.0),
    ],
)
def test_time_of_day_has_a_crew_by_the_clock(hour: float, options: dict[str, float], crew: float) -> None:
    at_s = 20_000 * 86_400 + hour * 3600
    seen = pool("time_of_day", {"sampled_at_s": at_s}, strategy_options=options)
    assert decided(seen, now_s=at_s).demands[0].slots == crew


def test_budget_aware_spends_what_it_saved_and_no_more() -> None:
    burst = pool("budget_aware", {"waiting_jobs": 500, "oldest_age_s": 9.0})
    assert decided(burst).target_workers == 4  # nothing saved: what the budget pays for on average
    saved = Memory(target_workers=0, strategy_state={"at_s": NOW_S - 300, "saved_worker_s": 0.0})
    assert decided(burst, saved).target_workers == 6  # 4 + 4 workers × 300 s saved ÷ 600 s
    spent = Memory(target_workers=20, strategy_state={"at_s": NOW_S - 60, "saved_worker_s": 960.0})
    tired = replace(burst, running_workers=20)
    assert decided(tired, spent).target_workers == 4  # 960 − (20 − 4) × 60 s leaves nothing


@pytest.mark.parametrize("spend_over_s", [0.0, -600.0, 5e-324])
def test_savings_that_are_spread_over_no_time_may_be_spent_at_once(spend_over_s: float) -> None:
    burst = pool(
        "budget_aware", {"waiting_jobs": 5, "oldest_age_s": 9.0}, strategy_options={"spend_over_s": spend_over_s}
    )
    assert decided(burst).target_workers == 4  # nothing saved
    saved = Memory(target_workers=0, strategy_state={"at_s": NOW_S - 300, "saved_worker_s": 0.0})
    assert decided(burst, saved).target_workers == 5


# --- all of them ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(INSTALLED))
def test_a_strategy_says_nothing_of_a_pool_that_was_never_seen(name: str) -> None:
    unseen = queue(
        sampled_at_s=None,
        waiting_jobs=None,
        in_flight_jobs=None,
        oldest_age_s=None,
        arrival_rate_per_s=None,
        completion_rate_per_s=None,
        service_time_s=None,
    )
    assert decided(view(unseen, profile=profile(strategy=name))).target_workers >= 0


@pytest.mark.parametrize("name", sorted(INSTALLED))
@given(
    evaluations=st.lists(
        st.tuples(st.integers(0, 500), st.floats(0, 100), st.floats(0, 50), st.integers(0, 30)), max_size=6
    )
)
def test_a_state_survives_being_stored_and_demands_are_never_negative(
    name: str, evaluations: list[tuple[int, float, float, int]]
) -> None:
    memory = stored = Memory(target_workers=0)
    for step, (waiting_jobs, oldest_age_s, rate_per_s, workers) in enumerate(evaluations):
        now_s = NOW_S + 5 * step
        metrics = {"waiting_jobs": waiting_jobs, "oldest_age_s": oldest_age_s if waiting_jobs else 0.0}
        rates = {"completion_rate_per_s": rate_per_s, "arrival_rate_per_s": rate_per_s, "sampled_at_s": now_s}
        seen = pool(name, metrics | rates, running_workers=workers, busy_workers=workers // 2, assigned_workers=workers)
        decision, memory = decide(seen, memory, now_s=now_s)
        again, stored = decide(seen, stored, now_s=now_s)
        stored = replace(stored, strategy_state=json.loads(json.dumps(stored.strategy_state)))
        assert decision == again
        assert all(demand.slots >= 0 for demand in decision.demands)
        assert 0 <= decision.burst_workers <= decision.target_workers <= seen.profile.workers_max


@pytest.mark.parametrize("name", sorted(INSTALLED))
def test_a_lost_objective_is_not_a_crash(name: str) -> None:
    hopeless = profile(strategy=name, objective=Objective(target_s=0.001))
    breached = queue(waiting_jobs=10, oldest_age_s=500.0, completion_rate_per_s=1.0)
    assert decided(view(breached, profile=hopeless)).target_workers >= 0
