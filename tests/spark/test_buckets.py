"""Spark's rows are the definition's rows."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from headway.scaling.measure import BucketRow, bucket_rows
from headway.scaling.model import EventKind, JobEvent, QueueSample
from headway.store.event_log import SCHEMA
from headway_spark.buckets import bucket_row, buckets
from headway_spark.schema import EVENTS
from spark.events import table

TIMES = st.integers(0, 40_000).map(lambda tenths: 1_000_000 + tenths / 1000)
QUEUES = st.sampled_from(["redis/mail", "redis/video"])
JOB_KINDS = st.sampled_from([kind for kind in EventKind if kind is not EventKind.SAMPLE])
EVENT = st.builds(
    JobEvent,
    queue=QUEUES,
    job_id=st.just("1"),
    kind=JOB_KINDS,
    at_s=TIMES,
    # Before and after the event itself: clocks are skewed, and a negative wait counts as none.
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
# Two samples of one queue at one instant have no newest.
SAMPLES = st.lists(SAMPLE, max_size=20, unique_by=lambda sample: (sample.queue, sample.at_s))


def rows_of(spark: SparkSession, events: list[JobEvent], samples: list[QueueSample]) -> list[BucketRow]:
    frame = spark.createDataFrame(table(events, samples).to_pandas(), schema=EVENTS)
    found = [bucket_row(row) for row in buckets(frame).toArrow().to_pylist()]
    return sorted(found, key=lambda row: (row.queue, row.bucket_s))


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    events=st.lists(EVENT, max_size=60),
    samples=st.lists(SAMPLE, max_size=20, unique_by=lambda each: (each.queue, each.at_s)),
)
def test_spark_gives_the_rows_of_the_definition(
    spark: SparkSession, events: list[JobEvent], samples: list[QueueSample]
) -> None:
    expected, found = bucket_rows(events, samples), rows_of(spark, events, samples)
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
    first, second = rows_of(spark, events, [QueueSample(queue="q", at_s=4.5, waiting_jobs=7, oldest_age_s=0.5)])
    assert (first.bucket_s, first.arrived_jobs, first.started_jobs, first.waiting_jobs) == (0.0, 1, 2, 7)
    assert first.pickup_max_s == pytest.approx(3.0)
    assert first.pickup_sketch == {0: 1, 56: 1}  # ln 1 / ln 1.02 = 0; ln 3 / ln 1.02 = 55.5
    assert (second.bucket_s, second.failed_jobs, second.finished_jobs) == (5.0, 1, 0)
    assert second.service_sum_s == pytest.approx(2.0)
    assert second.waiting_jobs is None


def test_the_log_is_read_as_it_is_written() -> None:
    """The store's columns and Spark's are the same, in the same order."""
    arrow = {"int32": "integer", "int64": "long", "double": "double", "string": "string"}
    assert [(column.name, arrow[str(column.type)]) for column in SCHEMA] == [
        (column.name, column.dataType.typeName()) for column in EVENTS.fields
    ]
