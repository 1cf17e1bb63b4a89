"""The stream: event log -> buckets -> wherever the sink puts them.

The shell around ``buckets``; it defines no metric.
"""

import logging
import re
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from py4j.protocol import Py4JError, Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from headway.errors import HeadwayError, Misconfigured, Unavailable
from headway.scaling.measure import BucketRow
from headway.scaling.model.event_row import SCHEMA_VERSION
from headway_spark.event_log.schema import EVENTS, NEWER, readable
from headway_spark.session import has_jvm
from headway_spark.stream import source_log
from headway_spark.stream.buckets import bucket_row, buckets, with_bucket
from headway_spark.stream.checkpoint import is_missing, keep_private, why_unfit

# Ingest takes events up to 600 s late and moves others. A bucket is followed by its start, 5 s earlier; the rest is for
# a file that comes to be read after one that was written later. So nothing is ever dropped here in silence.
LATENESS_S = 660.0
PIPELINE_FILES_MAX = 250  # a trigger: bounds the memory of catching up, and what a kill amid it undoes
PACE_S = 0.25  # while events keep coming: 5,000 a second take 0.9 s at p95, after 0.4 s 1.1, for 0.12 of a core more
POLL_S = 0.25
PIPELINE_BEAT_S = 15.0  # a pipeline without news still says that it lives
LISTENING_BOUND_S = 300.0  # alone it takes seconds; a machine that is overloaded may need minutes
PIPELINE_HUNG_BATCH_S = 120.0  # catching up, a batch has 250 files at most, which take seconds
PIPELINE_JVM_END_S = 2.0  # a killed process of many threads hangs up some moments before it is gone
PIPELINE_BATCH_END_BOUND_S = 3.0  # of the few seconds a stop may take

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How one micro-batch went."""

    batch_id: int
    batch_s: float
    newest_received_at_s: float | None
    """When the newest event in it was received, Unix seconds: what its lag is measured from."""


class Unfit(Misconfigured):
    """No stream can go on from the checkpoint; a rebuild makes another."""


class Sink(Protocol):
    """Makes rows durable and notifies whoever waits."""

    def write(self, rows: Sequence[BucketRow], progress: Progress) -> object:
        """The same rows again change nothing: a replayed batch brings them. What it raises ends the stream."""

    def beat(self) -> None:
        """The stream lives and has nothing to write."""

    def close(self) -> None:
        """Give up whatever is being written: ``write`` raises from now on."""


class Stream:
    """The query over one event log, from its checkpoint on. It only reads; a ``Keeper`` moves what has been read."""

    def __init__(
        self,
        session: SparkSession,
        *,
        log_dir: Path,
        checkpoint: Path | str,
        sink: Sink,
        pace_s: float = PACE_S,
        source: Callable[[], DataFrame] | None = None,
    ) -> None:
        self._session = session
        self._log_dir = log_dir
        self._checkpoint = checkpoint
        self._sink = sink
        self._pace_s = pace_s
        self._source = source
        self._query: StreamingQuery | None = None
        self._is_resumed = False
        self._batches = 0
        self._batch_error: Exception | None = None
        self._is_writing = False
        self._computed_at_s: float | None = None
        """When this process last saw the query get on, by the monotonic clock; ``None`` while nothing is to be seen."""

    def start(self) -> None:
        """Return once the stream listens.

        Raises:
            Misconfigured: the checkpoint is of a query that this version cannot go on with, is damaged, or knows less
                than the log's archive.
            Unavailable: Spark cannot run it.
        """
        if self._folder is not None:
            (self._log_dir / "hot").mkdir(parents=True, exist_ok=True, mode=0o700)
            if (why := why_unfit(self._folder, self._log_dir)) is not None:
                raise unfit(self._folder, why)
            if is_missing(self._folder):
                # What a killed start began would be taken for an old one.
                shutil.rmtree(self._folder, ignore_errors=True)
            keep_private(self._folder, is_shared=not str(self._session.sparkContext.master).startswith("local"))
            source_log.trim(self._folder)
        self._batches = 0
        # Of one that is no folder it is not known; what goes wrong at the start is then its fault.
        self._is_resumed = not isinstance(self._checkpoint, Path) or (self._checkpoint / "offsets").exists()
        deadline_s = time.monotonic() + LISTENING_BOUND_S
        try:
            self._query = query = self._started()
            while query.isActive and query.status["message"].startswith("Initializing"):
                if time.monotonic() > deadline_s:
                    raise Unavailable(
                        f"the stream over {self._log_dir} does not begin within {LISTENING_BOUND_S:.0f} s"
                    )
                time.sleep(0.02)
            if not query.isActive:
                query.awaitTermination()
        except (PySparkException, Py4JError, OSError) as error:
            raise self._failure(error) from error

    @property
    def _folder(self) -> Path | None:
        """The checkpoint of a stream of files, whose list of them is maintained; None of another source."""
        return self._checkpoint if self._source is None and isinstance(self._checkpoint, Path) else None

    def run(self, *, is_stopping: Callable[[], bool]) -> None:
        """Return when ``is_stopping``, between two batches where they are short.

        Raises:
            HeadwayError: what the sink raised, or why the stream cannot go on.
        """
        beat_at_s = self._computed_at_s = time.monotonic()
        try:
            while not is_stopping():
                assert self._query is not None, "run before it was started"
                if not self._query.isActive:
                    self._query.awaitTermination()
                    raise Unavailable("the stream ended by itself")
                if not self._query.status["isTriggerActive"]:
                    self._computed_at_s = time.monotonic()
                time.sleep(POLL_S)
                if time.monotonic() - beat_at_s >= PIPELINE_BEAT_S:
                    beat_at_s = time.monotonic()
                    self._watch()
        except (PySparkException, Py4JError, OSError) as error:
            raise self._failure(error) from error
        finally:
            self._computed_at_s = None

    def require_progress(self, *, within_s: float = PIPELINE_HUNG_BATCH_S) -> None:
        """Return unless Spark computes on one batch for longer than any takes. From any thread.

        A batch that waits for whoever takes its rows is not Spark's to end: a new start would wait for the same.

        Raises:
            Unavailable: it does. Its JVM answers, and yet nothing will come of it.
        """
        seen_s = self._computed_at_s
        if seen_s is not None and not self._is_writing and time.monotonic() - seen_s > within_s:
            raise Unavailable(f"a batch has been under way for {within_s:.0f} s")

    def stop(self) -> None:
        """End the query, between two batches where they are short. Does nothing when it has ended."""
        if self._query is None or not has_jvm(self._session):
            return
        if not _is_between_batches(self._query):
            self._sink.close()
        try:
            self._query.stop()
        except (PySparkException, Py4JError) as error:
            # Its batch is replayed by the next start, and there is nothing else to end.
            log.warning("ended amid a batch: %s", why_failed(error))

    def _watch(self) -> None:
        assert self._query is not None, "maintained before it was started"
        # A trigger that hangs must not seem alive.
        if not self._query.status["isTriggerActive"]:
            self._sink.beat()
        progress = self._query.lastProgress
        dropped = sum(each.numRowsDroppedByWatermark for each in progress.stateOperators) if progress else 0
        if progress and dropped:
            log.warning("dropped late events=%d batch=%d older_than_s=%.0f", dropped, progress.batchId, LATENESS_S)
        is_long = self._folder is not None and source_log.is_long(self._folder)
        if is_long and _is_between_batches(self._query):
            self._query.stop()
            self.start()

    def _started(self) -> StreamingQuery:
        events = file_events(self._session, self._log_dir) if self._source is None else self._source()
        return rows_of(events, self._checkpoint).foreachBatch(self._write).start()

    def _write(self, frame: DataFrame, batch_id: int) -> None:
        began_s = time.monotonic()
        try:
            found = frame.toArrow().to_pylist()
            newest_s = max((row["newest_received_at_s"] for row in found), default=None)
            rows = [bucket_row(row) for row in found]
            batch_s = time.monotonic() - began_s
            with self._writing():
                self._sink.write(rows, Progress(batch_id=batch_id, batch_s=batch_s, newest_received_at_s=newest_s))
        except Exception as error:
            # What Spark makes of it would be hard to read.
            self._batch_error = error
            raise
        self._batches += 1
        # After the rows are out: what comes alone waits for nothing.
        time.sleep(max(0.0, self._pace_s - (time.monotonic() - began_s)))

    @contextmanager
    def _writing(self) -> Iterator[None]:
        self._is_writing = True
        try:
            yield
        finally:
            self._is_writing, self._computed_at_s = False, time.monotonic()

    def _failure(self, error: Exception) -> Exception:
        """The error to raise for a query that has ended with ``error``."""
        if isinstance(self._batch_error, HeadwayError):
            return self._batch_error
        cause = failure(self._batch_error or error, session=self._session, log_dir=self._log_dir)
        if type(cause) is Unavailable and has_jvm(self._session) and self._is_resumed and self._batches == 0:
            why = why_failed(self._batch_error or error)
            if self._folder is None:
                return Misconfigured(
                    f"the topic does not answer, or the checkpoint {self._checkpoint} does not fit this version's "
                    f"query or is damaged ({why}): if it is the checkpoint, delete it; two hours are then read again"
                )
            return unfit(self._folder, f"it does not fit this version's query or is damaged ({why})")
        return cause


def failure(error: Exception, *, session: SparkSession, log_dir: Path) -> HeadwayError:
    """The error to raise for a query over ``log_dir`` that has ended with ``error``."""
    # One that is killed hangs up before it has ended.
    is_cut_off = isinstance(error, Py4JError | OSError) and not isinstance(error, Py4JJavaError)
    if not has_jvm(session, after_s=PIPELINE_JVM_END_S if is_cut_off else 0.0):
        return Unavailable("Spark's JVM has ended; its last words are above, if it had any")
    why = why_failed(error)
    if NEWER in why:
        return Misconfigured(
            f"the event log at {log_dir} holds events of a newer version than this pipeline reads, {SCHEMA_VERSION}: "
            "install the version of Headway that wrote them; until then they stay where they are"
        )
    return Unavailable(f"the stream over {log_dir} has failed: {why}")


def file_events(session: SparkSession, log_dir: Path) -> DataFrame:
    """The files in hot/, as a stream."""
    return (
        session.readStream.schema(EVENTS)
        .option("pathGlobFilter", "*.parquet")
        .option("maxFilesPerTrigger", PIPELINE_FILES_MAX)
        .option("maxFileAge", f"{source_log.KEPT_S:.0f}s")
        .parquet(str(log_dir / "hot"))
    )


def rows_of(events: DataFrame, checkpoint: Path | str) -> DataStreamWriter:
    """The stream's one query: rows of buckets, from ``events`` as in ``schema.EVENTS``, its state in ``checkpoint``."""
    rows = buckets(with_bucket(readable(events), lateness_s=LATENESS_S))
    return rows.writeStream.outputMode("update").option("checkpointLocation", str(checkpoint))


def unfit(checkpoint: Path, why: str) -> Unfit:
    """The error to raise for a checkpoint that no stream can go on from."""
    return Unfit(
        f"the stream cannot go on from the checkpoint {checkpoint}: {why}; run `headway pipeline rebuild`, which makes "
        "a new one from the event log and loses nothing"
    )


def _is_between_batches(query: StreamingQuery) -> bool:
    """Whether no batch is under way, after a short wait for the end of one that is.

    Stopping amid a batch makes Spark print its own confusion; the batch would only be replayed.
    """
    deadline_s = time.monotonic() + PIPELINE_BATCH_END_BOUND_S
    while query.isActive and query.status["isTriggerActive"]:
        if time.monotonic() > deadline_s:
            return False
        time.sleep(0.02)
    return True


def why_failed(error: Exception) -> str:
    """What Spark says went wrong, in a line, without what it wraps around that."""
    said = str(error.java_exception) if isinstance(error, Py4JJavaError) else str(error)
    said = re.sub(r"\[STREAM_FAILED\] Query \[id = .*?\] terminated with exception:|SQLSTATE: \w{5}", "", said)
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
