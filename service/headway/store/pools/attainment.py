"""How many jobs of each pool started in time, by five minutes: what error budgets and burn rates are made of."""

from collections.abc import Iterable, Mapping, Sequence

from sqlalchemy import func, select, text, update

from headway.scaling.arithmetic import HOUR_S
from headway.scaling.measure import sketch_index
from headway.scaling.metrics.attainment import PERIOD_S, Attained
from headway.scaling.profile import Profile
from headway.scaling.sketch_edges import BEYOND, place
from headway.store.engine import Connection
from headway.store.tables import pool_attainment, rollup_progress

ATTAINMENT_REDONE_S = 1500.0  # events come up to 600 s late, and a minute is rolled up within two
ATTAINMENT_FIRST_S = 6 * HOUR_S  # where nothing is there yet: the longest window of a burn rate

_ROLLED_UNTIL = select(rollup_progress.c.minutes_until_s)
_NEWEST = text("select max(from_s) from pool_attainment")
# A job is late where the `place` of its bucket is past its objective's: what no edge bounds counts as beyond.
_COUNT = text(
    """
    insert into pool_attainment (pool, from_s, jobs, late_jobs)
    select pool, floor(bucket_s / :period_s) * :period_s, sum(counted.jobs), sum(counted.late_jobs)
    from unnest(cast(:pools as text[]), cast(:queues as text[]), cast(:in_time as float8[]))
        as asked(pool, queue, in_time)
    join profiles using (pool)
    join rollup_minutes using (queue)
    cross join lateral (
        select coalesce(sum(value::bigint), 0) as jobs,
            coalesce(sum(value::bigint) filter (
                where key::integer + case when key::integer < :beyond / 2.0 then 0.5 - :beyond else 0 end > in_time
            ), 0) as late_jobs
        from jsonb_each_text(pickup_sketch)
    ) as counted
    where job_class = '' and bucket_s >= :from_s and bucket_s < :until_s and counted.jobs > 0
    group by 1, 2
    on conflict (pool, from_s) do update set jobs = excluded.jobs, late_jobs = excluded.late_jobs
    """
).bindparams(period_s=PERIOD_S, beyond=BEYOND)


async def count_attainment(conn: Connection, profiles: Iterable[Profile], *, now_s: float) -> None:
    """Count what the pipeline has rolled up of late, by each queue's objective. Done twice, it changes nothing."""
    members = [
        (profile.pool, queue, place(sketch_index(profile.objective_of(queue).target_s)))
        for profile in profiles
        for queue in profile.queues
    ]
    rolled_until_s = (await conn.execute(_ROLLED_UNTIL)).scalar_one()
    newest_s = (await conn.execute(_NEWEST)).scalar()
    since_s = now_s - ATTAINMENT_FIRST_S
    if newest_s is not None:
        since_s = max(since_s, min(float(newest_s), now_s) - ATTAINMENT_REDONE_S)
    pools, queues, in_time = ([member[place] for member in members] for place in range(3))
    await conn.execute(
        _COUNT,
        {
            "pools": pools,
            "queues": queues,
            "in_time": in_time,
            "from_s": since_s // PERIOD_S * PERIOD_S,
            "until_s": now_s + PERIOD_S,
        },
    )
    # What the pipeline has rolled up meanwhile may be in the count, too.
    await conn.execute(update(rollup_progress).values(attained_until_s=rolled_until_s))


async def read_attained_until_s(conn: Connection) -> float | None:
    """Until when each job that started is counted, as far as it was reported; ``None``: nothing was counted yet."""
    return (await conn.execute(select(rollup_progress.c.attained_until_s))).scalar_one() or None


async def read_attained(conn: Connection, *, since_s: Sequence[float]) -> Mapping[str, tuple[Attained, ...]]:
    """Pool -> what started since each of ``since_s``, of pools of which anything has since the first of these times."""
    table = pool_attainment.c
    sums = [
        each.filter(table.from_s >= start_s)
        for start_s in since_s
        for each in (func.sum(table.jobs), func.sum(table.late_jobs))
    ]
    rows = await conn.execute(select(table.pool, *sums).where(table.from_s >= min(since_s)).group_by(table.pool))
    return {
        pool: tuple(
            Attained(jobs=int(jobs or 0), late_jobs=int(late or 0))
            for jobs, late in zip(counts[::2], counts[1::2], strict=True)
        )
        for pool, *counts in rows
    }
