"""What has served its time goes: so that no table grows without end, whatever comes and goes in an installation.

How long metrics are kept stands here; they go where they are rolled up. Decisions expire by their partitions, and what
belongs to a host goes with the host.
"""

from collections.abc import Mapping

from sqlalchemy import text

from headway.scaling.arithmetic import DAY_S
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
RELEASED_KEPT_DAYS = 7  # longer than a job takes that its draining worker still reports
_FORGOTTEN_AT_ONCE = 10_000  # rows a transaction: short locks, and a stop is never far

_NO_PROFILE = "not exists (select from profile_queues where profile_queues.queue = {table}.queue)"
_UNREAD = f"""
    not exists (select 1 from queue_samples where queue_samples.queue = queues.queue)
    and not exists (
        select 1 from rollup_hours where rollup_hours.queue = queues.queue
        and rollup_hours.bucket_s > extract(epoch from now() - interval '{QUEUES_KEPT_S} seconds'))
"""  # noqa: S608 - a number of ours

SERVED: Mapping[str, str] = {
    "event_batches": f"claimed_at < now() - interval '{CLAIMS_KEPT_DAYS} days'",
    "event_files": f"recorded_at < now() - interval '{FILES_KEPT_DAYS} days'",
    "worker_activities": f"seen_at < now() - interval '{ACTIVITIES_KEPT_S} seconds'",
    "queue_samples": f"received_at < now() - interval '{QUEUES_KEPT_S} seconds' "
    f"and {_NO_PROFILE.format(table='queue_samples')}",
    "queues": f"seen_at < now() - interval '{QUEUES_KEPT_S} seconds' and {_NO_PROFILE.format(table='queues')} "
    f"and {_UNREAD}",
    "job_reports": f"recorded_at < now() - interval '{REPORTS_KEPT_S} seconds'",
    "event_sources": "coalesce(greatest(arrivals_at, starts_at, ends_at), '-infinity') "
    f"< now() - interval '{REPORTED_FOR_S} seconds'",
    # Rows of a minute say how long jobs waited meanwhile.
    "listed_workers": f"until_s < extract(epoch from now() - interval '{MINUTES_KEPT_S} seconds')",
    "collectors": f"seen_at < now() - interval '{SOURCES_KEPT_S} seconds'",
    "released_assignments": f"released_at < now() - interval '{RELEASED_KEPT_DAYS} days'",
    "queue_counts": f"received_at_s < extract(epoch from now() - interval '{CLAIMS_KEPT_DAYS} days')",
    "producers": f"seen_at < now() - interval '{CLAIMS_KEPT_DAYS} days'",
    "queue_seasons": f"trained_at < now() - interval '{SEASONS_KEPT_DAYS} days' "
    f"and {_NO_PROFILE.format(table='queue_seasons')}",
    "queue_totals": f"{_NO_PROFILE.format(table='queue_totals')} "
    "and not exists (select from queues where queues.queue = queue_totals.queue)",
    "pool_attainment": f"from_s < extract(epoch from now() - interval '{ATTAINMENT_KEPT_DAYS} days')",
    "alerts": f"until_s < extract(epoch from now() - interval '{ALERTS_KEPT_S} seconds')",
    "job_cuts": f"recorded_at < now() - interval '{CUTS_KEPT_DAYS} days'",
    "silences": f"until_s < extract(epoch from now() - interval '{SILENCES_KEPT_DAYS} days')",
    "audit_log": "action in ('call refused', 'sign-in failed', 'host renamed', 'host report refused') "
    f"and acted_at < now() - interval '{REFUSALS_KEPT_DAYS} days'",
}
"""Table -> which of its rows have served."""


async def forget_old(engine: Engine, table: str) -> int:
    """Delete what has served of ``table``. Returns how many rows went."""
    statement = text(
        f"delete from {table} where ctid = any(array("  # noqa: S608 - names of our own
        f"select ctid from {table} where {SERVED[table]} limit :rows))"
    )
    forgotten = 0
    while True:
        async with transaction(engine) as connection:
            deleted = (await connection.execute(statement, {"rows": _FORGOTTEN_AT_ONCE})).rowcount
        forgotten += deleted
        if deleted < _FORGOTTEN_AT_ONCE:
            return forgotten
