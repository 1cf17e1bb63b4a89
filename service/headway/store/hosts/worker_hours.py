"""What the workers of pools have run since their day began, by stored decisions: where counting a day's budget begins.

From then on the count is remembered with the pool (``scaling/policy/day_budget.py``) and nothing is read here.
"""

from collections.abc import Mapping

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection


async def worker_hours_since(conn: AsyncConnection, began_s: Mapping[str, float]) -> dict[str, float]:
    """The hours of each pool of ``began_s`` since that time.

    A decision's count holds until the next one. It is the target or the workers that were there, whichever is more,
    with those that were leaving. A pool that was never decided has run nothing; one that was, but not within a day
    before, is left out.
    """
    given = {"pools": list(began_s), "began_s": list(began_s.values())}
    return {row.pool: float(row.hours) for row in await conn.execute(_READ, given)}


_READ = text(
    """
    with asked as (
        select pool, to_timestamp(began_s) as began_at
        from unnest(cast(:pools as text[]), cast(:began_s as float8[])) as given(pool, began_s)
    ),
    known as (
        select pool, greatest(decided_at, began_at) as began_at,
            greatest(
                case when mode = 'recommend' then 0 else target_workers end,
                running_workers + starting_workers + unknown_workers
            ) + coalesce(leaving_workers, 0) as workers,
            lead(decided_at) over (partition by pool order by decided_at) as followed_at
        from asked
        -- In order: so each pool is searched by itself. Joined plainly, Postgres would read the whole day.
        cross join lateral (
            select decided_at, target_workers, body from decisions
            where decisions.pool = asked.pool and decided_at >= asked.began_at - interval '1 day'
                -- The same for all: so days that none asks for need no read.
                and decided_at >= (select min(began_at) from asked) - interval '1 day'
            order by decided_at
        ) as decided
        cross join lateral jsonb_to_record(body) as stored(
            running_workers integer, starting_workers integer, unknown_workers integer, leaving_workers integer,
            mode text
        )
    )
    select pool,
        sum(workers * greatest(extract(epoch from coalesce(followed_at, now()) - began_at), 0) / 3600) as hours
    from known group by pool
    union all
    select pool, 0 from asked
    where not exists (select from decisions where decisions.pool = asked.pool)
        and not exists (select from pool_states where pool_states.pool = asked.pool)
    """
)
