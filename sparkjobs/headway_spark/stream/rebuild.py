"""Makes a checkpoint, and the rows of the last hours, anew from the log alone.

A mark beside the checkpoint says how far it is, so that whoever is killed can begin where it was:

    state  the old checkpoint goes; what the archive has of the last minutes moves back into hot/; the stream's own
           query reads hot/ to its end and writes no row: its state and its list of files are the new checkpoint
    rows   the rows of the same files, and of those that the archive has of the last two hours, are worked out and
           written, each whole: nobody ever reads a part of a count

What ingest writes meanwhile is in no list yet, and the stream's first batch takes it.
"""

import json
import logging
import math
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark program gives it

from headway.errors import Unavailable
from headway.local.files import write_whole
from headway_spark.event_log.archive import Archive
from headway_spark.event_log.log_files import LATE_S, archived, files, parquets, written_s
from headway_spark.event_log.schema import EVENTS, readable
from headway_spark.stream import source_log
from headway_spark.stream.buckets import bucket_row, buckets, with_bucket
from headway_spark.stream.checkpoint import (
    CHECKPOINT_HORIZON_S,
    Taken,
    is_missing,
    note_taken,
    query_of,
    rebuilding,
    sync_tree,
    why_unfit,
)
from headway_spark.stream.pipeline import LATENESS_S, Progress, Sink, failure, file_events, rows_of

# What was written before has no part in a bucket that may still change: those begin at most so long before the newest
# event as the watermark is behind, and that may have been received as late as ingest lets it.
REBUILD_OPEN_S = 2 * LATENESS_S + 120.0
REBUILD_ALIGNED_S = 60.0  # rows are made whole by the minute, which is the span of the longest
REBUILD_WRITTEN_ROWS = 5_000  # a transaction
POLL_S = 1

log = logging.getLogger(__name__)


class Stopped(Exception):
    """Asked to stop before the end; the mark says where to go on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """How far a rebuild is."""

    stage: str
    from_s: float
    """The first bucket whose rows are made anew."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuilt:
    """What a rebuild did."""

    from_s: float
    files: int
    rows: int
    took_s: float


def is_due(checkpoint: Path, log_dir: Path) -> bool:
    """Whether a start goes by way of a rebuild without being asked: one was begun, or there is no checkpoint at all."""
    if rebuilding(checkpoint).exists():
        return True
    return is_missing(checkpoint) and why_unfit(checkpoint, log_dir) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuild:
    """One rebuild. No stream and no keeper may run on the same log or checkpoint."""

    session: SparkSession
    log_dir: Path
    checkpoint: Path
    work_dir: Path
    sink: Sink
    is_stopping: Callable[[], bool] = lambda: False
    clock: Callable[[], float] = time.time

    def run(self) -> Rebuilt:
        """Begin, or go on where a killed one was.

        Raises:
            Stopped: asked to, before the end.
            Unavailable: the disk or Spark refuses.
            HeadwayError: what the sink raised.
        """
        began_s = time.monotonic()
        try:
            mark = self._mark() or self._begun()
            if mark.stage == "state":
                self._make_state()
                mark = self._noted(replace(mark, stage="rows"))
            paths = self._counted(mark)
            rows = self._write_rows(mark, paths) if paths else 0
            self._finished()
        except OSError as error:
            raise Unavailable(f"the checkpoint {self.checkpoint} cannot be rebuilt: {error}") from error
        except (PySparkException, Py4JError) as error:
            raise failure(error, session=self.session, log_dir=self.log_dir) from error
        return Rebuilt(from_s=mark.from_s, files=len(paths), rows=rows, took_s=time.monotonic() - began_s)

    # --- the mark ----------------------------------------------------------------------------------------------------

    def _mark(self) -> Mark | None:
        try:
            mark = Mark(**json.loads(rebuilding(self.checkpoint).read_text()))
        except FileNotFoundError:
            return None
        except (ValueError, TypeError):
            return None  # torn: from the beginning
        if mark.stage == "rows":
            try:
                source_log.entries(self.checkpoint)
            except ValueError:
                return None
            if is_missing(self.checkpoint):
                return None  # somebody deleted what had been made
        log.info("going on with a rebuild that was begun stage=%s", mark.stage)
        return mark

    def _begun(self) -> Mark:
        hot_s = [written_s(path) for path in parquets(self.log_dir / "hot")]
        # What has not been read may be older than any row: its events have never been counted.
        first_s = min([self.clock() - CHECKPOINT_HORIZON_S, *(each_s - LATE_S for each_s in hot_s)])
        return self._noted(Mark(stage="state", from_s=math.ceil(first_s / REBUILD_ALIGNED_S) * REBUILD_ALIGNED_S))

    def _finished(self) -> None:
        if (query := query_of(self.checkpoint)) is not None:
            note_taken(self.log_dir, Taken(query=query, number=source_log.committed_until(self.checkpoint)))
        rebuilding(self.checkpoint).unlink()

    def _noted(self, mark: Mark) -> Mark:
        path = rebuilding(self.checkpoint)
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_whole(path, json.dumps(asdict(mark)), is_durable=False)
        return mark

    # --- the state ---------------------------------------------------------------------------------------------------

    def _make_state(self) -> None:
        # From the beginning, also where a killed rebuild has made a part: that may be torn, and takes seconds to make.
        shutil.rmtree(self.checkpoint, ignore_errors=True)
        (self.log_dir / "hot").mkdir(parents=True, exist_ok=True, mode=0o700)
        newest_s = max((written_s(path) for path in files(self.log_dir)), default=self.clock())
        since_s = min(newest_s, self.clock()) - REBUILD_OPEN_S
        back = [path.name for path in archived(self.log_dir, from_s=since_s)]
        Archive(self.log_dir).give_back(back)
        log.info("rebuilding the stream's state files=%d", len(parquets(self.log_dir / "hot")))
        query = rows_of(file_events(self.session, self.log_dir), self.checkpoint).trigger(availableNow=True)
        running = query.foreachBatch(_unseen).start()
        while not running.awaitTermination(POLL_S):
            self.sink.beat()
            if self.is_stopping():
                running.stop()
                raise Stopped
        sync_tree(self.checkpoint)

    # --- the rows ----------------------------------------------------------------------------------------------------

    def _counted(self, mark: Mark) -> list[Path]:
        """The files whose events the new checkpoint or the archive has counted."""
        listed = {entry.name for entry in source_log.entries(self.checkpoint)}
        hot = self.log_dir / "hot"
        found = files(self.log_dir, from_s=mark.from_s)
        return [path for path in found if path.parent != hot or path.name in listed]

    def _write_rows(self, mark: Mark, paths: list[Path]) -> int:
        log.info("rebuilding rows files=%d from_s=%.0f", len(paths), mark.from_s)
        events = self.session.read.schema(EVENTS).parquet(*map(str, paths))
        # By the minute, as the mark is: an event before it has its bucket before it.
        recent = readable(events).where(F.col("at_s") >= mark.from_s)
        folder = self.work_dir / "rebuilt-rows"
        shutil.rmtree(folder, ignore_errors=True)
        try:
            buckets(with_bucket(recent, lateness_s=LATENESS_S)).write.parquet(str(folder))
            return self._sent(folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _sent(self, folder: Path) -> int:
        total = sum(pq.read_metadata(path).num_rows for path in parquets(folder))
        sent = 0
        for found in _slices(folder):
            if self.is_stopping():
                raise Stopped
            began_s = time.monotonic()
            newest_s = max((row["newest_received_at_s"] for row in found), default=None)
            rows = [bucket_row(row) for row in found]
            progress = Progress(batch_id=-1, batch_s=time.monotonic() - began_s, newest_received_at_s=newest_s)
            self.sink.write(rows, progress)
            sent += len(rows)
            log.info("rebuilt rows=%d of=%d", sent, total)
        return sent


def _slices(folder: Path) -> Iterator[list[dict[str, Any]]]:
    for path in sorted(parquets(folder)):
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=REBUILD_WRITTEN_ROWS, use_threads=False):
                yield batch.to_pylist()


def _unseen(frame: DataFrame, _batch_id: int) -> None:
    """Work a batch out, for its state, and show it to nobody."""
    frame.write.format("noop").mode("overwrite").save()
