"""A pool at zero with a threshold: for how many jobs it sleeps on, and for how long at most."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.scaling.decide import decide
from headway.scaling.explain import explained
from headway.scaling.model import Memory, Objective, QueueMetrics, QueueSample
from headway.scaling.view import PoolView
from support.pools import NOW_S, held, profile, queue, view

ASLEEP = held(0)
HOUR = Objective(target_s=3600.0)


def seen(*members: QueueMetrics, **values: Any) -> PoolView:
    plain = {"activation_jobs": 5, "objective": HOUR, "queues": tuple(member.queue for member in members)}
    return replace(view(*members), profile=profile(**{**plain, **values}))


def target(pool: PoolView, memory: Memory = ASLEEP) -> int:
    return decide(pool, memory, now_s=NOW_S)[0].target_workers


@pytest.mark.parametrize(
    ("threshold", "waiting_jobs", "in_flight_jobs", "wakes"),
    [
        (0, 1, 0, True),  # the default: the first job
        (5, 0, 0, False),
        (5, 1, 0, False),
        (5, 5, 0, False),
        (5, 6, 0, True),  # more than, not as many
        (5, 3, 3, True),  # work that was taken and has not ended is work (law 5)
        (5, 3, 2, False),
    ],
)
def test_a_pool_at_zero_wakes_for_more_jobs_than_the_threshold(
    threshold: int, waiting_jobs: int, in_flight_jobs: int, wakes: bool
) -> None:
    member = queue(waiting_jobs=waiting_jobs, in_flight_jobs=in_flight_jobs, oldest_age_s=1.0 * bool(waiting_jobs))
    assert bool(target(seen(member, activation_jobs=threshold))) is wakes


def test_the_jobs_of_all_queues_of_the_pool_count() -> None:
    mail, news = (queue(queue=name, waiting_jobs=3, oldest_age_s=1.0) for name in ("redis/mail", "redis/news"))
    assert target(seen(mail, news)) == 1
    assert target(seen(mail, replace(news, waiting_jobs=2))) == 0


@pytest.mark.parametrize(("waited_s", "wakes"), [(59.0, False), (60.0, True), (4_000.0, True)])
def test_the_threshold_yields_when_a_job_has_waited_for_as_long_as_the_profile_says(
    waited_s: float, wakes: bool
) -> None:
    member = queue(waiting_jobs=1, oldest_age_s=waited_s)
    assert bool(target(seen(member, activation_wait_s=60.0))) is wakes


@pytest.mark.parametrize(
    ("target_s", "waited_s", "wakes"),
    [
        (300.0, 292.9, False),  # 300 − tick 5 − start-up 1.5 × 1 − 0.5: 293 s may pass
        (300.0, 293.0, True),
        (30.0, 22.9, False),
        (30.0, 23.0, True),
        (7.0, 0.0, True),  # nothing is left to wait: the threshold holds nothing back
    ],
)
def test_without_a_bound_of_its_own_a_job_waits_as_long_as_its_objective_lets_it(
    target_s: float, waited_s: float, wakes: bool
) -> None:
    member = queue(waiting_jobs=1, oldest_age_s=waited_s)
    assert bool(target(seen(member, objective=Objective(target_s=target_s)))) is wakes


def test_the_wait_before_scaling_up_is_taken_off_what_a_job_may_wait() -> None:
    member = queue(waiting_jobs=1, oldest_age_s=273.0)
    patient = {"hold_up_s": 20.0, "objective": Objective(target_s=300.0)}
    _, held_back = decide(seen(replace(member, oldest_age_s=272.9), **patient), ASLEEP, now_s=NOW_S)
    _, after = decide(seen(member, **patient), ASLEEP, now_s=NOW_S)
    assert (held_back.held_since_s, after.held_since_s) == (NOW_S, None)


def test_nothing_is_held_since_while_no_job_is_there() -> None:
    """An exposed pool wants somebody to stand; the threshold keeps it at zero, and no job's time runs."""
    idle = replace(seen(queue(arrival_rate_per_s=1.0), activation_wait_s=60.0), start_up_s=9_000.0)
    decision, after = decide(idle, ASLEEP, now_s=NOW_S)
    assert (decision.target_workers, decision.binding, after.held_since_s) == (0, "activation", None)


def test_a_members_own_objective_counts_for_its_jobs() -> None:
    mail = queue(queue="redis/mail", waiting_jobs=1, oldest_age_s=30.0)
    news = queue(queue="redis/news", waiting_jobs=1, oldest_age_s=30.0)
    tight = {"redis/news": Objective(target_s=30.0)}
    assert target(seen(mail, replace(news, waiting_jobs=0, oldest_age_s=0.0), member_objectives=tight)) == 0
    assert target(seen(replace(mail, waiting_jobs=0, oldest_age_s=0.0), news, member_objectives=tight)) == 1


@pytest.mark.parametrize("of_pool", [{"running_workers": 1}, {"starting_workers": 1}, {"assigned_workers": 1}])
def test_a_pool_that_has_anybody_is_awake(of_pool: dict[str, int]) -> None:
    pool = replace(seen(queue(waiting_jobs=1, oldest_age_s=1.0)), **of_pool)
    assert target(pool) == 1
    assert target(seen(queue(waiting_jobs=1, oldest_age_s=1.0)), held(1)) == 1


def test_a_floor_starts_workers_whatever_waits() -> None:
    assert target(seen(queue(waiting_jobs=1), workers_min=2)) == 2


def test_where_the_age_is_not_known_the_time_counts_from_when_the_jobs_were_held_back() -> None:
    """No job waits for ever for others to come, whatever its broker reports. The count is in the stored memory."""
    targets, memory = [], ASLEEP
    for number in range(15):
        now_s = NOW_S + 5.0 * number
        member = queue(waiting_jobs=1, oldest_age_s=None, sampled_at_s=now_s)
        decision, memory = decide(seen(member, activation_wait_s=60.0), memory, now_s=now_s)
        targets.append(decision.target_workers)
    assert targets[:13] == [0] * 12 + [1]


def test_nothing_is_remembered_of_a_pool_that_holds_nothing_back() -> None:
    _, after = decide(seen(queue()), replace(ASLEEP, held_since_s=NOW_S - 9), now_s=NOW_S)
    assert after.held_since_s is None


def test_readings_round_the_pipeline_count_while_metrics_are_stale() -> None:
    old = queue(waiting_jobs=1, oldest_age_s=0.0, sampled_at_s=NOW_S - 30)
    flood = QueueSample(queue=old.queue, at_s=NOW_S, waiting_jobs=6, in_flight_jobs=0, oldest_age_s=1.0)
    assert target(seen(old)) == 0
    assert target(replace(seen(old), direct=(flood,))) == 1


def test_what_was_held_back_holds_nothing_up_later() -> None:
    """A want that was not followed is no ground to keep workers."""
    _, memory = decide(seen(queue(waiting_jobs=5, oldest_age_s=1.0), hold_down_s=60.0), ASLEEP, now_s=NOW_S)
    assert memory.wanted == ()


def test_the_decision_says_why_nobody_is_started() -> None:
    member = queue(waiting_jobs=1, oldest_age_s=1.0)
    decision, _ = decide(seen(member, activation_wait_s=60.0), ASLEEP, now_s=NOW_S)
    assert (decision.target_workers, decision.binding) == (0, "activation")
    assert "at zero, the pool wakes for more than 5 jobs, or for one that has waited 60 s" in decision.notes
    sentences = explained(decision)
    assert "Too few jobs wait to wake the pool from zero: none of 1 starts yet." in sentences


@pytest.mark.parametrize(
    ("values", "note"),
    [
        (
            {"activation_wait_s": 600.0, "objective": Objective(target_s=10.0)},
            "activation_wait_s=600 lets a job at zero start after 606 s, of 10 s",
        ),
        ({"objective": Objective(target_s=7.0)}, "activation_jobs=5 holds nothing back: 7 s leave no time to wait"),
        ({"activation_wait_s": 600.0}, None),
        ({}, None),
    ],
)
def test_a_threshold_that_costs_the_objective_or_does_nothing_is_reported(
    values: dict[str, Any], note: str | None
) -> None:
    notes = decide(seen(queue(), **values), ASLEEP, now_s=NOW_S)[0].notes
    assert [each for each in notes if each.startswith("activation")] == ([note] if note else [])


@given(
    waiting_jobs=st.integers(0, 12),
    age_s=st.floats(0, 400),
    more_jobs=st.integers(0, 12),
    longer_s=st.floats(0, 400),
    wait_s=st.none() | st.floats(0, 300),
    start_up_s=st.floats(0.1, 60),
    target_s=st.floats(5, 300),
)
def test_more_jobs_or_longer_waits_never_lower_the_target(
    waiting_jobs: int,
    age_s: float,
    more_jobs: int,
    longer_s: float,
    wait_s: float | None,
    start_up_s: float,
    target_s: float,
) -> None:
    """Law 1, of the count itself, exposed pools included."""
    values = {"activation_wait_s": wait_s, "objective": Objective(target_s=target_s)}

    def of(jobs: int, oldest_s: float) -> int:
        pool = seen(queue(waiting_jobs=jobs, oldest_age_s=oldest_s if jobs else 0.0), **values)
        return target(replace(pool, start_up_s=start_up_s))

    assert of(waiting_jobs + more_jobs, age_s + longer_s) >= of(waiting_jobs, age_s)
