"""Law 6. Bounds hold: ``workers_min ≤ target ≤ workers_max``; capacity and budget are never exceeded.

Guarantees are included, and every worker known to exist counts: those of a host that went silent are unknown, not zero.
Nothing is started beside them beyond a bound; a busy worker that exists already is not asked to leave for their sake.
"""

import math
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from headway.scaling.group import Group
from headway.scaling.model import Memory, Mode
from headway.scaling.policy.limits import LIMITS, capacity
from headway.scaling.view import PoolView
from scaling.laws.drawn import LAW, MEMORIES, WORKERS, by_every_strategy, startable, views
from support.installed import decide
from support.pools import NOW_S, ground_of


def last_of(view: PoolView, memory: Memory) -> int:
    return view.assigned_workers if memory.target_workers is None else memory.target_workers


def beside_unknown(view: PoolView, workers: int) -> int:
    """``workers`` with those of hosts that went silent, where more than those that exist already are to be started."""
    there = min(view.assigned_workers, view.running_workers + view.starting_workers)
    return workers if workers <= there else workers + view.unknown_workers


@LAW
@given(view=views(), memory=MEMORIES)
def test_no_target_exceeds_what_must_never_be_exceeded(view: PoolView, memory: Memory) -> None:
    for seen in by_every_strategy(view):
        decision, _ = decide(seen, memory, now_s=NOW_S)
        workers, profile = decision.target_workers, seen.profile
        bounds = profile.bounds_at(NOW_S, {})
        together = beside_unknown(seen, workers)
        assert 0 <= decision.burst_workers <= workers
        assert together <= bounds.workers_max, profile.strategy
        if workers > seen.assigned_workers:
            assert together + seen.leaving_workers <= bounds.workers_max, profile.strategy
        assert workers <= (last_of(seen, memory) if seen.capacity_workers is None else seen.capacity_workers)
        if profile.cost_per_worker_hour and profile.budget_per_hour:
            assert together * profile.cost_per_worker_hour <= profile.budget_per_hour * (1 + 1e-6)


@LAW
@given(view=views(), memory=MEMORIES, cap=st.integers(1, 100), is_in_slots=st.booleans())
def test_no_target_exceeds_the_cap_of_a_group(view: PoolView, memory: Memory, cap: int, is_in_slots: bool) -> None:
    group = Group(name="database", pools=("mail",), **{"slots_max" if is_in_slots else "workers_max": cap})
    for seen in by_every_strategy(replace(view, groups=(group,))):
        decision, _ = decide(seen, memory, now_s=NOW_S)
        together = beside_unknown(seen, decision.target_workers)
        assert together <= group.ceiling_workers(seen.slots_per_worker), seen.profile.strategy


@LAW
@given(view=views(is_plain=True), memory=MEMORIES)
def test_the_floor_holds_where_there_is_room_for_it(view: PoolView, memory: Memory) -> None:
    for seen in by_every_strategy(view):
        decision, _ = decide(seen, memory, now_s=NOW_S)
        room = last_of(seen, memory) if seen.capacity_workers is None else seen.capacity_workers
        ceiling = startable(seen, seen.profile.workers_max)
        assert decision.target_workers >= min(seen.profile.workers_min, ceiling, room), seen.profile.strategy


@LAW
@given(view=views(), memory=MEMORIES, count=st.integers(0, 100_000), last=WORKERS, is_fresh=st.booleans())
def test_whatever_is_wanted_the_last_limits_have_the_last_word(
    view: PoolView, memory: Memory, count: int, last: int, is_fresh: bool
) -> None:
    """Limits folded on any number, from any ground, and then once more: the second time nothing is cut."""
    ground = ground_of(view, memory, last=last, is_fresh=is_fresh)
    for limit in LIMITS:
        count = limit(count, ground)
        assert count >= 0, limit.name
    never_exceeded = LIMITS[[limit.name for limit in LIMITS].index("workers_max") :]
    assert never_exceeded[-1] is capacity
    for limit in never_exceeded:
        assert limit(count, ground) <= count or limit.name == "pinned", limit.name


@LAW
@given(view=views(), memory=MEMORIES)
def test_a_day_on_budget_never_costs_more_than_the_day_has(view: PoolView, memory: Memory) -> None:
    """If the target ran on until midnight or for an hour, whichever is sooner, the day's budget would not be passed."""
    for seen in by_every_strategy(view):
        decision, _ = decide(seen, memory, now_s=NOW_S)
        profile, spent_hours = seen.profile, seen.worker_hours_today
        if profile.cost_per_worker_hour and profile.budget_per_day and spent_hours is not None:
            left_hours = max(0.0, profile.budget_per_day / profile.cost_per_worker_hour - spent_hours)
            ahead_h = min(1.0, (86_400 - NOW_S % 86_400) / 3_600)
            together = beside_unknown(seen, decision.target_workers)
            assert together * ahead_h <= left_hours + 1e-6, profile.strategy


@LAW
@given(view=views(), memory=MEMORIES)
def test_a_pause_moves_nothing_but_out_of_bounds(view: PoolView, memory: Memory) -> None:
    for seen in by_every_strategy(view):
        decision, _ = decide(seen, memory, now_s=NOW_S)
        after = {step.name: step.workers for step in decision.steps}
        paused = last_of(seen, memory) if memory.paused_workers is None else memory.paused_workers
        existing = seen.assigned_workers + seen.unknown_workers
        if decision.mode is Mode.PAUSE:
            assert paused <= after["pause"] <= max(paused, existing)
        if decision.mode is Mode.PAUSE_UP:
            assert after["pause"] <= max(paused, existing)
        if decision.mode is Mode.PAUSE_DOWN:
            assert after["pause"] >= paused


@LAW
@given(view=views(), memory=MEMORIES)
def test_every_number_of_a_decision_is_a_number(view: PoolView, memory: Memory) -> None:
    for seen in by_every_strategy(view):
        decision, _ = decide(seen, memory, now_s=NOW_S)
        assert all(0 <= demand.slots < math.inf for demand in decision.demands), seen.profile.strategy
        assert decision.predicted_pickup_s is None or 0 <= decision.predicted_pickup_s < math.inf
