"""Made-up events through the whole stream, so that the first real one does not wait for the JVM's compiler."""

import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import to_arrow_schema

from headway.scaling.measure import BucketRow
from headway_spark.event_log.schema import EVENTS
from headway_spark.stream.pipeline import Progress, Stream

BATCHES = 2  # the first takes 3.4 s of a processor, the second 0.6, each further one 0.5
BOUND_S = 120.0


class _Counted:
    """A sink that counts the batches that brought rows."""

    def __init__(self) -> None:
        self.batches = 0

    def write(self, rows: Sequence[BucketRow], _: Progress) -> None:
        self.batches += bool(rows)

    def beat(self) -> None:
        """Nobody listens."""

    def close(self) -> None:
        """Nothing is held."""


def warm_up(session: SparkSession, *, work_dir: Path, is_stopping: Callable[[], bool]) -> None:
    """Run the stream over an event log of its own in ``work_dir``, which is removed again."""
    folder = work_dir / "warm-up"
    shutil.rmtree(folder, ignore_errors=True)  # of a run that was killed
    hot = folder / "log" / "hot"
    hot.mkdir(parents=True, mode=0o700)
    sink = _Counted()
    stream = Stream(session, log_dir=folder / "log", checkpoint=folder / "checkpoint", sink=sink, pace_s=0.0)

    def until(batches: int) -> Callable[[], bool]:
        return lambda: is_stopping() or sink.batches >= batches or time.monotonic() > deadline_s

    stream.start()
    deadline_s = time.monotonic() + BOUND_S
    try:
        for batch in range(BATCHES):
            pq.write_table(_example(), folder / "draft")
            (folder / "draft").rename(hot / f"{batch}.parquet")
            stream.run(is_stopping=until(batch + 1))
    finally:
        stream.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _example() -> pa.Table:
    now_s = time.time()
    common: dict[str, object] = {
        "schema_version": 1,
        "queue": "warm-up/queue",
        "at_s": now_s,
        "received_at_s": now_s,
        "producer": "warm-up",
    }
    rows: list[dict[str, object]] = [
        {"kind": "enqueued", "job_id": "1"},
        {"kind": "started", "job_id": "1", "enqueued_at_s": now_s - 1},
        {"kind": "finished", "job_id": "1", "started_at_s": now_s - 1},
        {"kind": "sample", "waiting_jobs": 1, "in_flight_jobs": 1, "oldest_age_s": 0.5},
    ]
    return pa.Table.from_pylist([common | row for row in rows], schema=to_arrow_schema(EVENTS))
