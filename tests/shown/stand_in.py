"""`headway pipeline` without Spark, for tests of what people are shown: the same rows, by their definition in Python.

It writes through the product's own sink and heartbeat, so all that others see of it is as it is of the pipeline.
"""

import os
import signal
import sys
import threading
import time
from pathlib import Path

import pyarrow.parquet as pq

from headway.cli.process import parent_watch
from headway.cli.process.heartbeat import FILE, Heartbeat
from headway.scaling.measure import BUCKET_S, bucket_start_s
from headway.scaling.model import EventKind, JobEvent, QueueSample
from headway.store.metrics.metrics_sink import MetricsSink
from headway.store.metrics.pipeline_heartbeat import CRASHED, STOPPED, PipelineHeartbeat
from headway_spark.stream.pipeline import PIPELINE_BEAT_S, Progress
from support.defined_rows import bucket_rows

POLL_S = 0.3
KEPT_S = 400.0  # events that a row may still change with
SAMPLE = "sample"


def main() -> None:
    database_url, hot = os.environ["HEADWAY_DATABASE_URL"], Path(os.environ["HEADWAY_EVENT_LOG"]) / "hot"
    work_dir = Path(os.environ["HEADWAY_STATE_DIR"])
    work_dir.mkdir(parents=True, exist_ok=True)
    stopping = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    parent_watch.watch(lambda: os.kill(os.getpid(), signal.SIGTERM))
    beat = PipelineHeartbeat(database_url)
    heart = Heartbeat(work_dir / FILE, write_row=beat.write)
    heart.start()
    sink, stage = MetricsSink(database_url), CRASHED
    try:
        sink.starting()
        sink.ready()
        sys.stderr.write("ready after\n")
        sys.stderr.flush()
        _stream(hot, sink, stopping)
        stage = STOPPED
    finally:
        heart.end()
        sink.close()
        beat.ended(stage)


def _stream(hot: Path, sink: MetricsSink, stopping: threading.Event) -> None:
    kept: list[JobEvent | QueueSample] = []
    batch, beat_at_s = 0, 0.0
    while not stopping.wait(POLL_S):
        began_s = time.monotonic()
        files = sorted(hot.glob("*.parquet"))
        if not files:
            if began_s - beat_at_s > PIPELINE_BEAT_S:
                beat_at_s = began_s
                sink.beat()
            continue
        rows = [row for file in files for row in pq.read_table(file).to_pylist()]
        new = [_event(row) for row in rows]
        touched = {(each.queue, bucket_start_s(each.at_s)) for each in new}
        newest_s = max(row["received_at_s"] for row in rows)
        kept = [each for each in (*kept, *new) if each.at_s > newest_s - KEPT_S]
        found = [each for each in kept if (each.queue, bucket_start_s(each.at_s, span_s=BUCKET_S)) in touched]
        batch += 1
        progress = Progress(batch_id=batch, batch_s=time.monotonic() - began_s, newest_received_at_s=newest_s)
        sink.write(bucket_rows(found), progress)
        for file in files:
            file.unlink()


def _event(row: dict[str, object]) -> JobEvent | QueueSample:
    if row["kind"] == SAMPLE:
        names = ("queue", "at_s", "waiting_jobs", "in_flight_jobs", "delayed_jobs", "oldest_age_s")
        return QueueSample(**{name: row[name] for name in names})  # type: ignore[arg-type]
    names = ("queue", "job_id", "at_s", "enqueued_at_s", "started_at_s", "job_class", "attempt")
    return JobEvent(kind=EventKind(str(row["kind"])), **{name: row[name] for name in names})  # type: ignore[arg-type]


if __name__ == "__main__":
    main()
