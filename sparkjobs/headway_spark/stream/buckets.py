"""Events to buckets: the definitions of ``headway.scaling.measure``, as one aggregation without a Python worker."""

from collections.abc import Mapping
from dataclasses import fields
from functools import reduce
from operator import and_
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark program gives it

from headway.scaling.arithmetic import SHORTEST_S
from headway.scaling.measure import (
    BUCKET_S,
    CLASS_BUCKET_S,
    LATEST_S,
    BucketRow,
    failures,
)
from headway.scaling.model import EventKind
from headway.scaling.sketch_edges import BEYOND, EDGE, EDGE_OF, LOG_GAMMA, LONGEST_S

# Up to its capacity the frequent-items sketch counts exactly. It is a part of the stream's state: with another one no
# checkpoint of an earlier version could be gone on with. A test holds that all durations and one item more have room.
INDEXES = 1_047

RETRIED_ITEM = -100_000
"""What the sketch of service times counts the events of kind ``retried`` by; no duration has this index.

An aggregate of their own would be a column more of the stream's state, and no checkpoint of an earlier version could be
gone on with.
"""

REVOKED_ITEM = -100_001
"""What the sketch of pickup times counts the events of kind ``revoked`` by, for the same reason."""

_SAMPLE_FIELDS = ("waiting_jobs", "in_flight_jobs", "delayed_jobs", "oldest_age_s")
_USED = ("queue", "kind", "attempt", "received_at_s", "service_s", "pickup_s", "sample")


def with_bucket(events: DataFrame, *, lateness_s: float) -> DataFrame:
    """``events`` once for their queues and once for their job classes, each with its bucket.

    Spark's watermark follows the buckets so far behind that an event ``lateness_s`` late finds that of its class, too,
    which began up to a minute before it. The bucket is worked out from the number, not by Spark's ``window``, which
    rounds to microseconds first. As a timestamp, because only of timestamps does a stream know which are over and can
    be forgotten.

    In:  one row an event or sample, as in ``schema.EVENTS``.
    Out: the rows for their queues with job_class null, those of a class again with it; service_s and pickup_s, null
         where they do not apply; sample struct, null but for a reading; bucket timestamp, the bucket's start. Rows
         without a queue, a time before 2100 or a kind that is known are left out: ingest lets none in, and one in a
         file of other origin must not end every queue's metrics.
    """
    is_placed = (
        F.col("queue").isNotNull() & F.col("kind").isin([str(kind.value) for kind in EventKind]) & _is_time("at_s")
    )
    # All that is counted twice is said first: each further step would write both rows once more.
    places = F.when(F.coalesce("job_class", F.lit("")) == "", F.array(_place(F.lit(None), BUCKET_S))).otherwise(
        F.array(_place(F.lit(None), BUCKET_S), _place(F.col("job_class"), CLASS_BUCKET_S))
    )
    split = _measured(events.where(is_placed)).select(*_USED, F.inline(places).alias("job_class", "bucket"))
    behind_s = lateness_s + CLASS_BUCKET_S - BUCKET_S
    return split.withWatermark("bucket", f"{behind_s:.0f} seconds")


def buckets(events: DataFrame) -> DataFrame:
    """Everything known of each queue in each bucket, and of each of its job classes, absolute.

    In:  as ``with_bucket`` gives it.
    Out: one row a queue, class and bucket that has any: queue string, job_class string or null for the queue's own,
         bucket_s double, counts long, sums double, sketches array of (item int, count long), sample struct or null,
         newest_received_at_s double. failed_jobs counts all attempts that failed; the sketch of service times counts
         those that another one follows by ``RETRIED_ITEM``, and that of pickup times revoked jobs by ``REVOKED_ITEM``.
    """
    grouped = events.groupBy("queue", "job_class", "bucket").agg(
        _count("enqueued").alias("arrived_jobs"),
        _count("started").alias("started_jobs"),
        _count("finished").alias("finished_jobs"),
        _count("failed").alias("failed_jobs"),
        _count("enqueued", F.col("attempt") > 1).alias("retried_jobs"),  # an attempt that is not known is the first
        F.coalesce(F.sum("service_s"), F.lit(0.0)).alias("service_sum_s"),
        F.max("pickup_s").alias("pickup_max_s"),
        _sketch(
            f"case when kind = 'retried' then {RETRIED_ITEM} else {_index('service_s')} end",
            where="kind = 'retried' or service_s is not null",
        ).alias("service_sketch"),
        _sketch(
            f"case when kind = 'revoked' then {REVOKED_ITEM} else {_index('pickup_s')} end",
            where="kind = 'revoked' or pickup_s is not null",
        ).alias("pickup_sketch"),
        # The greatest struct is the newest sample, and of two at the same instant the one with the greater depths.
        F.max("sample").alias("sample"),
        F.max("received_at_s").alias("newest_received_at_s"),
    )
    return grouped.withColumn("bucket_s", F.unix_seconds("bucket").cast("double")).drop("bucket")


def _measured(events: DataFrame) -> DataFrame:
    """``events`` with service_s, pickup_s and sample, null where they do not apply."""
    is_end = F.col("kind").isin("finished", "failed")
    is_start = F.col("kind") == "started"
    served_s = F.greatest(F.col("at_s") - F.col("started_at_s"), F.lit(0.0))
    waited_s = F.greatest(F.col("at_s") - F.col("enqueued_at_s"), F.lit(0.0))
    return events.withColumns(
        {
            "service_s": F.when(is_end & _is_time("started_at_s"), served_s),
            "pickup_s": F.when(is_start & _is_time("enqueued_at_s"), waited_s),
            "sample": F.when(F.col("kind") == "sample", F.struct("at_s", *_SAMPLE_FIELDS)),
        }
    )


def _is_time(name: str) -> Column:
    return F.col(name).between(0.0, LATEST_S)  # which null and NaN are not


def _place(job_class: Column, span_s: float) -> Column:
    """Where an event counts: for which of its job classes, null for the queue itself, and in which bucket."""
    start = F.timestamp_seconds(F.floor(F.col("at_s") / span_s) * int(span_s))
    return F.struct(job_class.cast("string").alias("job_class"), start.alias("bucket"))


def _count(kind: str, *conditions: Column) -> Column:
    # Spark turns `count_if` into one more step, which writes every row anew.
    return F.count(F.when(reduce(and_, conditions, F.col("kind") == kind), 1))


def _index(name: str) -> str:
    bounded = f"least(greatest({name}, {SHORTEST_S!r}d), {LONGEST_S!r}d)"
    plain = f"cast(ceil(ln({bounded}) / {LOG_GAMMA!r}d - {EDGE!r}d) as int)"
    edge = " ".join(f"when {index} then {edge_s!r}d" for index, edge_s in EDGE_OF.items())
    return f"{plain} + case when {name} > case {plain} {edge} end then {BEYOND} else 0 end"


def _sketch(item: str, *, where: str) -> Column:
    return F.expr(f"approx_top_k({item}, {INDEXES}, {INDEXES}) filter (where {where})")


def bucket_row(row: Mapping[str, Any]) -> BucketRow:
    """The value that one row of ``buckets`` is, failures divided by whether another attempt follows."""
    sample = row["sample"] or {}
    carried: dict[str, Any] = {each.name: row[each.name] for each in fields(BucketRow) if each.name in row}
    services, pickups = _counts(row["service_sketch"]), _counts(row["pickup_sketch"])
    failed_jobs, retried_attempts = failures(row["failed_jobs"], services.pop(RETRIED_ITEM, 0))
    carried |= {"failed_jobs": failed_jobs, "retried_attempts": retried_attempts}
    carried |= {"revoked_jobs": pickups.pop(REVOKED_ITEM, 0)}
    carried |= {"service_sketch": services, "pickup_sketch": pickups}
    carried |= {name: sample.get(name) for name in _SAMPLE_FIELDS}
    span_s = BUCKET_S if row["job_class"] is None else CLASS_BUCKET_S
    return BucketRow(**carried, span_s=span_s, sampled_at_s=sample.get("at_s"))


def _counts(sketch: Any) -> dict[int, int]:
    return {each["item"]: each["count"] for each in sketch or ()}
