"""Jobs that ends of workers have cut, or may have: each counted once, however often its host reports it."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import bindparam, func, select, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.ext.asyncio import AsyncConnection

from headway.errors import printable
from headway.scaling.conditions.job_troubles import CutRow
from headway.scaling.fields import taken_from
from headway.scaling.mapping import to_mapping
from headway.scaling.model import CutCause, CutJob
from headway.store.engine import notify_viewers
from headway.store.tables import epoch_s, job_cuts, seconds

CUTS_SHOWN_S = 900.0  # for how long a cut is an incident: nobody mends it, and somebody is to see it
CUTS_SHOWN_MAX = 1_000
CUTS_PER_HOST_DAY_MAX = 10_000

log = logging.getLogger(__name__)


async def record_cuts(conn: AsyncConnection, cuts: Iterable[tuple[str, float, CutJob]]) -> None:
    """Keep those that are new, each with the id of its host and the time of its report by the clock of the cut."""
    rows = [_row(host_id, received_at_s, cut) for host_id, received_at_s, cut in cuts]
    if not rows:
        return
    kept = (await conn.execute(_RECORD, {"rows": rows, "cuts_max": CUTS_PER_HOST_DAY_MAX})).all()
    for row in kept:
        log.warning(
            "%s host=%s pool=%s worker=%s cause=%s job=%s class=%s",
            "job cut" if row.is_certain else "job perhaps cut",
            *(printable(str(each)) for each in (row.host, row.pool, row.worker_id, row.cause)),
            *("unknown" if each is None else printable(each) for each in (row.job_id, row.job_class)),
        )
    if kept:
        await notify_viewers(conn)


async def list_cuts(
    conn: AsyncConnection,
    *,
    pool: str | None = None,
    since_s: float | None = None,
    within_s: float | None = None,
    limit: int = CUTS_SHOWN_MAX,
) -> Sequence[CutRow]:
    """The newest cuts first, by when they were reported: since a moment in Unix seconds, or within the last seconds."""
    epoch = [epoch_s(column) for column in (job_cuts.c.cut_at, job_cuts.c.recorded_at)]
    query = (
        select(job_cuts, epoch[0].label("cut_at_s"), epoch[1].label("recorded_at_s"))
        .order_by(job_cuts.c.recorded_at.desc(), job_cuts.c.cut_id)
        .limit(limit)
    )
    if pool is not None:
        query = query.where(job_cuts.c.pool == pool)
    if since_s is not None:
        query = query.where(job_cuts.c.recorded_at >= func.to_timestamp(since_s))
    if within_s is not None:
        query = query.where(job_cuts.c.recorded_at > func.now() - seconds(bindparam("within_s", within_s)))
    return [taken_from(CutRow, row, cause=CutCause(row.cause)) for row in await conn.execute(query)]


def _row(host_id: str, received_at_s: float, cut: CutJob) -> Mapping[str, Any]:
    return {
        **(to_mapping(cut.job) or {}),
        **to_mapping(cut),
        "host_id": host_id,
        "job_started_at_s": cut.job and cut.job.started_at_s,
        "age_s": 0.0 if cut.cut_at_s is None else max(0.0, received_at_s - cut.cut_at_s),
    }


_RECORD = text(
    """
    insert into job_cuts (host_id, cut_id, host, pool, template, worker_id, cause, is_certain, job_id, queue, job_class,
        attempt, job_started_at_s, cut_at)
    select distinct on (given.host_id, given.cut_id) given.host_id, given.cut_id, hosts.name, given.pool,
        given.template, given.worker_id, given.cause, given.is_certain, given.job_id, given.queue, given.job_class,
        given.attempt, given.job_started_at_s, now() - make_interval(secs => given.age_s)
    from jsonb_to_recordset(:rows) as given(
        host_id text, cut_id text, pool text, template text, worker_id text, cause text, is_certain boolean,
        job_id text, queue text, job_class text, attempt bigint, job_started_at_s double precision,
        age_s double precision)
    join hosts using (host_id)
    -- Of pools that nobody has, which a host may have made up, nothing is kept.
    where exists (select from profiles where profiles.pool = given.pool)
        and (select count(*) from job_cuts as known
             where known.host_id = given.host_id and known.recorded_at > now() - interval '1 day') < :cuts_max
    order by given.host_id, given.cut_id
    on conflict do nothing
    returning *
    """
).bindparams(bindparam("rows", type_=JSONB))
