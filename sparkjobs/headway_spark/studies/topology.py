"""Every queue's job classes, tried together and apart on the executors."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark program gives it
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import ArrayType, BooleanType, LongType, StringType, StructField, StructType

from headway.errors import HeadwayError
from headway.scaling.profile import Profile
from headway.simulate.studies.class_separation import Topology, finding_text, tried
from headway.simulate.studies.single_pool import Setting
from headway.simulate.workloads.jobs import Jobs
from headway_spark.studies.backtest import filled
from headway_spark.studies.bulk import interruptible

NO_CLASS = "(no class)"

FOUND = StructType(
    [
        StructField("queue", StringType()),
        StructField("jobs", LongType()),
        StructField("is_cure", BooleanType()),
        StructField("text", StringType()),
        StructField("why", StringType()),
        StructField("quick", ArrayType(StringType())),
        StructField("slow", ArrayType(StringType())),
    ]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """How queues are tried: their objectives, and how their workers behave."""

    profiles: Mapping[str, Profile]
    """By queue; of others the default."""
    default: Profile
    setting: Setting
    targets_s: Mapping[str, float] = field(default_factory=dict)
    """The objective of a class, in seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What was found of one queue."""

    queue: str
    jobs: int
    is_cure: bool
    """Whether its classes should be apart."""
    text: str
    """In an operator's words; empty where nothing could be tried."""
    why: str
    """Why nothing could be tried."""
    quick: tuple[str, ...] = ()
    slow: tuple[str, ...] = ()


def findings(jobs: DataFrame, question: Question) -> tuple[Finding, ...]:
    """What is found of every queue of ``jobs``, those that should be divided first.

    In: one row a job, as ``history.jobs_of`` gives it.
    """
    ordered = jobs.groupBy("queue").agg(
        F.array_sort(
            F.collect_list(F.struct("at_s", "service_s", F.coalesce("job_class", F.lit(NO_CLASS)).alias("job_class")))
        ).alias("jobs")
    )
    columns = [F.col(f"jobs.{name}").alias(name) for name in _FIELDS]
    cores = jobs.sparkSession.sparkContext.defaultParallelism
    spread = ordered.select("queue", *columns).repartition(4 * cores, "queue")
    rows = spread.mapInArrow(partial(_found, question=question), FOUND)
    found = interruptible(jobs.sparkSession, rows.toArrow).to_pylist()
    made = [Finding(**{**row, "quick": tuple(row["quick"] or ()), "slow": tuple(row["slow"] or ())}) for row in found]
    return tuple(sorted(made, key=lambda each: (not each.is_cure, -each.jobs, each.queue)))


_FIELDS = ("at_s", "service_s", "job_class")


def _found(batches: Iterator[pa.RecordBatch], *, question: Question) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        rows = [_of_queue(row, question) for row in batch.to_pylist()]
        yield pa.RecordBatch.from_pylist(rows, schema=to_arrow_schema(FOUND))


def _of_queue(row: Mapping[str, list[float]], question: Question) -> Mapping[str, object]:
    queue = str(row["queue"])
    profile = question.profiles.get(queue, question.default)
    begins_at_s = float(int(row["at_s"][0]))
    found: Topology | None = None
    why = "it has fewer than two classes with 50 jobs each"
    try:
        service_s = filled(row["service_s"], pool=queue, seed=question.setting.seed)
        jobs = Jobs(at_s=[each - begins_at_s for each in row["at_s"]], service_s=service_s)
        found = tried(
            jobs,
            [str(each) for each in row["job_class"]],
            profile,
            question.setting,
            targets_s=question.targets_s,
            begins_at_s=begins_at_s,
        )
    except HeadwayError as error:
        why = str(error)
    return {
        "queue": queue,
        "jobs": len(row["at_s"]),
        "is_cure": found is not None and found.is_cure,
        "text": "" if found is None else finding_text(found),
        "why": why if found is None else "",
        "quick": [] if found is None else list(found.split.quick.names),
        "slow": [] if found is None else list(found.split.slow.names),
    }
