"""Jobs whose workers died with them again and again: by the cuts that hosts reported."""

from collections.abc import Sequence

from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from headway.scaling.conditions.job_troubles import DEATHS, PoisonRow
from headway.scaling.fields import taken_from
from headway.store.tables import epoch_s, job_cuts, seconds

POISON_DEATHS_MIN = 3  # one may be chance, and two a machine without memory
POISON_COUNTED_S = 86_400.0  # a broker may take an hour to deliver a job again
POISON_SHOWN_S = 3_600.0  # after the last death: nobody says that the job is gone
POISON_SHOWN_MAX = 100


async def list_poison(conn: AsyncConnection) -> Sequence[PoisonRow]:
    """Those of the last hour, the newest death first."""
    last_at = func.max(job_cuts.c.recorded_at)
    query = (
        select(
            job_cuts.c.pool,
            job_cuts.c.job_id,
            func.max(job_cuts.c.queue).label("queue"),
            func.max(job_cuts.c.job_class).label("job_class"),
            func.count().label("deaths"),
            epoch_s(last_at).label("last_at_s"),
        )
        .where(
            job_cuts.c.is_certain, job_cuts.c.job_id.is_not(None), job_cuts.c.cause.in_([each.value for each in DEATHS])
        )
        .where(job_cuts.c.recorded_at > func.now() - seconds(POISON_COUNTED_S))
        .group_by(job_cuts.c.pool, job_cuts.c.job_id)
        .having(func.count() >= POISON_DEATHS_MIN, last_at > func.now() - seconds(POISON_SHOWN_S))
        .order_by(last_at.desc(), job_cuts.c.job_id)
        .limit(POISON_SHOWN_MAX)
    )
    return [taken_from(PoisonRow, row) for row in await conn.execute(query)]
