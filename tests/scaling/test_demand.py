import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.scaling.demands.deadlines import Due, backlog_drain, ceiling_slots, standing, supply, waiting
from headway.scaling.demands.needs import LATE_S, Coming, Need, Supply, need
from headway.scaling.model import Arrivals, Objective
from headway.scaling.reading.busy_slots import slots_of
from headway.scaling.reading.pool_times import PoolTimes, exposed_s, times_of
from support.pools import NOW_S, profile, queue, view


def given_supply(**values: object) -> Supply:
    """Nothing that works, is free or comes, jobs of 1 s and starts of 1 s, but for ``values``."""
    plain = {"busy_slots": 0, "idle_slots": 0, "coming": (), "completions_per_s": 0.0, "cycle_s": 1.0, "caution": 0.0}
    return Supply(**{**plain, "start_up_s": 1.0, "tick_s": 5.0, **values})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("busy", "idle", "within_s", "service_s", "kept", "new"),
    [
        (0, 0, 9.0, 1.0, 0, 3),  # a new slot is up after 1 s and starts 1 + 8: 24 / 9
        (2, 0, 9.0, 1.0, 0, 1),  # the two at work get done with 9 each: (24 − 18) / 9
        (4, 0, 9.0, 1.0, 0, 0),  # 36 is more than enough
        (6, 0, 2.0, 1.0, 0, 4),  # 12 get done, and a new slot starts 1 + 2: 12 / 3
        (6, 0, 1.0, 1.0, 0, 6),  # 6 get done: 18 / 3
        (6, 0, -50.0, 1.0, 0, 6),  # long past the breach: the same
        (0, 3, 9.0, 1.0, 3, 0),  # an idle slot starts 1 + 9: three would start 30
        (0, 2, 9.0, 1.0, 2, 1),  # two start 20, four are left
        (0, 9, 9.0, 1.0, 3, 0),  # and six of nine may go
        (0, 0, 9.0, 70.0, 0, 24),  # jobs longer than what is left: one a slot
        (0, 0, 9.0, math.inf, 0, 24),  # nothing has finished yet: one a slot
    ],
)
def test_jobs_ask_for_the_slots_that_start_them_in_time(
    busy: int, idle: int, within_s: float, service_s: float, kept: int, new: int
) -> None:
    there = given_supply(busy_slots=busy, idle_slots=idle, completions_per_s=busy / service_s, cycle_s=service_s)
    assert need(24.0, within_s, there, start_up_s=1.0) == Need(kept_slots=kept, new_slots=new)


def test_workers_that_start_already_are_reckoned_with_from_when_they_are_up() -> None:
    there = given_supply(coming=(Coming(slots=2, ready_in_s=3.0),))
    assert need(24.0, 9.0, there, start_up_s=1.0).new_slots == 2  # two start 2 × (1 + 6) = 14, then 10 / 9
    assert need(24.0, 2.0, there, start_up_s=1.0).new_slots == 8  # they are up too late: 24 / (1 + 2)


def test_caution_reckons_with_fewer_completions_than_expected() -> None:
    bold, wary = (given_supply(completions_per_s=4.0, caution=caution) for caution in (0.0, 1.0))
    assert bold.deadline(0.0, 4.0).started_jobs == 16.0
    assert wary.deadline(0.0, 4.0).started_jobs == 12.0  # 16 − √16
    assert wary.deadline(0.0, 0.1).started_jobs == 0.0  # never less than none


def test_only_jobs_that_cannot_wait_for_the_next_evaluation_ask_for_workers_now() -> None:
    # a worker asked for at the next look is up in 6 s
    assert backlog_drain([Due(jobs=5, within_s=6.0)], given_supply(), slots_max=100) == Need()
    assert backlog_drain([Due(jobs=5, within_s=5.9)], given_supply(), slots_max=100).new_slots == 1
    # what can wait is behind what cannot, and asks for nothing
    due = [Due(jobs=1, within_s=1.0), Due(jobs=50, within_s=7.0)]
    assert backlog_drain(due, given_supply(), slots_max=100).new_slots == 1


def test_jobs_that_are_due_later_come_behind_those_that_are_due_sooner() -> None:
    due = [Due(jobs=5, within_s=3.0), Due(jobs=11, within_s=4.0)]
    found = backlog_drain(due, given_supply(), slots_max=100)
    assert found.new_slots == 4  # by 3 s 5 / (1 + 2) → 2, by 4 s 16 / (1 + 3)


@pytest.mark.parametrize(
    ("within_s", "new"),
    [
        (6.0, 8),  # 40 / (1 + 4)
        (4.5, 14),  # 40 / (1 + ⌊2.5⌋)
        (3.0, 14),  # up after 2 s, and it has 2 s more for those that it would not start in time one by one
        (1.9, 14),  # no new slot starts one in time: none gets one of its own
        (-500.0, 14),
    ],
)
def test_jobs_that_are_late_anyway_get_no_slot_each(within_s: float, new: int) -> None:
    assert need(40.0, within_s, given_supply(), start_up_s=2.0) == Need(new_slots=new)


def test_late_jobs_that_take_longer_than_that_get_one_each() -> None:
    assert need(7.0, -9.0, given_supply(cycle_s=LATE_S + 0.1), start_up_s=2.0).new_slots == 7


def test_waiting_jobs_are_the_newest_arrivals_and_the_oldest_come_first() -> None:
    came = (Arrivals(jobs=3, ended_ago_s=0.0), Arrivals(jobs=4, ended_ago_s=5.0), Arrivals(jobs=9, ended_ago_s=10.0))
    due = waiting(queue(waiting_jobs=5, oldest_age_s=8.0, arrivals=came), target_s=10.0, slow_start_s=0.5, tick_s=5.0)
    # margin 0.5 + 0.5 s: two of the four are left and are 8 s old, three are at most 5 s old
    assert due == (Due(jobs=2, within_s=1.0), Due(jobs=3, within_s=4.0))


def test_jobs_that_no_arrivals_explain_are_as_old_as_the_oldest() -> None:
    due = waiting(queue(waiting_jobs=5, oldest_age_s=7.0), target_s=10.0, slow_start_s=0.5, tick_s=5.0)
    assert due == (Due(jobs=5, within_s=2.0),)


@pytest.mark.parametrize(
    ("finished_per_s", "in_flight_mean", "per_s"),
    [
        (1.0, 2.0, 2.0),  # half a job a second and slot, × 4
        (8.0, 2.0, 4.0),  # four: more than jobs of 1 s allow, × 4
        (0.0, 2.0, 0.0),  # nothing got done of late
        (None, None, 4.0),  # not known: what the mean service time promises
    ],
)
def test_completions_are_those_seen_or_those_the_mean_promises_whichever_is_less(
    finished_per_s: float | None, in_flight_mean: float | None, per_s: float
) -> None:
    busy = queue(in_flight_jobs=4, completion_rate_per_s=finished_per_s, in_flight_mean_jobs=in_flight_mean)
    assert (
        supply(
            busy, slots_of(view(running_workers=4)), PoolTimes(overhead_s=0.0), coming=(), caution=0.0
        ).completions_per_s
        == per_s
    )


@pytest.mark.parametrize(
    ("start_up_s", "target_s", "exposed"),
    [
        (2.0, 10.0, 0.0),  # 5 + 2 + 0.5 fit
        (8.0, 10.0, 3.5),  # 5 + 8 + 0.5 − 10
        (30.0, 30.0, 5.5),
    ],
)
def test_only_jobs_that_reacting_comes_too_late_for_are_exposed(
    start_up_s: float, target_s: float, exposed: float
) -> None:
    pool = view(start_up_s=start_up_s, profile=profile(objective=Objective(target_s=target_s)))
    assert exposed_s(pool.profile, times_of(pool)) == pytest.approx(exposed)


def test_nothing_stands_where_reacting_is_soon_enough() -> None:
    quick = exposed_s(view(start_up_s=2.0).profile, times_of(view(start_up_s=2.0)))
    rush = {"waiting_jobs": 0, "target_s": 10.0, "arrivals_per_tick": 50.0, "spare_jobs": 50.0}
    assert standing(given_supply(start_up_s=2.0), exposed_s=quick, **rush) == Need()


def test_standing_slots_start_what_may_come_before_a_worker_could_be_up() -> None:
    slow = exposed_s(view(start_up_s=8.0).profile, times_of(view(start_up_s=8.0)))
    long_jobs = given_supply(idle_slots=2, cycle_s=1000.0, start_up_s=8.0)
    rush = {"waiting_jobs": 0, "target_s": 10.0, "arrivals_per_tick": 10.0, "spare_jobs": 3.0}
    # 3.5 s of 5 s × 10 = 7 jobs and 3 to spare, one a slot
    assert standing(long_jobs, exposed_s=slow, **rush) == Need(kept_slots=2, new_slots=8)


COUNTS = st.integers(0, 10**5)
SECONDS = st.floats(0, 1e4)
SUPPLIES = st.builds(
    Supply,
    busy_slots=COUNTS,
    idle_slots=COUNTS,
    coming=st.lists(st.builds(Coming, slots=st.integers(0, 100), ready_in_s=st.floats(0, 60)), max_size=3).map(tuple),
    completions_per_s=st.floats(0, 1e4),
    cycle_s=st.floats(0.001, 1e4),
    caution=st.floats(0, 4),
)


@given(jobs=st.floats(0, 1e6), more=st.floats(0, 1e6), within_s=st.floats(-1e4, 1e4), there=SUPPLIES, up_s=SECONDS)
def test_more_jobs_never_ask_for_less(jobs: float, more: float, within_s: float, there: Supply, up_s: float) -> None:
    fewer, greater = (need(count, within_s, there, start_up_s=up_s) for count in (jobs, jobs + more))
    assert greater.kept_slots >= fewer.kept_slots
    assert greater.new_slots >= fewer.new_slots


@given(jobs=st.floats(0, 1e6), within_s=st.floats(-1e4, 1e4), older_s=SECONDS, there=SUPPLIES, up_s=SECONDS)
def test_less_time_never_asks_for_less(
    jobs: float, within_s: float, older_s: float, there: Supply, up_s: float
) -> None:
    """Waiting longer never lowers a demand, in particular not through the breach (law 1)."""
    early, late = (need(jobs, left_s, there, start_up_s=up_s) for left_s in (within_s, within_s - older_s))
    assert late.slots >= early.slots


@given(jobs=st.floats(0, 1e6), within_s=st.floats(-1e4, 1e4), there=SUPPLIES, up_s=SECONDS)
def test_a_need_is_never_negative_and_keeps_no_more_than_is_idle(
    jobs: float, within_s: float, there: Supply, up_s: float
) -> None:
    found = need(jobs, within_s, there, start_up_s=up_s)
    assert 0 <= found.kept_slots <= there.idle_slots
    assert found.new_slots >= 0


@pytest.mark.parametrize(("capacity_workers", "slots"), [(None, 40), (3, 6), (30, 40)])
def test_the_ceiling_is_what_profile_and_hosts_both_have_room_for(capacity_workers: int | None, slots: int) -> None:
    pool = view(profile=profile(workers_max=20), slots_per_worker=2, capacity_workers=capacity_workers)
    assert ceiling_slots(pool, NOW_S) == slots
