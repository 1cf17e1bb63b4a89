"""The stream: event log -> buckets -> wherever the sink puts them.

The shell around ``buckets``; it defines no metric.
"""

import logging
import shutil
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from headway.errors import Misconfigured
from headway.scaling.measure import BucketRow
from headway_spark.buckets import bucket_row, buckets, with_event_time
from headway_spark.schema import EVENTS

LATENESS_S = 600.0  # ingest moves or refuses what is later: nothing is ever dropped here in silence
FILES_MAX = 1_000  # a trigger: bounds the memory of catching up
WARM_UP_BATCHES = 4
WARM_UP_BOUND_S = 120.0
LOOK_S = 1

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How one micro-batch went."""

    batch_id: int
    batch_s: float
    newest_received_at_s: float | None
    """When the newest event in it was received, Unix seconds: what its lag is measured from."""


Sink = Callable[[Sequence[BucketRow], Progress], None]
"""Makes rows durable and tells whoever waits. The same rows again change nothing: a replayed batch brings them."""


def start(session: SparkSession, *, log_dir: Path, checkpoint: Path, sink: Sink) -> StreamingQuery:
    """The running query over ``log_dir``/hot. Files it is done with move to ``log_dir``/archive.

    Raises:
        Misconfigured: the checkpoint is of a query that this version cannot go on with.
    """
    hot, archive = log_dir / "hot", log_dir / "archive"
    for folder in (hot, archive):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    events = (
        session.readStream.schema(EVENTS)
        .option("maxFilesPerTrigger", FILES_MAX)
        .option("cleanSource", "archive")
        .option("sourceArchiveDir", str(archive))
        .parquet(str(hot))
    )
    try:
        return _query(events, checkpoint=checkpoint, sink=sink)
    except PySparkException as error:
        raise Misconfigured(
            f"the checkpoint {checkpoint} does not fit this version's query ({str(error).splitlines()[0]}): stop the "
            "pipeline, delete that folder and start it again; the event log stays as it is"
        ) from error


def _query(events: DataFrame, *, checkpoint: Path, sink: Sink) -> StreamingQuery:
    def write(frame: DataFrame, batch_id: int) -> None:
        began_s = time.monotonic()
        found = frame.toArrow().to_pylist()
        newest_s = max((row["newest_received_at_s"] for row in found), default=None)
        rows = [bucket_row(row) for row in found]
        batch_s = time.monotonic() - began_s
        sink(rows, Progress(batch_id=batch_id, batch_s=batch_s, newest_received_at_s=newest_s))

    return (
        buckets(with_event_time(events, lateness_s=LATENESS_S))
        .writeStream.outputMode("update")
        .foreachBatch(write)
        .option("checkpointLocation", str(checkpoint))
        .start()
    )


def run(query: StreamingQuery, *, is_stopping: Callable[[], bool]) -> None:
    """Wait until the query fails, which is raised, or ``is_stopping``, which ends it between two batches."""
    while not is_stopping():
        if query.awaitTermination(LOOK_S):
            raise RuntimeError("the stream ended by itself")
    # Stopping amid a batch makes Spark print its own confusion; the batch would only be replayed.
    deadline_s = time.monotonic() + 5.0
    while query.status["isTriggerActive"] and query.status["isDataAvailable"] and time.monotonic() < deadline_s:
        time.sleep(0.02)
    query.stop()


def warm_up(session: SparkSession, *, work_dir: Path) -> None:
    """Send made-up events through the whole stream, so that the first real one does not wait for the compiler."""
    written = 0

    def count(rows: Sequence[BucketRow], _: Progress) -> None:
        nonlocal written
        written += bool(rows)

    folder = work_dir / f"warm-up-{uuid.uuid4().hex}"
    hot = folder / "log" / "hot"
    hot.mkdir(parents=True, mode=0o700)
    query = start(session, log_dir=folder / "log", checkpoint=folder / "checkpoint", sink=count)
    try:
        deadline_s = time.monotonic() + WARM_UP_BOUND_S
        for batch in range(WARM_UP_BATCHES):
            _write_example(folder / "draft.parquet", hot / f"{batch}.parquet")
            while written <= batch and query.isActive and time.monotonic() < deadline_s:
                time.sleep(0.02)
    finally:
        query.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _write_example(draft: Path, path: Path) -> None:
    now_s = time.time()
    common = {
        "schema_version": 1,
        "queue": "warm-up/queue",
        "received_at_s": now_s,
        "producer": "warm-up",
        "sequence": 0,
    }
    rows = [
        {**common, "kind": "enqueued", "job_id": "1", "at_s": now_s},
        {**common, "kind": "started", "job_id": "1", "at_s": now_s, "enqueued_at_s": now_s - 1},
        {**common, "kind": "finished", "job_id": "1", "at_s": now_s, "started_at_s": now_s - 1},
        {**common, "kind": "sample", "at_s": now_s, "waiting_jobs": 1, "in_flight_jobs": 1, "oldest_age_s": 0.5},
    ]
    columns = {name: pa.array([row.get(name) for row in rows], type=kind) for name, kind in _ARROW.items()}
    pq.write_table(pa.table(columns), draft)
    draft.rename(path)


_KINDS = {"integer": pa.int32(), "long": pa.int64(), "double": pa.float64(), "string": pa.string()}
_ARROW = {field.name: _KINDS[field.dataType.typeName()] for field in EVENTS.fields}
