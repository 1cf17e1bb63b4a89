"""The rows that a series of a queue or pool is made of: its measures at one span, and what decisions recorded."""

import asyncio
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from sqlalchemy import Text, cast, select, text

from headway.scaling.arithmetic import HOUR_S, MINUTE_S
from headway.scaling.measure import BUCKET_S, BucketRow, rolled_up
from headway.scaling.metrics.reports.series import (
    DECISION_HOLDS_S,
    SPANS_S,
    WORKERS,
    Axis,
    DecidedSpan,
    QueueReading,
    Source,
)
from headway.store.engine import Connection
from headway.store.retention import BUCKETS_KEPT_S, MINUTES_KEPT_S
from headway.store.sketch_columns import sketch_of
from headway.store.tables import queue_buckets, rollup_hours, rollup_minutes, rollup_progress

SERIES_MINUTES_MAX = 30_000  # rows of minutes: two seconds of work, in a thread; what has more is read in hours
_COLUMNS = (
    "queue",
    "bucket_s",
    "arrived_jobs",
    "started_jobs",
    "finished_jobs",
    "failed_jobs",
    "retried_attempts",
    "pickup_max_s",
    "sampled_at_s",
    "waiting_jobs",
    "in_flight_jobs",
    "delayed_jobs",
    "oldest_age_s",
)


def finest_source(*, from_s: float, until_s: float, now_s: float, queues: int) -> Source:
    """The finest rows that are kept of all of [from, until), as long as they are few enough to be read at once."""
    if from_s >= now_s - BUCKETS_KEPT_S:
        return Source.RAW
    is_few = queues * (until_s - from_s) / MINUTE_S <= SERIES_MINUTES_MAX
    return Source.MINUTES if is_few and from_s >= now_s - MINUTES_KEPT_S else Source.HOURS


async def read_series_rows(
    conn: Connection, *, queues: Collection[str], from_s: float, until_s: float, source: Source
) -> list[BucketRow]:
    """Rows of ``queues`` that begin in [from, until), all of the span of ``source``, without job classes.

    What is not rolled up yet is rolled up here. A span in which nothing happened and nothing waited may have no row.
    """
    progress = (await conn.execute(select(rollup_progress))).one()
    hours_until_s = progress.hours_until_s if source is Source.HOURS else from_s
    minutes_until_s = from_s if source is Source.RAW else max(progress.minutes_until_s, hours_until_s)
    parts = (
        (rollup_hours, HOUR_S, from_s, hours_until_s),
        (rollup_minutes, MINUTE_S, max(from_s, hours_until_s), minutes_until_s),
        (queue_buckets, BUCKET_S, max(from_s, minutes_until_s), until_s),
    )
    found = []
    for table, span_s, first_s, end_s in parts:
        if first_s >= min(end_s, until_s):
            continue
        query = select(*(table.c[name] for name in _COLUMNS), cast(table.c.pickup_sketch, Text)).where(
            table.c.queue.in_(queues), table.c.bucket_s >= first_s, table.c.bucket_s < min(end_s, until_s)
        )
        if table is not queue_buckets:
            query = query.where(table.c.job_class == "")
        found.append((span_s, (await conn.execute(query)).all()))
    return await asyncio.to_thread(_at_span, found, SPANS_S[source])


def _at_span(found: Iterable[tuple[float, Sequence[Any]]], span_s: float) -> list[BucketRow]:
    rows: list[BucketRow] = []
    finer: list[BucketRow] = []
    for own_span_s, parts in found:
        made = rows if own_span_s == span_s else finer
        for *plain, sketch in parts:
            values = dict(zip(_COLUMNS, plain, strict=True))
            made.append(BucketRow(**values, pickup_sketch=sketch_of(sketch), span_s=own_span_s))
    return [*rows, *rolled_up(finer, span_s=span_s)]


async def read_decided(conn: Connection, *, pool: str, axis: Axis) -> list[DecidedSpan]:
    """What was decided for ``pool`` in each span of ``axis``, oldest first, after what held as it begins."""
    asked = {
        "pool": pool,
        "step_s": axis.step_s,
        "from_s": axis.from_s - DECISION_HOLDS_S,
        "until_s": axis.until_s,
    }
    readings: dict[float, dict[str, QueueReading]] = defaultdict(dict)
    for row in await conn.execute(_READINGS, asked):
        readings[float(row.at_s)][row.queue] = QueueReading(
            waiting_max_jobs=row.waiting_max_jobs,
            oldest_age_max_s=row.oldest_age_max_s,
            is_empty_last=row.waiting_last_jobs == 0,
        )
    return [
        DecidedSpan(
            at_s=float(row.at_s),
            last_at_s=float(row.last_at_s),
            greatest=dict(zip(WORKERS, row.greatest, strict=True)),
            last=dict(zip(WORKERS, row.last, strict=True)),
            readings=readings.get(float(row.at_s), {}),
        )
        for row in await conn.execute(_DECIDED, asked)
    ]


_DECIDED = text(
    """
    with part as (
        select floor(extract(epoch from decided_at) / :step_s) * :step_s as at_s, decided_at, target_workers, body
        from decisions
        where pool = :pool and decided_at >= to_timestamp(:from_s) and decided_at < to_timestamp(:until_s)
    ),
    stored as (
        select at_s, decided_at, target_workers, running_workers, starting_workers, leaving_workers
        from part cross join lateral jsonb_to_record(body) as stored(
            running_workers integer, starting_workers integer, leaving_workers integer
        )
    )
    select at_s, extract(epoch from max(decided_at)) as last_at_s,
        array[max(running_workers), max(starting_workers), max(leaving_workers), max(target_workers)] as greatest,
        array[
            (array_agg(running_workers order by decided_at desc))[1],
            (array_agg(starting_workers order by decided_at desc))[1],
            (array_agg(leaving_workers order by decided_at desc))[1],
            (array_agg(target_workers order by decided_at desc))[1]
        ] as last
    from stored group by at_s order by at_s
    """
)
_READINGS = text(
    """
    with part as (
        select floor(extract(epoch from decided_at) / :step_s) * :step_s as at_s, decided_at, target_workers, body
        from decisions
        where pool = :pool and decided_at >= to_timestamp(:from_s) and decided_at < to_timestamp(:until_s)
    )
    select at_s, queue, max(waiting_jobs) as waiting_max_jobs, max(oldest_age_s) as oldest_age_max_s,
        (array_agg(waiting_jobs order by decided_at desc))[1] as waiting_last_jobs
    from part
    cross join lateral jsonb_to_record(body) as stored(is_fresh boolean, metrics jsonb)
    cross join lateral jsonb_to_recordset(metrics) as known(
        queue text, waiting_jobs bigint, oldest_age_s float8
    )
    where is_fresh and waiting_jobs is not null group by at_s, queue
    """
)
