"""Windows over buckets and over their rollups."""

import statistics
from dataclasses import fields, replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from headway.scaling.measure import BucketRow, merged, rolled_up, sketch_index
from headway.scaling.metrics.newest_sample import RATES
from headway.scaling.metrics.unreported import unreported
from headway.scaling.metrics.windows import COUNTED, WINDOWS_S, RunningTime, WindowMetrics, window_metrics
from headway.scaling.model import EventKind, JobEvent, QueueSample
from support.defined_rows import bucket_rows

UNTIL_S = 1_000_800.0  # on the hour


def ended(at_s: float, service_s: float, kind: EventKind = EventKind.FINISHED) -> JobEvent:
    return JobEvent(queue="q", job_id="1", kind=kind, at_s=at_s, started_at_s=at_s - service_s)


def bucket(before_s: float, **more: object) -> BucketRow:
    """A bucket that starts so long before the window's end."""
    return BucketRow(**{"queue": "q", "bucket_s": UNTIL_S - before_s} | more)


def served(services_s: list[float]) -> BucketRow:
    sketch = merged({sketch_index(value): 1} for value in services_s)
    return bucket(5.0, finished_jobs=len(services_s), service_sum_s=sum(services_s), service_sketch=sketch)


def test_a_minute_by_hand() -> None:
    """60 arrivals in a minute of 12 buckets, 30 starts of which 3 came back, 20 ends of 3 s of which 5 failed."""
    rows = [
        bucket(60.0, arrived_jobs=40, started_jobs=30, retried_jobs=3, pickup_max_s=4.0, pickup_sketch={0: 30}),
        bucket(5.0, arrived_jobs=20, finished_jobs=15, failed_jobs=5, service_sum_s=60.0, service_sketch={56: 20}),
        bucket(65.0, arrived_jobs=1_000),  # before it
        bucket(0.0, arrived_jobs=1_000),  # after it
    ]
    seen = window_metrics(rows, until_s=UNTIL_S, window_s=60.0, running_slots=2.0)
    assert seen.arrivals == (40, *([0] * 10), 20)
    assert seen.arrival_rate_per_s == pytest.approx(1.0)
    assert seen.start_rate_per_s == pytest.approx(0.5)
    assert seen.completion_rate_per_s == pytest.approx(20 / 60)
    assert (seen.failure_share, seen.retry_share) == (pytest.approx(0.25), pytest.approx(0.1))
    assert seen.service_time_s == pytest.approx(3.0)
    assert seen.pickup_time_s == pytest.approx(1.0, rel=0.01)
    assert seen.busy_slots == pytest.approx(1.0)  # 60 s of service in 60 s
    assert seen.utilization == pytest.approx(0.5)
    assert seen.pickup_max_s == pytest.approx(4.0)


def test_rates_are_of_the_time_that_was_measured() -> None:
    """A queue that was first read 20 s ago: nobody knows what it did before."""
    rows = [bucket(20.0, arrived_jobs=10, started_jobs=8), bucket(5.0, finished_jobs=4, service_sum_s=10.0)]
    rows[1] = replace(rows[1], service_sketch={56: 4})
    seen = window_metrics(rows, until_s=UNTIL_S, window_s=3600.0, since_s=UNTIL_S - 20.0)
    assert (seen.measured_s, seen.from_s) == (20.0, UNTIL_S - 3600.0)
    assert (seen.arrival_rate_per_s, seen.start_rate_per_s, seen.completion_rate_per_s) == (0.5, 0.4, 0.2)
    assert (seen.arrived_jobs, seen.busy_slots) == (10.0, 0.5)
    for since_s in (None, UNTIL_S - 7200.0):
        seen = window_metrics(rows, until_s=UNTIL_S, window_s=3600.0, since_s=since_s)
        assert (seen.measured_s, seen.arrival_rate_per_s) == (3600.0, 10 / 3600)


@pytest.mark.parametrize(
    ("running", "busy_slots"),
    [
        ([], 0.0),
        ([RunningTime(started_at_s=UNTIL_S - 1800.0, known_at_s=UNTIL_S)], 1.0),  # for the whole minute
        ([RunningTime(started_at_s=UNTIL_S - 30.0, known_at_s=UNTIL_S)], 0.5),
        ([RunningTime(started_at_s=UNTIL_S - 30.0, known_at_s=UNTIL_S - 15.0)], 0.25),  # it may have ended since
        ([RunningTime(started_at_s=UNTIL_S - 1800.0, known_at_s=UNTIL_S + 5.0, jobs=3)], 3.0),
        ([RunningTime(started_at_s=UNTIL_S + 1.0, known_at_s=UNTIL_S + 5.0)], 0.0),
    ],
)
def test_a_job_that_runs_keeps_its_slot_busy_before_it_ends(running: list[RunningTime], busy_slots: float) -> None:
    seen = window_metrics([], until_s=UNTIL_S, window_s=60.0, running_slots=4.0, running=running)
    assert (seen.busy_slots, seen.utilization) == (busy_slots, busy_slots / 4.0)


def test_attempts_that_are_tried_again_free_a_slot_and_are_no_failures_of_jobs() -> None:
    rows = [bucket(60.0, started_jobs=12, finished_jobs=3, failed_jobs=1, retried_attempts=8)]
    seen = window_metrics(rows, until_s=UNTIL_S, window_s=60.0)
    assert (seen.failure_share, seen.retried_attempts) == (pytest.approx(0.25), pytest.approx(8.0))
    assert seen.completion_rate_per_s == pytest.approx(12 / 60)


def test_what_is_not_known_is_none_and_what_did_not_happen_is_zero() -> None:
    seen = window_metrics([], until_s=UNTIL_S, window_s=60.0)
    assert (seen.arrived_jobs, seen.arrival_rate_per_s, seen.busy_slots) == (0.0, 0.0, 0.0)
    assert {seen.failure_share, seen.retry_share, seen.service_scv, seen.pickup_p95_s, seen.utilization} == {None}
    unknown = window_metrics([bucket(5.0, finished_jobs=3)], until_s=UNTIL_S, window_s=60.0, running_slots=4.0)
    assert (unknown.busy_slots, unknown.utilization) == (None, None)  # they ran for nobody knows how long


def read(queue: str, **more: object) -> BucketRow:
    return bucket(5.0, queue=queue, sampled_at_s=UNTIL_S - 1, waiting_jobs=3, **more)


def sample(**more: object) -> QueueSample:
    return QueueSample(**{"queue": "q", "at_s": UNTIL_S, "waiting_jobs": 3} | more)


def test_what_nobody_reports_is_none_in_every_window() -> None:
    """Depth alone: 3 jobs wait, and how many came is not known."""
    unknown = unreported([read("q")], {}, ["q"])
    seen = window_metrics([read("q")], until_s=UNTIL_S, window_s=60.0, running_slots=2.0, unknown=unknown)
    counted = {name for names in COUNTED.values() for name in names}
    assert {name: getattr(seen, name) for name in counted} == dict.fromkeys(counted)
    assert seen.arrivals == ()


ARRIVALS, EVERY, NONE = {"reports_arrivals"}, set(RATES), set[str]()


@pytest.mark.parametrize(
    ("rows", "samples", "unknown"),
    [
        ([], {}, EVERY),  # never seen
        ([read("q")], {}, EVERY),
        ([read("q", oldest_age_s=4.0)], {}, NONE),  # who knows the age knows when jobs come
        ([read("q"), bucket(60.0, finished_jobs=1)], {}, NONE),
        ([read("q")], {"q": sample(oldest_age_s=0.0)}, EVERY),  # empty by now
        ([], {"q": sample()}, EVERY),
        ([read("q")], {"q": sample(reports_arrivals=True, reports_starts=True, reports_ends=True)}, NONE),
        ([bucket(60.0, arrived_jobs=1)], {"q": sample(reports_arrivals=False)}, ARRIVALS),
    ],
)
def test_who_reports_nothing_is_known_by_what_it_says_or_by_its_readings(
    rows: list[BucketRow], samples: dict[str, QueueSample], unknown: set[str]
) -> None:
    assert unreported(rows, samples, ["q"]) == unknown


def test_one_queue_without_events_makes_the_sum_unknown_and_one_never_seen_does_not() -> None:
    rows = [read("q", oldest_age_s=4.0)]
    assert unreported(rows, {}, ["q", "never"]) == NONE
    assert unreported([*rows, read("depth")], {}, ["q", "depth"]) == EVERY


def test_a_bucket_at_the_edge_counts_by_its_part_inside() -> None:
    seen = window_metrics([bucket(62.0, arrived_jobs=10)], until_s=UNTIL_S, window_s=60.0)
    assert seen.arrived_jobs == pytest.approx(6.0)


def test_a_rising_rate_has_its_slope() -> None:
    rows = [bucket(60.0 - 5 * number, arrived_jobs=10 * number) for number in range(12)]
    seen = window_metrics(rows, until_s=UNTIL_S, window_s=60.0)
    assert seen.arrival_trend_per_s2 == pytest.approx(10 / 5 / 5)  # 2/s more each 5 s


@pytest.mark.parametrize(
    ("arrivals", "dispersion"),
    [
        ([6, 6, 6, 6], 0.0),
        ([0, 12, 0, 12], 8.0),  # squared distances of 36 each, 4 × 36 / 3 = 48, over a mean of 6
    ],
)
def test_bursts_show_in_the_dispersion(arrivals: list[int], dispersion: float) -> None:
    rows = [bucket(20.0 - 5 * number, arrived_jobs=jobs) for number, jobs in enumerate(arrivals)]
    assert window_metrics(rows, until_s=UNTIL_S, window_s=20.0).arrival_dispersion == pytest.approx(dispersion)


@given(services_s=st.lists(st.floats(0.001, 1e5), min_size=1, max_size=50))
def test_the_variance_that_queueing_models_take_errs_by_two_percent_at_most(services_s: list[float]) -> None:
    mean_s = statistics.fmean(services_s)
    exact = 1 + statistics.pvariance(services_s) / mean_s**2
    seen = window_metrics([served(services_s)], until_s=UNTIL_S, window_s=60.0)
    assert seen.service_scv is not None
    assert 1 + seen.service_scv == pytest.approx(exact, rel=0.0202)
    assert seen.service_time_s == pytest.approx(mean_s)


TIMES = st.floats(UNTIL_S - 3600.0, UNTIL_S - 0.001)
ENDED = st.builds(ended, TIMES, st.floats(0.001, 1e4), st.sampled_from([EventKind.FINISHED, EventKind.FAILED]))
ARRIVED = st.builds(JobEvent, queue=st.just("q"), job_id=st.just("1"), kind=st.just(EventKind.ENQUEUED), at_s=TIMES)


@given(events=st.lists(ENDED | ARRIVED, max_size=60), window_s=st.sampled_from(WINDOWS_S))
def test_minutes_and_hours_say_what_their_buckets_say(events: list[JobEvent], window_s: float) -> None:
    """Also half and half. Only how finely arrivals are distinguished differs."""
    buckets = bucket_rows(events)
    assume(buckets)
    split_s = UNTIL_S - window_s / 2 // 60 * 60
    mixed = (
        *rolled_up([row for row in buckets if row.bucket_s < split_s], span_s=60.0),
        *(row for row in buckets if row.bucket_s >= split_s),
    )
    given_rows = [buckets, rolled_up(buckets, span_s=60.0), mixed]
    if window_s == 3600.0:
        given_rows.append(rolled_up(buckets, span_s=3600.0))
    first, *others = (_values(window_metrics(rows, until_s=UNTIL_S, window_s=window_s)) for rows in given_rows)
    for other in others:
        assert other == pytest.approx(first)


def _values(seen: WindowMetrics) -> dict[str, float | None]:
    finer = {"arrivals", "arrival_trend_per_s2", "arrival_dispersion", "span_s"}
    return {item.name: getattr(seen, item.name) for item in fields(seen) if item.name not in finer}


@given(rows=st.lists(st.integers(0, 300).map(lambda number: bucket(5.0 * number, arrived_jobs=number))))
def test_a_shorter_window_never_has_more(rows: list[BucketRow]) -> None:
    distinct = [replace(row) for row in {row.bucket_s: row for row in rows}.values()]
    counts = [window_metrics(distinct, until_s=UNTIL_S, window_s=window_s).arrived_jobs for window_s in WINDOWS_S]
    assert counts == sorted(counts)
