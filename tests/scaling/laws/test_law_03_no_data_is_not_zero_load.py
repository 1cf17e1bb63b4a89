"""Law 3. No data is not zero load: without fresh metrics the last target is held, and the decision says so.

Nothing scales to zero because a source failed. After a bound the profile's own fallback applies. Readings that came
round the pipeline may raise a target, never lower it.
"""

import math
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from headway.scaling.model import Memory
from headway.scaling.reading.sample_age import freshness_of
from headway.scaling.view import PoolView
from scaling.laws.drawn import LAW, MEMORIES, by_every_strategy, startable, views
from support.installed import decide
from support.pools import NOW_S

STALE_AGO_S = st.none() | st.floats(20.5, 100_000)


def last_of(view: PoolView, memory: Memory) -> int:
    return view.assigned_workers if memory.target_workers is None else memory.target_workers


def ceiling_of(view: PoolView) -> int:
    """What may never be exceeded, whatever is held. Without metrics every worker that is there counts as busy."""
    room = math.inf if view.capacity_workers is None else view.capacity_workers
    there = min(view.assigned_workers, view.running_workers + view.starting_workers)
    return int(min(startable(view, view.profile.workers_max, busy_workers=there), room))


@LAW
@given(view=views(sampled_ago_s=STALE_AGO_S, is_plain=True), memory=MEMORIES)
def test_without_fresh_metrics_nothing_goes_down(view: PoolView, memory: Memory) -> None:
    for seen in by_every_strategy(view):
        decision, after = decide(seen, memory, now_s=NOW_S)
        held = min(last_of(seen, memory), ceiling_of(seen))
        assert decision.target_workers >= held, seen.profile.strategy
        assert after.target_workers == decision.target_workers
        assert not decision.is_fresh


@LAW
@given(view=views(sampled_ago_s=st.none(), is_plain=True), memory=MEMORIES)
def test_a_queue_never_seen_is_reported_by_name(view: PoolView, memory: Memory) -> None:
    for seen in by_every_strategy(replace(view, direct=())):
        decision, _ = decide(seen, memory, now_s=NOW_S)
        for name in seen.profile.queues:
            assert f"queue {name} has not been seen in its broker" in decision.notes


@LAW
@given(view=views(sampled_ago_s=st.floats(20.5, 100_000), is_plain=True), memory=MEMORIES)
def test_old_metrics_are_reported_and_their_age_is_a_field(view: PoolView, memory: Memory) -> None:
    for seen in by_every_strategy(view):
        decision, _ = decide(seen, memory, now_s=NOW_S)
        assert any("they lower nothing until fresh ones arrive" in note for note in decision.notes)
        assert decision.metrics_age_s == freshness_of(seen.queues, seen.profile, now_s=NOW_S).age_s


@LAW
@given(view=views(sampled_ago_s=STALE_AGO_S, is_plain=True), memory=MEMORIES, fallback=st.integers(1, 100))
def test_the_fallback_comes_after_its_bound_and_no_sooner(view: PoolView, memory: Memory, fallback: int) -> None:
    with_fallback = replace(
        view, direct=(), profile=replace(view.profile, fallback_workers=fallback, fallback_after_s=600.0)
    )
    sampled = [queue.sampled_at_s for queue in view.queues if queue.sampled_at_s is not None]
    is_due = bool(sampled) and NOW_S - min(sampled) > 600.0
    for seen in by_every_strategy(with_fallback):
        decision, _ = decide(seen, memory, now_s=NOW_S)
        plain, _ = decide(replace(seen, profile=replace(seen.profile, fallback_workers=None)), memory, now_s=NOW_S)
        if is_due:
            wanted = max(seen.profile.workers_min, fallback)
            room = last_of(seen, memory) if seen.capacity_workers is None else seen.capacity_workers
            assert decision.target_workers == min(wanted, ceiling_of(seen), room), seen.profile.strategy
        else:
            assert decision.target_workers == plain.target_workers


@LAW
@given(view=views(sampled_ago_s=STALE_AGO_S, is_plain=True), memory=MEMORIES)
def test_readings_round_the_pipeline_raise_and_never_lower(view: PoolView, memory: Memory) -> None:
    for seen in by_every_strategy(view):
        decision, _ = decide(seen, memory, now_s=NOW_S)
        assert decision.target_workers >= min(last_of(seen, memory), ceiling_of(seen)), seen.profile.strategy


@LAW
@given(view=views(sampled_ago_s=st.floats(0, 20), is_plain=True), memory=MEMORIES)
def test_direct_samples_count_for_nothing_while_metrics_are_fresh(view: PoolView, memory: Memory) -> None:
    for seen in by_every_strategy(view):
        assert decide(seen, memory, now_s=NOW_S) == decide(replace(seen, direct=()), memory, now_s=NOW_S)


@LAW
@given(view=views(is_plain=True), memory=MEMORIES)
def test_an_unknown_capacity_limits_no_count(view: PoolView, memory: Memory) -> None:
    """No known host reports the template: what is wanted less may go, but nothing is cut for want of room."""
    for seen in by_every_strategy(view):
        unknown, _ = decide(replace(seen, capacity_workers=None), memory, now_s=NOW_S)
        roomy, _ = decide(replace(seen, capacity_workers=1_000_000), memory, now_s=NOW_S)
        assert unknown.target_workers == min(roomy.target_workers, last_of(seen, memory)), seen.profile.strategy
