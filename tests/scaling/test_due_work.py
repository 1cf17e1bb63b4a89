"""Workers stand ready for work that is due later, and nobody before."""

import math
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.scaling.decide import decide
from headway.scaling.decisions.bottlenecks import UNMOVED, bottlenecks_of
from headway.scaling.demands.due_work import due_work
from headway.scaling.demands.needs import Need, Supply, need
from headway.scaling.demands.trust import slow_start_s
from headway.scaling.model import DelayedJobs, Memory, Objective, QueueMetrics
from headway.scaling.profile import Profile
from headway.scaling.reading.busy_slots import slots_of
from headway.scaling.reading.plateau import do_jobs_wait_beside_idle_slots
from headway.scaling.reading.pool_times import times_of
from headway.scaling.view import PoolView

NOW_S = 1000.0


def view(
    *, delayed: Sequence[tuple[int, float]], start_up_s: float = 4.0, target_s: float = 10.0, **of_view
) -> PoolView:
    queue = QueueMetrics(
        queue="redis/mail",
        sampled_at_s=NOW_S,
        waiting_jobs=of_view.pop("waiting_jobs", 0),
        overdue_jobs=of_view.pop("overdue_jobs", 0),
        in_flight_jobs=of_view.pop("in_flight_jobs", 0),
        oldest_age_s=of_view.pop("oldest_age_s", 0.0),
        service_time_s=of_view.pop("service_time_s", 1.0),
        delayed_jobs=sum(jobs for jobs, _ in delayed),
        delayed=tuple(DelayedJobs(jobs=jobs, due_in_s=due_in_s) for jobs, due_in_s in delayed),
    )
    profile = Profile(
        pool="mail",
        queues=("redis/mail",),
        template="mail",
        workers_min=0,
        workers_max=100,
        objective=Objective(target_s=target_s, percentile=99.0),
    )
    return PoolView(profile=profile, queues=(queue,), start_up_s=start_up_s, capacity_workers=100, **of_view)


def target(seen: PoolView) -> int:
    decision, _ = decide(seen, Memory(), now_s=NOW_S)
    return decision.target_workers


def test_a_pool_at_zero_wakes_so_that_its_worker_is_up_when_the_job_is_due() -> None:
    assert [target(view(delayed=[(1, due_in_s)])) for due_in_s in (150.0, 15.0, 9.1, 8.9, 1.0, -3.0)] == [
        0, 0, 0, 1, 1, 1,
    ]  # fmt: skip


def test_what_a_worker_can_start_within_the_objective_needs_no_second_one() -> None:
    assert target(view(delayed=[(5, 8.0)])) == 1
    assert target(view(delayed=[(50, 2.0)])) == 7


def test_jobs_that_are_due_together_take_a_slot_each_where_they_are_long() -> None:
    assert target(view(delayed=[(7, 1.0)], service_time_s=60.0)) == 7
    assert target(view(delayed=[(4, 0.5), (3, 1.0)], service_time_s=60.0)) == 7


def test_long_jobs_are_not_prepared_for_before_the_last_moment() -> None:
    """A slot starts one of them either way: the later it is asked for, the less it idles."""
    assert target(view(delayed=[(7, 6.0)], service_time_s=60.0)) == 1


@pytest.mark.parametrize(
    ("seen", "slots"),
    [
        ({}, [1, 0]),
        ({"running_workers": 0, "idle_workers": 0}, [1, 0]),
        ({"waiting_jobs": 1}, [1, 1]),
        ({"in_flight_jobs": 1}, [1, 1]),
    ],
    ids=["on its way", "no worker", "waits", "runs"],
)
def test_a_worker_stays_for_a_job_that_was_due_and_shows_nowhere(seen: dict[str, int], slots: list[int]) -> None:
    """RabbitMQ moves a message from one queue of Celery's delayed delivery to the next: a poll may find it in none."""
    idle = {"running_workers": 1, "assigned_workers": 1, "idle_workers": 1}
    _, memory = decide(view(delayed=[(1, 2.0)], **idle), Memory(), now_s=NOW_S)
    found = []
    for now_s in (NOW_S + 5.0, NOW_S + 10.0):
        gone = view(delayed=[], **{**idle, **seen})
        gone = replace(gone, queues=(replace(gone.queues[0], sampled_at_s=now_s),))
        decision, memory = decide(gone, memory, now_s=now_s)
        found.append(max(demand.slots for demand in decision.demands))
    assert found == slots


def test_a_job_that_shows_is_not_on_its_way_as_well() -> None:
    busy = {"running_workers": 1, "assigned_workers": 1, "idle_workers": 0, "busy_workers": 1, "service_time_s": 60.0}
    _, memory = decide(view(delayed=[(1, 2.0)], **busy, in_flight_jobs=0), Memory(), now_s=NOW_S)
    began = view(delayed=[], **busy, in_flight_jobs=1)
    began = replace(began, queues=(replace(began.queues[0], sampled_at_s=NOW_S + 5.0),))
    decision, _ = decide(began, memory, now_s=NOW_S + 5.0)
    assert decision.target_workers == 1


def test_due_jobs_start_within_the_objective_of_their_own_queue() -> None:
    seen = view(delayed=[(7, 1.0)], service_time_s=60.0)
    own = replace(seen.profile, member_objectives={"redis/mail": Objective(target_s=900.0)})
    assert (target(seen), target(replace(seen, profile=own))) == (7, 1)


def test_due_jobs_of_a_strict_queue_do_not_wait_as_those_of_a_loose_one_may() -> None:
    seen = view(delayed=[(7, 1.0)], service_time_s=60.0)
    shared = replace(
        seen.profile,
        queues=("redis/mail", "redis/bulk"),
        objective=Objective(target_s=900.0),
        member_objectives={"redis/mail": seen.profile.objective},
    )
    bulk = replace(seen.queues[0], queue="redis/bulk", delayed_jobs=0, delayed=())
    assert target(replace(seen, profile=shared, queues=(*seen.queues, bulk))) == 7


def test_jobs_that_are_due_one_after_the_other_share_a_slot() -> None:
    assert target(view(delayed=[(1, each) for each in (1.0, 3.0, 5.0, 7.0)])) == 1


def test_an_idle_worker_stays_for_what_is_due_soon() -> None:
    idle = {"running_workers": 3, "assigned_workers": 3, "idle_workers": 3, "busy_workers": 0}
    assert target(view(delayed=[(3, 20.0)], service_time_s=60.0, **idle)) == 3
    decision, _ = decide(view(delayed=[(3, 3000.0)], service_time_s=60.0, **idle), Memory(), now_s=NOW_S)
    assert max(demand.slots for demand in decision.demands) == 0


def test_a_decision_names_the_reason() -> None:
    decision, _ = decide(view(delayed=[(3, 4.0)]), Memory(), now_s=NOW_S)
    assert decision.binding == "due_work"


def test_what_waits_takes_its_part_of_the_slots() -> None:
    nobody = Supply(busy_slots=0, idle_slots=0, coming=(), completions_per_s=0.0, cycle_s=60.0, caution=1.0)
    assert slots(view(delayed=[(10, 1.0)]), nobody) == 10
    assert slots(view(delayed=[(10, 1.0)], waiting_jobs=7), nobody) == 17


@pytest.mark.parametrize(("from_s", "jobs"), [(0.0, 10.0), (5.0, 10.0), (10.0, 10.0), (15.0, 5.0)])
def test_jobs_that_are_reserved_take_no_start_from_jobs_that_are_due_once_they_have_begun(
    from_s: float, jobs: float
) -> None:
    """A slot ends a job per second: by 10 s, the reserved ones have begun."""
    busy = Supply(
        busy_slots=1, idle_slots=0, coming=(), completions_per_s=1.0, cycle_s=1.0, caution=0.0, reserved_jobs=10
    )
    assert busy.deadline(0.0, 20.0, from_s=from_s).started_jobs == jobs


def test_a_busy_slot_starts_no_job_before_it_is_due() -> None:
    busy = Supply(busy_slots=1, idle_slots=0, coming=(), completions_per_s=1.0, cycle_s=1.0, caution=0.0)
    assert need(15.0, 20.0, busy, start_up_s=20.0) == Need()
    assert need(15.0, 20.0, busy, start_up_s=20.0, from_s=10.0, late_s=0.0) == Need(new_slots=5)


def test_an_idle_slot_starts_no_job_before_it_is_due() -> None:
    idle = Supply(busy_slots=0, idle_slots=9, coming=(), completions_per_s=0.0, cycle_s=5.0, caution=0.0)
    assert need(5.0, 20.0, idle, start_up_s=1.0) == Need(kept_slots=1)  # at 0, 5, 10, 15 and 20 s
    assert need(5.0, 20.0, idle, start_up_s=1.0, from_s=10.0) == Need(kept_slots=2)  # at 10, 15 and 20 s


COHORTS = st.lists(st.tuples(st.integers(1, 50), st.floats(-20.0, 200.0)), min_size=1, max_size=6).map(
    lambda found: sorted(found, key=lambda each: each[1])
)
VIEWS = st.fixed_dictionaries(
    {
        "start_up_s": st.floats(0.1, 60.0),
        "target_s": st.floats(1.0, 120.0),
        "waiting_jobs": st.integers(0, 50),
        "service_time_s": st.none() | st.floats(0.01, 100.0),
    }
)
SUPPLIES = st.builds(
    Supply,
    busy_slots=st.integers(0, 10),
    idle_slots=st.integers(0, 10),
    coming=st.just(()),
    completions_per_s=st.floats(0.0, 20.0),
    cycle_s=st.floats(0.01, 100.0) | st.just(math.inf),
    caution=st.just(1.0),
    reserved_jobs=st.integers(0, 10),
)


def slots(seen: PoolView, given_supply: Supply) -> int:
    target_s = seen.profile.objective.target_s
    slow_s = slow_start_s(seen.profile, times_of(seen))
    given_supply = replace(given_supply, start_up_s=times_of(seen).start_up_s, tick_s=seen.tick_s)
    return due_work(seen.queues[0], given_supply, target_s=target_s, slow_start_s=slow_s, price_s=36.0).slots


@given(COHORTS, VIEWS, SUPPLIES, st.integers(0, 5), st.integers(1, 50))
def test_more_that_is_due_never_asks_for_less(
    delayed: list[tuple[int, float]], of_view: dict, supply: Supply, place: int, more: int
) -> None:
    place %= len(delayed)
    grown = [(jobs + more * (index == place), due_in_s) for index, (jobs, due_in_s) in enumerate(delayed)]
    assert slots(view(delayed=grown, **of_view), supply) >= slots(view(delayed=delayed, **of_view), supply)


@given(COHORTS, VIEWS, SUPPLIES)
def test_nobody_is_asked_for_before_a_worker_is_of_use(
    delayed: list[tuple[int, float]], of_view: dict, supply: Supply
) -> None:
    seen = view(delayed=delayed, **of_view)
    if delayed[0][1] >= seen.tick_s + seen.start_up_s:
        none_idle = replace(supply, idle_slots=0)
        assert slots(seen, none_idle) == 0


@given(COHORTS, VIEWS, SUPPLIES)
def test_more_that_waits_never_asks_for_less(delayed: list[tuple[int, float]], of_view: dict, supply: Supply) -> None:
    more = of_view | {"waiting_jobs": of_view["waiting_jobs"] + 7}
    assert slots(view(delayed=delayed, **more), supply) >= slots(view(delayed=delayed, **of_view), supply)


@pytest.mark.parametrize("service_time_s", [0.2, 5.0])
@pytest.mark.parametrize("due_in_s", [0.0, 1.0])
def test_a_worker_asked_for_now_starts_them_in_time(due_in_s: float, service_time_s: float) -> None:
    """What is asked for suffices: so many slots, up after the start-up, begin each job in time."""
    jobs, start_up_s, target_s = 40, 4.0, 10.0
    workers = target(view(delayed=[(jobs, due_in_s)], service_time_s=service_time_s))
    free_s = [max(start_up_s, due_in_s)] * workers
    latest_s = 0.0
    for _ in range(jobs):
        free_s.sort()
        latest_s = max(latest_s, free_s[0])
        free_s[0] += service_time_s
    assert latest_s <= due_in_s + target_s


NOBODY_MOVES = (
    "no worker of template 'mail' moves scheduled jobs of redis/mail into the queue when they are due: "
    "add --with-scheduler to its argv"
)


@pytest.mark.parametrize(
    ("seen", "is_said"),
    [
        (view(delayed=[(1, 150.0)], leaves_due_jobs=True), True),
        (view(delayed=[(1, 150.0)]), False),
        (view(delayed=[], waiting_jobs=3, overdue_jobs=3, leaves_due_jobs=True), True),
        (view(delayed=[], waiting_jobs=3, overdue_jobs=3), False),
        (view(delayed=[], leaves_due_jobs=True), False),
        # Jobs that wait for a moment, as between two polls: none was scheduled.
        (view(delayed=[], waiting_jobs=3, running_workers=2, idle_workers=2, leaves_due_jobs=True), False),
    ],
    ids=[
        "due later",
        "moved",
        "due",
        "to be moved",
        "none delayed",
        "waiting beside idle workers",
    ],
)
def test_a_pool_says_that_no_worker_moves_what_is_due(seen: PoolView, is_said: bool) -> None:
    decision, _ = decide(seen, Memory(), now_s=NOW_S)
    assert (NOBODY_MOVES in decision.notes) is is_said


LATE = {"waiting_jobs": 100, "overdue_jobs": 100, "oldest_age_s": 60.0}


@pytest.mark.parametrize(
    ("seen", "workers"),
    [
        (view(delayed=[], **LATE), 50),  # two a slot: its workers are about to move them
        (view(delayed=[], **LATE, leaves_due_jobs=True), 0),
        (
            view(delayed=[], **{**LATE, "waiting_jobs": 103}, leaves_due_jobs=True),
            2,
        ),  # for three that stand in the queue
        (view(delayed=[(100, 2.0)]), 13),
        (view(delayed=[(100, 2.0)], leaves_due_jobs=True), 1),  # something else may move them
    ],
)
def test_jobs_that_no_worker_moves_when_they_are_due_start_none(seen: PoolView, workers: int) -> None:
    assert target(seen) == workers


def test_late_jobs_that_no_worker_can_get_keep_none() -> None:
    idle = view(delayed=[], **LATE, leaves_due_jobs=True, running_workers=3, assigned_workers=3, idle_workers=3)
    decision, _ = decide(idle, Memory(target_workers=3), now_s=NOW_S)
    assert decision.target_workers == 0
    assert decision.metrics[0].waiting_jobs == 100, "shown as they wait"


@pytest.mark.parametrize(("leaves_due_jobs", "is_plateau"), [(True, False), (False, True)])
def test_late_jobs_that_no_worker_can_get_are_no_plateau(leaves_due_jobs: bool, is_plateau: bool) -> None:
    idle = view(delayed=[], **LATE, leaves_due_jobs=leaves_due_jobs, running_workers=3, idle_workers=3)
    queue = replace(idle.queues[0], start_rate_per_s=0.0)
    assert do_jobs_wait_beside_idle_slots(queue, idle, slots_of(idle)) is is_plateau


@pytest.mark.parametrize(
    ("seen", "is_one"),
    [
        (view(delayed=[], **LATE, leaves_due_jobs=True), True),
        (view(delayed=[], **{**LATE, "oldest_age_s": 5.0}, leaves_due_jobs=True), False),
        (view(delayed=[], **LATE), False),
        (view(delayed=[(100, 2.0)], leaves_due_jobs=True), False),
    ],
    ids=["late", "due a moment ago", "moved", "due later"],
)
def test_due_jobs_that_nobody_moves_are_a_bottleneck(seen: PoolView, is_one: bool) -> None:
    decision, _ = decide(seen, Memory(), now_s=NOW_S)
    assert (UNMOVED in bottlenecks_of(decision)) is is_one
    assert bottlenecks_of(replace(decision, notes=())) == bottlenecks_of(decision), "whatever the words of its notes"


@given(jobs=st.integers(0, 50), overdue_jobs=st.integers(0, 50), more=st.integers(0, 50))
def test_more_due_jobs_never_ask_for_less(jobs: int, overdue_jobs: int, more: int) -> None:
    def workers(overdue_jobs: int) -> int:
        waiting = {"waiting_jobs": jobs + overdue_jobs, "overdue_jobs": overdue_jobs, "oldest_age_s": 60.0}
        return target(view(delayed=[], **waiting, leaves_due_jobs=True))

    assert workers(overdue_jobs + more) >= workers(overdue_jobs)
