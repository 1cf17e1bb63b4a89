"""Every strategy of another maker, as its maker meant it: tables with the sums beside them, and its peculiarities."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.peers.horizon import shares, size, time_to_clear_s
from headway.scaling.model import LastMove, Memory, Objective
from headway.scaling.view import PoolView
from scaling.laws.drawn import LAW, MEMORIES, by, views
from support.installed import INSTALLED, decide, decided, pool
from support.pools import NOW_S, profile, queue, view


def slots(seen: PoolView) -> dict[str, float]:
    return {demand.name: demand.slots for demand in decided(seen).demands}


# --- predictive_v1 ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("metrics", "running", "wanted"),
    [
        ({"completion_rate_per_s": 4.0}, 8, {"steady_state": 8.0}),  # 4/s × (8 workers ÷ 4/s)
        ({"completion_rate_per_s": 0.0}, 8, {"steady_state": 0.0}),  # nothing finished, nothing wanted
        ({"waiting_jobs": 30, "oldest_age_s": 7.9}, 0, {"backlog_drain": 0.0}),  # silent below 80 % of 10 s
        ({"waiting_jobs": 30, "oldest_age_s": 8.0}, 0, {"backlog_drain": 15.0}),  # 30 ÷ (2 s left ÷ 1 s)
        ({"waiting_jobs": 30, "oldest_age_s": 10.0}, 0, {"backlog_drain": 30.0}),  # breached: 30 ÷ 1 s
    ],
)
def test_predictive_v1_is_little_and_a_drain_from_80_percent(
    metrics: dict[str, Any], running: int, wanted: dict[str, float]
) -> None:
    assert wanted.items() <= slots(pool("predictive_v1", metrics, running_workers=running)).items()


def test_predictive_v1_cannot_come_down_while_anything_is_finished() -> None:
    """Its job time is workers over throughput, so that a thousand idle workers and one job a minute want a thousand."""
    lavish = pool("predictive_v1", {"completion_rate_per_s": 1 / 60}, running_workers=90, assigned_workers=90)
    assert decided(lavish).target_workers == 90


def test_predictive_v1_adds_a_fifth_while_throughput_rises_and_keeps_it_when_it_falls() -> None:
    memory, seen = Memory(target_workers=10), pool("predictive_v1", running_workers=10, assigned_workers=10)
    answers = []
    for step, rate_per_s in enumerate([1.0, 1.1, 1.2, 1.3, 1.4, 1.5]):
        evaluation = queue(sampled_at_s=NOW_S + 5 * step, completion_rate_per_s=rate_per_s)
        decision, memory = decide(replace(seen, queues=(evaluation,)), memory, now_s=NOW_S + 5 * step)
        answers.append(decision.target_workers)
    assert answers == [10, 10, 10, 10, 12, 12]  # five looks make a trend: 10 × 1.2; then the cooldown
    falling = replace(seen, queues=(queue(sampled_at_s=NOW_S + 90, completion_rate_per_s=0.1),), running_workers=12)
    assert decide(falling, memory, now_s=NOW_S + 90)[0].target_workers == 12


@pytest.mark.parametrize(("ago_s", "target"), [(59.0, 3), (60.0, 30)])
def test_predictive_v1_waits_for_its_cooldown_even_to_go_up_in_a_breach(ago_s: float, target: int) -> None:
    breached = pool("predictive_v1", {"waiting_jobs": 30, "oldest_age_s": 40.0})
    moved = Memory(target_workers=3, last_move=LastMove(at_s=NOW_S - ago_s, is_up=True))
    assert decided(breached, moved).target_workers == target


# --- hybrid_v3 --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("metrics", "wanted"),
    [
        ({"completion_rate_per_s": 4.0, "service_time_s": 2.0}, {"steady_state": 8.0}),  # 4/s × 2 s
        ({"waiting_jobs": 18, "oldest_age_s": 4.0}, {"backlog_drain": 0.0}),  # 4 of 9 s used: below a half
        ({"waiting_jobs": 18, "oldest_age_s": 6.0}, {"backlog_drain": 6 * 11 / 9}),  # 18 ÷ 3 × (1 + 8 × (2/3 − ½)²)
        ({"waiting_jobs": 18, "oldest_age_s": 90.0}, {"backlog_drain": 90.0}),  # breached: 18 ÷ 1 s × 5
        ({"waiting_jobs": 18, "oldest_age_s": 90.0, "service_time_s": 9.0}, {"backlog_drain": 10.0}),  # 18 ÷ 9 s × 5
    ],
)
def test_hybrid_v3_is_little_and_an_urgent_drain_of_what_a_start_leaves(
    metrics: dict[str, Any], wanted: dict[str, float]
) -> None:
    """A worker starts in 1 s here, so 9 s of the objective are left."""
    found = slots(pool("hybrid_v3", metrics))
    assert {name: found[name] for name in wanted} == pytest.approx(wanted)


def test_hybrid_v3_takes_the_growth_of_the_backlog_for_arrivals() -> None:
    seen = pool("hybrid_v3", {"waiting_jobs": 10, "completion_rate_per_s": 2.0})
    _, memory = decide(seen, Memory(target_workers=0), now_s=NOW_S)
    grown = queue(sampled_at_s=NOW_S + 5, waiting_jobs=25, completion_rate_per_s=2.0)
    decision, _ = decide(replace(seen, queues=(grown,)), memory, now_s=NOW_S + 5)
    assert decision.demands[0].slots == pytest.approx(5.0)  # 2/s served + 15 jobs more in 5 s


def test_hybrid_v3_wants_one_more_where_all_are_busy_and_nothing_asks() -> None:
    busy = pool("hybrid_v3", {"completion_rate_per_s": 1.0}, running_workers=6, busy_workers=6, assigned_workers=6)
    assert decided(busy).target_workers == 7


def test_hybrid_v3_lets_finished_waits_hide_a_stall() -> None:
    """Its percentile of finished waits stands in the place of the oldest job's age."""
    stalled = {"waiting_jobs": 500, "oldest_age_s": 200.0, "completion_rate_per_s": 1.0, "service_time_s": 2.0}
    assert slots(pool("hybrid_v3", stalled))["backlog_drain"] == pytest.approx(1250.0)  # 500 ÷ 2 s × 5
    assert slots(pool("hybrid_v3", stalled | {"pickup_objective_s": 1.5}))["backlog_drain"] == 0.0


@pytest.mark.parametrize(
    ("was_up", "ago_s", "metrics", "target"),
    [
        (True, 59.0, {}, 8),  # up a minute ago: not down yet
        (True, 60.0, {}, 6),  # then by a quarter of 8
        (False, 5.0, {}, 6),  # down again is free
        (False, 5.0, {"completion_rate_per_s": 20.0}, 8),  # down just now: not up
        (False, 5.0, {"completion_rate_per_s": 20.0, "waiting_jobs": 1, "oldest_age_s": 10.0}, 20),  # but in a breach
    ],
)
@pytest.mark.parametrize("name", ["hybrid_v3", "simple_rate", "conservative"])
def test_the_third_version_turns_after_its_cooldown_and_comes_down_by_a_quarter(
    name: str, was_up: bool, ago_s: float, metrics: dict[str, Any], target: int
) -> None:
    memory = Memory(target_workers=8, last_move=LastMove(at_s=NOW_S - ago_s, is_up=was_up))
    found = decided(pool(name, metrics), memory).target_workers
    assert found == (25 if name == "conservative" and target == 20 else target)


# --- simple_rate, backlog_only, conservative --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "metrics", "target"),
    [
        ("simple_rate", {"completion_rate_per_s": 4.0, "service_time_s": 2.0}, 8),  # 4/s × 2 s
        ("simple_rate", {"completion_rate_per_s": 4.0, "service_time_s": None}, 8),  # 4/s × 2 s guessed
        ("simple_rate", {"waiting_jobs": 900, "oldest_age_s": 90.0}, 1),  # the first; the backlog is nothing to it
        ("backlog_only", {"completion_rate_per_s": 4.0, "service_time_s": 2.0}, 0),  # a flow is nothing to it
        ("backlog_only", {"waiting_jobs": 30, "oldest_age_s": 5.0}, 6),  # 30 ÷ 5 s left × 1
        ("conservative", {"completion_rate_per_s": 4.0, "service_time_s": 2.0}, 10),  # 4/s × 2 s × 1.25
        ("conservative", {"waiting_jobs": 30, "oldest_age_s": 7.0}, 0),  # silent below 75 % of 10 s
        ("conservative", {"waiting_jobs": 30, "oldest_age_s": 8.0}, 33),  # 30 ÷ 2 × (1 + 8 × 0.3²) × 1.25 = 32.25
    ],
)
def test_the_plain_strategies(name: str, metrics: dict[str, Any], target: int) -> None:
    assert decided(pool(name, metrics)).target_workers == target


# --- jobs_per_worker --------------------------------------------------------------------------------------------------


def jobs_per_worker(waiting_jobs: int, *, running: int, busy: int | None = None, memory: Memory, at_s: float) -> Any:
    seen = pool(
        "jobs_per_worker",
        {"waiting_jobs": waiting_jobs, "sampled_at_s": at_s},
        running_workers=running,
        busy_workers=running if busy is None else busy,
        assigned_workers=running,
    )
    return decide(seen, memory, now_s=at_s)


def test_a_hundred_jobs_and_two_workers_need_eight_more() -> None:
    """The formula that was published with this example answers 3: ⌈100 ÷ 2 ÷ 10⌉ − 2."""
    decision, _ = jobs_per_worker(100, running=2, memory=Memory(target_workers=2), at_s=NOW_S)
    assert decision.target_workers - 2 == 8  # ⌈100 ÷ 10⌉ − 2
    assert decision.burst_workers == 9  # all but the base worker


def test_jobs_per_worker_reads_the_backlog_once_a_minute_and_releases_idle_ones_at_any_time() -> None:
    _, memory = jobs_per_worker(0, running=0, memory=Memory(target_workers=0), at_s=NOW_S)
    waits, memory = jobs_per_worker(400, running=1, memory=memory, at_s=NOW_S + 55)
    grows, memory = jobs_per_worker(400, running=1, memory=memory, at_s=NOW_S + 60)
    rests, memory = jobs_per_worker(0, running=40, busy=15, memory=memory, at_s=NOW_S + 65)
    stays, _ = jobs_per_worker(0, running=15, busy=0, memory=memory, at_s=NOW_S + 70)
    assert [each.target_workers for each in (waits, grows, rests, stays)] == [1, 40, 15, 1]


def test_jobs_per_worker_never_lowers_for_a_small_backlog() -> None:
    """A queue that never empties keeps its surplus: nobody is idle, so nobody leaves."""
    assert jobs_per_worker(10, running=40, memory=Memory(target_workers=40), at_s=NOW_S)[0].target_workers == 40


def test_a_limit_takes_burst_workers_and_leaves_the_base() -> None:
    seen = pool("jobs_per_worker", {"waiting_jobs": 300}, capacity_workers=10)
    decision = decided(seen)
    assert (decision.target_workers, decision.burst_workers) == (10, 9)


# --- horizon ----------------------------------------------------------------------------------------------------------


def balanced(name: str, waits: dict[str, int], evaluations_at_s: list[float], **profiled: Any) -> list[int]:
    """The targets at each evaluation, while these jobs of 2 s (of 20 s in ``redis/slow``) wait."""
    memory, answers = Memory(target_workers=0), []
    for at_s in evaluations_at_s:
        members = tuple(
            queue(queue=key, waiting_jobs=jobs, service_time_s=20.0 if key == "redis/slow" else 2.0, sampled_at_s=at_s)
            for key, jobs in waits.items()
        )
        seen = view(*members, profile=profile(strategy=name, queues=tuple(waits), **profiled))
        decision, memory = decide(seen, memory, now_s=at_s)
        answers.append(decision.target_workers)
    return answers


@pytest.mark.parametrize("name", ["horizon_time", "horizon_size"])
def test_horizon_adds_a_worker_every_three_seconds_while_anything_waits(name: str) -> None:
    evaluations_at_s = [NOW_S, NOW_S + 5, NOW_S + 10, NOW_S + 15]
    assert balanced(name, {"redis/mail": 1}, evaluations_at_s) == [1, 2, 4, 6]  # 1 + ⌊5 ÷ 3⌋, ⌊10 ÷ 3⌋, ⌊15 ÷ 3⌋
    assert balanced(name, {"redis/mail": 1}, evaluations_at_s, workers_max=3) == [1, 2, 3, 3]
    assert balanced(name, {"redis/mail": 0}, evaluations_at_s, workers_min=2) == [2, 2, 2, 2]


def test_horizon_splits_the_pool_by_time_to_clear_or_by_jobs() -> None:
    """30 jobs of 2 s beside 3 of 20 s: 60 s each by time, so ten of twenty each; by jobs 19 and 2."""
    waits, long_after = {"redis/fast": 30, "redis/slow": 3}, [NOW_S + 5 * evaluation for evaluation in range(20)]
    assert balanced("horizon_time", waits, long_after, workers_max=20)[-1] == 20
    assert balanced("horizon_size", waits, long_after, workers_max=20)[-1] == 20
    members = (
        queue(queue="fast", waiting_jobs=30, service_time_s=2.0),
        queue(queue="slow", waiting_jobs=3, service_time_s=20.0),
    )
    assert shares(members, time_to_clear_s, workers_min=0, workers_max=20) == {"fast": 10, "slow": 10}
    assert shares(members, size, workers_min=0, workers_max=20) == {"fast": 19, "slow": 2}  # 20 × 30/33, 20 × 3/33


# --- terms ------------------------------------------------------------------------------------------------------------


@LAW
@given(view=views(), memory=MEMORIES, strategy=st.sampled_from(sorted(INSTALLED)))
def test_every_demand_of_every_strategy_follows_from_its_terms(view: PoolView, memory: Memory, strategy: str) -> None:
    formulas = INSTALLED[strategy].formulas
    view = by(strategy, view)
    for later_s in (0.0, 5.0, 10.0):  # what an evaluation has learned is in the terms of the next
        decision, memory = decide(view, memory, now_s=NOW_S + later_s)
        for each in decision.demands:
            assert each.slots == formulas[each.name](each.terms), each


# --- numbers that a profile may set -----------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [0.0, -1.0, 5e-324])
@pytest.mark.parametrize(
    ("name", "option"),
    [
        ("jobs_per_worker", "jobs_per_worker"),
        ("horizon_time", "balance_cooldown_s"),
        ("horizon_size", "balance_cooldown_s"),
    ],
)
def test_a_number_that_is_divided_by_may_be_nothing_or_less(name: str, option: str, number: float) -> None:
    seen, memory = pool(name, {"waiting_jobs": 5}, strategy_options={option: number}), Memory()
    for step in range(3):
        decision, memory = decide(seen, memory, now_s=NOW_S + 60.0 * step)
    assert 0 < decision.target_workers <= seen.profile.workers_max


@pytest.mark.parametrize("oldest_age_s", [0.0, 1.0])
def test_hybrid_v3_takes_the_shortest_objective_for_a_millisecond(oldest_age_s: float) -> None:
    seen = pool("hybrid_v3", {"waiting_jobs": 5, "oldest_age_s": oldest_age_s})
    impatient = replace(seen, profile=replace(seen.profile, objective=Objective(target_s=5e-324)))
    least = replace(seen, profile=replace(seen.profile, objective=Objective(target_s=0.001)))
    assert decided(impatient).target_workers == decided(least).target_workers
