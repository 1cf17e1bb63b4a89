from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from headway.control.scheduler.bucket_cache import CACHED_S, BucketCache
from headway.scaling.measure import BUCKET_S, RATE_WINDOW_S, BucketRow, queue_metrics
from headway.scaling.model import Objective, QueueMetrics


def row(bucket_s: float, *, queue: str = "redis/mail", waiting_jobs: int = 0, **values: Any) -> BucketRow:
    sampled: dict[str, Any] = {"sampled_at_s": bucket_s + 1, "waiting_jobs": waiting_jobs, "oldest_age_s": 0.0}
    return BucketRow(queue=queue, bucket_s=bucket_s, **{**sampled, **values})


def metrics(recent: BucketCache, *, now_s: float, objective: Objective | None = None) -> QueueMetrics:
    return recent.metrics("redis/mail", now_s=now_s, objective=objective or Objective())


def test_a_newer_version_of_a_bucket_takes_the_place_of_the_older() -> None:
    recent = BucketCache()
    recent.take([row(100.0, arrived_jobs=3)], revision=1)
    assert metrics(recent, now_s=130.0).arrival_rate_per_s == 3 / 60
    recent.take([row(100.0, arrived_jobs=6)], revision=2)
    assert metrics(recent, now_s=130.0).arrival_rate_per_s == 6 / 60
    assert recent.revision == 2
    recent.take([row(100.0)], revision=1)
    assert metrics(recent, now_s=130.0).arrival_rate_per_s == 0
    assert recent.revision == 2


def test_what_came_this_minute_leaves_retries_out() -> None:
    """Also in rows of an earlier version, which may count more retries than came in their span."""
    recent = BucketCache()
    rows = [
        row(60.0, arrived_jobs=5, retried_jobs=3),
        row(65.0, arrived_jobs=1, retried_jobs=4),
        row(55.0, arrived_jobs=9),
    ]
    recent.take(rows, revision=1)
    assert recent.arrived_jobs("redis/mail", from_s=60.0) == 2


def test_the_queues_in_which_jobs_wait_are_named() -> None:
    recent = BucketCache()
    assert recent.take([row(5.0, waiting_jobs=2), row(5.0, queue="redis/idle")], revision=1) == {"redis/mail"}


def test_forgetting_keeps_the_newest_sample_so_that_its_age_is_known() -> None:
    recent = BucketCache()
    recent.take([row(5.0), row(10.0), row(15.0, arrived_jobs=1, sampled_at_s=None, waiting_jobs=None)], revision=1)
    recent.forget(now_s=10.0 + 2 * CACHED_S)
    assert metrics(recent, now_s=10.0 + 2 * CACHED_S).sampled_at_s == 11.0


def test_waits_are_kept_for_the_window_of_the_objective() -> None:
    recent, objective = BucketCache(), Objective(window_s=900.0)
    recent.take([row(0.0, started_jobs=1, pickup_sketch={7: 1})], revision=1)
    measured = metrics(recent, now_s=10.0, objective=objective).pickup_objective_s
    recent.forget(now_s=900.0)
    assert measured is not None
    assert metrics(recent, now_s=900.0, objective=objective).pickup_objective_s == measured
    recent.forget(now_s=905.0)
    assert not recent.rows("redis/mail")


def test_jobs_that_run_for_minutes_are_counted_on_average_by_the_newest_sample() -> None:
    """Nothing has begun or ended, and of the jobs in flight one is gone: its broker has lost it."""
    recent = BucketCache()
    recent.take([row(0.0, started_jobs=2, in_flight_jobs=2)], revision=1)
    assert metrics(recent, now_s=1_000.0).in_flight_mean_jobs == 2.0
    recent.take([row(1_000.0, in_flight_jobs=1)], revision=2)
    assert metrics(recent, now_s=1_005.0).in_flight_mean_jobs == 1.0


def test_a_queue_never_seen_is_unknown_and_not_empty() -> None:
    unknown = metrics(BucketCache(), now_s=1.0)
    assert unknown.sampled_at_s is None
    assert unknown.waiting_jobs is None
    assert unknown.arrival_rate_per_s is None


def test_what_is_known_of_a_quiet_queue_is_not_worked_out_again_until_it_is_read_again() -> None:
    recent = BucketCache()
    recent.take([row(100.0, arrived_jobs=3), row(105.0)], revision=1)
    assert metrics(recent, now_s=130.0) is not metrics(recent, now_s=130.0)  # the window moves on
    quiet = metrics(recent, now_s=1_000.0)
    assert metrics(recent, now_s=1_005.0) is quiet
    assert metrics(recent, now_s=1_005.0, objective=Objective(percentile=50.0)) is not quiet
    recent.take([row(1_000.0, waiting_jobs=1)], revision=2)
    assert metrics(recent, now_s=1_005.0).waiting_jobs == 1


ROWS = st.builds(
    row,
    st.integers(0, 90).map(lambda number: number * BUCKET_S),
    waiting_jobs=st.integers(0, 3),
    arrived_jobs=st.sampled_from([0, 0, 4]),
    finished_jobs=st.sampled_from([0, 0, 2]),
    failed_jobs=st.sampled_from([0, 0, 0, 1]),
    service_sum_s=st.just(0.5),
    service_sketch=st.sampled_from([{}, {}, {3: 2}, {5: 1, 9: 1}]),
    pickup_sketch=st.sampled_from([{}, {}, {1: 3}]),
)
TIMES = st.lists(st.floats(0.0, 900.0), max_size=6).map(sorted)


@given(batches=st.lists(st.lists(ROWS, max_size=8), max_size=5), times=TIMES, window_s=st.floats(1.0, 300.0))
def test_what_is_kept_says_the_same_as_all_rows_of_the_last_minutes_would(
    batches: list[list[BucketRow]], times: list[float], window_s: float
) -> None:
    """Whatever was left out, forgotten or not worked out again."""
    recent, rows = BucketCache(), dict[float, BucketRow]()
    objective = Objective(window_s=window_s)
    for number, now_s in enumerate(times):
        for each in batches[number] if number < len(batches) else []:
            rows[each.bucket_s] = replace(each, service_sum_s=0.5 if each.service_sketch else 0.0)
            recent.take([rows[each.bucket_s]], revision=number)
        recent.forget(now_s=now_s)
        expected = queue_metrics(
            [rows[bucket_s] for bucket_s in sorted(rows)],
            queue="redis/mail",
            now_s=now_s,
            window_s=RATE_WINDOW_S,
            objective=objective,
        )
        assert metrics(recent, now_s=now_s, objective=objective) == expected


def test_a_queue_that_is_gone_for_a_day_is_forgotten() -> None:
    """Some are named after a date."""
    recent = BucketCache()
    for day in range(3):
        recent.take([replace(row(day * 86_400.0, waiting_jobs=1), queue=f"redis/day-{day}")], revision=day)
    recent.forget(now_s=2 * 86_400.0 + 60.0)
    assert set(recent._queues) == {"redis/day-2"}
