"""Spark's rows are the definition's rows, field by field, whatever producers, clocks and networks do to the events.

Many made-up streams go through one job of Spark, each under a queue of its own: a job costs more than they do.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from headway.scaling.measure import BucketRow, merged, quantile_s
from headway.scaling.model import EventKind, JobEvent, QueueSample
from headway.store.events.event_files import SCHEMA
from headway_spark.event_log.schema import EVENTS
from headway_spark.stream.buckets import bucket_row, buckets, with_bucket
from headway_spark.stream.pipeline import Progress, Stream
from spark.events import publish, table
from support.defined_rows import bucket_rows, class_rows, service_time_s

STREAMS = 60
BEGAN_S = 1_000_000.0
NO_TIMES = (float("nan"), float("inf"), float("-inf"), -1.0, 1e15)
FAR_TIMES = (0.0, 3e9)  # wrong, but times: ingest corrects them, and a file of another origin may hold them

Reported = JobEvent | QueueSample

# Round ones, where buckets and sketches begin, and any others.
MOMENTS = st.integers(0, 600).map(lambda quarters: quarters / 4) | st.floats(0, 150)
SPANS = st.sampled_from([0.0, 0.0004, 1.0, 5.0]) | st.floats(0, 100)
SKEWS = st.sampled_from([0.0, 0.0, -3.0, 0.25]) | st.floats(-10, 10)
CLASSES = st.sampled_from([None, "", "Mail", "app.jobs.Video"])
ENDS = st.sampled_from([EventKind.FINISHED, EventKind.FAILED, EventKind.RETRIED])
ATTEMPTS = st.sampled_from([None, 1, 2, 7])
DEPTHS = st.none() | st.integers(0, 10**9)


@st.composite
def jobs(draw: st.DrawFn) -> list[JobEvent]:
    """A job's whole life, its worker's clock wrong by some seconds: its events may end before they begin."""
    queued_s = BEGAN_S + draw(MOMENTS)
    started_s = queued_s + draw(SPANS) + draw(SKEWS)
    ended_s = started_s + draw(SPANS)
    common: dict[str, Any] = {"queue": "q", "job_id": "1", "job_class": draw(CLASSES), "attempt": draw(ATTEMPTS)}
    return [
        JobEvent(kind=EventKind.ENQUEUED, at_s=queued_s, **common),
        JobEvent(kind=EventKind.STARTED, at_s=started_s, enqueued_at_s=queued_s, **common),
        JobEvent(kind=draw(ENDS), at_s=ended_s, started_at_s=draw(st.sampled_from([started_s, None])), **common),
    ]


SAMPLES = st.builds(
    QueueSample,
    queue=st.just("q"),
    at_s=MOMENTS.map(lambda after_s: BEGAN_S + after_s),
    waiting_jobs=st.integers(0, 10**9),
    in_flight_jobs=DEPTHS,
    delayed_jobs=DEPTHS,
    oldest_age_s=st.none() | st.floats(0, 1e6),
)


def odd_events(times: Sequence[float]) -> st.SearchStrategy[JobEvent]:
    """Events that something is wrong with: they happened at no time, or what they refer to did."""
    return st.builds(
        JobEvent,
        queue=st.just("q"),
        job_id=st.just("1"),
        job_class=CLASSES,
        attempt=ATTEMPTS,
        kind=st.sampled_from([kind for kind in EventKind if kind is not EventKind.SAMPLE]),
        at_s=st.sampled_from([BEGAN_S, *times]),
        enqueued_at_s=st.sampled_from([None, *NO_TIMES, *FAR_TIMES]),
        started_at_s=st.sampled_from([None, *NO_TIMES, *FAR_TIMES]),
    )


@st.composite
def streams(draw: st.DrawFn, times: Sequence[float] = (*NO_TIMES, *FAR_TIMES)) -> list[Reported]:
    """What comes of some jobs and samples: a part of it, some of it twice, odd things among it, in any order."""
    reported: list[Reported] = [event for job in draw(st.lists(jobs(), max_size=12)) for event in job]
    reported += draw(st.lists(SAMPLES, max_size=5)) + draw(st.lists(odd_events(times), max_size=3))
    random = draw(st.randoms(use_true_random=False))
    twice = [each for each in reported if random.random() < 0.1]
    come = [each for each in reported if random.random() < 0.95] + twice
    random.shuffle(come)
    return come


def made(strategy: st.SearchStrategy[list[Reported]], count: int) -> list[list[Reported]]:
    """``count`` different streams, the same at every run."""
    found: list[list[Reported]] = []

    @settings(
        max_examples=count,
        phases=[Phase.generate],
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def draw(stream: list[Reported]) -> None:
        found.append([replace(each, queue=f"made/{len(found)}") for each in stream])

    draw()
    return found


def defined(reported: Sequence[Reported]) -> list[BucketRow]:
    return _ordered([*bucket_rows(reported), *class_rows(each for each in reported if isinstance(each, JobEvent))])


def _ordered(rows: Sequence[BucketRow]) -> list[BucketRow]:
    return sorted(rows, key=lambda row: (row.queue, row.job_class or "", row.bucket_s))


def assert_same(found: Sequence[BucketRow], expected: Sequence[BucketRow]) -> None:
    """Every field is equal; sums of the same numbers in another order may differ in the last bits."""
    assert len(found) == len(expected)
    for theirs, ours in zip(_ordered(found), expected, strict=True):
        assert theirs.service_sum_s == pytest.approx(ours.service_sum_s)
        assert replace(theirs, service_sum_s=ours.service_sum_s) == ours


def malformed() -> list[dict[str, Any]]:
    """Rows that no ingest writes, of which nothing may be counted."""
    right = {"queue": "odd", "kind": "enqueued", "job_id": "1", "job_class": "Mail", "at_s": BEGAN_S}
    wrong = [{"queue": None}, {"at_s": None}, {"kind": None}, {"kind": "eaten"}, *({"at_s": at_s} for at_s in NO_TIMES)]
    return [right | each for each in wrong]


def test_spark_gives_the_rows_of_the_definition(spark: SparkSession) -> None:
    reported = [each for stream in made(streams(), STREAMS) for each in stream]
    rows = table(reported).to_pylist() + malformed()
    frame = spark.createDataFrame(pa.Table.from_pylist(rows, schema=_nullable(SCHEMA)), schema=EVENTS)
    found = [bucket_row(row) for row in buckets(with_bucket(frame, lateness_s=600)).toArrow().to_pylist()]
    assert any(row.job_class for row in found)
    assert_same(found, defined(reported))


def test_the_stream_gives_them_in_whatever_batches_events_come(spark: SparkSession, tmp_path: Path) -> None:
    """In four files, of which the later correct the rows of the earlier; then once more, with nothing new."""
    reported = [each for stream in made(streams(NO_TIMES), STREAMS // 2) for each in stream]
    kept = _Kept()
    stream = Stream(spark, log_dir=tmp_path / "log", checkpoint=tmp_path / "checkpoint", sink=kept, pace_s=0.0)
    stream.start()
    try:
        for part in range(4):
            publish(tmp_path / "log", f"{part}.parquet", table(reported[part::4]))
            stream.run(is_stopping=lambda part=part: kept.batches > part)
    finally:
        stream.stop()
    assert_same(list(kept.rows.values()), defined(reported))


DISTRIBUTIONS: dict[str, Callable[[Random], float]] = {
    "constant": lambda _: 0.25,
    "uniform": lambda random: random.uniform(0.5, 30.0),
    "exponential": lambda random: random.expovariate(0.5),
    "log-normal": lambda random: random.lognormvariate(-1.0, 1.5),
    "heavy tail": lambda random: random.paretovariate(1.1),
    "two kinds": lambda random: random.gauss(0.02, 0.002) if random.random() < 0.95 else random.gauss(120.0, 20.0),
}


def test_quantiles_of_any_window_are_within_two_percent(spark: SparkSession) -> None:
    """Of the durations themselves, sorted: ten minutes of each distribution, and windows of 1, 3 and 10 minutes."""
    random, spans_s = Random(7), (60.0, 180.0, 600.0)
    reported = [
        JobEvent(queue=name, job_id="1", kind=EventKind.FINISHED, at_s=at_s, started_at_s=at_s - drawn(random))
        for name, drawn in DISTRIBUTIONS.items()
        for at_s in (BEGAN_S + number / 5 for number in range(3_000))
    ]
    frame = spark.createDataFrame(table(reported), schema=EVENTS)
    found = [bucket_row(row) for row in buckets(with_bucket(frame, lateness_s=600)).toArrow().to_pylist()]
    for name, span_s, percentile in product(DISTRIBUTIONS, spans_s, (95, 99)):
        exact_s = sorted(
            value
            for value, event in ((service_time_s(event), event) for event in reported)
            if value is not None and event.queue == name and event.at_s < BEGAN_S + span_s
        )
        sketch = merged(row.service_sketch for row in found if row.queue == name and row.bucket_s < BEGAN_S + span_s)
        expected_s = exact_s[math.ceil(percentile / 100 * len(exact_s)) - 1]
        assert quantile_s(sketch, percentile) == pytest.approx(expected_s, rel=0.02), (name, span_s, percentile)


class _Kept:
    """A sink that keeps the newest version of each row, as a table with an upsert does."""

    def __init__(self) -> None:
        self.rows: dict[tuple[str, str | None, float], BucketRow] = {}
        self.batches = 0

    def write(self, rows: Sequence[BucketRow], _: Progress) -> None:
        self.rows.update({(row.queue, row.job_class, row.bucket_s): row for row in rows})
        self.batches += 1

    def beat(self) -> None: ...

    def close(self) -> None: ...


def _nullable(schema: pa.Schema) -> pa.Schema:
    return pa.schema([field.with_nullable(True) for field in schema])
