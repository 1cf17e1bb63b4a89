"""Every queue's weeks, learned on the executors: from jobs of the event log, or from counts that are handed in."""

import json
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark program gives it
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import ArrayType, LongType, StringType, StructField, StructType

from headway.scaling.arithmetic import MINUTE_S
from headway.scaling.history.weekly import HOUR_MINUTES, ArrivalCounts, Season, trained
from headway.scaling.history.weekly_codec import season_from_mapping, season_to_mapping
from headway.scaling.profile_keys.schedule import Zone
from headway_spark.studies.bulk import framed, interruptible

COUNTS = StructType(
    [
        StructField("queue", StringType()),
        StructField("since", LongType()),
        StructField("until", LongType()),
        StructField("minutes", ArrayType(LongType())),
        StructField("minute_jobs", ArrayType(LongType())),
        StructField("hours_since", LongType()),
        StructField("hours", ArrayType(LongType())),
        StructField("hour_jobs", ArrayType(LongType())),
    ]
)
"""One row a queue: its arrivals by minute of the Unix clock in [since, until), and by hour before; see
``ArrivalCounts``.
"""

LEARNED = StructType([StructField("queue", StringType()), StructField("season", StringType())])
"""One row a queue of which enough is known: its season as JSON."""


def counts_of(jobs: DataFrame) -> DataFrame:
    """Arrivals by queue and minute, as in ``COUNTS``.

    What is known begins with the hour of the first job, whatever queue it was for, and ends with the last.

    In: one row a job, as ``history.jobs_of`` gives it.
    """
    minute = F.floor((F.col("at_s") + 1e-6) / MINUTE_S)  # as recall.minute_of
    by_minute = jobs.groupBy("queue", minute.alias("minute")).agg(F.count("*").alias("jobs"))
    # A queue without jobs in the first days was there: that nothing came is known of it as well. The log keeps whole
    # hours: what came before the first job of the first one is known, too.
    since = F.floor(F.min("minute") / HOUR_MINUTES) * HOUR_MINUTES
    edges = by_minute.agg(since.alias("since"), (F.max("minute") + 1).alias("until"))
    by_queue = by_minute.groupBy("queue").agg(F.collect_list(F.struct("minute", "jobs")).alias("counted"))
    return by_queue.crossJoin(F.broadcast(edges)).select(
        "queue",
        "since",
        "until",
        F.col("counted.minute").alias("minutes"),
        F.col("counted.jobs").alias("minute_jobs"),
        F.lit(None).cast("long").alias("hours_since"),
        F.array().cast("array<long>").alias("hours"),
        F.array().cast("array<long>").alias("hour_jobs"),
    )


def given_counts(session: SparkSession, counted: Mapping[str, ArrivalCounts], *, folder: Path) -> DataFrame:
    """``counted`` by queue, as in ``COUNTS``. On this machine it passes through a file in ``folder``."""
    rows = [
        {
            "queue": queue,
            "since": counts.since,
            "until": counts.until,
            "minutes": list(counts.minutes.keys()),
            "minute_jobs": list(counts.minutes.values()),
            "hours_since": counts.hours_since,
            "hours": list(counts.hours.keys()),
            "hour_jobs": list(counts.hours.values()),
        }
        for queue, counts in counted.items()
    ]
    table = pa.Table.from_pylist(rows, schema=to_arrow_schema(COUNTS))
    return framed(session, table, schema=COUNTS, file=folder / "counts.parquet", group_rows=16)


def learned(counts: DataFrame, *, zone: Zone) -> dict[str, tuple[Season, float, float]]:
    """By queue the season that its counts speak for, and of what time (Unix seconds, from and until).

    Queues of which two whole weeks are not known are left out. ``counts`` is as in ``COUNTS``.
    """
    session = counts.sparkSession
    spread = counts.repartition(4 * session.sparkContext.defaultParallelism, "queue")
    rows = spread.mapInArrow(partial(_learned, zone=zone), LEARNED)
    found = {}
    for row in interruptible(session, rows.toArrow).to_pylist():
        body = json.loads(row["season"])
        found[row["queue"]] = season_from_mapping(body, zone), body["from_s"], body["until_s"]
    return dict(sorted(found.items()))


def _learned(batches: Iterator[pa.RecordBatch], *, zone: Zone) -> Iterator[pa.RecordBatch]:
    """On an executor: the seasons of the rows' queues."""
    for batch in batches:
        rows = []
        for row in batch.to_pylist():
            counted = counted_of(row)
            season = trained(counted, zone=zone)
            if season is not None:
                span = {"from_s": counted.known_from_s, "until_s": counted.known_until_s}
                rows.append({"queue": row["queue"], "season": json.dumps({**season_to_mapping(season), **span})})
        yield pa.RecordBatch.from_pylist(rows, schema=to_arrow_schema(LEARNED))


def counted_of(row: Mapping[str, Any]) -> ArrivalCounts:
    """A row of ``COUNTS`` as what scaling counts with."""
    return ArrivalCounts(
        since=row["since"],
        until=row["until"],
        minutes=dict(zip(row["minutes"], row["minute_jobs"], strict=True)),
        hours_since=row["hours_since"],
        hours=dict(zip(row["hours"], row["hour_jobs"], strict=True)),
    )
