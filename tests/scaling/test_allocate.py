from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.scaling.allocation.allocate import allocate
from headway.scaling.decide import decide
from headway.scaling.decisions.outcome import Outcome
from headway.scaling.model import (
    Assignment,
    Decision,
    Host,
    HostCapacity,
    LastMove,
    Memory,
    Mode,
    Objective,
    Step,
    Template,
)
from headway.scaling.placement.pool_parts import placed_workers
from headway.scaling.profile_keys.schedule import Schedule
from support.pools import NOW_S, profile, queue, view

MAIL = Template(name="mail", content_hash="1", cpu_cores=1.0, memory_bytes=0)


def hosts(*sizes: int) -> list[Host]:
    return [
        Host(
            host_id=f"h{number}",
            name=f"h{number}",
            capacity=HostCapacity(cpu_cores=float(size), memory_bytes=1),
            templates=(MAIL,),
        )
        for number, size in enumerate(sizes)
    ]


def outcome(pool: str, workers: int, *, before: int | None = None, burst_workers: int = 0, **policy: Any) -> Outcome:
    policy = profile(pool=pool, queues=(f"redis/{pool}",), **policy)
    member = queue(queue=f"redis/{pool}", waiting_jobs=30, service_time_s=1.0)
    return Outcome(
        view=view(member, profile=policy, running_workers=before or 0),
        before=Memory(target_workers=before, last_move=LastMove(at_s=1.0, is_up=True)),
        decision=Decision(
            pool=pool,
            at_s=NOW_S,
            target_workers=workers,
            burst_workers=burst_workers,
            binding="backlog_drain",
            mode=policy.mode,
            objective=Objective(),
            steps=(Step(name="wanted", workers=workers),),
            metrics=(member,),
        ),
        memory=Memory(target_workers=workers, last_move=LastMove(at_s=NOW_S, is_up=True)),
    )


def targets(outcomes: Sequence[Outcome]) -> dict[str, int]:
    return {each.decision.pool: each.decision.target_workers for each in outcomes}


def test_where_there_is_room_for_all_every_decision_stays_as_it_is() -> None:
    outcomes = (outcome("a", 3), outcome("b", 3, burst_workers=2))
    left, rows = allocate(outcomes, hosts(6), [])
    assert left == outcomes
    assert [(row.pool, row.base_workers, row.burst_workers) for row in rows] == [("a", 3, 0), ("b", 1, 2)]


def test_a_pool_that_lost_to_others_says_share_and_how_many_it_left() -> None:
    left, rows = allocate([outcome("a", 4), outcome("b", 4, burst_workers=3, priority=1)], hosts(6), [])
    assert left[0] == outcome("a", 4)
    decision = left[1].decision
    assert (decision.target_workers, decision.burst_workers, decision.binding) == (2, 1, "share")
    assert decision.steps == (Step(name="wanted", workers=4), Step(name="share", workers=2))
    assert placed_workers(rows) == {"a": 4, "b": 2}


def test_of_a_pool_that_gets_less_the_base_workers_stay() -> None:
    """The burst workers were to come on top: for want of room no base worker is exchanged for one of them."""
    there = [Assignment(pool="a", host_id="h0", template="mail", base_workers=2)]
    (only,), rows = allocate([outcome("a", 5, before=2, burst_workers=3)], hosts(2), there)
    assert rows == tuple(there)
    assert (only.decision.target_workers, only.decision.burst_workers) == (2, 0)


def test_a_low_priority_that_was_there_first_gives_way() -> None:
    current = [Assignment(pool="low", host_id="h0", template="mail", base_workers=6)]
    left, rows = allocate([outcome("low", 6, before=6, priority=1), outcome("high", 5)], hosts(6), current)
    assert targets(left) == {"low": 1, "high": 5}
    assert placed_workers(rows) == {"low": 1, "high": 5}


@pytest.mark.parametrize("floor", [0, 1], ids=["wished for", "guaranteed"])
@pytest.mark.parametrize("jobs", [0, 3])
def test_two_pools_with_room_for_one_worker_do_not_exchange_it_at_every_evaluation(jobs: int, floor: int) -> None:
    """Whoever goes without is predicted to wait, and was the more urgent each time."""
    rows: tuple[Assignment, ...] = ()
    memories, holders = {"a": Memory(), "b": Memory()}, []
    for number in range(12):
        now_s = NOW_S + 5.0 * number
        there = placed_workers(rows)
        outcomes = []
        for pool, before in memories.items():
            workers = there.get(pool, 0)
            waiting = queue(
                queue=f"redis/{pool}",
                sampled_at_s=now_s,
                waiting_jobs=0 if workers else jobs,
                in_flight_jobs=workers if jobs else 0,
                arrival_rate_per_s=0.2 if jobs else 0.0,
            )
            policy = profile(pool=pool, queues=(waiting.queue,), workers_min=floor, workers_max=1)
            seen = view(waiting, profile=policy, capacity_workers=1, assigned_workers=workers, running_workers=workers)
            decision, after = decide(seen, before, now_s=now_s)
            outcomes.append(Outcome(view=seen, before=before, decision=decision, memory=after))
        left, rows = allocate(outcomes, hosts(1), rows)
        memories = {each.decision.pool: each.memory for each in left}
        holders.append([row.pool for row in rows])
    assert holders == [["a"] if jobs or floor else []] * 12


def test_the_next_evaluation_goes_on_from_what_was_left() -> None:
    (up, same, down), _ = allocate(
        [outcome("a", 9, before=1), outcome("b", 9, before=3), outcome("c", 9, before=5)], hosts(9), []
    )
    assert [each.memory.target_workers for each in (up, same, down)] == [3, 3, 3]
    assert up.memory.last_move == LastMove(at_s=NOW_S, is_up=True)
    assert same.memory.last_move == same.before.last_move  # it did not move
    assert down.memory.last_move == LastMove(at_s=NOW_S, is_up=False)


def test_the_prediction_counts_only_the_workers_that_are_left() -> None:
    """Law 12: 30 jobs wait and one comes; 4 workers take the first at once and a second each, and so on."""
    ((only,), _) = allocate([outcome("a", 9, before=9)], hosts(4), [])
    assert only.decision.predicted_pickup_s == (30 + 1 - 4) / 4


def test_advice_takes_part_in_nothing() -> None:
    advised = outcome("advised", 9, mode=Mode.RECOMMEND, priority=999)
    left, rows = allocate([advised, outcome("a", 4)], hosts(3), [])
    assert left[0] == advised
    assert placed_workers(rows) == {"a": 3}


def test_what_an_operator_keeps_from_going_down_others_do_not_take() -> None:
    paused = outcome("paused", 4, before=4, mode=Mode.PAUSE, priority=1)
    only_up = outcome("only_up", 4, before=2, mode=Mode.PAUSE_DOWN, priority=1)
    left, _ = allocate([paused, only_up, outcome("high", 9)], hosts(8), [])
    assert targets(left) == {"paused": 4, "only_up": 2, "high": 2}


def test_a_guarantee_is_kept_against_a_higher_priority() -> None:
    scheduled = (Schedule(starts="13:00", ends="14:00", workers_min=2),)  # it is 13:46
    low = [
        outcome("floor", 4, workers_min=3, priority=1),
        outcome("pinned", 2, pinned=2, priority=1),
        outcome("scheduled", 4, schedules=scheduled, priority=1),
    ]
    left, _ = allocate([*low, outcome("high", 9)], hosts(8), [])
    assert targets(left) == {"floor": 3, "pinned": 2, "scheduled": 2, "high": 1}


def test_rows_of_pools_that_were_not_decided_keep_their_room() -> None:
    held = [Assignment(pool="held", host_id="h0", template="mail", base_workers=3)]
    left, rows = allocate([outcome("a", 9)], hosts(5), held, held=held)
    assert targets(left) == {"a": 2}
    assert placed_workers(rows) == {"a": 2}


OUTCOMES = st.lists(
    st.builds(
        outcome,
        st.sampled_from([f"pool-{letter}" for letter in "abcdef"]),
        st.integers(0, 9),
        before=st.integers(0, 9),
        priority=st.integers(1, 3),
        workers_min=st.integers(0, 3),
        weight=st.sampled_from([1.0, 2.0]),
    ),
    unique_by=lambda each: each.decision.pool,
)
SIZES = st.lists(st.integers(0, 9), max_size=4)


@given(outcomes=OUTCOMES, sizes=SIZES)
def test_every_worker_that_was_left_has_a_place(outcomes: list[Outcome], sizes: list[int]) -> None:
    """Workers of one size always find the room that was shared out; no decision is raised."""
    left, rows = allocate(outcomes, hosts(*sizes), [])
    placed = placed_workers(rows)
    assert all(placed.get(pool, 0) == workers for pool, workers in targets(left).items())
    assert sum(placed.values()) == min(sum(sizes), sum(targets(outcomes).values()))
    assert all(workers <= targets(outcomes)[pool] for pool, workers in targets(left).items())


@given(outcomes=OUTCOMES, sizes=SIZES)
def test_settling_the_same_again_moves_nothing(outcomes: list[Outcome], sizes: list[int]) -> None:
    left, rows = allocate(outcomes, hosts(*sizes), [])
    again, rows_again = allocate(outcomes, hosts(*sizes), rows)
    assert (again, rows_again) == (left, rows)
    settled_once, rows_once = allocate(left, hosts(*sizes), rows)
    assert (targets(settled_once), rows_once) == (targets(left), rows)


@given(outcomes=OUTCOMES, sizes=SIZES)
def test_the_story_of_a_decision_ends_with_its_target(outcomes: list[Outcome], sizes: list[int]) -> None:
    for each in allocate(outcomes, hosts(*sizes), [])[0]:
        assert each.decision.steps[-1].workers == each.decision.target_workers == each.memory.target_workers
        assert (each.decision.binding == "share") == (each.decision.steps[-1].name == "share")


def test_a_decision_that_keeps_its_target_is_the_very_same_value() -> None:
    outcomes = [outcome("a", 2), replace(outcome("b", 9))]
    left, _ = allocate(outcomes, hosts(5), [])
    assert left[0] is outcomes[0]


def test_a_pinned_worker_that_loses_its_room_has_left_before_another_starts_elsewhere() -> None:
    """As when a host's memory shrinks: both at once would run beside each other until the old one has finished."""
    pool = outcome("mail", 1, before=1, workers_min=1, workers_max=1, pinned=1)
    there = [Assignment(pool="mail", host_id="h0", template="mail", base_workers=1)]
    _, rows = allocate([pool], hosts(0, 4), there)
    assert rows == ()
    _, rows = allocate([pool], hosts(0, 4), rows)
    assert [(row.host_id, row.workers) for row in rows] == [("h1", 1)]


def test_a_worker_moves_at_once_where_its_pool_may_have_both() -> None:
    pool = outcome("mail", 1, before=1, workers_max=2)
    there = [Assignment(pool="mail", host_id="h0", template="mail", base_workers=1)]
    _, rows = allocate([pool], hosts(0, 4), there)
    assert [(row.host_id, row.workers) for row in rows] == [("h1", 1)]


def test_at_the_ceiling_a_worker_ends_before_its_successor_starts_and_the_decision_says_so() -> None:
    pool = outcome("mail", 1, before=1, workers_max=1)
    there = [Assignment(pool="mail", host_id="h0", template="mail", base_workers=1)]
    (left,), rows = allocate([pool], hosts(0, 4), there)
    assert rows == ()
    assert left.decision.target_workers == 1
    assert left.decision.notes[-1].startswith("1 of them start when draining workers have exited")
    _, rows = allocate([pool], hosts(0, 4), ())
    assert [(row.host_id, row.workers) for row in rows] == [("h1", 1)]


def test_of_several_pinned_workers_those_that_need_not_move_stay() -> None:
    pool = outcome("mail", 3, before=3, workers_min=3, workers_max=3, pinned=3)
    there = [Assignment(pool="mail", host_id=f"h{number}", template="mail", base_workers=1) for number in range(3)]
    _, rows = allocate([pool], hosts(0, 1, 4), there)
    assert [(row.host_id, row.workers) for row in rows] == [("h1", 1), ("h2", 1)]


@given(
    sizes=st.lists(st.integers(0, 4), min_size=1, max_size=5),
    there=st.lists(st.integers(0, 3), min_size=5, max_size=5),
    pinned=st.integers(1, 6),
)
def test_no_more_of_a_pinned_pool_ever_exist_than_are_pinned_or_do_already(
    sizes: list[int], there: list[int], pinned: int
) -> None:
    before = {f"h{number}": workers for number, workers in enumerate(there[: len(sizes)]) if workers}
    current = [
        Assignment(pool="mail", host_id=host_id, template="mail", base_workers=count)
        for host_id, count in before.items()
    ]
    pool = outcome("mail", pinned, before=sum(before.values()), workers_max=pinned, pinned=pinned)
    _, rows = allocate([pool], hosts(*sizes), current)
    now = {row.host_id: row.workers for row in rows}
    existing = sum(max(now.get(host_id, 0), before.get(host_id, 0)) for host_id in now.keys() | before.keys())
    assert existing <= max(pinned, sum(before.values()))
