"""What people see: queues, pools, buckets for a chart, and how the installation itself is.

Only reads. Times are Unix seconds; whether something is still alive is Postgres's clock's to say.
"""

import asyncio
import os
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any

from sqlalchemy import RowMapping, Text, case, cast, func, select, text, union
from sqlalchemy.ext.asyncio import AsyncConnection

from headway.scaling.conditions.host_facts import HostRow
from headway.scaling.conditions.installation_facts import HealthRow, PipelineRow
from headway.scaling.fields import taken_from
from headway.scaling.measure import BUCKET_S, BucketRow
from headway.scaling.model import QueueSample, Redelivery, Suspension
from headway.scaling.model.due_jobs import due_from_pairs
from headway.store.access.tokens import read_expiring
from headway.store.events.event_sources import read_collectors, shared_connections
from headway.store.hosts.forced_kills import read_forced
from headway.store.hosts.hosts import load_hosts, while_shut
from headway.store.sketch_columns import SKETCHES, sketch_of
from headway.store.tables import (
    age_s,
    decisions,
    epoch_s,
    hosts,
    leader_epoch,
    leader_heartbeat,
    pipeline_health,
    pool_states,
    profile_queues,
    queue_buckets,
    queue_samples,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetRow:
    """What one stored decision set and what ran when it did."""

    at_s: float
    target_workers: int
    running_workers: int
    starting_workers: int


async def read_queues(conn: AsyncConnection, *, in_pools: bool = False) -> dict[str, str | None]:
    """Every queue that was seen or that a profile names, and the pool it belongs to; ``in_pools`` the latter only."""
    named = select(profile_queues.c.queue)
    names = (named if in_pools else union(select(queue_samples.c.queue), named)).subquery()
    rows = await conn.execute(
        select(names.c.queue, profile_queues.c.pool)
        .join(profile_queues, profile_queues.c.queue == names.c.queue, isouter=True)
        .order_by(names.c.queue)
    )
    return {row.queue: row.pool for row in rows}


async def read_samples(
    conn: AsyncConnection, *, queues: Collection[str] | None = None, in_pools: bool = False
) -> dict[str, QueueSample]:
    """The newest reading of each queue, of each of ``queues``, or, ``in_pools``, of each that a profile names."""
    query = _SAMPLES
    if queues is not None:
        query = query.where(queue_samples.c.queue.in_(queues))
    if in_pools:
        query = query.where(queue_samples.c.queue.in_(select(profile_queues.c.queue)))
    rows = (await conn.execute(query)).mappings().all()
    # Ten thousand queues take 100 ms, for which no call and no evaluation should wait.
    return await asyncio.to_thread(lambda: {row["queue"]: _sample(row) for row in rows})


_SAMPLES = select(
    *(
        queue_samples.c.sampled_at_s.label("at_s") if each.name == "at_s" else queue_samples.c[each.name]
        for each in fields(QueueSample)
    )
)


def _sample(row: RowMapping) -> QueueSample:
    suspension = None if row["suspension"] is None else Suspension(row["suspension"])
    redelivery = None if row["redelivery"] is None else Redelivery(row["redelivery"])
    known = {"suspension": suspension, "redelivery": redelivery, "due": due_from_pairs(row["due"])}
    return QueueSample(**{**row, **known})


async def read_buckets(
    conn: AsyncConnection,
    *,
    from_s: float,
    until_s: float | None = None,
    after_revision: int = 0,
    queues: Collection[str] | None = None,
) -> tuple[list[BucketRow], int]:
    """The buckets that begin at ``from_s`` or later, before ``until_s``, and were written after ``after_revision``.

    Returns:
        The rows, by queue and time, and the newest revision among them: reading goes on after it.
    """
    query = _BUCKETS.where(queue_buckets.c.bucket_s >= from_s, queue_buckets.c.revision > after_revision)
    if until_s is not None:
        query = query.where(queue_buckets.c.bucket_s < until_s)
    if queues is not None:
        query = query.where(queue_buckets.c.queue.in_(queues))
    rows = (await conn.execute(query)).all()
    # Ten thousand queues have as many every 5 s.
    return await asyncio.to_thread(_bucket_rows, rows), max((row.revision for row in rows), default=after_revision)


async def read_news(conn: AsyncConnection, *, from_s: float, after_revision: int, rows_max: int) -> tuple[int, int]:
    """The newest revision of any bucket, 0 where there is none, and how many rows there are after another.

    Counted up to ``rows_max``.
    """
    newest = (await conn.execute(select(func.max(queue_buckets.c.revision)))).scalar() or 0
    if newest <= after_revision:
        return newest, 0
    new = (
        select(queue_buckets.c.revision)
        .where(queue_buckets.c.bucket_s >= from_s, queue_buckets.c.revision > after_revision)
        .limit(rows_max)
    )
    return newest, (await conn.execute(select(func.count()).select_from(new.subquery()))).scalar_one()


async def read_targets(conn: AsyncConnection) -> dict[str, int]:
    """The target of each pool that was ever decided."""
    rows = await conn.execute(select(pool_states.c.pool, pool_states.c.target_workers))
    return {row.pool: row.target_workers for row in rows}


async def read_target_history(conn: AsyncConnection, *, pool: str, from_s: float) -> list[TargetRow]:
    """What was decided for ``pool`` since ``from_s``, oldest first, after the decision that held at ``from_s``."""
    since = func.to_timestamp(from_s)
    recorded = (
        func.coalesce(decisions.c.body[name].as_integer(), 0).label(name)
        for name in ("running_workers", "starting_workers")
    )
    columns = (epoch_s(decisions.c.decided_at).label("at_s"), decisions.c.target_workers, *recorded)
    of_pool = select(*columns).where(decisions.c.pool == pool)
    held = of_pool.where(decisions.c.decided_at < since).order_by(decisions.c.decided_at.desc()).limit(1)
    later = of_pool.where(decisions.c.decided_at >= since).order_by(decisions.c.decided_at)
    return [taken_from(TargetRow, row) for row in (*await conn.execute(held), *await conn.execute(later))]


async def read_hosts(conn: AsyncConnection) -> list[HostRow]:
    """Every host with its workers, by name."""
    epoch = select(leader_epoch.c.epoch).scalar_subquery()
    rows = await conn.execute(
        select(
            hosts.c.host_id,
            hosts.c.agent_version,
            epoch_s(hosts.c.reported_at).label("reported_at_s"),
            epoch_s(while_shut(hosts.c.cordoned_at)).label("cordoned_at_s"),
            *(
                while_shut(column).label(column.name)
                for column in (hosts.c.cordoned_by, hosts.c.cordon_reason, hosts.c.cordoned_until_s)
            ),
            hosts.c.refused,
            case((hosts.c.epoch_seen > epoch, hosts.c.epoch_seen)).label("epoch_ahead"),
            epoch_s(hosts.c.certificate_ends_at - func.now()).label("certificate_left_s"),
            case((hosts.c.hung_up_at > hosts.c.reported_at, age_s(hosts.c.hung_up_at))).label("hung_up_s"),
        )
    )
    by_id = {row.host_id: row for row in rows}
    forced = await read_forced(conn)
    known = sorted(await load_hosts(conn), key=lambda host: host.name)
    return [
        taken_from(
            HostRow,
            row,
            host=host,
            forced_workers=forced.get(host.host_id, {}),
            refused=tuple(row.refused),
            error_texts={each.error_number: os.strerror(each.error_number) for each in host.problems},
        )
        for host in known
        if (row := by_id.get(host.host_id)) is not None
    ]


async def read_health(conn: AsyncConnection) -> HealthRow:
    """Who leads and when it last showed it, and how far the pipelines are."""
    leader = (
        await conn.execute(
            select(
                leader_epoch.c.leader, leader_epoch.c.epoch, age_s(leader_heartbeat.c.renewed_at).label("age_s")
            ).join(leader_heartbeat, leader_heartbeat.c.is_only == leader_epoch.c.is_only)
        )
    ).one_or_none()
    expiring = await read_expiring(conn)
    return HealthRow(
        leader=leader.leader if leader else "",
        epoch=leader.epoch if leader else 0,
        leader_age_s=leader.age_s if leader and leader.epoch else None,
        pipelines=await _pipelines(conn),
        read_ages_s={row.connection: row.age_s for row in await conn.execute(_READ_AGES)},
        partition_days=(await conn.execute(_PARTITION_DAYS)).scalar(),
        rollups_behind_s=(await conn.execute(_ROLLUPS_BEHIND)).scalar(),
        expiring_tokens=expiring[0],
        expires_in_s=expiring[1],
        shared_connections=len(shared_connections(await read_collectors(conn))),
        clock_s=(await conn.execute(_CLOCK)).scalar_one(),
    )


_PARTITION_DAYS = text(
    """
    select max(to_date(right(child.relname, 8), 'YYYYMMDD')) - (now() at time zone 'utc')::date
    from pg_inherits join pg_class child on child.oid = inhrelid where inhparent = 'decisions'::regclass
    """
)


# Both ends are found by their index. A clock that is ahead must not make it seem late.
_ROLLUPS_BEHIND = text(
    """
    select least(newest_s, extract(epoch from now()))
        - greatest((select minutes_until_s from rollup_progress), oldest_s)
    from (select max(bucket_s) as newest_s, min(bucket_s) as oldest_s from queue_buckets) as edges
    where newest_s is not null
    """
)


_CONNECTION = func.split_part(queue_samples.c.queue, "/", 1)
_READ_AGES = (
    select(_CONNECTION.label("connection"), age_s(func.max(queue_samples.c.received_at)).label("age_s"))
    .join(profile_queues, profile_queues.c.queue == queue_samples.c.queue)
    .group_by(_CONNECTION)
)
_CLOCK = select(epoch_s(func.clock_timestamp()))


async def _pipelines(conn: AsyncConnection) -> tuple[PipelineRow, ...]:
    written_at = pipeline_health.c.written_at
    newest = select(func.max(queue_samples.c.received_at)).scalar_subquery()
    rows = await conn.execute(
        select(
            pipeline_health,
            age_s(written_at).label("written_age_s"),
            age_s(pipeline_health.c.beat_at).label("beat_age_s"),
            (newest > written_at).label("is_behind"),
        ).order_by(pipeline_health.c.pipeline)
    )
    return tuple(taken_from(PipelineRow, row, lag_s=row.written_age_s if row.is_behind else 0.0) for row in rows)


def bucket_row(row: RowMapping, *, span_s: float = BUCKET_S) -> BucketRow:
    """The value that a row of ``queue_buckets``, or of a rollup with spans of ``span_s``, is."""
    values = {name: value for name, value in row.items() if name not in {"revision", "written_at", "job_class"}}
    for sketch in SKETCHES:
        values[sketch] = {int(index): count for index, count in values[sketch].items()}
    return BucketRow(**values, job_class=row.get("job_class") or None, span_s=span_s)


_SHOWN_COLUMNS = tuple(column for column in queue_buckets.c if column.name not in {"revision", "written_at"})
_NAMES = tuple(column.name for column in _SHOWN_COLUMNS)
# Sketches come as text, so that they are read in the thread that makes the rows.
_BUCKETS = select(
    queue_buckets.c.revision, *(cast(column, Text) if column.name in SKETCHES else column for column in _SHOWN_COLUMNS)
).order_by(queue_buckets.c.queue, queue_buckets.c.bucket_s)


def _bucket_rows(rows: Iterable[Sequence[Any]]) -> list[BucketRow]:
    made = []
    for _, *values in rows:
        row = dict(zip(_NAMES, values, strict=True))
        for sketch in SKETCHES:
            row[sketch] = sketch_of(row[sketch])
        made.append(BucketRow(**row))
    return made
