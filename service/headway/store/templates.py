"""What known hosts have of templates and pools, summed up by Postgres: reading every host for it takes a second."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Select, func, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from headway.scaling.model import WorkerState
from headway.scaling.presence import COUNTED
from headway.scaling.rollout import Progress
from headway.store.tables import hosts, workers


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateFacts:
    """A template as the known hosts have it, by the worst of them: what is promised with it, each of them can keep."""

    slots: int
    start_up_s: float | None


async def read_template_facts(conn: AsyncConnection, names: Collection[str]) -> dict[str, TemplateFacts]:
    """Template -> its facts, of those of ``names`` that a known host has."""
    rows = await conn.execute(_FACTS, {"names": list(names)})
    return {row.name: TemplateFacts(slots=row.slots, start_up_s=row.start_up_s) for row in rows}


async def running_workers(conn: AsyncConnection, pool: str) -> int:
    """Workers of ``pool`` that run on known hosts."""
    running = workers.c.state == WorkerState.RUNNING.value
    return int((await conn.execute(_of_pool(pool, func.count()).where(running))).scalar_one())


async def restart_progress(conn: AsyncConnection, pool: str, generation: int) -> Progress:
    """How far the restart of ``pool`` to ``generation`` is: what ``scaling.rollout.progress_of`` counts."""
    is_renewed = (workers.c.restart_generation >= generation) & (workers.c.state == WorkerState.RUNNING.value)
    counts = (
        func.count().filter(is_renewed).label("renewed"),
        func.count().filter(workers.c.restart_generation < generation).label("outdated"),
    )
    counted = workers.c.state.in_([state.value for state in COUNTED])
    row = (await conn.execute(_of_pool(pool, *counts).where(counted))).one()
    return Progress(renewed_workers=row.renewed, outdated_workers=row.outdated)


def _of_pool(pool: str, *columns: ColumnElement[Any]) -> Select[Any]:
    """``columns`` of the workers of ``pool`` on known hosts."""
    return (
        select(*columns)
        .select_from(workers)
        .join(hosts, hosts.c.host_id == workers.c.host_id)
        .where(workers.c.pool == pool, hosts.c.lease_ends_at > func.now())
    )


_FACTS = text(
    """
    select each->>'name' as name, min((each->>'slots')::integer) as slots, max(known.start_up_s) as start_up_s
    from hosts
    cross join lateral jsonb_array_elements(hosts.templates) as each
    left join template_start_ups known on known.host_id = hosts.host_id and known.template = each->>'name'
    where hosts.lease_ends_at > now() and each->>'name' = any(:names)
    group by each->>'name'
    """
)
