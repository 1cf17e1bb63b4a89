"""Workers that had to be ended by force, because they had not finished by their drain deadline: counted, and logged.

Each counts once, however often it is reported: the report of its end deletes its row among the workers.
"""

import logging
from collections.abc import Iterable, Mapping

from sqlalchemy import bindparam, select, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.ext.asyncio import AsyncConnection

from headway.store.engine import notify_viewers
from headway.store.tables import forced_ends

log = logging.getLogger(__name__)


async def count_forced(conn: AsyncConnection, gone: Iterable[tuple[str, str]]) -> None:
    """Count those of ``gone`` (host id and worker id of workers ended by force) that were known until now."""
    rows = [{"host_id": host_id, "worker_id": worker_id} for host_id, worker_id in gone]
    if not rows:
        return
    counted = (await conn.execute(_COUNT, {"rows": rows})).all()
    for row in counted:
        log.warning("ended by force at the drain deadline host=%s pool=%s workers=%d", row.name, row.pool, row.now)
    if counted:
        await notify_viewers(conn)  # who watches the hosts sees it at once


async def read_forced(conn: AsyncConnection) -> dict[str, Mapping[str, int]]:
    """Host id -> pool -> workers ended by force there since the host enrolled. Who has none is left out."""
    found: dict[str, dict[str, int]] = {}
    for row in await conn.execute(select(forced_ends).order_by(forced_ends.c.host_id, forced_ends.c.pool)):
        found.setdefault(row.host_id, {})[row.pool] = row.workers
    return dict(found)


_COUNT = text(
    """
    with ended as (
        select workers.host_id, workers.pool, count(*) as workers
        from workers join (
            select distinct host_id, worker_id
            from jsonb_to_recordset(:rows) as given(host_id text, worker_id text)
        ) as given using (host_id, worker_id)
        -- A pool of no profile, which a host may have made up, is counted while it is assigned there.
        where exists (select from profiles where profiles.pool = workers.pool)
            or exists (
                select from assignments
                where assignments.pool = workers.pool and assignments.host_id = workers.host_id)
        group by workers.host_id, workers.pool
    ), counted as (
        insert into forced_ends as known (host_id, pool, workers)
        select host_id, pool, workers from ended
        on conflict (host_id, pool) do update set
            workers = known.workers + excluded.workers, last_at = now()
    )
    select hosts.name, ended.pool, ended.workers as now from ended join hosts using (host_id)
    """
).bindparams(bindparam("rows", type_=JSONB))
