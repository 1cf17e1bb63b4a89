"""What the workers of pools have run since midnight UTC, which budgets of the day are counted by."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    """What is known of one pool and day."""

    day_began_at: datetime
    ended_hours: float
    """Of decisions that others have followed."""
    newest_at: datetime
    """Of the decision that holds."""


class WorkerHours:
    """Reads decisions of the day once, and then only those that are new: a day of them is too much for every tick."""

    def __init__(self) -> None:
        self._known: dict[str, _Known] = {}

    async def today(self, conn: AsyncConnection, pools: Sequence[str]) -> dict[str, float]:
        """The hours of ``pools``, but for those without decisions since yesterday.

        A decision's count holds until the next one. It is the target or the workers that were there, whichever is
        more: those that drain, and those of hosts that went silent, cost as well.
        """
        before = {pool: self._known[pool] for pool in pools if pool in self._known}
        since = [before[pool].newest_at if pool in before else None for pool in pools]
        rows = (await conn.execute(_READ, {"pools": list(pools), "since": since})).all()
        self._known, hours = {}, {}
        for row in rows:
            known = before.get(row.pool)
            # What ended yesterday counts no more; of the decision that held at midnight only what came after it.
            ended_hours = known.ended_hours if known and known.day_began_at == row.day_began_at else 0.0
            hours[row.pool] = ended_hours + float(row.hours)
            self._known[row.pool] = _Known(
                day_began_at=row.day_began_at,
                ended_hours=ended_hours + float(row.ended_hours),
                newest_at=row.newest_at,
            )
        return hours


_READ = text(
    """
    with today as (
        select date_trunc('day', now() at time zone 'utc') at time zone 'utc' as began_at
    ),
    known as (
        select pool, decided_at, began_at as day_began_at, greatest(decided_at, began_at) as began_at,
            greatest(
                case when mode = 'recommend' then 0 else target_workers end,
                running_workers + starting_workers + unknown_workers
            ) as workers,
            lead(decided_at) over (partition by pool order by decided_at) as followed_at
        from unnest(cast(:pools as text[]), cast(:since as timestamptz[])) as asked(pool, since)
        cross join today
        -- In order: so each pool is searched by itself. Joined plainly, Postgres would read the whole day.
        cross join lateral (
            select decided_at, target_workers, body from decisions
            where decisions.pool = asked.pool and decided_at >= coalesce(since, began_at - interval '1 day')
                -- The same for all: so days that none asks for need no look.
                and decided_at >= (
                    select coalesce(min(coalesce(each, (select began_at - interval '1 day' from today))), now())
                    from unnest(cast(:since as timestamptz[])) as each
                )
            order by decided_at
        ) as decided
        cross join lateral jsonb_to_record(body) as told(
            running_workers integer, starting_workers integer, unknown_workers integer, mode text
        )
    ),
    spans as (
        select pool, day_began_at, decided_at, followed_at,
            workers * greatest(extract(epoch from coalesce(followed_at, now()) - began_at), 0) / 3600 as hours
        from known
    )
    select pool, day_began_at, sum(hours) as hours, max(decided_at) as newest_at,
        coalesce(sum(hours) filter (where followed_at is not null), 0) as ended_hours
    from spans group by pool, day_began_at
    """
)
