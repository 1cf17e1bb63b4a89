"""The stream over real files: its jobs, its sinks, and a run of it that ends."""

import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from pyspark.sql import SparkSession

from headway.errors import Unavailable
from headway.scaling.measure import BucketRow
from headway.scaling.model import EventKind, JobEvent
from headway_spark.stream.pipeline import Progress, Stream

START_S = 1_000_000.0


class Kept:
    """A sink that keeps the newest version of each row, as a table with an upsert does."""

    def __init__(self) -> None:
        self.rows: dict[tuple[str, float], BucketRow] = {}
        self.batches = 0

    def write(self, rows: Sequence[BucketRow], _: Progress) -> None:
        self.batches += 1
        self.rows.update({(row.queue, row.bucket_s): row for row in rows})

    def beat(self) -> None: ...

    def close(self) -> None: ...

    def ordered(self) -> list[BucketRow]:
        return [self.rows[key] for key in sorted(self.rows)]


class Waiting(Kept):
    """A sink that waits for Postgres until it is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.is_writing, self.is_closed = threading.Event(), threading.Event()

    def write(self, rows: Sequence[BucketRow], _: Progress) -> None:
        self.is_writing.set()
        assert self.is_closed.wait(90)
        raise Unavailable("closed")

    def close(self) -> None:
        self.is_closed.set()


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


def bounded(holds: Callable[[], bool]) -> Callable[[], bool]:
    """``holds``, or too much time has passed: then the test fails by what it sees."""
    deadline_s = time.monotonic() + 180
    return lambda: holds() or time.monotonic() > deadline_s


def stream_until(spark: SparkSession, folder: Path, kept: Kept, *, started_jobs: int) -> None:
    """Run the stream until the sink has seen ``started_jobs``, those of earlier runs included, then stop it."""

    def is_seen() -> bool:
        return sum(row.started_jobs for row in kept.rows.values()) >= started_jobs

    stream = Stream(spark, log_dir=folder / "log", checkpoint=folder / "checkpoint", sink=kept)
    stream.start()
    try:
        stream.run(is_stopping=bounded(is_seen))
    finally:
        stream.stop()
    assert is_seen(), f"not {started_jobs} jobs in {kept.ordered()}"
