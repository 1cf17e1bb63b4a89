"""Every queue's job classes, tried together and apart on the executors."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark program gives it

from headway.errors import HeadwayError
from headway.scaling.mapping import from_mapping
from headway.scaling.profile import Profile
from headway.simulate.studies.class_separation import Topology, finding_text, tried
from headway.simulate.studies.single_pool import Setting
from headway.simulate.workloads.jobs import Jobs
from headway_spark.studies.backtest import filled
from headway_spark.studies.bulk import interruptible

NO_CLASS = "(no class)"


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
    is_cure: bool = False
    """Whether its classes should be apart."""
    text: str = ""
    """In an operator's words; empty where nothing could be tried."""
    why: str = ""
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
    rows = spread.mapInArrow(partial(_found, question=question), "finding string")
    texts = interruptible(jobs.sparkSession, rows.toArrow).column("finding").to_pylist()
    found = (from_mapping(Finding, json.loads(text)) for text in texts)
    return tuple(sorted(found, key=lambda each: (not each.is_cure, -each.jobs, each.queue)))


_FIELDS = ("at_s", "service_s", "job_class")


def _found(batches: Iterator[pa.RecordBatch], *, question: Question) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        texts = [json.dumps(asdict(_of_queue(row, question))) for row in batch.to_pylist()]
        yield pa.RecordBatch.from_pydict({"finding": pa.array(texts, pa.string())})


def _of_queue(row: Mapping[str, list[float]], question: Question) -> Finding:
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
    if found is None:
        return Finding(queue=queue, jobs=len(row["at_s"]), why=why)
    return Finding(
        queue=queue,
        jobs=len(row["at_s"]),
        is_cure=found.is_cure,
        text=finding_text(found),
        quick=found.split.quick.names,
        slow=found.split.slow.names,
    )
