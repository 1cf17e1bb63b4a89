"""Jobs that a worker has taken and not begun: they wait, and no other worker can have them."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.scaling.decide import decide
from headway.scaling.explain import explained
from headway.scaling.metrics.newest_sample import TOGETHER_S, with_newest
from headway.scaling.metrics.sampling_instant import RecentStarts, counted
from headway.scaling.model import Arrivals, Decision, Memory, QueueMetrics, QueueSample
from headway.scaling.reading.sample_age import aged
from headway.scaling.view import PoolView
from support.pools import NOW_S, queue, view

TICK_S = 5.0


def taken(in_flight_jobs: int, reserved_jobs: int | None, **values: Any) -> QueueMetrics:
    return queue(in_flight_jobs=in_flight_jobs, reserved_jobs=reserved_jobs, **values)


def pool(*queues: QueueMetrics, workers: int = 1, **values: Any) -> PoolView:
    """Workers of four slots."""
    return view(*queues, slots_per_worker=4, running_workers=workers, assigned_workers=workers, **values)


def wanted(seen: PoolView, *, target_workers: int = 1) -> Decision:
    return decide(seen, Memory(target_workers=target_workers), now_s=NOW_S)[0]


def test_sixteen_jobs_prefetched_by_one_worker_ask_for_no_other() -> None:
    """Four run and twelve are reserved; read as sixteen that run, they would be four workers."""
    seen = pool(taken(16, 12, oldest_age_s=8.0))
    decision = wanted(seen)
    assert decision.target_workers == 1
    said = "In its queue no job waits, 4 jobs are running, 12 jobs are reserved and not begun (the oldest for 8 s)"
    assert any(sentence.startswith(said) for sentence in explained(decision))
    assert wanted(pool(taken(16, None, oldest_age_s=8.0))).target_workers == 4


def test_the_age_of_what_is_reserved_goes_on_rising_and_nothing_goes_down_while_it_is_overdue() -> None:
    memory, ages_s = Memory(target_workers=3), []
    for number in range(6):
        at_s = NOW_S + TICK_S * number
        reserved = taken(16, 12, oldest_age_s=TICK_S * number - 1 if number else 0.0, sampled_at_s=max(NOW_S, at_s - 1))
        decision, memory = decide(pool(reserved, workers=3), memory, now_s=at_s)
        (seen,) = decision.metrics
        ages_s.append(seen.oldest_age_s)
        assert decision.target_workers <= 3
    assert ages_s == [0.0, 5.0, 10.0, 15.0, 20.0, 25.0]
    assert decision.target_workers == 1 or decision.binding == "hold_overdue"


def test_a_worker_that_has_begun_none_of_its_jobs_stays() -> None:
    assert wanted(pool(taken(12, 12, oldest_age_s=0.1))).target_workers == 1


def test_jobs_that_wait_come_after_the_reserved_ones() -> None:
    """One worker starts 4 x 8.5 s of jobs of 1 s in time. With 30 reserved, few of 20 that wait are among them."""
    free = pool(taken(4, 0, waiting_jobs=20, oldest_age_s=5.0))
    behind = pool(taken(34, 30, waiting_jobs=20, oldest_age_s=5.0))
    assert wanted(behind).target_workers > wanted(free).target_workers


@given(
    running_jobs=st.integers(0, 40),
    reserved_jobs=st.integers(0, 200),
    waiting_jobs=st.integers(0, 200),
    age_s=st.floats(0, 60),
)
def test_more_reserved_jobs_never_lower_a_target(
    running_jobs: int, reserved_jobs: int, waiting_jobs: int, age_s: float
) -> None:
    known = {"waiting_jobs": waiting_jobs, "oldest_age_s": age_s}
    less = pool(taken(running_jobs + reserved_jobs, reserved_jobs, **known), workers=10)
    more = pool(taken(running_jobs + reserved_jobs + 5, reserved_jobs + 5, **known), workers=10)
    assert wanted(more, target_workers=0).target_workers >= wanted(less, target_workers=0).target_workers


@given(running_jobs=st.integers(0, 4), reserved_jobs=st.integers(1, 500), age_s=st.floats(0, 1_000))
def test_what_only_its_worker_can_run_starts_no_other(running_jobs: int, reserved_jobs: int, age_s: float) -> None:
    assert wanted(pool(taken(running_jobs + reserved_jobs, reserved_jobs, oldest_age_s=age_s))).target_workers == 1


def test_workers_that_start_are_not_taken_for_ready_because_jobs_are_reserved() -> None:
    there = counted([taken(16, 12)], RecentStarts(), running_workers=1, starting_workers=3, slots_per_worker=4)
    assert (there.running_workers, there.starting_workers) == (1, 3)


def test_what_is_reserved_ages_between_samples_and_its_bound_with_it() -> None:
    seen = aged(taken(16, 12, oldest_age_s=3.0, oldest_age_max_s=4.0), now_s=NOW_S + 2)
    assert (seen.oldest_age_s, seen.oldest_age_max_s) == (5.0, 6.0)


def test_deadlines_count_with_the_greatest_age_that_is_possible() -> None:
    """20 jobs beside one busy slot, of 10 s: at 2 s old there is time to wait for the next evaluation, at 9 s none."""
    exact = view(queue(waiting_jobs=20, in_flight_jobs=1, oldest_age_s=2.0), running_workers=1)
    bound = replace(exact, queues=(replace(exact.queues[0], oldest_age_max_s=9.0),))
    assert wanted(exact).target_workers == 1
    assert wanted(bound).target_workers > 1
    assert any("the oldest for 2 s to 9 s" in sentence for sentence in explained(wanted(bound)))


# What the newest sample says beside depths


def sample(**values: Any) -> QueueSample:
    return QueueSample(**{"queue": "redis/mail", "at_s": NOW_S + 1, "waiting_jobs": 3, **values})


@pytest.mark.parametrize(
    ("said", "changes"),
    [
        ({}, {}),
        ({"reserved_jobs": 0, "in_flight_jobs": 9}, {}),
        ({"reserved_jobs": 5, "in_flight_jobs": 16}, {"reserved_jobs": 5, "in_flight_mean_jobs": 2.0}),
        ({"reserved_jobs": 50, "in_flight_jobs": 50}, {"reserved_jobs": 16, "in_flight_mean_jobs": 0.0}),  # none runs
        ({"reserved_jobs": 50, "in_flight_jobs": 57}, {"reserved_jobs": 9, "in_flight_mean_jobs": 0.0}),  # 7 run
        ({"reserved_jobs": 2, "in_flight_jobs": 18}, {}),  # both were reserved after the rows: all 16 run
        ({"reserved_jobs": 5}, {}),  # nobody knows how many of the 16 run
        ({"oldest_age_s": 7.0, "oldest_age_max_s": 9.0}, {"oldest_age_max_s": 8.0}),  # as wide, at the rows' time
        ({"oldest_age_s": 7.0, "oldest_age_max_s": 6.0}, {"oldest_age_max_s": 6.0}),
        ({"reserved_jobs": 5, "in_flight_jobs": 16, "at_s": NOW_S + TOGETHER_S + 1}, {}),  # of another moment
        ({"oldest_age_max_s": 9.0, "at_s": NOW_S + TOGETHER_S + 1}, {}),
        ({"reports_arrivals": True, "reports_starts": True, "reports_ends": True}, {}),
        (
            {"reports_arrivals": False, "reports_starts": True, "reports_ends": True},
            {
                "arrived_jobs": None,
                "retried_jobs": None,
                "arrival_rate_per_s": None,
                "retry_rate_per_s": None,
                "arrival_trend_per_s2": None,
                "arrived_until_s": None,
                "arrivals": (),
                "has_unknown_rates": True,
            },
        ),
        (
            {"reports_ends": False},
            {"completion_rate_per_s": None, "failure_rate_per_s": None, "has_unknown_rates": True},
        ),
    ],
)
def test_rows_get_what_the_newest_sample_says(said: dict[str, Any], changes: dict[str, Any]) -> None:
    known = queue(
        waiting_jobs=3,
        in_flight_jobs=16,
        in_flight_mean_jobs=7.0,
        oldest_age_s=6.0,
        arrivals=(Arrivals(jobs=3, ended_ago_s=2.0),),
        arrived_until_s=NOW_S,
    )
    found = with_newest(known, sample(**said))
    assert found == replace(known, **changes)
    assert (found is known) == (not changes)


@given(rows_jobs=st.integers(0, 40), in_flight_jobs=st.none() | st.integers(0, 40), reserved_jobs=st.integers(0, 40))
def test_jobs_that_were_reserved_after_the_rows_hide_no_job_that_runs(
    rows_jobs: int, in_flight_jobs: int | None, reserved_jobs: int
) -> None:
    """As many run as ran at the sample, or all that the rows have in flight, whichever is less."""
    known = sample(in_flight_jobs=in_flight_jobs, reserved_jobs=reserved_jobs)
    found = with_newest(queue(in_flight_jobs=rows_jobs), known)
    ran_jobs = rows_jobs if in_flight_jobs is None else max(0, in_flight_jobs - reserved_jobs)
    assert found.running_jobs is not None
    assert min(rows_jobs, ran_jobs) <= found.running_jobs <= rows_jobs


def test_busy_workers_stay_while_rows_lag_behind_what_they_reserved() -> None:
    """Two workers have a job each, in the rows; since then each has reserved another."""
    rows = queue(in_flight_jobs=2, sampled_at_s=NOW_S - 3.0)
    seen = with_newest(rows, sample(waiting_jobs=0, in_flight_jobs=4, reserved_jobs=2, at_s=NOW_S))
    at_work = view(seen, running_workers=2, assigned_workers=2, idle_workers=0)
    assert wanted(at_work, target_workers=2).target_workers == 2


def test_a_source_that_reports_every_event_has_rates_of_nothing_where_nothing_came() -> None:
    silent = QueueMetrics(queue="redis/mail", sampled_at_s=NOW_S, waiting_jobs=3, has_unknown_rates=True)
    found = with_newest(silent, sample(reports_arrivals=True, reports_starts=True, reports_ends=True))
    assert not found.has_unknown_rates
    assert (found.arrival_rate_per_s, found.start_rate_per_s, found.completion_rate_per_s) == (0.0, 0.0, 0.0)
    partly = with_newest(silent, sample(reports_starts=True))
    assert partly.has_unknown_rates
    assert (partly.arrival_rate_per_s, partly.start_rate_per_s) == (None, 0.0)


def test_a_queue_that_was_never_seen_gets_nothing() -> None:
    unseen = QueueMetrics(queue="redis/mail")
    assert with_newest(unseen, sample(reserved_jobs=3)) is unseen
    assert with_newest(queue(), None) == queue()
