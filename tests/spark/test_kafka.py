"""Events from Kafka: the same columns and rows as from the log, and one sentence where a connector is missing."""

import json
import time
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from headway.errors import Invalid, Misconfigured
from headway.scaling.model import EventKind, JobEvent, QueueSample
from headway.settings import PipelineSettings
from headway_spark.event_log.schema import EVENTS
from headway_spark.stream import checkpoint_storage, kafka
from headway_spark.stream.buckets import bucket_row, buckets, with_bucket
from headway_spark.stream.pipeline import Stream
from spark.streams import Kept
from support.defined_rows import bucket_rows, class_rows

NOW_S = 1_763_758_800.0


def topic(spark: SparkSession, *values: bytes | None, at_s: float = NOW_S) -> DataFrame:
    """Messages as the connector gives them, so far as they are read."""
    sent_at = datetime.fromtimestamp(at_s, tz=UTC)
    return spark.createDataFrame(
        [(None, value, sent_at) for value in values], schema="key binary, value binary, timestamp timestamp"
    )


def message(**values: Any) -> bytes:
    return json.dumps(values).encode()


def test_a_topic_gives_the_rows_that_the_log_gives(spark: SparkSession) -> None:
    happened = [
        JobEvent(queue="redis/mail", job_id="a", kind=EventKind.ENQUEUED, at_s=NOW_S - 3, job_class="Welcome"),
        JobEvent(queue="redis/mail", job_id="a", kind=EventKind.STARTED, at_s=NOW_S - 1, enqueued_at_s=NOW_S - 3),
        JobEvent(queue="redis/mail", job_id="a", kind=EventKind.FINISHED, at_s=NOW_S, started_at_s=NOW_S - 1),
    ]
    reported = [*happened, QueueSample(queue="redis/mail", at_s=NOW_S - 2, waiting_jobs=4, oldest_age_s=1.5)]
    values = [message(**({"kind": "sample"} | asdict(each) | {"schema_version": 1})) for each in reported]
    events = kafka.events(topic(spark, *values))
    assert {(field.name, field.dataType) for field in events.schema} == {(f.name, f.dataType) for f in EVENTS}
    rows = buckets(with_bucket(events, lateness_s=600)).toArrow().to_pylist()
    found = sorted(map(bucket_row, rows), key=lambda row: (row.job_class or "", row.bucket_s))
    assert found == [*bucket_rows(reported), *class_rows(happened)]


def test_what_is_no_event_is_left_out_and_stops_nothing(spark: SparkSession) -> None:
    good = message(queue="q", kind="enqueued", at_s=NOW_S)
    bad = [b"no json", b"", None, b"[1]", b"{}", b"\xff\xfe", message(queue="q", kind="enqueued", at_s="soon")]
    events = kafka.events(topic(spark, *bad, good))
    assert events.count() == len(bad) + 1
    (row,) = buckets(with_bucket(events, lateness_s=600)).collect()
    assert (row["queue"], row["arrived_jobs"]) == ("q", 1)


@pytest.mark.parametrize(
    ("at_s", "counted_at_s"),
    [
        (NOW_S - 30, NOW_S - 30),
        (NOW_S - 9_000, NOW_S - 600),  # no later than the bound
        (NOW_S + 9_000, NOW_S + 1),  # or one wrong clock would move the watermark for all
    ],
)
def test_a_messages_own_time_bounds_that_of_its_event(spark: SparkSession, at_s: float, counted_at_s: float) -> None:
    (row,) = kafka.events(topic(spark, message(queue="q", kind="enqueued", at_s=at_s))).collect()
    assert (row["at_s"], row["received_at_s"]) == (counted_at_s, NOW_S)


def test_a_message_from_the_future_was_received_now(spark: SparkSession) -> None:
    ahead = topic(spark, message(queue="q", kind="enqueued", at_s=4e9), at_s=4e9)
    (row,) = kafka.events(ahead).collect()
    assert row["received_at_s"] == pytest.approx(time.time(), abs=120)
    assert row["at_s"] == pytest.approx(time.time() + 1, abs=120)


def test_without_the_connector_the_start_names_the_package_and_its_version(spark: SparkSession, tmp_path: Path) -> None:
    stream = Stream(
        spark,
        log_dir=tmp_path / "log",
        checkpoint=tmp_path / "checkpoint",
        sink=Kept(),
        source=kafka.source(spark, servers="127.0.0.1:9", topic="events"),
    )
    with pytest.raises(Misconfigured, match="--packages") as refused:
        stream.start()
    package = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{spark.version}"
    assert f"HEADWAY_SPARK_PACKAGES={package}," in str(refused.value)
    assert len(str(refused.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("uri", "says"),
    [
        ("s3a://bucket/headway", "org.apache.hadoop:hadoop-aws:3"),
        ("abfss://box@account.dfs.core.windows.net/headway", "org.apache.hadoop:hadoop-azure:3"),
        ("gs://bucket/headway", "gcs-connector"),
        ("ipfs://x/y", "it reads abfss, gs, s3a"),
    ],
)
def test_without_what_reads_a_checkpoints_storage_the_package_is_named(
    spark: SparkSession, uri: str, says: str
) -> None:
    with pytest.raises(Misconfigured, match=f"^HEADWAY_CHECKPOINT={uri}: Spark has nothing that reads") as refused:
        checkpoint_storage.require(spark, uri)
    assert says in str(refused.value)


def test_what_hadoop_reads_by_itself_is_not_refused(spark: SparkSession) -> None:
    checkpoint_storage.require(spark, "file:///tmp/x")


KAFKA = {"HEADWAY_SOURCE": "kafka", "HEADWAY_KAFKA_SERVERS": "k:9092", "HEADWAY_KAFKA_TOPIC": "events"}


@pytest.mark.parametrize(
    ("env", "says"),
    [
        ({"HEADWAY_SOURCE": "files", "HEADWAY_CHECKPOINT": "s3a://b/c"}, "HEADWAY_CHECKPOINT=s3a://b/c is no folder"),
        ({"HEADWAY_EVENT_LOG": "s3a://b/c"}, "HEADWAY_EVENT_LOG=s3a://b/c is no folder"),
        ({"HEADWAY_SOURCE": "kafka"}, "HEADWAY_KAFKA_SERVERS is not set"),
        ({**KAFKA, "HEADWAY_KAFKA_TOPIC": ""}, "HEADWAY_KAFKA_TOPIC is not set"),
        ({"HEADWAY_SOURCE": "redis"}, "HEADWAY_SOURCE='redis': expected files or kafka"),
        ({"HEADWAY_ARCHIVE_DAYS": "0"}, "HEADWAY_ARCHIVE_DAYS='0': expected a number above 0"),
        ({"HEADWAY_ARCHIVE_GB": "many"}, "HEADWAY_ARCHIVE_GB='many'"),
        ({"HEADWAY_SPARK_HEAP_MB": "nan"}, "HEADWAY_SPARK_HEAP_MB='nan'"),
    ],
)
def test_what_cannot_be_is_refused_by_name(env: dict[str, str], says: str) -> None:
    with pytest.raises(Invalid, match=says):
        PipelineSettings.from_env({"HEADWAY_DATABASE_URL": "postgresql://h/d", **env})


def test_a_topic_may_have_its_checkpoint_in_object_storage() -> None:
    env = {"HEADWAY_DATABASE_URL": "postgresql://h/d", "HEADWAY_CHECKPOINT": "s3a://b/c", **KAFKA}
    assert PipelineSettings.from_env(env).checkpoint == "s3a://b/c"
