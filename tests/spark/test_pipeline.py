"""The stream over real files: nothing twice, nothing missing, through a restart."""

import time
from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import SparkSession

from headway.scaling.measure import BucketRow, bucket_rows
from headway.scaling.model import EventKind, JobEvent, QueueSample
from headway_spark.pipeline import Progress, Stream
from headway_spark.warm_up import warm_up
from spark.events import publish, table

START_S = 1_000_000.0


class Kept:
    """A sink that keeps the newest version of each row, as a table with an upsert does."""

    def __init__(self) -> None:
        self.rows: dict[tuple[str, float], BucketRow] = {}

    def write(self, rows: Sequence[BucketRow], _: Progress) -> None:
        self.rows.update({(row.queue, row.bucket_s): row for row in rows})

    def beat(self) -> None: ...

    def close(self) -> None: ...

    def ordered(self) -> list[BucketRow]:
        return [self.rows[key] for key in sorted(self.rows)]


def jobs(first: int, count: int) -> list[JobEvent]:
    """One job each 100 ms, started half a second after it came."""
    return [
        JobEvent(
            queue="redis/mail",
            job_id=str(number),
            kind=kind,
            at_s=START_S + number / 10 + wait_s,
            enqueued_at_s=since_s,
        )
        for number in range(first, first + count)
        for kind, wait_s, since_s in (
            (EventKind.ENQUEUED, 0.0, None),
            (EventKind.STARTED, 0.5, START_S + number / 10),
        )
    ]


def stream_until(spark: SparkSession, folder: Path, kept: Kept, *, started_jobs: int) -> None:
    """Run the stream until the sink has seen ``started_jobs``, then stop it."""
    stream = Stream(spark, log_dir=folder / "log", checkpoint=folder / "checkpoint", sink=kept)
    deadline_s = time.monotonic() + 60

    def is_done() -> bool:
        seen = sum(row.started_jobs for row in kept.rows.values())
        return seen >= started_jobs or time.monotonic() > deadline_s

    stream.start()
    try:
        stream.run(is_stopping=is_done)
    finally:
        stream.stop()


def test_a_restart_neither_repeats_nor_misses_an_event(spark: SparkSession, tmp_path: Path) -> None:
    before, after = jobs(0, 100), jobs(100, 100)
    sample = QueueSample(queue="redis/mail", at_s=START_S + 1, waiting_jobs=3, oldest_age_s=0.1)
    kept = Kept()
    publish(tmp_path / "log", "1.parquet", table([*before, sample]))
    stream_until(spark, tmp_path, kept, started_jobs=100)
    publish(tmp_path / "log", "2.parquet", table(after))
    stream_until(spark, tmp_path, kept, started_jobs=200)
    assert kept.ordered() == list(bucket_rows([*before, *after, sample]))


def test_a_late_event_corrects_its_own_bucket(spark: SparkSession, tmp_path: Path) -> None:
    """Within the lateness bound an event belongs where it happened, not where it arrived."""
    on_time, late = jobs(3_000, 10), jobs(0, 10)  # five minutes apart
    kept = Kept()
    publish(tmp_path / "log", "1.parquet", table(on_time))
    stream_until(spark, tmp_path, kept, started_jobs=10)
    publish(tmp_path / "log", "2.parquet", table(late))
    stream_until(spark, tmp_path, kept, started_jobs=20)
    assert kept.ordered() == list(bucket_rows([*on_time, *late]))


def test_a_file_that_is_no_parquet_stops_nothing(spark: SparkSession, tmp_path: Path) -> None:
    kept = Kept()
    publish(tmp_path / "log", "2.parquet", table(jobs(0, 10)))
    (tmp_path / "log" / "hot" / "1.parquet").write_text("no such thing")
    stream_until(spark, tmp_path, kept, started_jobs=10)
    assert sum(row.started_jobs for row in kept.rows.values()) == 10


def test_the_warm_up_leaves_nothing_behind(spark: SparkSession, tmp_path: Path) -> None:
    warm_up(spark, work_dir=tmp_path, is_stopping=lambda: False)
    assert list(tmp_path.iterdir()) == []
