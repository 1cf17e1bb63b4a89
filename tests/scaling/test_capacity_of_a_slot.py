"""What a slot really starts: service time, dispatch between two jobs, and long jobs that come in one batch."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.scaling.decide import decide
from headway.scaling.demands.deadlines import Due, backlog_drain
from headway.scaling.demands.needs import Need, Supply
from headway.scaling.measure import BATCH_JOBS, batch_mean_s
from headway.scaling.model import Memory, Objective
from headway.scaling.reading.busy_slots import slots_of
from headway.scaling.reading.pool_times import DISPATCH_GUESS_S, PoolTimes, times_of
from support.pools import NOW_S, held, profile, queue, view

TICK_S = 5.0


# Dispatch


def test_a_slot_starts_one_job_a_cycle() -> None:
    instant = queue(service_time_s=0.002)
    assert PoolTimes(overhead_s=0.034).cycle_s(instant) == pytest.approx(0.036)
    assert PoolTimes().cycle_s(instant) == pytest.approx(0.002 + DISPATCH_GUESS_S)


def test_an_overdue_backlog_of_instant_jobs_never_lowers_the_target() -> None:
    """20,000 jobs of 2 ms, the oldest overdue; workers seem idle in most samples, and each starts 28 jobs/s."""
    memory, targets = held(8), []
    for tick, in_flight in enumerate([3, 0, 5, 1, 8, 0, 2]):
        now_s = NOW_S + TICK_S * tick
        jobs = queue(
            sampled_at_s=now_s,
            waiting_jobs=20_000 - tick * 8 * 28 * 5,
            in_flight_jobs=in_flight,
            oldest_age_s=71.0 + tick,
            service_time_s=0.002,
            completion_rate_per_s=224.0,
            start_rate_per_s=224.0,
        )
        pool = view(jobs, running_workers=8, dispatch_overhead_s=0.034, profile=profile(workers_max=20))
        decision, memory = decide(pool, memory, now_s=now_s)
        targets.append(decision.target_workers)
    assert targets == sorted(targets)
    assert targets[0] == 20  # 2 s left after a start-up: 20,000 ÷ (1 + 56) is far more than the ceiling


def test_slots_between_two_jobs_are_in_use() -> None:
    """Sixty jobs of 2 ms a second with 28 ms between two keep 1.8 slots in use, and samples show 0.12."""
    steady = queue(in_flight_jobs=0, service_time_s=0.002, start_rate_per_s=60.0, arrived_jobs=300)
    measured = view(steady, running_workers=2, dispatch_overhead_s=0.028)
    assert slots_of(measured).occupied(steady, times_of(measured)) == 2
    assert slots_of(measured).occupied(steady, PoolTimes()) == 0  # what is guessed keeps nobody
    over = queue(in_flight_jobs=0, service_time_s=0.002, start_rate_per_s=60.0, arrived_jobs=0)
    assert slots_of(measured).occupied(over, times_of(measured)) == 0  # nothing comes any more
    assert decide(measured, Memory(), now_s=NOW_S)[0].target_workers == 2


# A batch of long jobs


def test_batches_weigh_as_much_as_their_work() -> None:
    even = [(8, 8 * 1.0)] * 20
    assert batch_mean_s(even) == pytest.approx(1.0)
    blocks = [*[(20, 20 * 0.1)] * 60, (40, 40 * 30.0)]  # 1,200 jobs of 0.1 s, then forty of 30 s
    mean_s = (1200 * 0.1 + 1200) / 1240
    assert batch_mean_s(blocks) == pytest.approx((120 * 0.1 + 1200 * 30.0) / 1320)
    assert (batch_mean_s(blocks) or 0.0) > 25 * mean_s
    assert batch_mean_s([(BATCH_JOBS - 1, 500.0)]) is None  # too few to tell a batch from one long job


@given(ended=st.lists(st.tuples(st.integers(1, 100), st.floats(0.0, 1e4)), min_size=1, max_size=30))
def test_the_mean_by_work_is_never_below_the_mean_of_the_same_jobs(ended: list[tuple[int, float]]) -> None:
    jobs, work_s, left = 0, 0.0, [0, 0.0]
    for count, sum_s in ended:
        left = [left[0] + count, left[1] + sum_s]
        if left[0] >= BATCH_JOBS:
            jobs, work_s, left = jobs + int(left[0]), work_s + left[1], [0, 0.0]
    found = batch_mean_s(ended)
    assert (found is None) == (work_s == 0.0)
    assert found is None or found >= work_s / jobs * (1 - 1e-9)


def test_draining_counts_on_the_batch_and_not_on_the_mean() -> None:
    block = queue(waiting_jobs=40, oldest_age_s=6.5, service_time_s=1.0, service_batch_s=28.0)
    assert PoolTimes(overhead_s=0.0).batch_cycle_s(block) == 28.0
    assert decide(view(block), Memory(), now_s=NOW_S)[0].target_workers == 40
    even = queue(waiting_jobs=40, oldest_age_s=6.5, service_time_s=1.0, service_batch_s=1.0)
    assert decide(view(even), Memory(), now_s=NOW_S)[0].target_workers == 14  # three each


def test_busy_slots_are_free_again_as_late_as_a_batch_makes_them() -> None:
    """Forty slots have a long job each: by the mean 40 would be free a second from now, and 3 are in two."""
    block = queue(waiting_jobs=40, in_flight_jobs=40, oldest_age_s=6.5, service_time_s=1.0, service_batch_s=28.0)
    assert decide(view(block, running_workers=40), held(40), now_s=NOW_S)[0].target_workers == 79
    even = queue(waiting_jobs=40, in_flight_jobs=40, oldest_age_s=6.5, service_time_s=1.0, service_batch_s=1.0)
    assert decide(view(even, running_workers=40), held(40), now_s=NOW_S)[0].target_workers == 40


# What the ceiling leaves no time for


def supply(**values: object) -> Supply:
    nothing = {"busy_slots": 0, "idle_slots": 0, "coming": (), "completions_per_s": 0.0, "cycle_s": 1.0, "caution": 0.0}
    return Supply(**{**nothing, "start_up_s": 1.0, "tick_s": 5.0, **values})  # type: ignore[arg-type]


def test_what_could_wait_asks_at_once_where_the_ceiling_would_be_too_low_at_the_next_evaluation() -> None:
    due = [Due(jobs=60, within_s=9.0)]  # could wait: a worker asked for in 5 s is up in 6
    # In 5 s: 60 ÷ (1 + 3) = 15 slots. Now: 60 ÷ (1 + 8) → 7.
    assert backlog_drain(due, supply(), slots_max=15) == Need()
    assert backlog_drain(due, supply(), slots_max=14) == Need(new_slots=7)
    assert backlog_drain(due, supply(busy_slots=1), slots_max=15) == Need(new_slots=7)  # one place is taken
    assert backlog_drain([Due(jobs=14, within_s=9.0)], supply(), slots_max=14) == Need()  # a slot each will do


# Jobs without time left, and who is about to take them


@given(
    last=st.integers(0, 60),
    waiting=st.integers(1, 10_000),
    late_s=st.floats(0.0, 1e4),
    running=st.integers(0, 60),
    in_flight=st.integers(0, 60),
    service_s=st.none() | st.floats(0.001, 1e3),
    overhead_s=st.none() | st.floats(0.0, 1.0),
)
def test_waiting_jobs_without_time_left_never_lower_a_target(
    last: int,
    waiting: int,
    late_s: float,
    running: int,
    in_flight: int,
    service_s: float | None,
    overhead_s: float | None,
) -> None:
    overdue = queue(
        waiting_jobs=waiting, oldest_age_s=10.0 + late_s, in_flight_jobs=in_flight, service_time_s=service_s
    )
    pool = view(overdue, running_workers=running, dispatch_overhead_s=overhead_s)
    assert decide(pool, held(last), now_s=NOW_S)[0].target_workers >= last


def test_an_idle_worker_and_waiting_jobs_keep_the_worker() -> None:
    """A sample shows five jobs and the worker that is about to take one: it is not dismissed."""
    waiting = queue(waiting_jobs=5, oldest_age_s=1.0, service_time_s=0.1)
    patient = profile(objective=Objective(target_s=60.0))
    assert decide(view(waiting, running_workers=1, profile=patient), held(1), now_s=NOW_S)[0].target_workers == 1


def test_a_member_that_is_overdue_holds_the_pool() -> None:
    urgent = queue(queue="redis/a", waiting_jobs=1, oldest_age_s=3.0)
    calm = queue(queue="redis/b")
    members = profile(queues=("redis/a", "redis/b"), member_objectives={"redis/a": Objective(target_s=2.0)})
    pool = view(urgent, calm, profile=members, running_workers=9)
    decision, _ = decide(pool, held(9), now_s=NOW_S)
    assert (decision.target_workers, decision.binding) == (9, "hold_overdue")
