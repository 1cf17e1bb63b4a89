"""Several queues in one pool: which jobs start first, by the order in which workers take from the queues."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.scaling.decide import decide
from headway.scaling.demands.deadlines import Due
from headway.scaling.demands.jobs_in_front import drain_behind, jobs_in_front, slots_in_front
from headway.scaling.demands.needs import Coming, Need, Supply
from headway.scaling.explain import explained
from headway.scaling.mapping import from_mapping, to_mapping
from headway.scaling.model import Decision, Memory, Note, NoteKind, Objective, QueueMetrics, QueueOrder
from headway.scaling.planning.shared_pool import order_remarks, separate_pools
from headway.scaling.reading.pool_times import times_of
from headway.scaling.view import PoolView
from support.pools import NOW_S, ordered, profile, queue, view

STRICT, IN_TURN, RANDOM, BY_ARRIVAL = QueueOrder
ORDERS = st.sampled_from([None, *QueueOrder])
MANY = settings(max_examples=max(200, settings.default.max_examples))


def pool(
    order: QueueOrder | None, *, urgent: int = 50, bulk: int = 600, bulk_s: float = 6.0, **values: Any
) -> PoolView:
    """Situation B5 of the field: ``urgent`` jobs of 0.1 s, within 5 s, and ``bulk`` ones of 6 s, within 10 min."""
    members = (
        queue(queue="redis/urgent", waiting_jobs=urgent, service_time_s=0.1),
        queue(queue="redis/bulk", waiting_jobs=bulk, service_time_s=bulk_s),
    )
    plain: dict[str, Any] = {
        "queue_order": order,
        "strict_queues": ("urgent", "bulk"),
        "profile": profile(
            queues=("redis/urgent", "redis/bulk"),
            objective=Objective(target_s=600.0),
            member_objectives={"redis/urgent": Objective(target_s=5.0)},
            workers_max=values.pop("workers_max", 20),
        ),
    }
    return view(*members, **{**plain, **values})


@pytest.mark.parametrize(
    ("order", "ranked", "jobs", "in_front"),
    [
        (STRICT, ("urgent", "bulk"), 50, {}),
        (STRICT, ("bulk", "urgent"), 50, {"redis/bulk": 600}),
        (STRICT, ("bulk",), 50, {"redis/bulk": 600}),  # nobody knows where `urgent` comes
        (STRICT, (), 50, {"redis/bulk": 600}),
        (IN_TURN, (), 50, {"redis/bulk": 50}),  # one before each
        (IN_TURN, (), 900, {"redis/bulk": 600}),
        (RANDOM, (), 50, {"redis/bulk": 50}),
        (BY_ARRIVAL, (), 1, {"redis/bulk": 600}),
        (None, ("urgent", "bulk"), 1, {"redis/bulk": 600}),  # unknown is not strict
    ],
)
def test_an_order_says_which_jobs_of_other_queues_start_first(
    order: QueueOrder | None, ranked: tuple[str, ...], jobs: int, in_front: dict[str, float]
) -> None:
    seen = pool(order, strict_queues=ranked)
    found = jobs_in_front(seen.queues[0], jobs, ordered(seen))
    assert {each.queue.queue: each.jobs for each in found} == in_front


def test_a_random_order_may_draw_another_queue_several_times() -> None:
    seen = pool(RANDOM)
    (found,) = jobs_in_front(seen.queues[0], 8, ordered(seen), deviations=2.0)
    assert found.jobs == 8 + 2 * 4  # √(2 · 8) = 4


@MANY
@given(order=ORDERS, jobs=st.integers(1, 500), bulk=st.integers(0, 1_000), more=st.integers(0, 500))
def test_no_known_order_has_more_jobs_in_front_than_an_unknown_one(
    order: QueueOrder | None, jobs: int, bulk: int, more: int
) -> None:
    def total(order: QueueOrder | None, *, jobs: int, bulk: int) -> float:
        seen = pool(order, bulk=bulk)
        return sum(each.jobs for each in jobs_in_front(seen.queues[0], jobs, ordered(seen), deviations=2.3))

    found = total(order, jobs=jobs, bulk=bulk)
    assert found <= total(None, jobs=jobs, bulk=bulk) == bulk
    assert found <= total(order, jobs=jobs, bulk=bulk + more)
    assert found <= total(order, jobs=jobs + more, bulk=bulk)


# Deciding


def slots(seen: PoolView) -> dict[str, float]:
    decision, _ = decide(seen, Memory(), now_s=NOW_S)
    return {demand.name: demand.slots for demand in decision.demands}


def test_a_pool_is_decided_by_the_order_of_its_workers() -> None:
    of = {order: slots(pool(order))["backlog_drain"] for order in (None, *QueueOrder)}
    # Within 5 s less 0.5 s and the slow start's 0.5 s, a slot starts 1 + ⌊3 ÷ 0.1⌋ urgent jobs, and one of bulk.
    assert of[STRICT] == 2
    assert of[IN_TURN] == 2 + 100  # one before each urgent job, and one behind
    assert of[RANDOM] == 2 + 133  # 100 + 2.3 · √200
    assert of[BY_ARRIVAL] == of[None] == 2 + 600


def test_an_urgent_queue_behind_another_one_needs_slots_for_both() -> None:
    assert slots(pool(STRICT, strict_queues=("bulk", "urgent")))["backlog_drain"] == 2 + 600


def supplied(**values: Any) -> Supply:
    """Slots that start jobs without one more worker: none but ``values``."""
    nothing: dict[str, Any] = {"busy_slots": 0, "idle_slots": 0, "coming": (), "completions_per_s": 0.0}
    return Supply(**{**nothing, "cycle_s": 0.1, "caution": 0.0, "start_up_s": 1.0, "tick_s": 5.0, **values})


def in_front_of(member: QueueMetrics, jobs: float, within_s: float, given: Supply, *, seen: PoolView) -> int:
    """The slots that jobs of other queues of ``seen`` take."""
    return slots_in_front(member, jobs, within_s, given, ordered(seen), times_of(seen))


def test_slots_that_run_jobs_of_another_queue_go_on_with_those_in_front() -> None:
    seen = pool(IN_TURN)
    urgent, bulk = seen.queues
    assert in_front_of(urgent, 1, 4.0, supplied(), seen=seen) == 2
    running = replace(seen, queues=(urgent, replace(bulk, in_flight_jobs=3)))
    assert in_front_of(urgent, 1, 4.0, supplied(), seen=running) == 0  # three slots end two jobs of 6 s in 4 s
    assert in_front_of(urgent, 1, 4.0, supplied(caution=1.0), seen=running) == 2  # 2 − √2 surely


def test_new_slots_start_jobs_in_front_only_once_they_are_up() -> None:
    seen = pool(IN_TURN, bulk_s=1.0)
    assert in_front_of(seen.queues[0], 5, 4.0, supplied(), seen=seen) == 3  # ten jobs; 1 + (4 − 1) a slot


@pytest.mark.parametrize(
    ("jobs", "need"),
    [
        (1, Need(kept_slots=2)),  # two of bulk; one that comes starts the urgent one
        (
            3,
            Need(kept_slots=3, new_slots=1 + 1),
        ),  # six of bulk take what is there and one more, the three one
    ],
)
def test_jobs_in_front_take_idle_slots_first_and_then_those_that_come(jobs: int, need: Need) -> None:
    seen = pool(IN_TURN)
    there = supplied(idle_slots=3, coming=(Coming(slots=2, ready_in_s=0.5),))
    due = (Due(jobs=jobs, within_s=0.0),)
    assert drain_behind(seen.queues[0], due, there, ordered(seen), times_of(seen), slots_max=100) == need


def test_a_slot_that_gets_done_takes_a_job_in_front_as_an_idle_one_does() -> None:
    """Two busy slots once needed fewer new ones beside them than two idle ones: they were kept for the urgent jobs."""
    seen = pool(IN_TURN)
    due = (Due(jobs=40, within_s=1.0),)
    slots_of = {
        idle_slots: drain_behind(
            seen.queues[0],
            due,
            supplied(idle_slots=idle_slots, busy_slots=2 - idle_slots, completions_per_s=10.0 * (2 - idle_slots)),
            ordered(seen),
            times_of(seen),
            slots_max=1_000,
        ).new_slots
        for idle_slots in (2, 1, 0)
    }
    assert set(slots_of.values()) == {slots_of[2]}


@MANY
@given(
    order=ORDERS,
    urgent=st.integers(0, 200),
    bulk=st.integers(0, 900),
    more=st.integers(0, 300),
    slower=st.floats(1, 50),
)
def test_more_or_slower_jobs_of_another_queue_never_lower_the_demand(
    order: QueueOrder | None, urgent: int, bulk: int, more: int, slower: float
) -> None:
    before = max(slots(pool(order, urgent=urgent, bulk=bulk)).values())
    assert before <= max(slots(pool(order, urgent=urgent, bulk=bulk + more)).values())
    assert before <= max(slots(pool(order, urgent=urgent + more, bulk=bulk)).values())
    assert before <= max(slots(pool(order, urgent=urgent, bulk=bulk, bulk_s=6.0 * slower)).values())


# Predicting


def pickups(seen: PoolView) -> dict[str, float]:
    decision, _ = decide(seen, Memory(target_workers=10), now_s=NOW_S)
    return {each.queue: round(each.predicted_pickup_s, 2) for each in decision.member_pickups}


def test_the_wait_of_each_queue_is_predicted_by_the_order() -> None:
    up = {"running_workers": 10, "assigned_workers": 10, "workers_max": 10}
    # Ten slots are idle: the 51st urgent job starts after 41 others of 0.1 s, in tens.
    # Before the 601st of bulk, 650 of 5.55 s on average.
    assert pickups(pool(STRICT, **up)) == {"redis/urgent": 0.41, "redis/bulk": 355.51}
    # 50 urgent jobs and 51 of bulk come first, of 3.08 s on average: (102 − 10) ÷ 10 of them.
    assert pickups(pool(IN_TURN, **up)) == {"redis/urgent": 28.33, "redis/bulk": 355.51}
    assert pickups(pool(None, **up))["redis/urgent"] == pickups(pool(BY_ARRIVAL, **up))["redis/urgent"] > 300


def test_jobs_that_workers_have_keep_their_slots_from_a_new_job() -> None:
    seen = pool(STRICT, running_workers=10, assigned_workers=10, workers_max=10)
    urgent, bulk = seen.queues
    at_work = replace(seen, queues=(urgent, replace(bulk, in_flight_jobs=10)))
    # Before the 51st urgent job 50 of 0.1 s and ten of 6 s, 1.083 s on average: (61 − 10) ÷ 10 of them.
    assert pickups(at_work)["redis/urgent"] == pytest.approx(5.525, abs=0.01)


def test_a_pool_with_one_queue_has_no_prediction_beside_that_of_the_pool() -> None:
    decision, _ = decide(view(queue(waiting_jobs=3), running_workers=1), Memory(), now_s=NOW_S)
    assert decision.member_pickups == ()
    assert decision.predicted_pickup_s == 3.0


def test_a_decision_keeps_its_order_and_predictions_when_it_is_stored() -> None:
    decision, _ = decide(pool(IN_TURN, running_workers=3), Memory(), now_s=NOW_S)
    assert len(decision.member_pickups) == 2
    stored = from_mapping(Decision, to_mapping(decision))
    assert (stored.queue_order, stored.member_pickups) == (IN_TURN, decision.member_pickups)


def test_explain_says_the_order_and_judges_each_queue_by_its_own_objective() -> None:
    decision, _ = decide(pool(IN_TURN, running_workers=10), Memory(target_workers=10), now_s=NOW_S)
    said = explained(decision)
    assert "Its workers take jobs from the queues in turn." in said
    (urgent,) = [each for each in said if each.startswith("A job of redis/urgent")]
    (bulk,) = [each for each in said if each.startswith("A job of redis/bulk")]
    assert "too late: 99 % are to start within 5 s" in urgent
    assert "in time: 99 % are to start within 10 min" in bulk
    unknown, _ = decide(pool(None, running_workers=10), Memory(target_workers=10), now_s=NOW_S)
    assert any("in an unknown order" in each for each in explained(unknown))


# Separate pools


def separated(seen: PoolView) -> tuple[Note, ...]:
    return separate_pools(seen.profile, ordered(seen), times_of(seen), slots_per_worker=seen.slots_per_worker)


def test_a_pool_that_cannot_keep_an_objective_for_its_order_is_to_be_separated() -> None:
    (note,) = separated(pool(IN_TURN))
    assert note.text == (
        "separate pools: redis/urgent, whose jobs are to start within 5 s, shares its workers with redis/bulk (6 s a "
        "job), and they take jobs from the queues in turn: 50 of its jobs need 102 slots here and 2 in a pool of its "
        "own; workers_max=20 allows 20 here"
    )
    decision, _ = decide(pool(IN_TURN), Memory(), now_s=NOW_S)
    assert decision.note_of(NoteKind.SEPARATE_POOLS) == note.text


@pytest.mark.parametrize(
    ("why", "values"),
    [
        ("urgent comes first", {"order": STRICT}),
        ("enough workers are allowed", {"order": IN_TURN, "workers_max": 102}),
        ("bulk is short", {"order": IN_TURN, "bulk_s": 0.1}),
        ("it would need more in a pool of its own", {"order": IN_TURN, "urgent": 5_000}),
        ("nothing else waits, and nothing comes", {"order": IN_TURN, "bulk": 0}),
        # Bulk comes after the urgent jobs, and needs 6 slots for its 600 of 6 s in 10 min, and 1 for those in front.
        ("apart both need as many", {"order": STRICT, "workers_max": 6}),
    ],
)
def test_a_pool_stays_whole_where_separation_does_not_help(why: str, values: dict[str, Any]) -> None:
    assert separated(pool(**values)) == (), why


def test_jobs_that_another_objective_lets_wait_count_as_waiting() -> None:
    quiet = pool(IN_TURN, urgent=0, bulk=0)
    urgent, bulk = quiet.queues
    members = (replace(urgent, arrival_rate_per_s=4.0), replace(bulk, arrival_rate_per_s=1.0))
    (note,) = separated(replace(quiet, queues=members))  # 20 urgent ones in 5 s, and bulk may leave 600
    assert "20 of its jobs need 41 slots here and 1 in a pool of its own" in note.text


@pytest.mark.parametrize(
    ("order", "ranked", "said"),
    [
        (STRICT, ("urgent", "bulk"), []),
        (STRICT, ("bulk", "urgent"), ["only while the earlier ones are empty"]),
        (IN_TURN, (), ["from the queues in turn"]),
        (None, (), ["in an unknown order"]),
    ],
)
def test_a_profile_without_a_load_is_judged_by_the_order_alone(
    order: QueueOrder | None, ranked: tuple[str, ...], said: list[str]
) -> None:
    remarks = order_remarks(pool(order).profile, order, ranked)
    assert [words in remark for words, remark in zip(said, remarks, strict=True)] == [True] * len(said)
    assert all(
        "pool 'mail': redis/urgent, " in remark and not remark.startswith("separate pools: ") for remark in remarks
    )


def test_queues_with_one_objective_may_share_a_pool_in_any_order() -> None:
    same = profile(queues=("redis/a", "redis/b"))
    assert all(order_remarks(same, order) == () for order in (None, *QueueOrder))
