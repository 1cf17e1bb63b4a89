"""Which pool owns each queue, in ``profile_queues``: those that profiles name, and those that their patterns match.

Everything that reads the queues of a pool reads them there, by name. Only this module turns patterns into names.
"""

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from sqlalchemy import ColumnElement, Text, bindparam, case, cast, delete, func, insert, select, text
from sqlalchemy.dialects.postgresql import ARRAY, JSONB, aggregate_order_by
from sqlalchemy.ext.asyncio import AsyncConnection

from headway.scaling.profile import Profile
from headway.scaling.profile_keys.pattern_resolution import (
    MATCHED_QUEUES_MAX,
    MadePool,
    OwnedQueue,
    PatternResolution,
    WrittenQueues,
    resolve,
    with_own_pools,
)
from headway.scaling.profile_keys.queue_patterns import ANY, is_pattern
from headway.store.leadership import notify_hosts
from headway.store.tables import QUEUE_ORDER, profile_queues, profiles

QUEUE_GONE_AFTER_S = 3600.0  # of a queue that its collectors no longer see, while they see others of its connection

_HAS_STAR = cast(profiles.c.body["queues"], Text).contains(ANY)
_IS_MATCHED = profile_queues.c.pattern.is_not(None)
_MATCHED = select(profile_queues.c.queue).where(_IS_MATCHED)
_OWNED = (
    select(func.array_agg(aggregate_order_by(profile_queues.c.queue, *QUEUE_ORDER)))
    .where(profile_queues.c.pool == profiles.c.pool)
    .correlate(profiles)
    .scalar_subquery()
)
OWNED: ColumnElement[list[str] | None] = case(
    (_HAS_STAR, func.coalesce(_OWNED, cast([], ARRAY(Text)))), else_=None
).label("owned")
"""Beside a row of ``profiles``: the queues of one with patterns, in its order; null where it names them all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueNews:
    """What may change who owns a queue."""

    patterns: frozenset[tuple[str, str]] = frozenset()
    """Pool and what its profile writes, of each name with a star."""
    unowned: frozenset[str] = frozenset()
    """Queues that were seen and that no pool owns."""
    gone: frozenset[str] = frozenset()
    """Queues that a pattern matched and that nobody sees any more."""


async def read_queue_news(conn: AsyncConnection) -> QueueNews:
    """What speaks for a change; without a pattern in any profile it is nothing, which one query shows."""
    rows = await conn.execute(_STARRED)
    patterns = frozenset((row.pool, row.queue) for row in rows)
    if not patterns:
        return QueueNews()
    seen, owned = await _seen(conn), await _owned(conn)
    return QueueNews(
        patterns=patterns,
        unowned=seen - owned.keys(),
        gone=frozenset(queue for queue, each in owned.items() if each.pattern is not None) - seen,
    )


async def settle_queues(conn: AsyncConnection) -> frozenset[str]:
    """Give each queue that was seen to the pool whose pattern matches it, and take those back that are gone.

    Hosts that run a pool with other queues now receive them. Returns these pools. Changes of profiles wait meanwhile.
    """
    await conn.execute(LOCK_QUEUES)
    return await _settle(conn, await _owned(conn))


async def name_queues(conn: AsyncConnection, profile: Profile) -> None:
    """Write down the queues of a profile that was stored just now, in the place of those before.

    A queue that a pattern of another pool has matched goes over to the pool that names it.
    """
    has_patterns = any(map(is_pattern, profile.queues))
    if has_patterns or (await conn.execute(select(_MATCHED.exists()))).scalar():
        owned = await _owned(conn)
        # What it calls a pattern from now on, an earlier version may have stored as a name.
        before = {queue: each for queue, each in owned.items() if each.pool != profile.pool or not is_pattern(queue)}
        await _settle(conn, owned, known=before)
        return
    await conn.execute(delete(profile_queues).where(profile_queues.c.pool == profile.pool))
    rows = [{"queue": queue, "pool": profile.pool, "rank": rank} for rank, queue in enumerate(profile.queues)]
    await conn.execute(insert(profile_queues), rows)


async def read_written(
    conn: AsyncConnection, owned: Mapping[str, OwnedQueue] | None = None
) -> tuple[WrittenQueues, ...]:
    """The queues of every profile that people wrote, as it writes them.

    ``owned`` is what ``profile_queues`` holds, where it is known.
    """
    is_written = profiles.c.made_of.is_(None)
    written = select(profiles.c.pool, profiles.c.body["queues"].label("queues")).where(is_written)
    rows = (await conn.execute(written)).all()
    held = await _owned(conn, profile_queues.c.queue.contains(ANY)) if owned is None else owned
    literal: dict[str, set[str]] = defaultdict(set)
    for each in held.values():
        if each.pattern is None and is_pattern(each.queue):
            literal[each.pool].add(each.queue)
    return tuple(
        WrittenQueues(pool=row.pool, queues=tuple(row.queues), literal=frozenset(literal.get(row.pool, ())))
        for row in rows
    )


async def read_patterns(conn: AsyncConnection) -> dict[str, str]:
    """Queue -> the pattern of its pool's profile that matched it, of those that no profile names."""
    rows = await conn.execute(select(profile_queues.c.queue, profile_queues.c.pattern).where(_IS_MATCHED))
    return {row.queue: row.pattern for row in rows}


async def read_made(conn: AsyncConnection) -> dict[str, list[str]]:
    """Pool -> the queues for which pools are made of its profile, by name."""
    found: dict[str, list[str]] = defaultdict(list)
    of_made = profile_queues.join(profiles).select().with_only_columns(profiles.c.made_of, profile_queues.c.queue)
    for row in await conn.execute(of_made.where(profiles.c.made_of.is_not(None)).order_by(profile_queues.c.queue)):
        found[row.made_of].append(row.queue)
    return found


async def read_unserved(conn: AsyncConnection) -> Mapping[str, tuple[str, ...]]:
    """Pool -> queues that its patterns match and that none serves: it takes no more, or no more are made of it."""
    counted = select(func.count()).where(_IS_MATCHED).group_by(profile_queues.c.pool)
    fullest = max((await conn.execute(counted)).scalars(), default=0)
    if fullest < MATCHED_QUEUES_MAX and not await _read_pools_max(conn):
        return {}
    owned = await _owned(conn)
    resolution, _ = await _resolved(conn, owned, await read_written(conn, owned))
    return resolution.unserved


async def _resolved(
    conn: AsyncConnection, owned: Mapping[str, OwnedQueue], pools: Sequence[WrittenQueues]
) -> tuple[PatternResolution, tuple[MadePool, ...]]:
    """Who shall own each queue, and the pools that are made for single ones."""
    seen = await _seen(conn)
    made_of = {row.pool: row.made_of for row in await conn.execute(_MADE)}
    before = {queue: made_of.get(each.pool, each.pool) for queue, each in owned.items()}
    # Ten thousand queues and patterns take longer than any call should wait.
    resolution = await asyncio.to_thread(resolve, pools, seen, before=before)
    made = {queue: each.pool for queue, each in owned.items() if each.pool in made_of}
    pools_max = await _read_pools_max(conn)
    return with_own_pools(resolution, pools_max, taken={each.pool for each in pools}, before=made)


async def _read_pools_max(conn: AsyncConnection) -> dict[str, int]:
    return {row.pool: int(row.pools_max) for row in await conn.execute(_POOLS_MAX)}


async def _seen(conn: AsyncConnection) -> frozenset[str]:
    """Every queue that patterns may match."""
    return frozenset((await conn.execute(_SEEN, {"gone_s": QUEUE_GONE_AFTER_S})).scalars())


async def _owned(conn: AsyncConnection, *conditions: ColumnElement[bool]) -> dict[str, OwnedQueue]:
    rows = await conn.execute(select(profile_queues).where(*conditions))
    return {row["queue"]: OwnedQueue(**row) for row in rows.mappings()}


async def _settle(
    conn: AsyncConnection, owned: Mapping[str, OwnedQueue], *, known: Mapping[str, OwnedQueue] | None = None
) -> frozenset[str]:
    """Turn what ``profile_queues`` holds into what it shall hold; ``known`` of it says what is a name with a star."""
    pools = await read_written(conn, owned if known is None else known)
    resolution, made = await _resolved(conn, owned, pools)
    await conn.execute(_MAKE, {"rows": [asdict(each) for each in made]})
    changed = await _write(conn, owned, resolution)
    await conn.execute(_UNMAKE, {"pools": [each.pool for each in made]})
    return changed


async def _write(
    conn: AsyncConnection, before: Mapping[str, OwnedQueue], resolution: PatternResolution
) -> frozenset[str]:
    after = {each.queue: each for each in resolution.owned}
    gone = [each for queue, each in before.items() if queue not in after]
    changed = [each for queue, each in after.items() if before.get(queue) != each]
    moved = [before[each.queue].pool for each in changed if each.queue in before]
    pools = frozenset({*(each.pool for each in (*gone, *changed)), *moved})
    if not pools:
        return pools
    await conn.execute(delete(profile_queues).where(profile_queues.c.queue.in_([each.queue for each in gone])))
    await conn.execute(_OWN, {"rows": [asdict(each) for each in changed]})
    hosts = (await conn.execute(_NOTE_CHANGED, {"pools": sorted(pools)})).scalars().all()
    await notify_hosts(conn, sorted(hosts))
    return pools


LOCK_QUEUES = text("lock table profile_queues in share row exclusive mode")
_STARRED = text(
    """
    select pool, queue from profiles, jsonb_array_elements_text(body -> 'queues') as queue
    where cast(body -> 'queues' as text) like '%*%' and queue like '%*%'
    """
)
_MADE = select(profiles.c.pool, profiles.c.made_of).where(profiles.c.made_of.is_not(None))
_POOLS_MAX = text(
    "select pool, body ->> 'pools_max' as pools_max from profiles"
    " where made_of is null and body ->> 'pools_max' is not null"
)
_MAKE = text(
    """
    insert into profiles (pool, body, made_of)
    select given.pool, (parent.body || jsonb_build_object('queues', jsonb_build_array(given.queue))) - 'pools_max',
        given.made_of
    from jsonb_to_recordset(:rows) as given(pool text, made_of text, queue text)
    join profiles as parent on parent.pool = given.made_of
    on conflict (pool) do update
        set body = excluded.body, made_of = excluded.made_of, version = profiles.version + 1, updated_at = now()
        where profiles.made_of is not null and profiles.body <> excluded.body
    """
).bindparams(bindparam("rows", type_=JSONB))
_UNMAKE = text("delete from profiles where made_of is not null and pool <> all(cast(:pools as text[]))")
# Queues that their collectors still see, as far as collectors see anything of the connection at all. Queues of which
# only events are reported leave no pool: nobody knows whether a queue without events is gone.
_SEEN = text(
    """
    select queue from queue_samples join (
        select split_part(queue, '/', 1) as connection, max(received_at) as newest_at
        from queue_samples group by split_part(queue, '/', 1)
    ) as newest on split_part(queue, '/', 1) = connection
    where received_at > newest_at - make_interval(secs => :gone_s)
    union
    select queue from queues
    where not exists (select from queue_samples where queue_samples.queue = queues.queue)
    and exists (select from queue_buckets where queue_buckets.queue = queues.queue)
    union
    select queue from profile_queues where pattern is not null
    and not exists (select from queue_samples where queue_samples.queue = profile_queues.queue)
    """
)
_OWN = text(
    """
    insert into profile_queues (queue, pool, rank, pattern)
    select queue, pool, rank, pattern from jsonb_to_recordset(:rows)
        as given(queue text, pool text, rank integer, pattern text)
    on conflict (queue) do update set pool = excluded.pool, rank = excluded.rank, pattern = excluded.pattern
    """
).bindparams(bindparam("rows", type_=JSONB))
_NOTE_CHANGED = text(
    """
    update hosts set assignment_revision = assignment_revision + 1
    where host_id in (select host_id from assignments where pool = any(cast(:pools as text[])))
    returning host_id
    """
)
