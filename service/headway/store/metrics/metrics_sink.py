"""Where Spark's rows go: one transaction a micro-batch, absolute values, so that a replayed one changes nothing."""

import json
import logging
import threading
import time
from collections.abc import Callable, Sequence
from datetime import UTC, tzinfo
from typing import LiteralString, Protocol

import psycopg
from psycopg.errors import UndefinedColumn, UndefinedTable

from headway.errors import Misconfigured, Unavailable
from headway.scaling.measure import BucketRow
from headway.store.engine import connect_parameters, first_line
from headway.store.metrics import rollup_statements as statements
from headway.store.metrics.rollups import Rollups
from headway.store.missing_rights import MissingRights
from headway.store.sketch_columns import SKETCHES

PIPELINE = "main"
STARTING, READY = "starting", "ready"
STATE = "the pipeline's own state"
RETRY_BOUND_S = 60.0  # a restart of Postgres takes seconds; beyond a minute a person must act
RETRY_PAUSE_S = 0.5
SINK_NOTICE_BYTES_MAX = 7_999  # what Postgres takes in a notification

_REVISION: LiteralString = "select nextval('bucket_revision')"
_HEALTH: LiteralString = """
insert into pipeline_health (
    pipeline, batch_id, rows, batch_s, newest_received_at_s, rows_lag_s, stage, is_ready, lacks
)
values (
    %(pipeline)s, %(batch_id)s, %(rows)s, %(batch_s)s, %(newest_received_at_s)s,
    case when %(newest_received_at_s)s::double precision is not null  -- which `greatest` would take for 0
        then greatest(0, extract(epoch from now()) - %(newest_received_at_s)s::double precision) end,
    %(stage)s, %(is_ready)s, %(lacks)s
)
on conflict (pipeline) do update set
    batch_id = excluded.batch_id, rows = excluded.rows, batch_s = excluded.batch_s,
    newest_received_at_s = coalesce(excluded.newest_received_at_s, pipeline_health.newest_received_at_s),
    rows_lag_s = coalesce(excluded.rows_lag_s, pipeline_health.rows_lag_s), stage = excluded.stage,
    is_ready = excluded.is_ready, lacks = excluded.lacks, written_at = now(), beat_at = now()
"""

_NOTE_STAGE: LiteralString = """
insert into pipeline_health (pipeline, batch_id, rows, batch_s, stage, is_ready, lacks)
values (%(pipeline)s, -1, 0, 0, %(stage)s, %(is_ready)s, %(lacks)s)
on conflict (pipeline) do update set
    stage = excluded.stage, is_ready = excluded.is_ready, lacks = excluded.lacks, written_at = now(), beat_at = now()
"""

# Whoever begins after one that did not end as it was asked to is its replacement, and reports so.
_NOTE_START: LiteralString = """
insert into pipeline_health (pipeline, batch_id, rows, batch_s, stage, is_ready)
values (%(pipeline)s, -1, 0, 0, 'starting', false)
on conflict (pipeline) do update set
    stage = case when pipeline_health.stage in ('starting', 'stopped') then 'starting' else 'restarting' end,
    is_ready = false, written_at = now(), beat_at = now()
"""

# The pools that stand at zero while jobs wait in a queue of theirs: only these need a notification at once. A pool that
# too few jobs wake, by its one queue, needs none: the next evaluation finds jobs that have waited for long enough.
# Where a row has no number of jobs, the newest reading of its queue may have a lower bound.
_ASLEEP: LiteralString = """
select distinct profile_queues.pool from arrived
join profile_queues using (queue)
join profiles using (pool)
left join pool_states using (pool)
left join queue_samples using (queue)
cross join lateral (select coalesce(arrived.waiting_jobs, queue_samples.waiting_min_jobs) as least_jobs) as waiting
where least_jobs > 0 and coalesce(pool_states.target_workers, 0) = 0
    and least_jobs + coalesce(arrived.in_flight_jobs, 0) > case
        when jsonb_typeof(body -> 'activation_jobs') = 'number' and jsonb_array_length(
            case jsonb_typeof(body -> 'queues') when 'array' then body -> 'queues' else '[]' end
        ) = 1
        then (body ->> 'activation_jobs')::numeric else 0 end
order by 1
"""
_NOTIFY: LiteralString = "select pg_notify('headway_metrics', %(notice)s)"

log = logging.getLogger(__name__)

Cursor = psycopg.Cursor


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
    """Writes buckets into Postgres and notifies waiters. Reconnects; a short outage only delays. Serves any thread."""

    def __init__(self, database_url: str, *, zone: tzinfo = UTC) -> None:
        self._parameters = connect_parameters(database_url)
        self._connection: psycopg.Connection | None = None
        self._lacks = MissingRights()
        self._rollups = Rollups(self._parameters, zone=zone, lacks=self._lacks)
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._stage = STARTING

    def write(self, rows: Sequence[BucketRow], progress: Progress) -> int | None:
        """Make ``rows`` durable under one new revision and notify its readers.

        Returns:
            The revision; none is taken for no rows.

        Raises:
            Unavailable: Postgres could not be reached for a minute, or the sink was closed; nothing was written.
        """
        revision: int | None = None
        health = {
            "pipeline": PIPELINE,
            "batch_id": progress.batch_id,
            "rows": len(rows),
            "batch_s": progress.batch_s,
            "newest_received_at_s": progress.newest_received_at_s,
            "stage": self._stage,
            "is_ready": self._stage == READY,
        }

        def work(cursor: Cursor) -> None:
            nonlocal revision
            revision = _write(cursor, rows, self._lacks) if rows else None
            with self._lacks.part(STATE), cursor.connection.transaction():
                cursor.execute(_HEALTH, {**health, "lacks": self._lacks.text})

        self._retried(work)
        return revision

    def ready(self) -> None:
        """Record that the pipeline is warm."""
        self.at(READY)

    def at(self, stage: str) -> None:
        """Record what the pipeline is doing: rebuilding, warming_up or ready.

        Raises:
            Misconfigured: the database has not the tables that are written to.
            Unavailable: Postgres could not be reached for a minute.
        """
        self._stage = stage
        self._retried(self._write_health)
        self._rollups.start()

    def beat(self) -> None:
        """Record that the pipeline lives and has nothing to write. Tried once: what waits for Postgres is a batch."""
        if not self._lock.acquire(blocking=False):
            return  # a batch has come meanwhile, and holds more
        try:
            if not self._closing.is_set():
                self._once(self._write_health)
        except psycopg.OperationalError as error:
            self._disconnect()
            log.warning("Postgres is away: %s", first_line(error))
        finally:
            self._lock.release()

    def starting(self) -> None:
        """Record that the pipeline is not warm yet, whatever an earlier run recorded.

        Raises:
            Misconfigured: the database has not the tables that are written to.
            Unavailable: Postgres could not be reached for a minute.
        """
        self._stage = STARTING
        self._retried(self._write_start)
        self._rollups.start()

    def close(self) -> None:
        """Give up what is being retried and give the connection back. Nothing is written from now on."""
        self._closing.set()
        self._rollups.close()
        with self._lock:
            self._disconnect()

    def _write_health(self, cursor: Cursor) -> None:
        with self._lacks.part(STATE), cursor.connection.transaction():
            given = {"pipeline": PIPELINE, "stage": self._stage, "is_ready": self._stage == READY}
            cursor.execute(_NOTE_STAGE, {**given, "lacks": self._lacks.text})

    def _write_start(self, cursor: Cursor) -> None:
        with self._lacks.part(STATE), cursor.connection.transaction():
            cursor.execute(_NOTE_START, {"pipeline": PIPELINE})

    def _retried(self, work: Callable[[Cursor], object]) -> None:
        """Do ``work`` in one transaction, again and again while Postgres is away."""
        deadline_s = time.monotonic() + RETRY_BOUND_S
        is_logged = False
        with self._lock:
            while not self._closing.is_set():
                try:
                    return self._once(work)
                except psycopg.OperationalError as error:
                    self._disconnect()
                    if time.monotonic() > deadline_s:
                        raise Unavailable(
                            f"Postgres could not be reached for {RETRY_BOUND_S:.0f} s: {first_line(error)}"
                        ) from error
                    if not is_logged:  # not with every try
                        log.warning("Postgres is away, trying again for %.0f s: %s", RETRY_BOUND_S, first_line(error))
                        is_logged = True
                    self._closing.wait(RETRY_PAUSE_S)
                except (UndefinedTable, UndefinedColumn) as error:
                    raise Misconfigured(
                        f"the database has not this version's tables ({first_line(error)}): run `headway migrate`"
                    ) from error
        raise Unavailable("the pipeline is stopping: nothing more is written")

    def _once(self, work: Callable[[Cursor], object]) -> None:
        if self._connection is None:
            self._connection = psycopg.connect(**self._parameters, autocommit=True)
        with self._connection.transaction(), self._connection.cursor() as cursor:
            work(cursor)

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _write(cursor: Cursor, rows: Sequence[BucketRow], lacks: MissingRights) -> int:
    cursor.execute(statements.ARRIVED)
    with cursor.copy(statements.COPY_ARRIVED) as copy:
        for row in rows:
            values = ((name, getattr(row, name)) for name in statements.VALUES)
            cells = (json.dumps(value) if name in SKETCHES else value for name, value in values)
            copy.write_row((row.queue, row.job_class or "", row.bucket_s, *cells))
    ((revision,),) = cursor.execute(_REVISION).fetchall()
    cursor.execute(statements.UPSERT_BUCKETS, {"revision": revision})
    if any(row.job_class for row in rows):
        with lacks.part("metrics of job classes"), cursor.connection.transaction():
            cursor.execute(statements.UPSERT_CLASSES)
    asleep = None
    with lacks.part("which pools have to wake"), cursor.connection.transaction():
        asleep = [pool for (pool,) in cursor.execute(_ASLEEP)]
    cursor.execute(_NOTIFY, {"notice": notice(revision, asleep)})
    return int(revision)


def notice(revision: int, asleep: Sequence[str] | None) -> str:
    """The notification for readers of metrics: the revision to read up to, and the pools that must wake.

    ``wake`` is null where they are not known or do not fit into a notification: then any pool may be meant.
    """
    payload = json.dumps({"revision": revision, "wake": asleep})
    return payload if len(payload) <= SINK_NOTICE_BYTES_MAX else json.dumps({"revision": revision, "wake": None})


def wakes(payload: str) -> bool:
    """Whether the payload of a notification names a pool that must wake; true for one that cannot be read."""
    try:
        return bool(json.loads(payload)["wake"] != [])
    except (ValueError, TypeError, KeyError):
        return True
