"""Arrivals by queue and minute of the Unix clock, kept for the same minutes of later days."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from sqlalchemy import func, select, text

from headway.scaling.recall import MINUTE_S, minute_of
from headway.store.engine import Connection, Engine, transaction
from headway.store.leadership import fence
from headway.store.tables import queue_buckets

_KEEP = text(
    """
    insert into queue_minutes (queue, minute, arrived_jobs)
    select queue, floor(bucket_s / 60)::bigint as minute, sum(arrived_jobs) from queue_buckets
    where bucket_s >= :minute_s and arrived_jobs > 0
    group by 1, 2 having max(revision) > :after_revision
    on conflict (queue, minute) do update set arrived_jobs = excluded.arrived_jobs
        where queue_minutes.arrived_jobs < excluded.arrived_jobs
    """
)

# Summing up keeps each queue's search apart: joined plainly, Postgres would read the whole table for a few rows of it.
_READ = text(
    """
    select asked.queue, known.since, counted.minutes, counted.jobs
    from unnest(cast(:queues as text[])) as asked(queue)
    cross join lateral (select min(minute) as since from queue_minutes where queue = asked.queue) as known
    cross join lateral (
        select array_agg(minute) as minutes, array_agg(arrived_jobs) as jobs from queue_minutes
        where queue = asked.queue and minute = any(cast(:minutes as bigint[]))
    ) as counted
    where known.since is not null
    """
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MinuteCounts:
    """Some minutes of one queue."""

    since: int
    """The first minute that is known of the queue, wherever it lies."""
    jobs: Mapping[int, int]
    """Minute -> arrivals, of the minutes asked for that had any."""


async def keep_minutes(engine: Engine, *, after_revision: int, from_s: float, epoch: int) -> int:
    """Store the arrivals of each minute that has buckets written after ``after_revision`` that start at ``from_s`` on.

    The counts are absolute, so that repeating it changes nothing. Of two counts the greater stays: buckets are
    forgotten within hours, and a late one must not replace a minute by what is left of it.

    Returns:
        The newest revision among the buckets: the next time goes on after it.

    Raises:
        Superseded: another process leads under a later epoch; nothing was written.
    """
    async with transaction(engine) as connection:
        await fence(connection, epoch=epoch)
        is_new = queue_buckets.c.revision > after_revision
        has_arrivals = (queue_buckets.c.arrived_jobs > 0) & (queue_buckets.c.bucket_s >= from_s)
        news = await connection.execute(
            select(
                func.max(queue_buckets.c.revision).label("revision"),
                func.min(queue_buckets.c.bucket_s).filter(has_arrivals).label("bucket_s"),
            ).where(is_new)
        )
        newest = news.one()
        if newest.bucket_s is not None:
            # From the start of the earliest minute that changed: mostly of the last one or two, which is little to sum.
            minute_s = minute_of(newest.bucket_s) * MINUTE_S
            await connection.execute(_KEEP, {"minute_s": minute_s, "after_revision": after_revision})
    return after_revision if newest.revision is None else int(newest.revision)


async def read_minutes(
    conn: Connection, *, queues: Collection[str], minutes: Collection[int]
) -> dict[str, MinuteCounts]:
    """What came in ``minutes``, by queue; queues of which nothing is known are left out."""
    rows = await conn.execute(_READ, {"queues": list(queues), "minutes": list(minutes)})
    return {
        row.queue: MinuteCounts(since=row.since, jobs=dict(zip(row.minutes or (), row.jobs or (), strict=True)))
        for row in rows
    }
