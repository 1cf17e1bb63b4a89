from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.scaling.decide import decide
from headway.scaling.decisions.worst_wait import worst_wait
from headway.scaling.explain import explained
from headway.scaling.model import LastMove, Memory, Objective, QueueOrder, QueueSample, Wanted
from headway.scaling.strategies.shared import steady_state
from headway.scaling.strategy import Advice, Strategy
from headway.scaling.view import PoolView
from support.pools import NOW_S, held, profile, queue, view


def target(seen: PoolView, memory: Memory | None = None) -> int:
    return decide(seen, memory or Memory(), now_s=NOW_S)[0].target_workers


def test_the_greatest_demand_sets_the_target_and_is_named() -> None:
    late = queue(waiting_jobs=24, in_flight_jobs=6, oldest_age_s=60.0, service_time_s=1.0)
    decision, _ = decide(view(late, running_workers=6), Memory(), now_s=NOW_S)
    assert decision.target_workers == 13  # in 1 s six slots start 6 − √6 of 24 jobs; a new one starts 1 + 2
    assert decision.binding == "backlog_drain"
    assert {demand.name: demand.slots for demand in decision.demands} == {
        "work_in_progress": 6.0,
        "backlog_drain": 13.0,
        "wake": 0.0,
    }


def test_the_first_job_of_a_sleeping_pool_wakes_it_at_once() -> None:
    decision, _ = decide(view(queue(waiting_jobs=1, oldest_age_s=0.1)), Memory(), now_s=NOW_S)
    assert (decision.target_workers, decision.binding) == (1, "wake")


def test_a_limit_that_moves_the_count_is_named() -> None:
    busy = queue(in_flight_jobs=50)
    decision, _ = decide(view(busy, capacity_workers=7), Memory(), now_s=NOW_S)
    assert (decision.target_workers, decision.binding) == (7, "capacity")
    assert [(step.name, step.workers) for step in decision.steps][-2:] == [("workers_max", 50), ("capacity", 7)]


def test_slots_become_workers_once() -> None:
    assert target(view(queue(in_flight_jobs=10), slots_per_worker=4)) == 3  # 10 slots / 4 a worker, rounded up


def test_binary_fractions_start_no_extra_worker() -> None:
    seen = view(queue(arrival_rate_per_s=0.1 + 0.2, service_time_s=10.0))
    seen = replace(seen, profile=profile(strategy="steady"))
    steady = Strategy(
        name="steady", advise=lambda queue, view, _state, _now_s: Advice(demands=(steady_state(queue, view),))
    )
    decision, _ = decide(seen, Memory(), now_s=NOW_S, strategies={"steady": steady})
    assert decision.target_workers == 3  # 0.30000000000000004 × 10


def test_a_quiet_queue_goes_to_zero() -> None:
    decision, _ = decide(view(), held(4), now_s=NOW_S)
    assert (decision.target_workers, decision.binding) == (0, "idle")


def test_the_oldest_job_ages_between_samples() -> None:
    sampled = queue(waiting_jobs=48, oldest_age_s=5.0, sampled_at_s=NOW_S - 2)
    assert target(view(sampled)) == 16  # 7 s old by now: 2 s left, and a slot starts 3 jobs in 3 s


def test_stale_metrics_hold_and_say_so() -> None:
    stale = queue(sampled_at_s=NOW_S - 60)
    decision, _ = decide(view(stale), held(5), now_s=NOW_S)
    assert (decision.target_workers, decision.binding, decision.is_fresh) == (5, "hold_stale", False)
    assert decision.notes == ("metrics are older than 20 s: they lower nothing until fresh ones arrive",)
    assert decision.metrics_age_s == 60.0


def test_the_silence_of_a_queue_that_was_not_read_lowers_nothing() -> None:
    """A broker that hangs reports no arrivals: they are unknown, long before the metrics are stale."""
    silent = queue(sampled_at_s=NOW_S - 7.0, arrived_jobs=0, arrived_until_s=NOW_S - 1.0)
    decision, _ = decide(view(silent), held(5), now_s=NOW_S)
    assert (decision.target_workers, decision.binding, decision.is_fresh) == (5, "hold_stale", True)
    read = replace(silent, sampled_at_s=NOW_S - 5.9)
    assert decide(view(read), held(5), now_s=NOW_S)[0].target_workers == 0


def test_while_a_fallback_is_in_force_the_decision_says_so_and_nothing_else_of_the_metrics() -> None:
    """Not that nothing goes down: the fallback has just lowered the target."""
    gone = replace(view(queue(sampled_at_s=NOW_S - 400.0)), profile=profile(fallback_workers=2))
    decision, _ = decide(gone, held(6), now_s=NOW_S)
    assert (decision.target_workers, decision.binding) == (2, "fallback")
    assert decision.notes == ("no metrics for more than 300 s: the profile falls back on 2 workers",)
    assert "Metrics have been missing for long: the fallback is 2." in explained(decision)


def test_a_direct_sample_raises_a_stale_target_and_never_lowers_it() -> None:
    stale = view(queue(sampled_at_s=NOW_S - 60))
    flood = QueueSample(queue="redis/mail", at_s=NOW_S, waiting_jobs=80, in_flight_jobs=0, oldest_age_s=7.0)
    empty = replace(flood, waiting_jobs=0)
    assert target(replace(stale, direct=(flood,)), held(5)) == 27  # 80 jobs, 3 a slot
    assert target(replace(stale, direct=(empty,)), held(5)) == 5


def test_a_decision_on_a_direct_sample_says_so() -> None:
    never = view(queue(sampled_at_s=None, waiting_jobs=None))
    flood = QueueSample(queue="redis/mail", at_s=NOW_S, waiting_jobs=8)
    decision, _ = decide(replace(never, direct=(flood,)), Memory(), now_s=NOW_S)
    assert decision.target_workers == 1
    (note,) = decision.notes
    assert note == (
        "depths of redis/mail come directly from the collector, because metrics are stale; "
        "they can only raise the count"
    )


def test_a_direct_sample_is_not_used_while_metrics_are_fresh() -> None:
    """No path goes round the pipeline."""
    flood = QueueSample(queue="redis/mail", at_s=NOW_S, waiting_jobs=40)
    assert target(view(queue(sampled_at_s=NOW_S - 3), direct=(flood,))) == 0


def test_a_queue_never_seen_holds_what_is_assigned() -> None:
    decision, _ = decide(view(queue(sampled_at_s=None, waiting_jobs=None), assigned_workers=3), Memory(), now_s=NOW_S)
    assert decision.target_workers == 3
    assert decision.notes == ("queue redis/mail has not been seen in its broker",)


def test_a_member_never_seen_does_not_stop_the_pool_from_going_down() -> None:
    members = (queue(queue="redis/a"), queue(queue="redis/b", sampled_at_s=None, waiting_jobs=None))
    assert target(view(*members), held(5)) == 0


def test_members_add_up_and_the_oldest_age_counts() -> None:
    members = (
        queue(queue="redis/a", waiting_jobs=32, oldest_age_s=7.0),
        queue(queue="redis/b", waiting_jobs=16, oldest_age_s=0.0),
    )
    seen = view(*members, queue_order=QueueOrder.STRICT, strict_queues=("a", "b"))
    assert target(seen) == 16  # 48 jobs, 3 a slot


def test_a_member_with_a_tighter_objective_is_never_given_less_than_alone() -> None:
    urgent = queue(queue="redis/a", waiting_jobs=8, oldest_age_s=3.0, service_time_s=9.0)
    tight = Objective(target_s=5.0)
    both = view(urgent, queue(queue="redis/b"))
    assert target(both) == 1  # 10 s: 6 s left, it can wait
    both = replace(both, profile=replace(both.profile, member_objectives={"redis/a": tight}))
    alone = view(urgent, profile=replace(profile(), queues=("redis/a",), objective=tight))
    assert target(both) == target(alone) == 9  # 5 s: 1 s left, one job a slot, and a slot for the next to come


def test_a_memory_of_another_version_is_dropped_and_what_is_assigned_is_held() -> None:
    old = Memory(version=0, target_workers=9)
    stale = view(queue(sampled_at_s=NOW_S - 60), assigned_workers=3)
    assert target(stale, old) == 3


def test_a_lower_want_waits_for_the_hold() -> None:
    memory = Memory(target_workers=8, wanted=(Wanted(at_s=NOW_S - 10, workers=8),))
    holding = replace(view(), profile=profile(hold_down_s=15.0))
    decision, memory = decide(holding, memory, now_s=NOW_S)
    assert (decision.target_workers, decision.binding) == (8, "hold_down")
    later = replace(holding, queues=(queue(sampled_at_s=NOW_S + 6),))
    decision, _ = decide(later, memory, now_s=NOW_S + 6)
    assert decision.target_workers == 0


def test_a_prediction_counts_only_workers_that_will_exist() -> None:
    backlog = queue(waiting_jobs=19, in_flight_jobs=2, service_time_s=1.0)
    few = view(backlog, running_workers=2, capacity_workers=2)
    assert decide(few, held(2), now_s=NOW_S)[0].predicted_pickup_s == pytest.approx(10.0)  # (19 + 2 + 1 − 2) / 2 × 1 s


def test_a_prediction_waits_for_reserved_jobs_also_where_it_is_unknown_how_many_run() -> None:
    backlog = queue(waiting_jobs=19, in_flight_jobs=None, in_flight_min_jobs=6, reserved_jobs=6, service_time_s=1.0)
    few = view(backlog, running_workers=2, capacity_workers=2)
    # Both slots may have a job: (19 + 2 + 6 + 1 − 2) / 2 × 1 s
    assert decide(few, held(2), now_s=NOW_S)[0].predicted_pickup_s == pytest.approx(13.0)


def test_a_prediction_counts_what_a_slot_takes_between_two_jobs() -> None:
    """Of jobs that take next to nothing it is all there is: 1,000 of 36 ms each were predicted to be done in 2 s."""
    backlog = queue(waiting_jobs=1_000, in_flight_jobs=0, service_time_s=0.002)
    one = view(backlog, running_workers=1, capacity_workers=1, dispatch_overhead_s=0.034)
    assert decide(one, held(1), now_s=NOW_S)[0].predicted_pickup_s == pytest.approx(36.0)


def test_the_worst_wait_is_not_hidden_by_finished_jobs() -> None:
    stalled = queue(waiting_jobs=3, oldest_age_s=90.0, pickup_objective_s=0.2)
    worst = worst_wait(decide(view(stalled), Memory(), now_s=NOW_S)[0], profile())
    assert worst is not None
    assert worst.wait_s == pytest.approx(90.0)


@st.composite
def pools(draw: st.DrawFn) -> PoolView:
    some = queue(
        waiting_jobs=draw(st.integers(0, 10_000)),
        in_flight_jobs=draw(st.integers(0, 500)),
        oldest_age_s=draw(st.floats(0, 1_000)),
        arrival_rate_per_s=draw(st.floats(0, 500)),
        arrival_trend_per_s2=draw(st.floats(-5, 5)),
        service_time_s=draw(st.floats(0.001, 600) | st.none()),
        sampled_at_s=NOW_S - draw(st.floats(0, 60)),
    )
    low = draw(st.integers(0, 50))
    return view(
        some,
        profile=profile(
            workers_min=low, workers_max=low + draw(st.integers(0, 200)), hold_down_s=draw(st.floats(0, 60))
        ),
        slots_per_worker=draw(st.integers(1, 8)),
        capacity_workers=draw(st.integers(0, 300)),
        unknown_workers=draw(st.integers(0, 20)),
    )


MEMORIES = st.builds(held, st.integers(0, 300))


@given(seen=pools(), memory=MEMORIES)
def test_a_target_stays_within_bounds_and_capacity(seen: PoolView, memory: Memory) -> None:
    """Law 6: capacity and the ceiling hold whatever is asked; the floor holds where there is room for it."""
    workers = target(seen, memory)
    assert workers <= seen.profile.workers_max - seen.unknown_workers or workers == 0
    assert seen.capacity_workers is not None
    assert workers <= seen.capacity_workers
    room = min(seen.capacity_workers, max(0, seen.profile.workers_max - seen.unknown_workers))
    assert workers >= min(seen.profile.workers_min, room)


@given(seen=pools(), memory=MEMORIES)
def test_deciding_again_with_nothing_new_changes_nothing(seen: PoolView, memory: Memory) -> None:
    first, remembered = decide(seen, memory, now_s=NOW_S)
    again, _ = decide(seen, remembered, now_s=NOW_S)
    assert again.target_workers == first.target_workers


@given(seen=pools(), memory=MEMORIES, more=st.integers(0, 1_000), older_s=st.floats(0, 100))
def test_a_worse_queue_never_lowers_the_target(seen: PoolView, memory: Memory, more: int, older_s: float) -> None:
    worse: dict[str, Any] = {
        "waiting_jobs": (seen.queues[0].waiting_jobs or 0) + more,
        "oldest_age_s": (seen.queues[0].oldest_age_s or 0.0) + older_s,
    }
    assert target(replace(seen, queues=(replace(seen.queues[0], **worse),)), memory) >= target(seen, memory)


def test_the_memory_knows_when_the_target_moved_last_and_which_way() -> None:
    _, risen = decide(view(queue(in_flight_jobs=4)), held(0), now_s=NOW_S)
    assert risen.last_move == LastMove(at_s=NOW_S, is_up=True)
    _, same = decide(view(queue(in_flight_jobs=4)), risen, now_s=NOW_S + 5)
    assert same.last_move == risen.last_move
    _, fallen = decide(view(queue(sampled_at_s=NOW_S + 9)), same, now_s=NOW_S + 10)
    assert fallen.last_move == LastMove(at_s=NOW_S + 10, is_up=False)
