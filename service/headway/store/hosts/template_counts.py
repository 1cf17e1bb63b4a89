"""What known hosts have of templates and pools, summed up by Postgres: reading every host for it takes a second."""

from collections.abc import Collection
from dataclasses import dataclass

from sqlalchemy import func, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from headway.scaling.allocation.rollout import Progress
from headway.scaling.fields import taken_from
from headway.scaling.model import COUNTED, WorkerState
from headway.store.tables import assignments, hosts, workers

_IS_KNOWN = hosts.c.lease_ends_at > func.now()


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateFacts:
    """A template as the known hosts have it, by the worst of them: what is planned with it, each of them can run."""

    slots: int
    start_up_s: float | None
    drain_timeout_s: float | None = None
    job_limit_s: float | None = None
    job_limit: str = ""


async def read_template_facts(conn: AsyncConnection, names: Collection[str]) -> dict[str, TemplateFacts]:
    """Template -> its facts, of those of ``names`` that a known host has."""
    rows = await conn.execute(_FACTS, {"names": list(names)})
    return {row.name: taken_from(TemplateFacts, row, job_limit=row.job_limit or "") for row in rows}


async def read_queues_allowed(conn: AsyncConnection, names: Collection[str]) -> dict[str, dict[str, list[str]]]:
    """Template -> known host that has it -> the patterns of queues whose names it takes there; none: it takes none."""
    rows = await conn.execute(_ALLOWED, {"names": list(names)})
    found: dict[str, dict[str, list[str]]] = {}
    for row in rows:
        found.setdefault(row.template, {})[row.host] = row.queues_allowed or []
    return found


async def reported_workers(conn: AsyncConnection, pool: str) -> tuple[int, int]:
    """Workers of ``pool`` that run, and that start, on known hosts, as their agents last reported."""
    running, starting = (
        func.count().filter(workers.c.state == state.value) for state in (WorkerState.RUNNING, WorkerState.STARTING)
    )
    of_pool = select(running, starting).select_from(workers.join(hosts)).where(workers.c.pool == pool, _IS_KNOWN)
    row = (await conn.execute(of_pool)).one()
    return int(row[0]), int(row[1])


async def restart_progress(conn: AsyncConnection, pool: str, generation: int) -> Progress:
    """How far the restart of ``pool`` to ``generation`` is: what ``scaling.rollout.progress_of`` counts."""
    is_outdated = workers.c.restart_generation < generation
    counts = (
        func.count().filter(_IS_KNOWN, ~is_outdated, workers.c.state == WorkerState.RUNNING.value).label("renewed"),
        func.count().filter(_IS_KNOWN, is_outdated).label("outdated"),
        func.count().filter(~_IS_KNOWN, is_outdated).label("silent"),
    )
    counted = workers.c.state.in_([state.value for state in COUNTED])
    of_pool = select(*counts).select_from(workers.join(hosts)).where(workers.c.pool == pool, counted)
    row = (await conn.execute(of_pool)).one()
    wanted = (
        select(func.coalesce(func.sum(assignments.c.base_workers + assignments.c.burst_workers), 0))
        .select_from(assignments.join(hosts))
        .where(assignments.c.pool == pool, assignments.c.is_exclusive, _IS_KNOWN)
    )
    return Progress(
        renewed_workers=row.renewed,
        outdated_workers=row.outdated,
        awaited_workers=max(0, int((await conn.execute(wanted)).scalar_one()) - row.renewed - row.outdated),
        silent_workers=row.silent,
    )


async def count_workers(conn: AsyncConnection, host_id: str) -> tuple[int, int]:
    """Rows of workers of all hosts, known or not, and those of one."""
    own = func.count().filter(workers.c.host_id == host_id)
    row = (await conn.execute(select(func.count(), own).select_from(workers))).one()
    return int(row[0]), int(row[1])


_ALLOWED = text(
    """
    select each->>'name' as template, hosts.name as host, each->'queues_allowed' as queues_allowed
    from hosts cross join lateral jsonb_array_elements(hosts.templates) as each
    where hosts.lease_ends_at > now() and each->>'name' = any(:names)
    """
)
_FACTS = text(
    """
    select each->>'name' as name, min((each->>'slots')::integer) as slots, max(known.start_up_s) as start_up_s,
        min((each->>'drain_timeout_s')::double precision) as drain_timeout_s,
        min((each->>'job_limit_s')::double precision) as job_limit_s,
        (array_agg(each->>'job_limit' order by (each->>'job_limit_s')::double precision))[1] as job_limit
    from hosts
    cross join lateral jsonb_array_elements(hosts.templates) as each
    left join template_start_ups known on known.host_id = hosts.host_id and known.template = each->>'name'
    where hosts.lease_ends_at > now() and each->>'name' = any(:names)
    group by each->>'name'
    """
)
