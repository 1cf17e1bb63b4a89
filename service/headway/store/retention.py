"""What has served its time goes: so that no table grows without end, whatever comes and goes in an installation.

How long metrics are kept stands here; they go where they are rolled up. Decisions expire by their partitions, and what
belongs to a host goes with the host.
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from sqlalchemy import ColumnElement, Table, and_, column, delete, exists, func, or_, select

from headway.scaling.arithmetic import DAY_S
from headway.store import tables
from headway.store.engine import Engine, transaction
from headway.store.events.event_sources import REPORTED_FOR_S, REPORTS_KEPT_S

BUCKETS_KEPT_S = 2 * 3600.0
BUCKETS_UNCOUNTED_KEPT_S = 6 * 3600.0  # that are in no total yet
MINUTES_KEPT_S = 14 * DAY_S
HOURS_KEPT_S = 400 * DAY_S
CLAIMS_KEPT_DAYS = 7  # the longest a producer may keep a batch and send it again
FILES_KEPT_DAYS = 30  # longer than any ingest stays dead before its files are recovered
ACTIVITIES_KEPT_S = 3600
SOURCES_KEPT_S = 86_400  # of collectors that no longer poll
QUEUES_KEPT_S = 86_400  # that no profile names and nobody reads: as long as collectors report a deleted one as empty
SEASONS_KEPT_DAYS = 30  # of such a queue: longer than any holiday of whoever brings it back
ATTAINMENT_KEPT_DAYS = 31  # the window of an error budget, and a day
ALERTS_KEPT_S = HOURS_KEPT_S  # one that goes on stays
SILENCES_KEPT_DAYS = 30  # that have ended; the audit log has them for good
REFUSALS_KEPT_DAYS = 90  # programs can have them written at will; what people changed is kept for good
CUTS_KEPT_DAYS = 30
POOL_EVENTS_KEPT_DAYS = 7  # they are posted within a day or given up
RELEASED_KEPT_DAYS = 7  # longer than a job takes that its draining worker still reports
_FORGOTTEN_AT_ONCE = 10_000  # rows a transaction: short locks, and a stop is never far


def _ago(*, days: float = 0.0, seconds: float = 0.0) -> ColumnElement[Any]:
    return func.now() - timedelta(days=days, seconds=seconds)


def _ago_s(kept_s: float) -> ColumnElement[Any]:
    return tables.epoch_s(_ago(seconds=kept_s))


def _has_no_profile(table: Table) -> ColumnElement[bool]:
    return ~exists().where(tables.profile_queues.c.queue == table.c.queue)


_IS_UNREAD = and_(
    ~exists().where(tables.queue_samples.c.queue == tables.queues.c.queue),
    ~exists().where(
        tables.rollup_hours.c.queue == tables.queues.c.queue,
        tables.rollup_hours.c.bucket_s > _ago_s(QUEUES_KEPT_S),
    ),
)
_REPORTED_AT = func.greatest(
    tables.event_sources.c.arrivals_at, tables.event_sources.c.starts_at, tables.event_sources.c.ends_at
)

_LATER = tables.pool_events.alias("later")
_HAS_LATER = (  # the newest says which number is next, for as long as there is such a pool
    exists()
    .where(
        _LATER.c.receiver == tables.pool_events.c.receiver,
        _LATER.c.pool == tables.pool_events.c.pool,
        _LATER.c.number > tables.pool_events.c.number,
    )
    .correlate(tables.pool_events)
)

_SERVED: Mapping[Table, ColumnElement[bool]] = {
    tables.event_batches: tables.event_batches.c.claimed_at < _ago(days=CLAIMS_KEPT_DAYS),
    tables.event_files: tables.event_files.c.recorded_at < _ago(days=FILES_KEPT_DAYS),
    tables.worker_activities: tables.worker_activities.c.seen_at < _ago(seconds=ACTIVITIES_KEPT_S),
    tables.queue_samples: and_(
        tables.queue_samples.c.received_at < _ago(seconds=QUEUES_KEPT_S), _has_no_profile(tables.queue_samples)
    ),
    tables.queues: and_(
        tables.queues.c.seen_at < _ago(seconds=QUEUES_KEPT_S), _has_no_profile(tables.queues), _IS_UNREAD
    ),
    tables.job_reports: tables.job_reports.c.recorded_at < _ago(seconds=REPORTS_KEPT_S),
    tables.event_sources: func.coalesce(_ago(seconds=REPORTED_FOR_S) > _REPORTED_AT, True),
    # Rows of a minute say how long jobs waited meanwhile.
    tables.listed_workers: tables.listed_workers.c.until_s < _ago_s(MINUTES_KEPT_S),
    tables.collectors: tables.collectors.c.seen_at < _ago(seconds=SOURCES_KEPT_S),
    tables.released_assignments: tables.released_assignments.c.released_at < _ago(days=RELEASED_KEPT_DAYS),
    tables.queue_counts: tables.queue_counts.c.received_at_s < _ago_s(CLAIMS_KEPT_DAYS * DAY_S),
    tables.producers: tables.producers.c.seen_at < _ago(days=CLAIMS_KEPT_DAYS),
    tables.queue_seasons: and_(
        tables.queue_seasons.c.trained_at < _ago(days=SEASONS_KEPT_DAYS), _has_no_profile(tables.queue_seasons)
    ),
    tables.queue_totals: and_(
        _has_no_profile(tables.queue_totals), ~exists().where(tables.queues.c.queue == tables.queue_totals.c.queue)
    ),
    tables.pool_attainment: tables.pool_attainment.c.from_s < _ago_s(ATTAINMENT_KEPT_DAYS * DAY_S),
    tables.alerts: tables.alerts.c.until_s < _ago_s(ALERTS_KEPT_S),
    tables.pool_events: and_(
        tables.pool_events.c.at_s < _ago_s(POOL_EVENTS_KEPT_DAYS * DAY_S),
        or_(_HAS_LATER, ~exists().where(tables.profiles.c.pool == tables.pool_events.c.pool)),
    ),
    tables.job_cuts: tables.job_cuts.c.recorded_at < _ago(days=CUTS_KEPT_DAYS),
    tables.silences: tables.silences.c.until_s < _ago_s(SILENCES_KEPT_DAYS * DAY_S),
    tables.audit_log: and_(
        tables.audit_log.c.action.in_(("call refused", "sign-in failed", "host renamed", "host report refused")),
        tables.audit_log.c.acted_at < _ago(days=REFUSALS_KEPT_DAYS),
    ),
}
SERVED = {table.name: condition for table, condition in _SERVED.items()}
"""Table -> which of its rows have served."""


async def forget_old(engine: Engine, table: str) -> int:
    """Delete what has served of ``table``. Returns how many rows went."""
    rows = tables.metadata.tables[table]
    place: ColumnElement[Any] = column("ctid")
    served = select(place).select_from(rows).where(SERVED[table]).limit(_FORGOTTEN_AT_ONCE).correlate(None)
    statement = delete(rows).where(place == func.any(func.array(served.scalar_subquery())))
    forgotten = 0
    while True:
        async with transaction(engine) as connection:
            deleted = (await connection.execute(statement)).rowcount
        forgotten += deleted
        if deleted < _FORGOTTEN_AT_ONCE:
            return forgotten
