"""Keeps the log behind a stream: what is counted for good goes to the archive, what is old goes altogether.

A file may go once the commit of its batch is in the checkpoint. Spark writes that after the sink has returned, so the
rows are durable and no restart asks for the file again. What a power cut takes back of the checkpoint,
``restore`` puts back into the stream's sight before it starts.
"""

import logging
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from headway_spark.event_log.archive import Archive
from headway_spark.event_log.log_files import drop_left_holds, parquets
from headway_spark.stream import source_log
from headway_spark.stream.checkpoint import Taken, note_taken, query_of

KEEPER_STEP_S = 2.0  # between two scans: what is listed at each trigger stays some files
TIDY_EVERY_S = 60.0
PASSED_OVER_S = source_log.KEPT_S + 600.0  # older than the newest file read by so much, Spark reads a file never

log = logging.getLogger(__name__)


class Keeper:
    """Keeps the log in ``log_dir`` behind the stream of ``checkpoint``."""

    def __init__(self, archive: Archive, *, log_dir: Path, checkpoint: Path) -> None:
        self._archive = archive
        self._log_dir = log_dir
        self._checkpoint = checkpoint
        self._until = -1
        self._newest_s = 0.0
        self._tidied_at_s = float("-inf")
        self._problem: str | None = None

    def restore(self) -> None:
        """Put back what the stream will ask for again. Only while it does not run."""
        until = source_log.committed_until(self._checkpoint)
        pending = {entry.name for entry in source_log.entries(self._checkpoint, after=until)}
        missing = pending - {path.name for path in parquets(self._log_dir / "hot")}
        back = self._archive.give_back(missing) if missing else []
        if back:
            log.warning(
                "put back into the log's hot folder files=%d: their batch was not committed after all", len(back)
            )

    def run(self, is_stopping_within: Callable[[float], bool]) -> None:
        """Keep the log until asked to stop. A disk that refuses is logged, and asked again."""
        while not is_stopping_within(KEEPER_STEP_S):
            self.step(is_stopping=partial(is_stopping_within, 0.0))

    def step(self, *, is_stopping: Callable[[], bool] = lambda: False) -> None:
        """One scan: move what has been counted; now and then merge, delete and clear up."""
        try:
            self._move()
            now_s = time.time()
            if now_s - self._tidied_at_s >= TIDY_EVERY_S:
                self._tidied_at_s = now_s
                self._tidy(now_s, is_stopping=is_stopping)
        except (OSError, ValueError) as error:
            # The checkpoint may be amid a trim, the disk full or away. Nothing is lost, and the next scan is near.
            self._log_change(f"the log's archive is not kept: {error}")
        else:
            self._log_change(None)

    def _move(self) -> None:
        until = source_log.committed_until(self._checkpoint)
        if until == self._until:
            return
        found = source_log.entries(self._checkpoint, after=self._until)
        counted = [entry for entry in found if entry.number <= until]
        query = query_of(self._checkpoint)
        if query is None:
            raise ValueError(f"the checkpoint {self._checkpoint} has no name")
        note_taken(self._log_dir, Taken(query=query, number=until))
        self._archive.take([entry.name for entry in counted])
        self._newest_s = max([self._newest_s, *(entry.written_at_s for entry in counted)])
        self._until = until

    def _tidy(self, now_s: float, *, is_stopping: Callable[[], bool]) -> None:
        self._sweep()
        drop_left_holds(self._log_dir)
        self._archive.expire(now_s)
        self._archive.expire_damaged(now_s)
        while not is_stopping() and self._archive.merge_next(now_s, is_stopping=is_stopping):
            pass

    def _sweep(self) -> None:
        """Move what the stream will never read: it was read and forgotten, or came hours after it was written."""
        before_s = self._newest_s - PASSED_OVER_S
        old = [path.name for path in parquets(self._log_dir / "hot") if path.stat().st_mtime < before_s]
        if old and self._archive.take(old):
            log.info("moved to the archive what no stream reads files=%d older_than_s=%.0f", len(old), PASSED_OVER_S)

    def _log_change(self, problem: str | None) -> None:
        """Log a change."""
        if problem is not None and self._problem is None:
            log.warning("%s", problem)
        elif problem is None and self._problem is not None:
            log.info("the log's archive is kept again")
        self._problem = problem
