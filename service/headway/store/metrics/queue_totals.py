"""What each queue did since it was first counted, for counters that no restart sets back.

A total is what ``queue_totals`` has, of all before ``totals_until_s``, and the buckets from then on. Who rolls up moves
what no event can change any more from the one to the other, every five minutes and before buckets are deleted.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, LiteralString

import psycopg
from sqlalchemy import ColumnElement, Table, Text, cast, func, or_, select

from headway.scaling.metrics.job_totals import JobTotals
from headway.store.engine import Connection
from headway.store.metrics.rollup_statements import TOTALS_UNTIL
from headway.store.sketch_columns import SKETCHES, sketch_of
from headway.store.tables import queue_buckets, queue_totals, rollup_progress

TOTALS_EVERY_S = 300.0
TOTALS_BEHIND_MAX_S = 3600.0  # buckets are kept for two hours
TOTALS_PART_S = 3600.0  # a transaction: after an outage of the pipeline there may be days

_COUNTS = {
    "enqueued": "arrived_jobs",
    "started": "started_jobs",
    "finished": "finished_jobs",
    "failed": "failed_jobs",
    "retried": "retried_attempts",
}
_FIGURES = {**_COUNTS, "service_sum_s": "service_sum_s"}
"""Field of ``JobTotals`` -> its column."""


_COUNT: LiteralString = """
with new as materialized (
    select queue, arrived_jobs, started_jobs, finished_jobs, failed_jobs, retried_attempts, service_sum_s,
        service_sketch, pickup_sketch
    from rollup_minutes
    where job_class = '' and bucket_s >= %(from_s)s and bucket_s < %(until_s)s
        and arrived_jobs + started_jobs + finished_jobs + failed_jobs + retried_attempts > 0
),
part as materialized (
    select * from new
    union all
    select queue, arrived_jobs, started_jobs, finished_jobs, failed_jobs, retried_attempts, service_sum_s,
        service_sketch, pickup_sketch
    from queue_totals where queue in (select queue from new)
),
services as (
    select queue, jsonb_object_agg(index, jobs) as service_sketch from (
        select queue, each.key as index, sum(each.value::bigint)::bigint as jobs
        from part, jsonb_each_text(part.service_sketch) as each group by queue, each.key
    ) as counted group by queue
),
pickups as (
    select queue, jsonb_object_agg(index, jobs) as pickup_sketch from (
        select queue, each.key as index, sum(each.value::bigint)::bigint as jobs
        from part, jsonb_each_text(part.pickup_sketch) as each group by queue, each.key
    ) as counted group by queue
),
sums as (
    select queue, sum(arrived_jobs)::bigint as arrived_jobs, sum(started_jobs)::bigint as started_jobs,
        sum(finished_jobs)::bigint as finished_jobs, sum(failed_jobs)::bigint as failed_jobs,
        sum(retried_attempts)::bigint as retried_attempts, sum(service_sum_s) as service_sum_s
    from part group by queue
)
insert into queue_totals (queue, arrived_jobs, started_jobs, finished_jobs, failed_jobs, retried_attempts,
    service_sum_s, service_sketch, pickup_sketch)
select queue, arrived_jobs, started_jobs, finished_jobs, failed_jobs, retried_attempts,
    service_sum_s, coalesce(service_sketch, '{}'), coalesce(pickup_sketch, '{}')
from sums left join services using (queue) left join pickups using (queue)
on conflict (queue) do update set
    arrived_jobs = excluded.arrived_jobs, started_jobs = excluded.started_jobs,
    finished_jobs = excluded.finished_jobs, failed_jobs = excluded.failed_jobs,
    retried_attempts = excluded.retried_attempts, service_sum_s = excluded.service_sum_s,
    service_sketch = excluded.service_sketch, pickup_sketch = excluded.pickup_sketch
"""
_SAVE: LiteralString = "update rollup_progress set totals_until_s = %(until_s)s"


def count_up(connection: psycopg.Connection, *, until_s: float, is_stopping: Callable[[], bool]) -> None:
    """Take minutes that began before ``until_s``, and that no event can change any more, into the totals.

    What was there before the first call does not count: a total begins somewhere. Done twice, it changes nothing.
    """
    until_s = until_s // TOTALS_EVERY_S * TOTALS_EVERY_S
    ((counted_s,),) = connection.execute(TOTALS_UNTIL).fetchall()
    if not counted_s:
        connection.execute(_SAVE, {"until_s": until_s})
        return
    while counted_s < until_s and not is_stopping():
        next_s = min(until_s, counted_s + TOTALS_PART_S)
        with connection.transaction():
            connection.execute(_COUNT, {"from_s": counted_s, "until_s": next_s})
            connection.execute(_SAVE, {"until_s": next_s})
        counted_s = next_s


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveRow:
    """What one queue did in one bucket that is not in its total yet."""

    queue: str
    bucket_s: float
    jobs: JobTotals


async def read_totals_until_s(conn: Connection) -> float | None:
    """Up to which bucket the totals count; ``None`` where nothing was counted yet, or not of late.

    Then buckets may be gone that are in no total, as where an earlier version's pipeline wrote them.
    """
    newest_s = select(func.max(queue_buckets.c.bucket_s)).scalar_subquery()
    row = (await conn.execute(select(rollup_progress.c.totals_until_s, newest_s.label("newest_s")))).one()
    is_behind = row.newest_s is not None and row.newest_s - row.totals_until_s > TOTALS_BEHIND_MAX_S
    return None if is_behind or not row.totals_until_s else float(row.totals_until_s)


async def read_totals(conn: Connection) -> dict[str, JobTotals]:
    """Each queue's counted total."""
    rows = (await conn.execute(select(queue_totals.c.queue, *_job_columns(queue_totals)))).all()
    # Reading sketches takes time: not in the event loop.
    return await asyncio.to_thread(lambda: {queue: _jobs(values) for queue, *values in rows})


async def read_live(conn: Connection, *, from_s: float, after_revision: int) -> tuple[list[LiveRow], int]:
    """The eventful buckets from ``from_s`` on that were written after ``after_revision``.

    Returns:
        The rows, and the newest revision of any bucket.
    """
    table = queue_buckets.c
    is_eventful = or_(*(table[name] > 0 for name in _COUNTS.values()))
    newest = (await conn.execute(select(table.revision).order_by(table.revision.desc()).limit(1))).scalar() or 0
    found = await conn.execute(
        select(table.queue, table.bucket_s, *_job_columns(queue_buckets)).where(
            table.bucket_s >= from_s, table.revision > after_revision, is_eventful
        )
    )
    rows = found.all()
    return await asyncio.to_thread(
        lambda: [LiveRow(queue=queue, bucket_s=bucket_s, jobs=_jobs(values)) for queue, bucket_s, *values in rows]
    ), newest


def _job_columns(table: Table) -> list[ColumnElement[Any]]:
    plain = (table.c[name] for name in _FIGURES.values())
    return [*plain, *(cast(table.c[name], Text) for name in SKETCHES)]


def _jobs(values: Sequence[Any]) -> JobTotals:
    *figures, service, pickup = values
    return JobTotals(
        **dict(zip(_FIGURES, figures, strict=True)),
        service_sketch=sketch_of(service),
        pickup_sketch=sketch_of(pickup),
    )
