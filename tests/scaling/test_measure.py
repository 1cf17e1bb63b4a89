import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.errors import Invalid
from headway.scaling.measure import (
    BucketRow,
    MovingSketch,
    late_jobs,
    merged,
    quantile_s,
    quantiles_s,
    queue_metrics,
    rolled_up,
    sketch_index,
    sketch_value_s,
)
from headway.scaling.metrics.job_totals import within
from headway.scaling.model import Arrivals, EventKind, JobEvent, Objective, QueueSample
from headway.scaling.sketch_edges import EDGES_S, LONGEST_S
from support.defined_rows import bucket_rows

DURATIONS = st.floats(0.001, LONGEST_S) | st.sampled_from(EDGES_S).map(float)


@given(value_s=DURATIONS)
def test_a_sketch_bucket_stands_for_its_values_within_one_percent(value_s: float) -> None:
    assert sketch_value_s(sketch_index(value_s)) == pytest.approx(value_s, rel=0.01)


def test_what_is_shorter_than_a_millisecond_counts_as_one() -> None:
    assert sketch_index(0.0) == sketch_index(0.001)


def test_what_is_longer_than_eight_days_counts_as_that() -> None:
    assert sketch_index(1e12) == sketch_index(8 * 86_400.0)


@pytest.mark.parametrize("edge_s", EDGES_S)
def test_jobs_later_than_a_usual_objective_are_counted_exactly(edge_s: float) -> None:
    """Of 147 waits beyond 10 s, 32 by less than 2 %: all of them are late."""
    in_time_s = [edge_s * (1.0 - 0.0005 * number) for number in range(100)]
    late_s = [math.nextafter(edge_s, math.inf), *(edge_s * (1.0 + 0.0006 * number) for number in range(1, 147))]
    sketch = merged({sketch_index(wait_s): 1} for wait_s in (*in_time_s, *late_s))
    # The logarithm of two durations that differ in the last bit is the same where a bucket ends, which 1 s does.
    expected = 147 if edge_s != 1 else 146
    assert late_jobs(sketch, edge_s) == expected
    assert within(sketch, [edge_s]) == [(edge_s, 247 - expected)]


@pytest.mark.parametrize("edge_s", EDGES_S)
def test_a_duration_beside_an_edge_is_shown_on_its_own_side(edge_s: float) -> None:
    at, beyond = (sketch_value_s(sketch_index(value_s)) for value_s in (edge_s, edge_s * 1.0006))
    assert at <= edge_s < beyond


@given(values_s=st.lists(DURATIONS, min_size=1), edge_s=st.sampled_from(EDGES_S), percentile=st.floats(0.1, 100.0))
def test_a_quantile_is_on_the_side_of_an_edge_that_its_duration_is_on(
    values_s: list[float], edge_s: float, percentile: float
) -> None:
    sketch = merged({sketch_index(value): 1} for value in values_s)
    exact_s = sorted(values_s)[math.ceil(percentile / 100 * len(values_s)) - 1]
    shown_s = quantile_s(sketch, percentile)
    assert shown_s is not None
    if not math.isclose(exact_s, edge_s, rel_tol=1e-9) or exact_s == edge_s:
        assert (shown_s > edge_s) == (exact_s > edge_s)


def test_a_sketch_of_an_earlier_version_merges_and_counts_as_it_did() -> None:
    """Its bucket 117 holds 9.95 to 10.15 s, and was in time for an objective of 10 s."""
    earlier, now = {117: 5, 118: 2, 698: 1}, {sketch_index(wait_s): 1 for wait_s in (9.99, 10.01, 10.2)}
    assert late_jobs(earlier, 10.0) == 3
    assert late_jobs(merged([earlier, now]), 10.0) == 3 + 2
    assert quantile_s(earlier, 50) == pytest.approx(10.05, rel=0.02)
    assert sum(merged([earlier, now]).values()) == 11


@pytest.mark.parametrize("power", [0, 1, 2, 35, -35])
def test_a_round_duration_lies_in_one_sketch_bucket_whatever_the_last_bit(power: int) -> None:
    """Python's logarithm and the JVM's may differ there."""
    value_s = 1.02**power
    assert {sketch_index(math.nextafter(value_s, toward)) for toward in (0.0, math.inf)} == {sketch_index(value_s)}


@given(values_s=st.lists(DURATIONS, min_size=1), percentile=st.sampled_from([50.0, 95.0, 99.0]))
def test_a_quantile_is_the_nearest_rank_within_one_percent(values_s: list[float], percentile: float) -> None:
    sketch = merged({sketch_index(value): 1} for value in values_s)
    exact_s = sorted(values_s)[math.ceil(percentile / 100 * len(values_s)) - 1]
    assert quantile_s(sketch, percentile) == pytest.approx(exact_s, rel=0.01)


@given(first=st.lists(DURATIONS), second=st.lists(DURATIONS))
def test_merging_sketches_is_sketching_everything(first: list[float], second: list[float]) -> None:
    parts = [merged({sketch_index(value): 1} for value in values) for values in (first, second)]
    assert merged(parts) == merged({sketch_index(value): 1} for value in first + second)


def test_nothing_has_no_quantile() -> None:
    assert quantile_s({}, 99) is None


def test_the_newest_sample_of_a_bucket_wins_whatever_the_order() -> None:
    old, new = (QueueSample(queue="q", at_s=at_s, waiting_jobs=jobs) for at_s, jobs in ((1.0, 5), (2.0, 7)))
    assert bucket_rows([new, old])[0].waiting_jobs == 7


def test_a_negative_wait_is_none_at_all() -> None:
    started = JobEvent(queue="q", job_id="1", kind=EventKind.STARTED, at_s=1.0, enqueued_at_s=3.0)
    assert bucket_rows([started])[0].pickup_max_s == 0.0


def row(bucket_s: float, **values: object) -> BucketRow:
    return BucketRow(queue="q", bucket_s=bucket_s, **values)  # type: ignore[arg-type]


def metrics(*rows: BucketRow, now_s: float):
    return queue_metrics(rows, queue="q", now_s=now_s, window_s=60.0, objective=Objective(percentile=50.0))


def test_rates_are_counts_of_the_window_over_its_length() -> None:
    found = metrics(
        row(0.0, arrived_jobs=1_000),  # before the window
        row(45.0, arrived_jobs=30, finished_jobs=12, failed_jobs=6),
        row(100.0, arrived_jobs=30),  # the running bucket counts
        now_s=105.0,
    )
    assert found.arrival_rate_per_s == pytest.approx(1.0)  # 60 / 60 s
    assert found.completion_rate_per_s == pytest.approx(0.3)  # 18 / 60 s
    assert found.failure_rate_per_s == pytest.approx(0.1)  # 6 / 60 s


def test_the_bucket_in_which_the_window_begins_counts_for_the_part_inside() -> None:
    found = metrics(row(40.0, arrived_jobs=20), now_s=102.0)  # of 40–45 s, 42–45 s is inside
    assert found.arrival_rate_per_s == pytest.approx(0.2)  # 20 × 3/5 over 60 s


@given(now_s=st.floats(60.0, 300.0), jobs=st.integers(1, 100))
def test_a_steady_stream_has_its_rate_at_every_moment(now_s: float, jobs: int) -> None:
    """But for the bucket that is running: of it only what has happened can be counted."""
    complete = [row(5.0 * number, arrived_jobs=5 * jobs) for number in range(int(now_s // 5))]
    found = metrics(*complete, row(now_s // 5 * 5, arrived_jobs=int(now_s % 5 * jobs)), now_s=now_s)
    assert found.arrival_rate_per_s == pytest.approx(jobs, abs=1 / 60)


def test_waits_are_of_the_objectives_window() -> None:
    waits = {"pickup_sketch": {sketch_index(8.0): 1}}
    old, new = row(0.0, **waits), row(100.0, pickup_sketch={sketch_index(1.0): 1})
    short = queue_metrics([old, new], queue="q", now_s=110.0, objective=Objective(percentile=95.0, window_s=30.0))
    long = queue_metrics([old, new], queue="q", now_s=110.0, objective=Objective(percentile=95.0, window_s=120.0))
    assert short.pickup_objective_s == short.pickup_p99_s == pytest.approx(1.0, rel=0.01)
    assert long.pickup_objective_s == long.pickup_p99_s == pytest.approx(8.0, rel=0.01)


def test_the_trend_is_the_slope_of_the_complete_buckets() -> None:
    """Arrivals grow by one job each bucket, 0.2/s each 5 s; the running bucket is not a fall."""
    rows = [row(5.0 * number, arrived_jobs=number) for number in range(12)]
    assert metrics(*rows, row(60.0, arrived_jobs=0), now_s=61.0).arrival_trend_per_s2 == pytest.approx(0.04)


def test_a_bucket_without_a_row_is_one_in_which_nothing_arrived() -> None:
    """12 jobs in the last of 12 complete buckets: 27.5 s from the middle × 2.2/s above the mean, over Σ(s²) = 3575."""
    found = metrics(row(55.0, arrived_jobs=12), now_s=60.0)
    assert found.arrival_trend_per_s2 == pytest.approx(27.5 * 2.4 / 3575)


def test_service_time_is_the_mean_of_what_ended() -> None:
    found = metrics(row(50.0, service_sum_s=9.0, service_sketch={100: 2, 120: 1}), now_s=60.0)
    assert found.service_time_s == pytest.approx(3.0)


def test_depths_come_from_the_newest_sampled_bucket() -> None:
    found = metrics(row(50.0, sampled_at_s=51.0, waiting_jobs=4), row(55.0, arrived_jobs=1), now_s=60.0)
    assert (found.sampled_at_s, found.waiting_jobs) == (51.0, 4)


def test_jobs_in_flight_are_averaged_back_from_the_newest_sample() -> None:
    """Four now, and three fewer until a start of three at 72.5 s, the middle of its bucket."""
    sampled = row(95.0, sampled_at_s=99.0, in_flight_jobs=4, oldest_age_s=0.0)
    assert metrics(sampled, now_s=100.0).in_flight_mean_jobs == 4.0
    found = metrics(row(70.0, started_jobs=3), sampled, now_s=100.0)
    assert found.in_flight_mean_jobs == pytest.approx(4 - 3 * 32.5 / 60)
    ended = metrics(row(70.0, finished_jobs=2, failed_jobs=1), sampled, now_s=100.0)
    assert ended.in_flight_mean_jobs == pytest.approx(4 + 3 * 32.5 / 60)
    assert metrics(row(70.0, started_jobs=3), now_s=100.0).in_flight_mean_jobs is None


def test_arrivals_that_come_back_are_counted_apart_and_are_no_trend() -> None:
    """One retry more in each bucket, beside two fresh jobs: twelve buckets of a rate that stands still."""
    rows = [row(5.0 * number, arrived_jobs=2 + number, retried_jobs=number) for number in range(12)]
    found = metrics(*rows, now_s=60.0)
    assert (found.arrived_jobs, found.retried_jobs, found.fresh_jobs) == (13, 11, 2)
    assert (found.arrival_rate_per_s, found.retry_rate_per_s) == (pytest.approx(90 / 60), pytest.approx(66 / 60))
    assert found.fresh_rate_per_s == pytest.approx(24 / 60)
    assert found.arrival_trend_per_s2 == pytest.approx(0.0)


def test_a_retry_that_waits_has_an_age_like_any_job() -> None:
    found = metrics(row(50.0, arrived_jobs=3, retried_jobs=3, sampled_at_s=54.0, waiting_jobs=3), now_s=60.0)
    assert found.arrivals == (Arrivals(jobs=3, ended_ago_s=5.0),)


@pytest.mark.parametrize(
    ("kind", "attempt", "retried"),
    [
        (EventKind.ENQUEUED, None, 0),  # not known: the first
        (EventKind.ENQUEUED, 1, 0),
        (EventKind.ENQUEUED, 2, 1),
        (EventKind.ENQUEUED, 9, 1),
        (EventKind.STARTED, 2, 0),
        (EventKind.RETRIED, 2, 0),  # says that it will come back, not that it has
    ],
)
def test_a_retry_is_an_entry_of_a_later_attempt(kind: EventKind, attempt: int | None, retried: int) -> None:
    (found,) = bucket_rows([JobEvent(queue="q", job_id="1", kind=kind, at_s=7.0, attempt=attempt)])
    assert found.retried_jobs == retried
    assert found.arrived_jobs == (kind is EventKind.ENQUEUED)


FAILED, RETRIED, REVOKED = EventKind.FAILED, EventKind.RETRIED, EventKind.REVOKED


@pytest.mark.parametrize(
    ("kinds", "failed_jobs", "retried_attempts"),
    [
        ([FAILED, FAILED, RETRIED], 1, 1),  # each attempt that another one follows is reported twice
        ([FAILED, RETRIED], 0, 1),
        ([RETRIED], 0, 0),  # its failure is in another bucket, or was never reported
    ],
)
def test_an_attempt_that_another_one_follows_is_an_end_and_no_failed_job(
    kinds: list[EventKind], failed_jobs: int, retried_attempts: int
) -> None:
    (found,) = bucket_rows([JobEvent(queue="q", job_id="1", kind=kind, at_s=7.0) for kind in kinds])
    assert (found.failed_jobs, found.retried_attempts) == (failed_jobs, retried_attempts)
    assert found.ended_jobs == failed_jobs + retried_attempts


def test_a_revoked_job_is_neither_a_start_nor_an_end() -> None:
    revoked = [JobEvent(queue="q", job_id=f"{at_s}", kind=REVOKED, at_s=at_s) for at_s in (1.0, 2.0, 7.0)]
    rows = bucket_rows(revoked)
    assert [(each.revoked_jobs, each.started_jobs, each.ended_jobs) for each in rows] == [(2, 0, 0), (1, 0, 0)]
    assert [each.revoked_jobs for each in rolled_up(rows, span_s=60.0)] == [3]


def test_an_attempt_before_the_first_is_refused() -> None:
    with pytest.raises(Invalid, match="attempt=0 is below 1, the first"):
        JobEvent(queue="q", job_id="1", kind=EventKind.ENQUEUED, at_s=7.0, attempt=0)


def test_late_jobs_are_the_starts_beyond_the_objective() -> None:
    waits_s = (0.5, 9.9, 10.0, 10.01, 30.0)
    started = row(50.0, pickup_sketch=merged({sketch_index(wait_s): 1} for wait_s in waits_s), pickup_max_s=30.0)
    assert metrics(started, now_s=60.0).late_rate_per_s == pytest.approx(2 / 60)
    in_time = row(50.0, pickup_sketch={sketch_index(10.0): 3}, pickup_max_s=10.0)
    assert metrics(in_time, now_s=60.0).late_rate_per_s == 0.0


def test_the_newest_arrivals_are_reported_until_they_explain_every_waiting_job() -> None:
    came = [row(40.0, arrived_jobs=9), row(45.0, arrived_jobs=4), row(50.0), row(55.0, arrived_jobs=3)]
    found = metrics(*came, row(60.0, sampled_at_s=61.0, waiting_jobs=5), now_s=62.0)
    assert found.arrivals == (Arrivals(jobs=3, ended_ago_s=2.0), Arrivals(jobs=4, ended_ago_s=12.0))
    assert metrics(*came, row(60.0, sampled_at_s=61.0, waiting_jobs=0), now_s=62.0).arrivals == ()
    running = metrics(row(60.0, arrived_jobs=1, sampled_at_s=61.0, waiting_jobs=9), now_s=62.0)
    assert running.arrivals == (Arrivals(jobs=1, ended_ago_s=0.0),)


@pytest.mark.parametrize(
    ("rows", "newest"),
    [
        ([row(50.0, arrived_jobs=3), row(55.0, arrived_jobs=2)], (2, 60.0)),  # the newest whole bucket
        ([row(50.0, arrived_jobs=3), row(60.0, arrived_jobs=7)], (0, 60.0)),  # the running one is not whole
        ([row(20.0, arrived_jobs=3), row(50.0, started_jobs=3)], (0, 60.0)),  # what came then starts only now
        ([row(55.0, sampled_at_s=56.0, waiting_jobs=0, oldest_age_s=0.0)], (0, None)),  # nothing happens
    ],
)
def test_the_newest_whole_bucket_is_reported_while_jobs_come_or_start(
    rows: list[BucketRow], newest: tuple[int, float | None]
) -> None:
    found = queue_metrics(rows, queue="q", now_s=62.0, window_s=30.0, objective=Objective())
    assert (found.arrived_jobs, found.arrived_until_s) == newest


def test_a_queue_that_was_never_seen_is_unknown() -> None:
    found = metrics(now_s=60.0)
    assert found.waiting_jobs is None
    assert found.arrival_rate_per_s is None


def test_a_queue_without_ended_jobs_has_no_service_time() -> None:
    assert metrics(row(50.0, arrived_jobs=1), now_s=60.0).service_time_s is None


SKETCHES = st.dictionaries(st.integers(-3, 8), st.integers(1, 3), max_size=4)


@given(windows=st.lists(st.dictionaries(st.integers(0, 5).map(float), SKETCHES, max_size=5), max_size=5))
def test_a_moving_sketch_is_the_merged_one(windows: list[dict[float, dict[int, int]]]) -> None:
    moving = MovingSketch()
    for window in windows:
        assert moving.of(window) == merged(window.values())


@given(
    values_s=st.lists(st.floats(0.001, 1_000.0), min_size=1, max_size=30),
    percentiles=st.lists(st.floats(0.1, 100.0), min_size=1, max_size=4),
)
def test_quantiles_are_the_values_of_their_ranks(values_s: list[float], percentiles: list[float]) -> None:
    sketch = merged({sketch_index(value_s): 1} for value_s in values_s)
    ranks = [math.ceil(percentile / 100 * len(values_s)) for percentile in percentiles]
    expected = [sketch_value_s(sketch_index(sorted(values_s)[rank - 1])) for rank in ranks]
    assert quantiles_s(sketch, percentiles) == tuple(expected)
    assert [quantile_s(sketch, percentile) for percentile in percentiles] == expected
