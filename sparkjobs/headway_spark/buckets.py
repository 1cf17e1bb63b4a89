"""Events to buckets: the definitions of ``headway.scaling.measure``, as one aggregation without a Python worker."""

from collections.abc import Mapping
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark program gives it

from headway.scaling.measure import BUCKET_S, GAMMA, SHORTEST_S, BucketRow

# Below its capacity the frequent-items sketch counts exactly. A sketch index of a duration between 1 ms and a year is
# one of 1,223, and the capacity is three quarters of what is tracked.
TRACKED_INDEXES = 2048
_EVERY_INDEX = 1536

_SAMPLE_FIELDS = ("waiting_jobs", "in_flight_jobs", "delayed_jobs", "oldest_age_s")


def with_event_time(events: DataFrame, *, lateness_s: float) -> DataFrame:
    """``events`` with the time Spark's watermark follows.

    In:  one row an event or sample, as in ``schema.EVENTS``.
    Out: the same rows with at timestamp, and the watermark ``lateness_s`` behind the latest of them.
    """
    timed = events.withColumn("at", F.timestamp_millis((F.col("at_s") * 1000).cast("long")))
    return timed.withWatermark("at", f"{lateness_s:.0f} seconds")


def buckets(events: DataFrame) -> DataFrame:
    """Everything known of each queue in each bucket, absolute.

    In:  one row an event or sample, as in ``schema.EVENTS``, with at timestamp where it is a stream.
    Out: one row a queue and bucket that has any: queue string, bucket_s double, counts long, sums double, sketches
         array of (item int, count long) with a null item for values that do not apply, sample struct or null,
         newest_received_at_s double.
    """
    measured = _measured(events)
    # A stream groups by the window and not by its number: only of the former does Spark know when it is over.
    grouped = measured.groupBy("queue", _bucket(measured).alias("bucket")).agg(
        _count("enqueued").alias("arrived_jobs"),
        _count("started").alias("started_jobs"),
        _count("finished").alias("finished_jobs"),
        _count("failed").alias("failed_jobs"),
        _count("retried").alias("retried_jobs"),
        F.coalesce(F.sum("service_s"), F.lit(0.0)).alias("service_sum_s"),
        F.max("pickup_s").alias("pickup_max_s"),
        _sketch("service_s").alias("service_sketch"),
        _sketch("pickup_s").alias("pickup_sketch"),
        F.max(F.when(F.col("kind") == "sample", F.struct("at_s", *_SAMPLE_FIELDS))).alias("sample"),
        F.max("received_at_s").alias("newest_received_at_s"),
    )
    start_s = F.col("bucket.start").cast("double") if events.isStreaming else F.col("bucket")
    return grouped.withColumn("bucket_s", start_s).drop("bucket")


def _measured(events: DataFrame) -> DataFrame:
    """``events`` with service_s and pickup_s, null where they do not apply."""
    is_end = F.col("kind").isin("finished", "failed")
    is_start = F.col("kind") == "started"
    served_s = F.greatest(F.col("at_s") - F.col("started_at_s"), F.lit(0.0))
    waited_s = F.greatest(F.col("at_s") - F.col("enqueued_at_s"), F.lit(0.0))
    return events.withColumns(
        {
            "service_s": F.when(is_end & F.col("started_at_s").isNotNull(), served_s),
            "pickup_s": F.when(is_start & F.col("enqueued_at_s").isNotNull(), waited_s),
        }
    )


def _bucket(events: DataFrame) -> Column:
    if events.isStreaming:
        return F.window("at", f"{BUCKET_S:.0f} seconds")
    return F.floor(F.col("at_s") / BUCKET_S) * BUCKET_S


def _count(kind: str) -> Column:
    return F.sum((F.col("kind") == kind).cast("long"))


def _sketch(name: str) -> Column:
    value_s = F.greatest(F.col(name), F.lit(SHORTEST_S))
    index = F.when(F.col(name).isNotNull(), F.ceil(F.log(value_s) / F.log(F.lit(GAMMA))).cast("int"))
    return F.call_function("approx_top_k", index, F.lit(_EVERY_INDEX), F.lit(TRACKED_INDEXES))


def bucket_row(row: Mapping[str, Any]) -> BucketRow:
    """The value that one row of ``buckets`` is."""
    sample = row["sample"] or {}
    return BucketRow(
        queue=row["queue"],
        bucket_s=row["bucket_s"],
        arrived_jobs=row["arrived_jobs"],
        started_jobs=row["started_jobs"],
        finished_jobs=row["finished_jobs"],
        failed_jobs=row["failed_jobs"],
        retried_jobs=row["retried_jobs"],
        service_sum_s=row["service_sum_s"],
        pickup_max_s=row["pickup_max_s"],
        service_sketch=_counts(row["service_sketch"]),
        pickup_sketch=_counts(row["pickup_sketch"]),
        sampled_at_s=sample.get("at_s"),
        **{name: sample.get(name) for name in _SAMPLE_FIELDS},
    )


def _counts(sketch: Any) -> dict[int, int]:
    return {each["item"]: each["count"] for each in sketch or () if each["item"] is not None}
