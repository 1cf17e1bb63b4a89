"""Where Spark's rows go: one transaction a micro-batch, absolute values, so that a replayed one changes nothing."""

import json
import logging
import time
from collections.abc import Sequence
from dataclasses import fields
from typing import Protocol

import psycopg

from headway.errors import Unavailable
from headway.scaling.measure import BucketRow
from headway.store.engine import connect_parameters

PIPELINE = "main"
KEPT_S = 2 * 3600.0  # buckets of 5 s; later issues of history keep sums of them
FORGET_EVERY_S = 60.0
FORGET_ROWS_MAX = 20_000  # a statement: short locks, little WAL at once
RETRY_BOUND_S = 60.0  # a restart of Postgres takes seconds; beyond a minute somebody must look
RETRY_PAUSE_S = 0.5

_COLUMNS = [item.name for item in fields(BucketRow)]
_KEYS = ("queue", "bucket_s")
_SKETCHES = ("service_sketch", "pickup_sketch")

_UPSERT = f"""
insert into queue_buckets ({", ".join(_COLUMNS)}, revision)
select {", ".join(_COLUMNS)}, %(revision)s from arrived
on conflict (queue, bucket_s) do update set
    {", ".join(f"{name} = excluded.{name}" for name in _COLUMNS if name not in _KEYS)},
    revision = excluded.revision, written_at = now()
"""  # noqa: S608 - the names are this program's own

_HEALTH = """
insert into pipeline_health (pipeline, batch_id, rows, batch_s, newest_received_at_s, is_ready)
values (%(pipeline)s, %(batch_id)s, %(rows)s, %(batch_s)s, %(newest_received_at_s)s, %(is_ready)s)
on conflict (pipeline) do update set
    batch_id = excluded.batch_id, rows = excluded.rows, batch_s = excluded.batch_s,
    newest_received_at_s = coalesce(excluded.newest_received_at_s, pipeline_health.newest_received_at_s),
    is_ready = excluded.is_ready, written_at = now()
"""

log = logging.getLogger(__name__)


class Progress(Protocol):
    """How one micro-batch went."""

    @property
    def batch_id(self) -> int:
        """Its number in the stream."""

    @property
    def batch_s(self) -> float:
        """How long its rows took to compute."""

    @property
    def newest_received_at_s(self) -> float | None:
        """When the newest event in it was received."""


class MetricsSink:
    """Writes buckets into Postgres and tells who waits. Reconnects; a short outage only delays."""

    def __init__(self, database_url: str) -> None:
        self._parameters = connect_parameters(database_url)
        self._connection: psycopg.Connection[tuple[object, ...]] | None = None
        self._is_ready = False
        self._forgot_at_s = float("-inf")

    def write(self, rows: Sequence[BucketRow], progress: Progress) -> None:
        """Make ``rows`` durable under one new revision and notify its readers.

        Raises:
            Unavailable: Postgres could not be reached for a minute; nothing was written.
        """
        health = {
            "pipeline": PIPELINE,
            "batch_id": progress.batch_id,
            "rows": len(rows),
            "batch_s": progress.batch_s,
            "newest_received_at_s": progress.newest_received_at_s,
            "is_ready": self._is_ready,
        }
        self._retried(rows, health)

    def ready(self) -> None:
        """Say that the pipeline is warm."""
        self._is_ready = True
        self._tell(is_ready=True)

    def starting(self) -> None:
        """Say that the pipeline is not warm yet, whatever an earlier run said."""
        self._tell(is_ready=False)

    def close(self) -> None:
        """Give the connection back."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _tell(self, *, is_ready: bool) -> None:
        health = {"batch_id": -1, "rows": 0, "batch_s": 0.0, "newest_received_at_s": None}
        self._retried([], {"pipeline": PIPELINE, "is_ready": is_ready, **health})

    def _retried(self, rows: Sequence[BucketRow], health: dict[str, object]) -> None:
        deadline_s = time.monotonic() + RETRY_BOUND_S
        while True:
            try:
                return self._write(rows, health)
            except psycopg.OperationalError as error:
                self.close()
                if time.monotonic() > deadline_s:
                    raise Unavailable(f"Postgres could not be reached for {RETRY_BOUND_S:.0f} s: {error}") from error
                log.warning("Postgres is away, trying again: %s", str(error).splitlines()[0])
                time.sleep(RETRY_PAUSE_S)

    def _write(self, rows: Sequence[BucketRow], health: dict[str, object]) -> None:
        if self._connection is None:
            self._connection = psycopg.connect(**self._parameters)
        with self._connection.transaction(), self._connection.cursor() as cursor:
            if rows:
                cursor.execute("create temporary table arrived (like queue_buckets) on commit drop")
                # A copy of the table has its columns' rules, and the two that only the target fills are not null.
                cursor.execute("alter table arrived drop column revision, drop column written_at")
                with cursor.copy(f"copy arrived ({', '.join(_COLUMNS)}) from stdin") as copy:
                    for row in rows:
                        copy.write_row([_cell(row, name) for name in _COLUMNS])
                cursor.execute("select nextval('bucket_revision')")
                found = cursor.fetchone()
                assert found is not None
                cursor.execute(_UPSERT, {"revision": found[0]})
                cursor.execute("select pg_notify('headway_metrics', %s)", [str(found[0])])
            cursor.execute(_HEALTH, health)
            self._forget(cursor)

    def _forget(self, cursor: psycopg.Cursor[tuple[object, ...]]) -> None:
        if time.monotonic() - self._forgot_at_s < FORGET_EVERY_S:
            return
        self._forgot_at_s = time.monotonic()
        cursor.execute(
            """
            delete from queue_buckets where ctid = any(array(
                select ctid from queue_buckets where bucket_s < extract(epoch from now()) - %s limit %s
            ))
            """,
            [KEPT_S, FORGET_ROWS_MAX],
        )


def _cell(row: BucketRow, name: str) -> object:
    value = getattr(row, name)
    return json.dumps(value) if name in _SKETCHES else value
