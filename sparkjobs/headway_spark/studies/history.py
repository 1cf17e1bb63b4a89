"""The event log as workloads: when each job of a pool came, and how long a worker was busy with it."""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark program gives it
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import ArrayType, BooleanType, DoubleType, StringType, StructField, StructType

from headway.errors import Misconfigured
from headway.simulate.workloads.jobs import Jobs
from headway_spark.event_log.log_files import held
from headway_spark.event_log.schema import EVENTS
from headway_spark.studies.bulk import framed

HISTORY_TAIL_S = 86_400.0  # a job that came in the time asked for may end so much later

LOADS = StructType(
    [
        StructField("pool", StringType()),
        StructField("begins_at_s", DoubleType()),
        StructField("at_s", ArrayType(DoubleType())),
        StructField("service_s", ArrayType(DoubleType())),
        StructField("retries", ArrayType(BooleanType())),
    ]
)
"""One row a pool: its jobs in order of arrival, in seconds from ``begins_at_s``, which is Unix time. A service time is
null where no end of the job was seen. ``retries`` says which of them came back for another attempt; empty: none did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """The jobs of one pool, and when they begin by the clock (Unix seconds)."""

    pool: str
    jobs: Jobs
    begins_at_s: float = 0.0


@contextmanager
def held_events(
    session: SparkSession, folder: Path, *, from_s: float | None = None, until_s: float | None = None
) -> Iterator[DataFrame]:
    """The rows of the event log in ``folder``, as in ``schema.EVENTS``, with every event of jobs of [from_s, until_s).

    Files that compaction moves meanwhile stay readable for as long as the context lasts.

    Raises:
        Misconfigured: there are none.
        Unavailable: the folder cannot be written.
    """
    first_s = -math.inf if from_s is None else from_s
    last_s = math.inf if until_s is None else until_s + HISTORY_TAIL_S
    with held(folder, from_s=first_s, until_s=last_s) as paths:
        if not paths:
            raise Misconfigured(f"the event log in {folder} has no events of that time")
        yield session.read.schema(EVENTS).parquet(*map(str, paths))


def fresh(events: DataFrame) -> DataFrame:
    """``events`` without the entries of jobs that came back for another attempt.

    ``jobs_of`` takes all tries of such a job for one then, which came when the first did. In and out as
    ``schema.EVENTS``.
    """
    return events.where((F.col("kind") != "enqueued") | (F.coalesce("attempt", F.lit(1)) <= 1))


def jobs_of(events: DataFrame, *, from_s: float | None = None, until_s: float | None = None) -> DataFrame:
    """The jobs that were enqueued in [from_s, until_s).

    A job that is enqueued again under its old id is another job. Where the log does not hold its enqueueing, its start
    says when that was; where it was tried several times, all its tries together are its service time.

    In:  one row an event or sample, as in ``schema.EVENTS``.
    Out: one row a job: queue string, job_class string or null, at_s double, service_s double or null, is_retry boolean.
    """
    if from_s is not None:
        events = events.where(F.col("at_s") >= from_s)
    if until_s is not None:
        events = events.where(F.col("at_s") < until_s + HISTORY_TAIL_S)
    is_enqueued = F.col("kind") == "enqueued"
    is_end = F.col("kind").isin("finished", "failed")
    of_job = Window.partitionBy("queue", "job_id").orderBy("at_s", F.when(is_enqueued, 0).otherwise(1))
    # An event that clocks put before the first enqueueing belongs to it.
    turn = F.greatest(F.sum(is_enqueued.cast("int")).over(of_job.rowsBetween(Window.unboundedPreceding, 0)), F.lit(1))
    served_s = F.greatest(F.col("at_s") - F.col("started_at_s"), F.lit(0.0))
    started_at_s = F.when(F.col("kind") == "started", F.col("at_s")).otherwise(F.col("started_at_s"))
    known = events.where((F.col("kind") != "sample") & F.col("job_id").isNotNull()).withColumn("turn", turn)
    jobs = known.groupBy("queue", "job_id", "turn").agg(
        F.max("job_class").alias("job_class"),
        F.coalesce(F.min(F.when(is_enqueued, F.col("at_s"))), F.min("enqueued_at_s"), F.min(started_at_s)).alias(
            "arrived_at_s"
        ),
        F.sum(F.when(is_end, served_s)).alias("service_s"),
        F.coalesce(F.max(F.when(is_enqueued, F.col("attempt") > 1)), F.lit(False)).alias("is_retry"),  # noqa: FBT003
    )
    jobs = jobs.where(F.col("arrived_at_s").isNotNull())
    if from_s is not None:
        jobs = jobs.where(F.col("arrived_at_s") >= from_s)
    if until_s is not None:
        jobs = jobs.where(F.col("arrived_at_s") < until_s)
    return jobs.select("queue", "job_class", F.col("arrived_at_s").alias("at_s"), "service_s", "is_retry")


def loads_of(jobs: DataFrame, *, pools: Mapping[str, str] | None) -> DataFrame:
    """``jobs`` by pool, as in ``LOADS``; those of queues that ``pools`` (queue -> pool) does not name are left out.

    In: one row a job, as ``jobs_of`` gives it. Without ``pools`` each queue is a pool of its own.
    """
    if pools is None:
        of_pool = jobs.withColumn("pool", F.col("queue"))
    else:
        members = jobs.sparkSession.createDataFrame(list(pools.items()), "queue string, pool string")
        of_pool = jobs.join(F.broadcast(members), on="queue", how="inner")
    ordered = of_pool.groupBy("pool").agg(
        F.array_sort(F.collect_list(F.struct("at_s", "service_s", "is_retry"))).alias("jobs")
    )
    begins_at_s = F.floor(F.col("jobs")[0]["at_s"]).cast("double")
    return ordered.select(
        "pool",
        begins_at_s.alias("begins_at_s"),
        F.transform("jobs", lambda job: job["at_s"] - begins_at_s).alias("at_s"),
        F.transform("jobs", lambda job: job["service_s"]).alias("service_s"),
        F.transform("jobs", lambda job: job["is_retry"]).alias("retries"),
    )


def given_loads(session: SparkSession, loads: Sequence[Load], *, folder: Path) -> DataFrame:
    """``loads`` as in ``LOADS``. On this machine they pass through a file in ``folder``."""
    table = pa.table(
        {
            "pool": [load.pool for load in loads],
            "begins_at_s": [load.begins_at_s for load in loads],
            "at_s": [pa.array(load.jobs.at_s, pa.float64()) for load in loads],
            "service_s": [pa.array(load.jobs.service_s, pa.float64()) for load in loads],
            "retries": [pa.array(load.jobs.retries, pa.bool_()) for load in loads],
        },
        schema=to_arrow_schema(LOADS),
    )
    return framed(session, table, schema=LOADS, file=folder / "loads.parquet", group_rows=1)
