from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.scaling.decide import decide
from headway.scaling.decisions.outcome import Outcome
from headway.scaling.decisions.reuse import REUSED_S_MAX, is_lasting, is_reusable, is_same
from headway.scaling.model import (
    Demand,
    HoldCosts,
    LastMove,
    MeasuredService,
    Memory,
    Mode,
    Objective,
    Plateau,
    QueueMetrics,
    QueueSample,
    Wanted,
)
from headway.scaling.policy.limit import limit_of
from headway.scaling.policy.limits import LIMITS
from headway.scaling.profile import Fallback, Override
from headway.scaling.profile_keys.pauses import Pause
from headway.scaling.profile_keys.schedule import Schedule
from headway.scaling.strategies.hybrid import HYBRID_SILENT_S
from headway.scaling.strategy import Advice, Strategy
from headway.scaling.view import PoolView
from support.installed import INSTALLED
from support.pools import NOW_S, profile, queue, view

HYBRID = INSTALLED["hybrid"]


def rested(**values: Any) -> Memory:
    """A memory that a decision on the quiet queue leaves as it is."""
    return Memory(**{"service": MeasuredService(time_s=1.0), **values})


STANDING = rested(target_workers=0)


def decided(seen: PoolView, memory: Memory = STANDING, *, now_s: float = NOW_S, strategy: Strategy = HYBRID) -> Outcome:
    decision, after = decide(seen, memory, now_s=now_s, strategies={strategy.name: strategy})
    return Outcome(view=seen, before=memory, decision=decision, memory=after)


def read_again(seen: PoolView, *, after_s: float) -> PoolView:
    """The view in which every queue that was ever seen was read again."""
    queues = [
        each if each.sampled_at_s is None else replace(each, sampled_at_s=each.sampled_at_s + after_s)
        for each in seen.queues
    ]
    return replace(seen, queues=tuple(queues))


def do_stand(outcome: Outcome, *, after_s: float = 5.0, strategy: Strategy = HYBRID, **changes: Any) -> bool:
    later = replace(read_again(outcome.view, after_s=after_s), **changes)
    return is_reusable(outcome, later, outcome.memory, now_s=outcome.decision.at_s + after_s, strategy=strategy)


def idle(**policy: Any) -> PoolView:
    return view(profile=profile(**policy))


def test_the_decision_for_an_idle_pool_stands_while_its_queue_is_read_and_nothing_is_new() -> None:
    assert do_stand(decided(idle()))
    assert do_stand(decided(idle(hold_down_s=None)))
    assert do_stand(decided(idle(workers_min=2), rested(target_workers=2)))
    assert do_stand(decided(idle()), direct=(QueueSample(queue="redis/mail", at_s=NOW_S + 4, waiting_jobs=0),))


def test_it_is_decided_again_in_time_for_the_story_to_be_renewed() -> None:
    outcome = decided(idle(stale_after_s=999.0))
    assert do_stand(outcome, after_s=REUSED_S_MAX)
    assert not do_stand(outcome, after_s=REUSED_S_MAX + 0.001)
    assert not do_stand(outcome, after_s=-0.001)


@pytest.mark.parametrize(
    "changes",
    [
        {"queues": (queue(sampled_at_s=NOW_S + 5, waiting_jobs=1),)},
        {"queues": (queue(sampled_at_s=NOW_S + 5, in_flight_jobs=1),)},
        {"queues": (queue(sampled_at_s=NOW_S + 5, arrival_rate_per_s=0.1),)},
        {"queues": (queue(sampled_at_s=None),)},
        {"queues": ()},
        {"running_workers": 1},
        {"unknown_workers": 1},
        {"assigned_workers": 1},
        {"capacity_workers": 5},
        {"slots_per_worker": 2},
        {"start_up_s": 2.0},
        {"worker_hours_today": 1.0},
        {"profile": profile(workers_min=1)},
    ],
)
def test_no_decision_stands_on_another_view(changes: dict[str, Any]) -> None:
    assert not do_stand(decided(idle()), **changes)


def test_no_decision_stands_while_jobs_waited_beside_idle_slots_of_late() -> None:
    """Evaluations in a row say that it is over. The next burst would be taken for the same time otherwise."""
    measured = Plateau(since_s=NOW_S - 60.0, seen_at_s=NOW_S - 5.0, workers=2, starts_per_s=1.0)
    outcome = decided(idle(), rested(target_workers=0, plateau=measured))
    assert outcome.memory == outcome.before
    assert not do_stand(outcome)


def test_no_decision_stands_on_metrics_that_grow_old() -> None:
    outcome = decided(idle(stale_after_s=20.0))
    assert is_reusable(outcome, outcome.view, outcome.memory, now_s=NOW_S + 20, strategy=HYBRID)
    assert not is_reusable(outcome, outcome.view, outcome.memory, now_s=NOW_S + 21, strategy=HYBRID)
    stale = decided(idle(), now_s=NOW_S + 60)
    assert not is_reusable(stale, stale.view, stale.memory, now_s=NOW_S + 60, strategy=HYBRID)


def test_no_decision_stands_while_a_job_waits() -> None:
    waiting = view(queue(waiting_jobs=1), profile=profile(workers_max=0))
    assert not do_stand(decided(waiting))


@pytest.mark.parametrize("name", sorted(name for name, each in INSTALLED.items() if each.is_clockless))
def test_no_decision_stands_once_it_would_forget_a_want(name: str) -> None:
    """Whatever the strategy: a want of another one, or of a burst that is over, is remembered while it may hold."""
    strategy = INSTALLED[name]
    seen = view(profile=profile(hold_down_s=60.0, strategy=name), options=strategy.options)
    memory = rested(target_workers=0, wanted=(Wanted(at_s=NOW_S - 55, workers=1),))
    outcome = decided(seen, decided(seen, memory, strategy=strategy).memory, strategy=strategy)
    assert outcome.before == outcome.memory
    assert not do_stand(outcome, after_s=6.0, strategy=strategy)
    again = decided(read_again(seen, after_s=6.0), outcome.memory, now_s=NOW_S + 6, strategy=strategy)
    assert not again.memory.wanted
    chosen = decided(replace(seen, profile=profile(strategy=name, hold_down_s=None)), memory, strategy=strategy)
    chosen = decided(chosen.view, chosen.memory, strategy=strategy)
    assert not do_stand(chosen, after_s=1.0, strategy=strategy), "each want moves what holds have cost"


def test_no_decision_stands_over_the_end_of_a_pause_that_the_mode_goes_on_with() -> None:
    """It says until when: the profile's own mode pauses on, without an end."""
    paused = profile(mode=Mode.PAUSE, pause=Pause(mode=Mode.PAUSE, reason=None, until_s=NOW_S + 5))
    outcome = decided(view(profile=paused))
    outcome = decided(outcome.view, outcome.memory)
    assert do_stand(outcome, after_s=4.0)
    assert not do_stand(outcome, after_s=6.0)


def test_no_decision_stands_on_another_memory() -> None:
    assert not do_stand(decided(idle(workers_min=1)))
    assert not do_stand(decided(idle(), rested(target_workers=None)))
    outcome = decided(idle())
    assert not is_reusable(outcome, outcome.view, rested(target_workers=1), now_s=NOW_S, strategy=HYBRID)
    not_stored = decided(idle(workers_min=1))
    assert not is_reusable(not_stored, not_stored.view, not_stored.before, now_s=NOW_S, strategy=HYBRID)


def test_a_decision_that_holds_stands_until_the_hold_ends() -> None:
    memory = rested(target_workers=3, wanted=(Wanted(at_s=NOW_S - 10, workers=3),))
    outcome = decided(idle(hold_down_s=30.0), memory)
    assert outcome.decision.target_workers == 3
    assert do_stand(outcome, after_s=20.0)
    assert not do_stand(outcome, after_s=20.001)


def test_a_decision_stands_until_an_override_a_pause_or_a_schedule_ends() -> None:
    memory = rested(target_workers=3)
    until = Override(workers=3, until_s=NOW_S + 10, reason="a sale")
    overridden = decided(idle(override=until, stale_after_s=99.0), memory)
    assert do_stand(overridden, after_s=9.0)
    assert not do_stand(overridden, after_s=10.0)
    paused = decided(
        idle(pause=Pause(until_s=NOW_S + 10), stale_after_s=99.0), rested(target_workers=3, paused_workers=3)
    )
    assert paused.decision.target_workers == 3
    assert do_stand(paused, after_s=9.0)
    assert not do_stand(paused, after_s=10.0)
    # NOW_S is 13:46:40 UTC on a Monday
    evening = Schedule(starts="13:00", ends="13:47", workers_min=3)
    scheduled = decided(idle(schedules=(evening,), stale_after_s=99.0), memory)
    assert do_stand(scheduled, after_s=19.0)
    assert not do_stand(scheduled, after_s=20.0)


def test_no_decision_stands_on_what_is_left_of_the_day() -> None:
    assert not do_stand(decided(idle(cost_per_worker_hour=1.0, budget_per_day=9.0)))
    assert do_stand(decided(idle(cost_per_worker_hour=1.0, budget_per_hour=9.0)))


def test_no_decision_stands_whose_strategy_reads_a_clock() -> None:
    assert not do_stand(decided(idle()), strategy=replace(HYBRID, is_clockless=False))


def test_no_decision_stands_whose_strategy_keeps_a_state() -> None:
    def remembering(queue: QueueMetrics, seen: PoolView, state: Any, now_s: float) -> Advice:
        return Advice(demands=(Demand(name="none", slots=0.0),), state={"since_s": 5.0})

    strategy = replace(HYBRID, advise=remembering)
    memory = replace(STANDING, strategy_state={"since_s": 5.0})
    assert not do_stand(decided(idle(), memory, strategy=strategy), strategy=strategy)


def test_arrivals_without_a_rhythm_let_a_decision_stand_until_they_are_forgotten() -> None:
    outcome = decided(view(queue(arrived_jobs=3, arrived_until_s=NOW_S)))
    assert outcome.memory.strategy_state.keys() == {"periods"}
    settled = Outcome(
        view=outcome.view,
        before=outcome.memory,
        decision=outcome.decision,
        memory=decided(outcome.view, outcome.memory).memory,
    )
    assert do_stand(settled)
    forgotten_s = NOW_S + HYBRID_SILENT_S + 1.0
    later = replace(read_again(outcome.view, after_s=HYBRID_SILENT_S + 1.0))
    assert not HYBRID.is_at_rest(outcome.memory.strategy_state, forgotten_s)
    assert not decided(later, outcome.memory, now_s=forgotten_s).memory.strategy_state


def test_a_strategys_own_way_down_stands_only_where_nothing_is_to_change() -> None:
    def in_its_own_time(count: int, ground: Any) -> int:
        return ground.last_workers

    strategy = replace(HYBRID, come_down=in_its_own_time)
    assert do_stand(decided(idle(), strategy=strategy), strategy=strategy)
    assert not do_stand(decided(idle(), rested(target_workers=2), strategy=strategy), strategy=strategy)


def test_the_limits_that_read_the_clock_say_so_and_of_one_that_says_nothing_nobody_knows() -> None:
    assert {each.name for each in LIMITS if each.clock} == {"pause", "override", "schedule", "budget"}
    unsaid = limit_of(lambda count, _: count).clock
    assert unsaid is not None
    assert unsaid(idle(), NOW_S) != unsaid(idle(), NOW_S)


def test_a_limit_that_is_not_known_lets_nothing_stand() -> None:
    outcome = decided(idle())
    steps = [replace(each, name="unheard_of") if each.name == "capacity" else each for each in outcome.decision.steps]
    assert not do_stand(replace(outcome, decision=replace(outcome.decision, steps=tuple(steps))))


QUEUES = st.builds(
    queue,
    waiting_jobs=st.sampled_from([0, 0, 0, 0, 3, None]),
    in_flight_jobs=st.sampled_from([0, 0, 0, 2, None]),
    oldest_age_s=st.sampled_from([0.0, 4.0, None]),
    arrival_rate_per_s=st.sampled_from([0.0, 0.0, 0.0, 2.0]),
    sampled_at_s=st.sampled_from([NOW_S, NOW_S, NOW_S, NOW_S - 15.0, NOW_S - 50.0, None]),
)


def possible(policy: dict[str, Any]) -> dict[str, Any]:
    """``policy`` without what contradicts something else of it."""
    if policy["mode"] is Mode.RECOMMEND:
        policy = {**policy, "pause": None}
    return {**policy, "fallback_workers": None} if policy["fallback"] is Fallback.CURRENT else policy


PROFILES = st.builds(
    lambda special, **policy: profile(**possible(policy), **special),
    special=st.sampled_from(
        [
            {},
            {},
            {"pinned": 3},
            {"schedules": (Schedule(starts="13:00", ends="13:47", workers_min=3, workers_max=3),)},
        ]
    ),
    workers_min=st.integers(0, 3),
    workers_max=st.integers(3, 8),
    mode=st.sampled_from(list(Mode)),
    hold_down_s=st.sampled_from([None, 0.0, 15.0, 60.0]),
    hold_up_s=st.sampled_from([0.0, 0.0, 0.0, 10.0]),
    tolerance_fraction=st.sampled_from([0.0, 0.3]),
    step_down_workers=st.sampled_from([None, 1]),
    stale_after_s=st.sampled_from([20.0, 90.0]),
    fallback_workers=st.sampled_from([None, 2]),
    fallback_after_s=st.just(100.0),
    activation_jobs=st.sampled_from([0, 0, 2]),
    fallback=st.sampled_from([Fallback.FIXED, Fallback.FIXED, Fallback.CURRENT]),
    override=st.sampled_from([None, None, Override(workers=2, until_s=NOW_S + 30, reason="a sale")]),
    pause=st.sampled_from([None, None, Pause(until_s=NOW_S + 25), Pause(mode=Mode.PAUSE_DOWN)]),
    cost_per_worker_hour=st.just(1.0),
    budget_per_hour=st.sampled_from([None, 4.0]),
    budget_per_day=st.sampled_from([None, None, None, 24.0]),
    strategy=st.sampled_from([name for name, strategy in INSTALLED.items() if strategy.is_clockless]),
    objective=st.just(Objective(target_s=10.0)),
)
MEMORIES = st.builds(
    Memory,
    target_workers=st.integers(0, 4),
    wanted=st.lists(
        st.builds(Wanted, at_s=st.floats(NOW_S - 70, NOW_S - 1), workers=st.integers(1, 4)), max_size=2
    ).map(lambda wants: tuple(sorted(wants, key=lambda want: want.at_s))),
    last_move=st.sampled_from([None, LastMove(at_s=NOW_S - 20, is_up=True)]),
    hold_costs=st.sampled_from([None, None, HoldCosts(began_at_s=NOW_S - 99, at_s=NOW_S - 90, levels=(0,) * 9)]),
)


def without_times(outcome: Outcome) -> Any:
    decision = outcome.decision
    return (
        replace(decision, at_s=0.0, metrics=tuple(replace(each, sampled_at_s=None) for each in decision.metrics)),
        outcome.memory,
    )


def later_view(seen: PoolView, change: Callable[[QueueMetrics], QueueMetrics], **values: Any) -> PoolView:
    return replace(seen, queues=tuple(change(each) for each in seen.queues), **values)


@given(
    first=QUEUES,
    policy=PROFILES,
    memory=MEMORIES,
    running=st.integers(0, 3),
    evaluations_before=st.integers(0, 4),
    after_s=st.one_of(st.floats(0.0, 40.0), st.floats(0.0, 130.0)),
    is_read=st.booleans(),
    same=st.sampled_from([True, True, True, False]),
    second=QUEUES,
)
def test_a_decision_that_stands_is_the_one_that_would_have_been_made(
    first: QueueMetrics,
    policy: Any,
    memory: Memory,
    running: int,
    evaluations_before: int,
    after_s: float,
    is_read: bool,
    same: bool,
    second: QueueMetrics,
) -> None:
    strategy = INSTALLED[policy.strategy]
    seen = view(first, profile=policy, running_workers=running, options=strategy.options)
    outcome = decided(seen, memory, strategy=strategy)
    for evaluation in range(evaluations_before):
        outcome = decided(
            read_again(seen, after_s=1.0), outcome.memory, now_s=NOW_S + 1 + evaluation, strategy=strategy
        )
    later = outcome.view if same else replace(seen, queues=(second,))
    later = read_again(later, after_s=after_s) if is_read else later
    now_s = outcome.decision.at_s + after_s
    if is_reusable(outcome, later, outcome.memory, now_s=now_s, strategy=strategy):
        assert is_same(outcome.view, later)
        assert without_times(decided(later, outcome.memory, now_s=now_s, strategy=strategy)) == without_times(outcome)


@given(
    member=QUEUES,
    policy=PROFILES,
    memory=MEMORIES,
    running=st.integers(0, 3),
    after_s=st.lists(st.floats(0.0, 20_000.0), min_size=1, max_size=3).map(sorted),
)
def test_a_decision_that_lasts_is_made_again_at_any_later_time(
    member: QueueMetrics, policy: Any, memory: Memory, running: int, after_s: list[float]
) -> None:
    """A rehearsal passes over all of the time in which nothing happens, however long it is."""
    strategy = INSTALLED[policy.strategy]
    seen = view(member, profile=policy, running_workers=running, options=strategy.options)
    outcome = decided(seen, decided(seen, memory, strategy=strategy).memory, strategy=strategy)
    if not is_lasting(outcome, strategy=strategy):
        return
    for later_s in after_s:
        later = read_again(outcome.view, after_s=later_s)
        again = decided(later, outcome.memory, now_s=NOW_S + later_s, strategy=strategy)
        assert without_times(again) == without_times(outcome)


def test_an_idle_pools_decision_lasts_unless_a_clock_is_read() -> None:
    assert is_lasting(decided(idle()), strategy=HYBRID)
    assert is_lasting(decided(idle(cost_per_worker_hour=1.0, budget_per_hour=4.0)), strategy=HYBRID)
    night = (Schedule(starts="22:00", ends="06:00", workers_max=3),)
    budget = {"cost_per_worker_hour": 1.0, "budget_per_day": 24.0}
    for policy in ({"schedules": night}, {"pause": Pause(until_s=NOW_S + 25)}, budget):
        assert not is_lasting(decided(idle(**policy)), strategy=HYBRID)


def test_nothing_lasts_while_a_job_waits_or_more_workers_run_than_are_asked_for() -> None:
    waiting = decided(view(queue(waiting_jobs=1)))
    assert not is_lasting(replace(waiting, before=waiting.memory), strategy=HYBRID)
    assert not is_lasting(decided(replace(idle(), assigned_workers=1)), strategy=HYBRID)
