"""Laws 3 and 6, for every combination of limits: what must never be exceeded is not, and no data is not zero load."""

import math
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from headway.errors import Invalid
from headway.scaling.decide import decide
from headway.scaling.model import Decision, Memory, Mode, QueueSample, Wanted
from headway.scaling.policy.limits import LIMITS
from headway.scaling.profile import Override, Profile
from headway.scaling.profile_keys.schedule import Schedule
from headway.scaling.reading.pool_times import SERVICE_TIME_GUESS_S
from headway.scaling.view import PoolView
from scaling.laws.drawn import startable
from support.pools import NOW_S, profile, queue, view

COUNT = st.integers(0, 60)
MAYBE_COUNT = st.none() | st.integers(1, 60)
MAYBE_PART = st.none() | st.floats(0.01, 3.0)
MAYBE_MONEY = st.none() | st.floats(0.1, 100.0)


@st.composite
def schedules(draw: st.DrawFn) -> Schedule:
    floor, ceiling = sorted((draw(COUNT), draw(COUNT)))
    window = draw(st.sampled_from([("00:00", "24:00"), ("13:00", "14:00"), ("15:00", "16:00"), ("23:00", "13:50")]))
    one = draw(st.sampled_from(["both", "floor", "ceiling"]))
    return Schedule(
        starts=window[0],
        ends=window[1],
        workers_min=None if one == "ceiling" else floor,
        workers_max=None if one == "floor" else ceiling,
    )


@st.composite
def profiles(draw: st.DrawFn) -> Profile:
    """Any profile that is no contradiction, with any of its limits."""
    floor, ceiling = sorted((draw(COUNT), draw(COUNT)))
    values: dict[str, Any] = {
        "workers_min": floor,
        "workers_max": ceiling,
        "mode": draw(st.sampled_from(Mode)),
        "hold_up_s": draw(st.sampled_from([0.0, 30.0])),
        "hold_down_s": draw(st.sampled_from([0.0, 30.0])),
        "tolerance_fraction": draw(st.sampled_from([0.0, 0.1, 0.9])),
        "step_up_workers": draw(MAYBE_COUNT),
        "step_down_workers": draw(MAYBE_COUNT),
        "step_up_fraction": draw(MAYBE_PART),
        "step_down_fraction": draw(MAYBE_PART),
        "activation_jobs": draw(st.sampled_from([0, 0, 7])),
        "fallback_workers": draw(MAYBE_COUNT),
        "rate_limit_per_s": draw(st.none() | st.floats(0.1, 100.0)),
        "cost_per_worker_hour": 0.5,
        "budget_per_hour": draw(MAYBE_MONEY),
        "budget_per_day": draw(MAYBE_MONEY),
        "override": draw(
            st.none() | st.builds(Override, workers=COUNT, until_s=st.just(NOW_S + 9), reason=st.just("x"))
        ),
    }
    if draw(st.booleans()):
        values["pinned"] = draw(st.integers(floor, ceiling))
    else:
        values["schedules"] = tuple(draw(st.lists(schedules(), max_size=3)))
    try:
        return profile(**values)
    except Invalid:  # a schedule's one bound contradicts the profile's other
        return profile(**{**values, "schedules": ()})


@st.composite
def pools(draw: st.DrawFn, *, is_fresh: bool | None = None) -> tuple[PoolView, Memory]:
    age_s = draw(st.sampled_from([0.0, 100.0, 1000.0])) if is_fresh is None else 0.0 if is_fresh else 100.0
    member = queue(
        sampled_at_s=NOW_S - age_s,
        waiting_jobs=draw(st.integers(0, 500)),
        oldest_age_s=draw(st.floats(0.0, 60.0)),
        in_flight_jobs=draw(COUNT),
        arrival_rate_per_s=draw(st.floats(0.0, 50.0)),
        service_time_s=draw(st.none() | st.floats(0.01, 10.0)),
    )
    direct = draw(st.sampled_from([(), (QueueSample(queue=member.queue, at_s=NOW_S, waiting_jobs=7),)]))
    seen = replace(
        view(member),
        profile=draw(profiles()),
        direct=direct,
        slots_per_worker=draw(st.integers(1, 4)),
        capacity_workers=draw(st.none() | COUNT),
        unknown_workers=draw(st.integers(0, 10)),
        leaving_workers=draw(st.sampled_from([0, 0, 1, 7])),
        assigned_workers=draw(COUNT),
        running_workers=draw(COUNT),
        worker_hours_today=draw(st.none() | st.floats(0.0, 300.0)),
    )
    wants = tuple(Wanted(at_s=NOW_S - 10, workers=workers) for workers in draw(st.lists(COUNT, max_size=1)))
    return seen, Memory(target_workers=draw(st.none() | COUNT), wanted=wants, lows=wants)


def decided(pool: tuple[PoolView, Memory]) -> Decision:
    seen, memory = pool
    return decide(seen, memory, now_s=NOW_S)[0]


def ceilings(seen: PoolView, memory: Memory) -> list[float]:
    """Everything that must never be exceeded, worked out apart from the limits; unknown workers count."""
    wanted = seen.profile
    bounds = wanted.bounds_at(NOW_S, {})
    known = [bounds.workers_max]
    if wanted.rate_limit_per_s is not None:
        service_s = max(0.001, seen.queues[0].service_time_s or wanted.service_time_guess_s or SERVICE_TIME_GUESS_S)
        known.append(max(1, math.floor(wanted.rate_limit_per_s * service_s / seen.slots_per_worker + 1e-9)))
    if wanted.budget_per_hour is not None:
        known.append(math.floor(wanted.budget_per_hour / 0.5 + 1e-9))
    if wanted.budget_per_day is not None:
        left_hours = wanted.budget_per_day / 0.5 - (seen.worker_hours_today or 0.0)
        known.append(max(0, math.floor(left_hours + 1e-9)))  # for the hour that follows, at the very most
    last = seen.assigned_workers if memory.target_workers is None else memory.target_workers
    capacity = last if seen.capacity_workers is None else seen.capacity_workers
    # Of a pinned pool no more may exist. Of others no busy worker is asked to leave for workers that may still run.
    busy = min(seen.assigned_workers, seen.running_workers)
    if seen.queues[0].sampled_at_s == NOW_S:
        busy = min(busy, seen.queues[0].in_flight_jobs or 0)
    left = [startable(seen, ceiling, busy_workers=busy) for ceiling in known]
    if wanted.pinned is not None:
        left.append(startable(seen, wanted.pinned))
    return [*left, capacity]


def left_by(decision: Decision, name: str) -> int:
    """The count after the limit ``name``, which a profile that does not set it passes over."""
    names = [limit.name for limit in LIMITS]
    upto = {"wanted", *names[: names.index(name) + 1]}
    return [step.workers for step in decision.steps if step.name in upto][-1]


@given(pools())
def test_no_ceiling_is_ever_exceeded(pool: tuple[PoolView, Memory]) -> None:
    """Law 6: bounds, pinned counts, rates, budget and capacity, guarantees included, unknown workers counted."""
    assert 0 <= decided(pool).target_workers <= min(ceilings(*pool))


@given(pools())
def test_the_floor_holds_below_every_ceiling(pool: tuple[PoolView, Memory]) -> None:
    seen, memory = pool
    floor = seen.profile.bounds_at(NOW_S, {}).workers_min
    with_budget = decided(pool)
    paid, before = left_by(with_budget, "budget"), left_by(with_budget, "rate_limit")
    budget = math.inf if paid == before else paid  # what the day still pays for is tested by hand and over whole days
    assert with_budget.target_workers >= min(floor, budget, *ceilings(seen, memory))


@given(pools(is_fresh=False))
def test_no_data_is_not_zero_load(pool: tuple[PoolView, Memory]) -> None:
    """Law 3: without fresh metrics the target falls only below what must never be exceeded, or as a person says."""
    seen, memory = pool
    seen = replace(seen, profile=replace(seen.profile, override=None, budget_per_day=None, fallback_workers=None))
    last = seen.assigned_workers if memory.target_workers is None else memory.target_workers
    assert decided((seen, memory)).target_workers >= min(last, *ceilings(seen, memory))


@given(pools())
def test_no_failed_source_empties_a_pool(pool: tuple[PoolView, Memory]) -> None:
    """Law 3, after the bound: the fallback itself is at least one worker."""
    seen, memory = pool
    stale = replace(seen, queues=(replace(seen.queues[0], sampled_at_s=NOW_S - 100_000.0),))
    stale = replace(stale, profile=replace(stale.profile, override=None, mode=Mode.ACT, budget_per_day=None))
    if memory.target_workers == 0 or (memory.target_workers is None and not seen.assigned_workers):
        return
    assert decided((stale, memory)).target_workers >= min(1, *ceilings(stale, memory))


@given(pools(), st.integers(0, 60))
def test_an_override_within_the_bounds_is_the_target(pool: tuple[PoolView, Memory], workers: int) -> None:
    seen, memory = pool
    chosen = Override(workers=workers, until_s=NOW_S + 1, reason="x")
    seen = replace(seen, profile=replace(seen.profile, override=chosen, budget_per_day=None))
    target = decided((seen, memory)).target_workers
    floor = seen.profile.bounds_at(NOW_S, {}).workers_min
    exact = workers if seen.profile.pinned is None else seen.profile.pinned
    assert target == min(max(exact, floor), *ceilings(seen, memory))


@given(pools())
def test_one_decision_moves_no_further_than_its_steps(pool: tuple[PoolView, Memory]) -> None:
    """Before people, clocks and ceilings have their say."""
    seen, memory = pool
    wanted = seen.profile
    last = seen.assigned_workers if memory.target_workers is None else memory.target_workers
    left = left_by(decided(pool), "step")
    ups = [wanted.step_up_workers, *([] if wanted.step_up_fraction is None else [wanted.step_up_fraction * last])]
    downs = [
        wanted.step_down_workers,
        *([] if wanted.step_down_fraction is None else [wanted.step_down_fraction * last]),
    ]
    up, down = (max([1, *(each for each in steps if each is not None)]) for steps in (ups, downs))
    assert any(each is not None for each in ups) is False or left - last <= up + 1e-6
    assert any(each is not None for each in downs) is False or last - left <= down + 1e-6
