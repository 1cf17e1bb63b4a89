import math
from dataclasses import asdict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.scaling.metrics.rolling_estimate import ROLLING_SERVICE_MEMORY_S, ROLLING_WINDOW_S, RecentSpans, Span
from headway.scaling.model import Arrivals, QueueMetrics
from support.pools import NOW_S

TARGET_S, TICK_S = 10.0, 5.0
QUIET: dict[str, Any] = {
    "arrived_jobs": 0,
    "started_jobs": 0,
    "finished_jobs": 0,
    "service_sum_s": 0.0,
    "pickup_max_s": None,
    "waiting_jobs": 0,
    "in_flight_jobs": 0,
    "oldest_age_s": None,
}


def watched(*spans: dict[str, Any]) -> QueueMetrics:
    """What is known after so many observations, a tick apart. What a span does not say did not happen."""
    recent = RecentSpans(target_s=TARGET_S, tick_s=TICK_S)
    for tick, values in enumerate(spans):
        recent.take(Span(**{"ended_at_s": NOW_S + TICK_S * tick, **QUIET, **values}))
    return recent.metrics("redis/mail")


def rates(*spans: dict[str, Any]) -> tuple[float | None, ...]:
    seen = watched(*spans)
    return seen.arrival_rate_per_s, seen.start_rate_per_s, seen.completion_rate_per_s


def test_arrivals_that_come_back_are_counted_apart() -> None:
    seen = watched({"arrived_jobs": 9, "retried_jobs": 6}, {"arrived_jobs": 3, "retried_jobs": 1})
    assert (seen.arrived_jobs, seen.retried_jobs, seen.fresh_jobs) == (3, 1, 2)
    assert (seen.arrival_rate_per_s, seen.retry_rate_per_s, seen.fresh_rate_per_s) == (1.2, 0.7, 0.5)
    assert watched({"arrived_jobs": 9, "retried_jobs": 6}, *[{}] * 12).retry_rate_per_s == 0.0


BURST = {"arrived_jobs": 60, "started_jobs": 30, "finished_jobs": 15}


@pytest.mark.parametrize(
    ("quiet_samples", "expected"),
    [
        (0, (12.0, 6.0, 3.0)),  # watched for one tick: 60 in 5 s
        (1, (6.0, 3.0, 1.5)),  # for two: 60 in 10 s
        (11, (1.0, 0.5, 0.25)),  # for a whole window: 60 in 60 s
        (12, (0.0, 0.0, 0.0)),  # the burst has left the window
    ],
)
def test_rates_are_over_the_window_or_for_as_long_as_was_watched(
    quiet_samples: int, expected: tuple[float, ...]
) -> None:
    assert rates(BURST, *[{}] * quiet_samples) == expected


def test_a_steady_rate_is_reported_as_it_is_at_any_time() -> None:
    for samples in (1, 2, 12, 13, 100):
        assert rates(*[BURST] * samples) == (12.0, 6.0, 3.0)


def test_the_newest_span_is_reported_by_itself() -> None:
    seen = watched({"arrived_jobs": 7}, {"arrived_jobs": 2})
    assert (seen.arrived_jobs, seen.arrived_until_s) == (2, NOW_S + TICK_S)


def test_jobs_in_flight_count_for_as_long_as_they_were() -> None:
    # 0 → 4 in 5 s is 2 on average, 4 → 4 is 4: 2 × 5 + 4 × 5 slot seconds in 10 s
    assert watched({"in_flight_jobs": 4}, {"in_flight_jobs": 4}).in_flight_mean_jobs == pytest.approx(3.0)


def test_the_service_time_is_not_known_until_a_job_has_finished() -> None:
    assert watched({"started_jobs": 3, "in_flight_jobs": 3}).service_time_s is None
    assert watched({"finished_jobs": 2, "service_sum_s": 8.0}, {}, {}).service_time_s == 4.0


def test_service_times_are_remembered_longer_than_rates_and_fade() -> None:
    recent = RecentSpans(target_s=TARGET_S, tick_s=TICK_S)
    recent.take(Span(**{"ended_at_s": NOW_S, **QUIET, "finished_jobs": 2, "service_sum_s": 8.0}))
    later = {"ended_at_s": NOW_S + ROLLING_SERVICE_MEMORY_S, **QUIET, "finished_jobs": 2, "service_sum_s": 2.0}
    recent.take(Span(**later))
    # (8 ÷ e + 2) ÷ (2 ÷ e + 2)
    assert recent.metrics("q").service_time_s == pytest.approx((8 / math.e + 2) / (2 / math.e + 2))


def test_waiting_jobs_are_the_newest_arrivals() -> None:
    seen = watched({"arrived_jobs": 5, "waiting_jobs": 5}, {"arrived_jobs": 3, "waiting_jobs": 4})
    # eight came and four are gone, the oldest first: one of the five is left
    assert seen.arrivals == (Arrivals(jobs=3, ended_ago_s=0.0), Arrivals(jobs=1, ended_ago_s=5.0))


def test_jobs_that_waited_before_anyone_watched_are_among_no_arrivals() -> None:
    seen = watched({"arrived_jobs": 2, "waiting_jobs": 50}, {"waiting_jobs": 40}, {"waiting_jobs": 1})
    assert seen.arrivals == (Arrivals(jobs=1, ended_ago_s=10.0),)  # one of the two at last, when the others are gone
    assert watched({"arrived_jobs": 2, "waiting_jobs": 0}).arrivals == ()


def test_arrivals_that_are_overdue_are_not_distinguished() -> None:
    stuck = [{"arrived_jobs": 3, "waiting_jobs": 3}, {"arrived_jobs": 2, "waiting_jobs": 5}, {"waiting_jobs": 5}]
    assert [arrivals.jobs for arrivals in watched(*stuck).arrivals] == [2, 3]  # 10 s, the objective, is not over it
    assert [arrivals.jobs for arrivals in watched(*stuck, {"waiting_jobs": 5}).arrivals] == [2]
    freed = watched(*stuck, {"waiting_jobs": 5}, {"waiting_jobs": 1})
    assert freed.arrivals == ()  # of the two that came later, one is left, and it is overdue too


def test_waiting_goes_on_while_what_was_seen_is_on_its_way() -> None:
    recent = RecentSpans(target_s=TARGET_S, tick_s=TICK_S)
    recent.take(Span(**{"ended_at_s": NOW_S, **QUIET, "arrived_jobs": 3, "waiting_jobs": 3}))
    assert recent.metrics("q", now_s=NOW_S + 4.0).arrivals == (Arrivals(jobs=3, ended_ago_s=4.0),)


@pytest.mark.parametrize(
    ("pickup_max_s", "late_jobs"),
    [
        (None, 0.0),
        (10.0, 0.0),  # in time
        (12.0, 4.0),  # of ten that came evenly within 5 s, those of the first 2 s
        (15.0, 10.0),  # all of them
        (18.0, 16.0),  # all of them, and the first 3 s of the ten that came next
        (60.0, 20.0),
    ],
)
def test_late_jobs_are_estimated_from_the_longest_wait(pickup_max_s: float | None, late_jobs: float) -> None:
    """Ten jobs came in each of the first two spans, and all of them were started in the last."""
    seen = watched(
        {"arrived_jobs": 10, "waiting_jobs": 10},
        {"arrived_jobs": 10, "waiting_jobs": 20},
        {"waiting_jobs": 20},
        {"started_jobs": 20, "pickup_max_s": pickup_max_s},
    )
    assert (seen.late_rate_per_s or 0.0) * seen.window_s == pytest.approx(late_jobs)


def test_jobs_that_still_wait_are_not_late_yet() -> None:
    seen = watched(
        {"arrived_jobs": 10, "waiting_jobs": 10}, {"started_jobs": 1, "waiting_jobs": 9, "pickup_max_s": 60.0}
    )
    assert (seen.late_rate_per_s or 0.0) * seen.window_s == pytest.approx(1.0)


def test_late_jobs_leave_the_window_like_all_others() -> None:
    late = ({"arrived_jobs": 4, "waiting_jobs": 4}, {"started_jobs": 4, "pickup_max_s": 30.0})
    assert watched(*late, *[{}] * 11).late_rate_per_s == pytest.approx(4 / ROLLING_WINDOW_S)
    assert watched(*late, *[{}] * 12).late_rate_per_s == 0.0


def test_an_observation_that_comes_late_counts_for_the_time_that_has_passed() -> None:
    recent = RecentSpans(target_s=TARGET_S, tick_s=TICK_S)
    recent.take(Span(**{"ended_at_s": NOW_S, **QUIET, "in_flight_jobs": 2}))
    recent.take(Span(**{"ended_at_s": NOW_S + 25.0, **QUIET, "in_flight_jobs": 2, "arrived_jobs": 60}))
    seen = recent.metrics("q")
    assert seen.arrival_rate_per_s == 2.0  # 60 in 5 + 25 s
    assert seen.in_flight_mean_jobs == pytest.approx((1 * 5 + 2 * 25) / 30)


JOBS = st.integers(0, 500)
SPANS = st.lists(
    st.fixed_dictionaries(
        {
            "arrived_jobs": JOBS,
            "started_jobs": JOBS,
            "finished_jobs": JOBS,
            "service_sum_s": st.floats(0, 1e5),
            "pickup_max_s": st.none() | st.floats(0, 1e4),
            "waiting_jobs": JOBS,
            "in_flight_jobs": JOBS,
        }
    ),
    min_size=1,
    max_size=30,
)


@given(spans=SPANS)
def test_whatever_is_seen_nothing_is_negative_or_not_a_number(spans: list[dict[str, Any]]) -> None:
    """Also of spans that cannot be: more starts than arrivals, depths from nowhere."""
    for name, value in asdict(watched(*spans)).items():
        if isinstance(value, int | float):
            assert 0.0 <= value < math.inf, name


@given(spans=SPANS)
def test_no_more_arrivals_wait_than_jobs_and_the_newest_come_first(spans: list[dict[str, Any]]) -> None:
    seen = watched(*spans)
    assert sum(arrivals.jobs for arrivals in seen.arrivals) <= (seen.waiting_jobs or 0)
    ages_s = [arrivals.ended_ago_s for arrivals in seen.arrivals]
    assert ages_s == sorted(ages_s)
    assert all(arrivals.jobs > 0 for arrivals in seen.arrivals)


@given(spans=SPANS, longer_s=st.floats(0, 1e4))
def test_a_longer_wait_never_makes_fewer_late(spans: list[dict[str, Any]], longer_s: float) -> None:
    *earlier, last = spans
    slower = {**last, "pickup_max_s": (last["pickup_max_s"] or 0.0) + longer_s}
    before, after = watched(*earlier, last).late_rate_per_s, watched(*earlier, slower).late_rate_per_s
    assert before is not None
    assert after is not None
    assert after >= before - 1e-9
