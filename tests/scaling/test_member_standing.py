"""Pre-warmed workers for members whose own objective is shorter than a reaction: for their jobs, and for no others."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.scaling.decide import decide
from headway.scaling.model import Decision, Memory, Objective, QueueMetrics, QueueOrder
from headway.scaling.reading.pool_times import exposed_members, exposed_s, times_of
from headway.scaling.view import TICK_S, PoolView
from support.pools import NOW_S, profile, queue, view

URGENT, BULK = "redis/urgent", "redis/bulk"
SHORT, LONG = Objective(target_s=5.0), Objective(target_s=900.0)


def urgent(**values: Any) -> QueueMetrics:
    return queue(**{"queue": URGENT, **values})


def bulk(**values: Any) -> QueueMetrics:
    return queue(**{"queue": BULK, "service_time_s": 60.0, **values})


def shared(*queues: QueueMetrics, **values: Any) -> PoolView:
    """Starts in 4 s and is evaluated every 5 s: too late for 5 s, in time for 900 s."""
    names = tuple(each.queue for each in queues)
    own = {URGENT: SHORT} if BULK in names else {}
    objective = LONG if BULK in names else SHORT
    policy = profile(queues=names, objective=objective, member_objectives=own)
    return view(*queues, **{"profile": policy, "start_up_s": 4.0, **values})


def alone(urgent_jobs: QueueMetrics, **values: Any) -> PoolView:
    return shared(urgent_jobs, **values)


def evaluated(pool: PoolView, memory: Memory, *, tick: int) -> tuple[Decision, Memory]:
    now_s = NOW_S + TICK_S * tick
    queues = tuple(replace(each, sampled_at_s=now_s, arrived_until_s=now_s) for each in pool.queues)
    return decide(replace(pool, queues=queues), memory, now_s=now_s)


def standing(decision: Decision) -> float:
    return next((each.slots for each in decision.demands if each.name == "standing"), 0.0)


def after(ticks: int, pool: PoolView) -> Decision:
    """The decision once nothing of ``pool`` has changed for so many evaluations."""
    memory = Memory()
    for tick in range(ticks):
        decision, memory = evaluated(pool, memory, tick=tick)
    return decision


ARRIVING = {"arrived_jobs": 2, "arrival_rate_per_s": 0.4, "start_rate_per_s": 0.4}


def test_a_member_with_a_short_objective_pre_warms_the_pool_as_one_alone_does() -> None:
    pool = shared(urgent(**ARRIVING), bulk())
    assert exposed_s(pool.profile, times_of(pool)) == 5.0 + 4.0 + 0.5 - 5.0
    assert [each.queue for each in exposed_members(pool.profile, pool.queues, times_of(pool))] == [URGENT]
    of_pool, of_member = after(20, pool), after(20, alone(urgent(**ARRIVING)))
    assert standing(of_pool) == standing(of_member) >= 1
    assert of_pool.target_workers == of_member.target_workers


def test_arrivals_of_other_members_pre_warm_nothing() -> None:
    rush = {"arrived_jobs": 500, "arrival_rate_per_s": 100.0, "start_rate_per_s": 100.0, "service_time_s": 0.01}
    quiet = after(20, shared(urgent(**ARRIVING), bulk()))
    assert standing(after(20, shared(urgent(**ARRIVING), bulk(**rush)))) == standing(quiet)


def test_nothing_stands_where_reacting_is_soon_enough_for_every_member() -> None:
    pool = shared(urgent(**ARRIVING), bulk(), start_up_s=0.0, tick_s=1.0)
    assert exposed_s(pool.profile, times_of(pool)) == 0.0
    assert not any(each.name == "standing" for each in after(3, pool).demands)


@pytest.mark.parametrize("order", [None, QueueOrder.STRICT])
def test_slots_that_take_jobs_of_other_members_do_not_stand_for_a_short_objective(order: QueueOrder | None) -> None:
    """Each of the two idle workers takes a job of a minute before the next urgent one comes, whatever the order."""
    without = after(20, shared(urgent(**ARRIVING), bulk()))
    about_to_work = shared(
        urgent(**ARRIVING), bulk(waiting_jobs=2), running_workers=2, queue_order=order, strict_queues=("urgent", "bulk")
    )
    assert standing(after(20, about_to_work)) == 2 + standing(without)


def test_busy_slots_of_other_members_start_no_urgent_job() -> None:
    """The urgent jobs make the pool's mean service time a second; the slots are busy for a minute each."""
    urgent_jobs = urgent(**ARRIVING, completion_rate_per_s=0.4)
    busy = shared(urgent_jobs, bulk(in_flight_jobs=10, completion_rate_per_s=0.001), running_workers=10)
    assert standing(after(20, busy)) == 10 + standing(after(20, shared(urgent_jobs, bulk())))


JOBS = st.integers(0, 30)
SEEN = st.tuples(JOBS, JOBS, JOBS, JOBS, JOBS, JOBS)


@given(seen=st.lists(SEEN, min_size=1, max_size=6), running=st.integers(0, 40))
def test_a_pool_never_stands_for_less_than_a_member_alone(seen: list[tuple[int, ...]], running: int) -> None:
    together, apart = Memory(), Memory()
    for tick, (arrived, waiting, in_flight, others_arrived, others_waiting, others_in_flight) in enumerate(seen):
        jobs = urgent(
            arrived_jobs=arrived, arrival_rate_per_s=arrived / 5, waiting_jobs=waiting, in_flight_jobs=in_flight
        )
        others = bulk(
            arrived_jobs=others_arrived,
            arrival_rate_per_s=others_arrived / 5,
            waiting_jobs=others_waiting,
            in_flight_jobs=others_in_flight,
        )
        ours, together = evaluated(shared(jobs, others, running_workers=running), together, tick=tick)
        theirs, apart = evaluated(alone(jobs, running_workers=running), apart, tick=tick)
        assert standing(ours) >= standing(theirs)
        assert ours.target_workers >= theirs.target_workers
