"""Spark's rows are the definition's rows."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from unittest.mock import ANY

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from headway.scaling.measure import BucketRow, sketch_value_s
from headway.scaling.model import EventKind, JobEvent, QueueSample
from headway.scaling.sketch_edges import BEYOND, EDGE_OF, LONGEST_S, plain_index
from headway.store.events.event_files import SCHEMA
from headway_spark.event_log.schema import EVENTS
from headway_spark.stream.buckets import INDEXES, bucket_row, buckets, with_bucket
from spark.events import table
from support.defined_rows import bucket_rows

# Round ones, where buckets and sketches begin, and any others. Before and after one another: clocks are skewed.
TIMES = st.integers(0, 160).map(lambda quarters: 1e6 + quarters / 4) | st.floats(1e6, 1e6 + 40)
QUEUES = st.sampled_from(["redis/mail", "redis/video"])
JOB_KINDS = st.sampled_from([kind for kind in EventKind if kind is not EventKind.SAMPLE])
EVENT = st.builds(
    JobEvent,
    queue=QUEUES,
    job_id=st.just("1"),
    kind=JOB_KINDS,
    at_s=TIMES,
    enqueued_at_s=st.none() | TIMES,
    started_at_s=st.none() | TIMES,
)
SAMPLE = st.builds(
    QueueSample,
    queue=QUEUES,
    at_s=TIMES,
    waiting_jobs=st.integers(0, 10**6),
    in_flight_jobs=st.none() | st.integers(0, 100),
    oldest_age_s=st.none() | st.floats(0, 1e6),
)


def rows_of(spark: SparkSession, events_and_samples: Sequence[JobEvent | QueueSample]) -> list[BucketRow]:
    frame = spark.createDataFrame(table(events_and_samples), schema=EVENTS)
    found = [bucket_row(row) for row in buckets(with_bucket(frame, lateness_s=600)).toArrow().to_pylist()]
    return sorted(found, key=lambda row: (row.queue, row.bucket_s))


@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(events_and_samples=st.lists(EVENT | SAMPLE, max_size=200))
def test_spark_gives_the_rows_of_the_definition(
    spark: SparkSession, events_and_samples: list[JobEvent | QueueSample]
) -> None:
    expected, found = bucket_rows(events_and_samples), rows_of(spark, events_and_samples)
    assert len(found) == len(expected)
    for ours, theirs in zip(expected, found, strict=True):
        assert _values(theirs) == pytest.approx(_values(ours))
        assert theirs.service_sketch == ours.service_sketch
        assert theirs.pickup_sketch == ours.pickup_sketch


def _values(row: BucketRow) -> dict[str, Any]:
    names = [name for name in BucketRow.__dataclass_fields__ if not name.endswith("_sketch") and name != "queue"]
    return {name: getattr(row, name) for name in names}


def test_a_job_is_counted_where_it_happened(spark: SparkSession) -> None:
    """By hand: two jobs that waited 1 s and 3 s, one of which ran for 2 s and failed in the next bucket."""
    events = [
        JobEvent(queue="q", job_id="1", kind=EventKind.ENQUEUED, at_s=1.0),
        JobEvent(queue="q", job_id="1", kind=EventKind.STARTED, at_s=2.0, enqueued_at_s=1.0),
        JobEvent(queue="q", job_id="2", kind=EventKind.STARTED, at_s=4.0, enqueued_at_s=1.0),
        JobEvent(queue="q", job_id="2", kind=EventKind.FAILED, at_s=6.0, started_at_s=4.0),
    ]
    sample = QueueSample(queue="q", at_s=4.5, waiting_jobs=7, oldest_age_s=0.5)
    first, second = rows_of(spark, [*events, sample])
    assert (first.bucket_s, first.arrived_jobs, first.started_jobs, first.waiting_jobs) == (0.0, 1, 2, 7)
    assert first.pickup_max_s == pytest.approx(3.0)
    assert first.pickup_sketch == {0: 1, 56: 1}  # ln 1 / ln 1.02 = 0; ln 3 / ln 1.02 = 55.5
    assert (second.bucket_s, second.failed_jobs, second.finished_jobs) == (5.0, 1, 0)
    assert second.service_sum_s == pytest.approx(2.0)
    assert second.waiting_jobs is None


def test_an_attempt_that_another_one_follows_is_retried_and_no_failed_job(spark: SparkSession) -> None:
    """Three attempts of job 1, the last of them in vain; its service times are of all three."""
    events = [
        JobEvent(queue="q", job_id="1", kind=kind, at_s=at_s, started_at_s=at_s - 1.0)
        for at_s, kinds in (
            (1.0, (EventKind.FAILED, EventKind.RETRIED)),
            (2.0, (EventKind.FAILED, EventKind.RETRIED)),
            (3.0, (EventKind.FAILED,)),
        )
        for kind in kinds
    ]
    (row,) = rows_of(spark, events)
    assert (row.failed_jobs, row.retried_attempts, row.ended_jobs) == (1, 2, 3)
    assert (row.service_sum_s, row.service_sketch) == (3.0, {0: 3})  # 1 s each: ln 1 / ln 1.02 = 0


def test_a_job_that_left_its_queue_without_a_start_is_revoked_and_no_work(spark: SparkSession) -> None:
    events = [
        JobEvent(queue="q", job_id="1", kind=EventKind.STARTED, at_s=1.0, enqueued_at_s=0.0),
        JobEvent(queue="q", job_id="2", kind=EventKind.REVOKED, at_s=2.0),
        JobEvent(queue="q", job_id="3", kind=EventKind.REVOKED, at_s=3.0),
    ]
    (row,) = rows_of(spark, events)
    assert (row.started_jobs, row.revoked_jobs, row.ended_jobs, row.pickup_sketch) == (1, 2, 0, {0: 1})


@pytest.mark.parametrize("at_s", [float("nan"), float("inf"), -1.0, 1e15])
def test_a_row_that_is_at_no_time_is_left_out(spark: SparkSession, at_s: float) -> None:
    """It comes from no ingest, and must not end every queue's metrics."""
    odd, right = (JobEvent(queue="q", job_id="1", kind=EventKind.ENQUEUED, at_s=time_s) for time_s in (at_s, 7.0))
    assert rows_of(spark, [odd, right]) == list(bucket_rows([right]))


def test_every_duration_there_is_is_counted_exactly(spark: SparkSession) -> None:
    """A sketch of a bucket holds every index at once without an estimate, and the retries or revoked jobs with them."""
    end_s = 2e6
    plain = range(plain_index(0.0), plain_index(LONGEST_S) + 1)
    indexes = [*plain, *(index + BEYOND for index in EDGE_OF)]
    assert len(indexes) < INDEXES, "one is for the retries, or the revoked jobs"
    events = [
        JobEvent(
            queue="q",
            job_id=str(number),
            kind=kind,
            at_s=end_s,
            started_at_s=end_s - sketch_value_s(index),
        )
        for number, index in enumerate(indexes)
        for kind in (EventKind.FAILED, *[EventKind.RETRIED] * (number % 3))
    ]
    (row,) = rows_of(spark, events)
    assert row == replace(bucket_rows(events)[0], service_sum_s=ANY)
    assert len(row.service_sketch) == len(indexes)


def test_the_log_is_read_as_it_is_written() -> None:
    """The store's columns and Spark's are the same, in the same order."""
    arrow = {"int32": "integer", "int64": "long", "double": "double", "string": "string", "bool": "boolean"}
    assert [(column.name, arrow[str(column.type)]) for column in SCHEMA] == [
        (column.name, column.dataType.typeName()) for column in EVENTS.fields
    ]
