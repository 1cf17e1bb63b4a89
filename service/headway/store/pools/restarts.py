"""Restarts of pools: the generation that a pool's workers are to be of, raised by hand."""

from dataclasses import dataclass

from sqlalchemy import select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from headway.scaling.allocation.rollout import Progress
from headway.store.hosts.template_counts import restart_progress
from headway.store.pools.profiles import get_profile, one_change_at_a_time, record_change
from headway.store.tables import profiles


@dataclass(frozen=True, slots=True, kw_only=True)
class Restart:
    """The newest restart of a pool; generation 0: it was never restarted."""

    pool: str
    restart_generation: int
    progress: Progress


async def restart_pool(conn: AsyncConnection, pool: str, *, reason: str, actor: str) -> Restart:
    """Have every worker of ``pool`` replaced, host by host.

    Raises:
        NotFound: there is no such profile.
    """
    await one_change_at_a_time(conn)
    before = await _generation(conn, pool)
    await conn.execute(update(profiles).where(profiles.c.pool == pool).values(restart_generation=before + 1))
    await record_change(
        conn,
        actor=actor,
        action="pool restarted",
        pool=pool,
        before={"restart_generation": before},
        after={"restart_generation": before + 1, "reason": reason},
    )
    return await read_restart(conn, pool)


async def read_restart(conn: AsyncConnection, pool: str) -> Restart:
    """How far the newest restart of ``pool`` is.

    Raises:
        NotFound: there is no such profile.
    """
    generation = await _generation(conn, pool)
    return Restart(
        pool=pool,
        restart_generation=generation,
        progress=await restart_progress(conn, pool, generation),
    )


async def read_generations(conn: AsyncConnection) -> dict[str, int]:
    """Pool -> the generation its workers are to be of, where it was ever restarted."""
    columns = (profiles.c.pool, profiles.c.restart_generation)
    rows = await conn.execute(select(*columns).where(profiles.c.restart_generation > 0))
    return {row.pool: row.restart_generation for row in rows}


async def _generation(conn: AsyncConnection, pool: str) -> int:
    await get_profile(conn, pool)
    return int((await conn.execute(select(profiles.c.restart_generation).where(profiles.c.pool == pool))).scalar_one())
