"""Buckets of 5 s merged into minutes and hours, and what is kept of each.

The process that writes buckets does this, once a minute: rows are forgotten by the one that has rolled them up, so that
no outage of another leaves a gap. Time is the stream's: how far events have come, not how late it is. A pipeline that
was down for hours finds everything it left, and forgets it when its stream has passed it.

    queue_buckets, 5 s     a row while a queue is seen           2 hours
    rollup_minutes, 1 min  a row where anything happened         14 days    redone when one of its buckets changes
    rollup_hours, 1 h      a row where a minute has one          400 days   made when no event can change it any more

The rows of job classes begin as minutes. Everything here is absolute: done twice, it changes nothing.
"""

import logging
import threading
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import asdict, astuple, dataclass, replace
from datetime import UTC, tzinfo
from typing import Any, LiteralString

import psycopg
from psycopg import Connection, sql

from headway.scaling.arithmetic import DAY_S, HOUR_S, MINUTE_S
from headway.store.engine import first_line
from headway.store.metrics import rollup_statements as statements
from headway.store.metrics.queue_totals import count_up
from headway.store.metrics.seasons import train_due
from headway.store.missing_rights import MissingRights
from headway.store.retention import BUCKETS_KEPT_S, BUCKETS_UNCOUNTED_KEPT_S, HOURS_KEPT_S, MINUTES_KEPT_S

log = logging.getLogger(__name__)

ROLLUP_FINAL_S = 720.0  # so much behind the newest bucket, the stream takes no event: its lateness and a class's minute
ROLLUP_REWRITTEN_KEPT_S = 3600.0  # a bucket that is written again long after, by a rebuild, has neighbours yet to come
TEND_S = 60.0
ROLLUP_LOGGED_EVERY_S = 86_400.0  # what is stored is counted: seconds of work where there is much
CLOSE_BOUND_S = 3.0
ROLLUP_HOUR_QUEUES = 1_000  # a statement: 10,000 busy queues at once took a minute and a half, longer than any may
ROLLUP_FORGET_ROWS_MAX = 5_000  # a transaction: short locks, little WAL at once
ROLLUP_FORGET_TURNS_MAX = 100  # a round: four times what 10,000 queues write in a minute

_LOCK = 4_019_772_346  # of the advisory locks this database knows, this module's


@dataclass(frozen=True, slots=True, kw_only=True)
class _Progress:
    revision: int
    minutes_until_s: float
    hours_until_s: float


def tend(connection: Connection, *, is_stopping: Callable[[], bool], lacks: MissingRights) -> None:
    """Roll up what has changed, then forget what is past its time. ``connection`` commits by itself.

    Stopped or failed on the way, it goes over the same again the next time. ``lacks`` has what a right is missing for.
    """
    held = connection.execute(statements.TRY_LOCK, {"lock": _LOCK}).fetchone()
    if held != (True,):
        return  # another pipeline of this database does it
    try:
        with lacks.part("rollups of metrics"):
            _roll_up(connection, is_stopping)
        newest, _ = _row(connection, statements.NEWEST)
        if newest is not None and not is_stopping():
            with lacks.part("totals of queues"):
                final_s = min(newest - ROLLUP_FINAL_S, _progress(connection).minutes_until_s)
                count_up(connection, until_s=final_s, is_stopping=is_stopping)
        if newest is not None and not is_stopping():
            _forget(connection, newest_s=newest, is_stopping=is_stopping, lacks=lacks)
    finally:
        connection.execute(statements.UNLOCK, {"lock": _LOCK})


def _roll_up(connection: Connection, is_stopping: Callable[[], bool]) -> None:
    """Bring minutes and hours up to the newest bucket."""
    newest_s, revision = _row(connection, statements.NEWEST)
    if revision is None:  # no bucket at all: `least` passes over null
        return
    known = _progress(connection)
    minutes_until_s = newest_s // MINUTE_S * MINUTE_S
    asked = {"from_s": known.minutes_until_s, "until_s": minutes_until_s, "revision": known.revision}
    minutes = [minute for (minute,) in connection.execute(statements.CHANGED_MINUTES, asked)]
    for from_s in minutes:
        if is_stopping():
            return
        span = {"from_s": from_s, "until_s": from_s + MINUTE_S, "is_new": from_s >= known.minutes_until_s}
        connection.execute(statements.MERGE_MINUTE, {**span, "revision": known.revision})

    # A rebuilt past changes hours that were whole.
    hours_from_s = min(known.hours_until_s, min(minutes, default=newest_s) // HOUR_S * HOUR_S)
    hours_until_s = max(hours_from_s, (newest_s - ROLLUP_FINAL_S) // HOUR_S * HOUR_S)
    done = _Progress(revision=revision, minutes_until_s=minutes_until_s, hours_until_s=hours_from_s)
    _save(connection, done)  # whatever becomes of the hours, these minutes are made
    asked = {"from_s": hours_from_s, "until_s": hours_until_s}
    for (hour,) in connection.execute(statements.WHOLE_HOURS, asked):
        if not _is_hour_made(connection, from_s=hour, is_stopping=is_stopping):
            return
        _save(connection, replace(done, hours_until_s=hour + HOUR_S))
    _save(connection, replace(done, hours_until_s=hours_until_s))


def _is_hour_made(connection: Connection, *, from_s: float, is_stopping: Callable[[], bool]) -> bool:
    """Make the rows of the hour that begins at ``from_s``. Returns whether that came to its end."""
    span = {"from_s": from_s, "until_s": from_s + HOUR_S}
    queues = [queue for (queue,) in connection.execute(statements.QUEUES_OF_HOUR, span)]
    for first in range(0, len(queues), ROLLUP_HOUR_QUEUES):
        if is_stopping():
            return False
        connection.execute(statements.MERGE_HOUR, {**span, "queues": queues[first : first + ROLLUP_HOUR_QUEUES]})
    return True


def _forget(connection: Connection, *, newest_s: float, is_stopping: Callable[[], bool], lacks: MissingRights) -> None:
    """Delete what is past its time, in small transactions. What is not rolled up yet stays."""
    progress = _progress(connection)
    buckets_before_s = min((newest_s - BUCKETS_KEPT_S) // MINUTE_S * MINUTE_S, progress.minutes_until_s)
    minutes_before_s = min((newest_s - MINUTES_KEPT_S) // HOUR_S * HOUR_S, progress.hours_until_s)
    # What is deleted and in no total yet shows as a counter that falls. Who may not count keeps no bucket for ever.
    (counted_s,) = _row(connection, statements.TOTALS_UNTIL)
    if counted_s > newest_s - BUCKETS_UNCOUNTED_KEPT_S:
        buckets_before_s = min(buckets_before_s, counted_s)
    given = {"rows": ROLLUP_FORGET_ROWS_MAX, "rewritten_s": ROLLUP_REWRITTEN_KEPT_S}
    for table, statement, before_s in (
        ("queue_buckets", statements.FORGET_BUCKETS, buckets_before_s),
        ("rollup_minutes", statements.FORGET_MINUTES, minutes_before_s),
        ("rollup_hours", statements.FORGET_HOURS, newest_s - HOURS_KEPT_S),
    ):
        with lacks.part(f"deletion of old rows of {table}"):
            for _ in range(ROLLUP_FORGET_TURNS_MAX):
                deleted = connection.execute(statement, {**given, "before_s": before_s}).rowcount
                if deleted < ROLLUP_FORGET_ROWS_MAX or is_stopping():
                    break


@dataclass(frozen=True, slots=True)
class Level:
    """What one level of metrics takes."""

    table: str
    rows: int
    stored_bytes: int
    """Indexes and what has been deleted and not been used again included."""
    queues: int
    """That have rows in the newest day of it, or of its shorter life."""
    bytes_a_queue_and_day: float


def levels(connection: Connection) -> list[Level]:
    """What is stored at each level. Counts every row: for now and then."""
    found = []
    for table, span_s, kept_s in (
        ("queue_buckets", 5.0, BUCKETS_KEPT_S),
        ("rollup_minutes", MINUTE_S, MINUTES_KEPT_S),
        ("rollup_hours", HOUR_S, HOURS_KEPT_S),
    ):
        rows, stored_bytes, recent, queues, recent_s = connection.execute(
            statements.STORED_AT_LEVEL.format(table=sql.Identifier(table)),
            {"table": table, "span_s": span_s, "recent_s": min(kept_s, DAY_S)},
        ).fetchone() or (0, 0, 0, 0, None)
        # What a row takes, times the rows of a queue's day.
        of_day = float(recent) * DAY_S / (recent_s or DAY_S)
        size = stored_bytes / max(rows, 1) * of_day / max(queues, 1)
        found.append(Level(table, rows, stored_bytes, queues, bytes_a_queue_and_day=size))
    return found


class Rollups:
    """Tends the rollups once a minute in a thread of its own, so that no batch waits for it.

    Seasons are learned from them in the same thread, those whose turn has come, after the rollups.
    """

    def __init__(self, parameters: Mapping[str, Any], *, lacks: MissingRights, zone: tzinfo = UTC) -> None:
        self._parameters = parameters
        self._lacks = lacks
        self._zone = zone
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin, unless it has begun."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="rollups", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """End between two spans; what is not done is done the next time."""
        self._closing.set()
        if self._thread is not None:
            self._thread.join(CLOSE_BOUND_S)

    def _run(self) -> None:
        turns = 0
        while not self._closing.is_set():
            try:
                with closing(psycopg.connect(**self._parameters, autocommit=True)) as connection:
                    tend(connection, is_stopping=self._closing.is_set, lacks=self._lacks)
                    with self._lacks.part("seasons of queues"):
                        train_due(connection, self._zone, is_stopping=self._closing.is_set)
                    if turns % (ROLLUP_LOGGED_EVERY_S // TEND_S) == 0:
                        _log_levels(connection)
            except psycopg.Error as error:
                log.warning("metrics are not rolled up, trying again in a minute: %s", first_line(error))
            except Exception:
                # Without this thread nothing would be rolled up or forgotten any more, and nobody would notice.
                log.exception("metrics are not rolled up, trying again in a minute")
            turns += 1
            self._closing.wait(TEND_S)


def _log_levels(connection: Connection) -> None:
    try:
        found = levels(connection)
    except psycopg.Error as error:  # as where there is more than can be counted in time
        log.warning("what is stored was not counted: %s", first_line(error))
        return
    for level in found:
        log.info("stored level=%s rows=%d bytes=%d queues=%d bytes_a_queue_and_day=%.0f", *astuple(level))


def _progress(connection: Connection) -> _Progress:
    revision, minutes_until_s, hours_until_s = _row(connection, statements.PROGRESS)
    return _Progress(revision=revision, minutes_until_s=minutes_until_s, hours_until_s=hours_until_s)


def _save(connection: Connection, progress: _Progress) -> None:
    connection.execute(statements.SAVE_PROGRESS, asdict(progress))


def _row(connection: Connection, query: LiteralString) -> tuple[Any, ...]:
    found = connection.execute(query).fetchone()
    assert found is not None, "an aggregate gave no row"
    return found
