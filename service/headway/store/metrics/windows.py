"""The rows that a longer window of some queues is made of: minutes as far as they are rolled up, then buckets."""

from collections.abc import Collection
from dataclasses import dataclass

from sqlalchemy import func, select

from headway.scaling.measure import BUCKET_S, CLASS_BUCKET_S, BucketRow
from headway.store.engine import Connection
from headway.store.overview import bucket_row
from headway.store.tables import queue_buckets, rollup_minutes, rollup_progress


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowRows:
    """What is known of some queues up to a moment."""

    until_s: float
    since_s: float | None
    """When the first of them was read or reported first, as far as rows are kept; ``None``: never."""
    buckets: tuple[BucketRow, ...]
    """Of 5 s, for windows that begin at ``fine_from_s`` or later."""
    minutes: tuple[BucketRow, ...]
    """Minutes, and the buckets since the last whole one."""
    classes: tuple[BucketRow, ...]
    """Minutes of job classes, the running one included."""


async def measured_until_s(conn: Connection) -> float | None:
    """How far the pipeline has come, whatever queue it was for; ``None`` before its first bucket."""
    newest_s = (await conn.execute(select(func.max(queue_buckets.c.bucket_s)))).scalar()
    return None if newest_s is None else float(newest_s) + BUCKET_S


async def read_window_rows(
    conn: Connection, *, queues: Collection[str], until_s: float, from_s: float, fine_from_s: float
) -> WindowRows:
    """The rows of ``queues`` that have a part between ``from_s`` and ``until_s``, which is now or not long ago."""
    rolled_s = float((await conn.execute(select(rollup_progress.c.minutes_until_s))).scalar_one())
    table = queue_buckets.c
    rows = await conn.execute(
        select(queue_buckets)
        .where(table.queue.in_(queues), table.bucket_s > min(fine_from_s, max(from_s, rolled_s)) - BUCKET_S)
        .order_by(table.bucket_s)
    )
    found = [bucket_row(row) for row in rows.mappings()]
    table = rollup_minutes.c
    rows = await conn.execute(
        select(rollup_minutes)
        .where(table.queue.in_(queues), table.bucket_s > from_s - CLASS_BUCKET_S)
        .order_by(table.job_class, table.bucket_s)
    )
    minutes = [bucket_row(row, span_s=CLASS_BUCKET_S) for row in rows.mappings()]
    first = (
        select(func.min(each.c.bucket_s)).where(each.c.queue.in_(queues)) for each in (queue_buckets, rollup_minutes)
    )
    since_s = [float(at_s) for query in first if (at_s := (await conn.execute(query)).scalar()) is not None]
    return WindowRows(
        until_s=until_s,
        since_s=min(since_s, default=None),
        buckets=tuple(row for row in found if row.bucket_s > fine_from_s - BUCKET_S),
        minutes=(
            *(row for row in minutes if row.job_class is None and row.bucket_s < rolled_s),
            *(row for row in found if row.bucket_s >= rolled_s),
        ),
        classes=tuple(row for row in minutes if row.job_class is not None),
    )
