"""Arrivals but for retries, by queue and minute of the Unix clock, as the rollups have them, for later days."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from sqlalchemy import text

from headway.scaling.arithmetic import MINUTE_S
from headway.store.engine import Connection

# Summing up keeps each queue's search apart: joined plainly, Postgres would read the whole table for a few rows of it.
_READ = text(
    """
    select asked.queue, known.since, counted.minutes, counted.jobs
    from unnest(cast(:queues as text[])) as asked(queue)
    cross join lateral (
        select min(bucket_s) / 60 as since from rollup_minutes where queue = asked.queue and job_class = ''
    ) as known
    cross join lateral (
        select array_agg(bucket_s / 60) as minutes, array_agg(arrived_jobs - retried_jobs) as jobs from rollup_minutes
        where queue = asked.queue and job_class = '' and arrived_jobs > retried_jobs
            and bucket_s = any(cast(:starts_s as double precision[]))
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


async def read_minutes(
    conn: Connection, *, queues: Collection[str], minutes: Collection[int]
) -> dict[str, MinuteCounts]:
    """What came in ``minutes``, by queue; queues of which nothing is known are left out."""
    rows = await conn.execute(_READ, {"queues": list(queues), "starts_s": [minute * MINUTE_S for minute in minutes]})
    return {
        row.queue: MinuteCounts(
            since=round(row.since), jobs=dict(zip(map(round, row.minutes or ()), row.jobs or (), strict=True))
        )
        for row in rows
    }
