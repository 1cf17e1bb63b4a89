"""What people set beside a profile for a while: an override and a pause. Applying the profile again undoes neither.

Setting them changes no version of the profile, and each is a line of the audit log.
"""

from typing import Any

from sqlalchemy import update
from sqlalchemy.ext.asyncio import AsyncConnection

from headway.errors import Invalid
from headway.scaling.mapping import to_mapping
from headway.scaling.model import Mode
from headway.scaling.profile import Override, Profile
from headway.store.profiles import StoredProfile, get_profile, one_change_at_a_time, record_change
from headway.store.tables import profiles

PAUSES = (Mode.PAUSE, Mode.PAUSE_UP, Mode.PAUSE_DOWN)


async def set_override(conn: AsyncConnection, pool: str, override: Override | None, *, actor: str) -> StoredProfile:
    """Set the count of ``pool`` by hand, or with ``None`` leave it to deciding again.

    Raises:
        NotFound: there is no such profile.
        Invalid: the profile's bounds would not let the count be.
    """
    await one_change_at_a_time(conn)
    before = await get_profile(conn, pool)
    if override is not None and (breaches := _out_of_reach(before.profile, override)):
        raise Invalid(*breaches)
    action = "override ended" if override is None else "override set"
    return await _set(conn, before, "override", to_mapping(override), actor=actor, action=action)


async def set_pause(conn: AsyncConnection, pool: str, pause: Mode | None, *, actor: str) -> StoredProfile:
    """Pause ``pool`` in one direction or both, or with ``None`` let it go by its profile's mode again.

    Raises:
        NotFound: there is no such profile.
        Invalid: ``pause`` is no pause, or the profile only recommends.
    """
    if pause is not None and pause not in PAUSES:
        raise Invalid(f"pause={pause.value!r}: expected one of {', '.join(PAUSES)}")
    await one_change_at_a_time(conn)
    before = await get_profile(conn, pool)
    if pause is not None and before.profile.mode is Mode.RECOMMEND:
        raise Invalid(f"profile {pool!r} has mode recommend: nothing moves that could be paused")
    action = "pool resumed" if pause is None else "pool paused"
    return await _set(conn, before, "pause", to_mapping(pause), actor=actor, action=action)


async def _set(
    conn: AsyncConnection, before: StoredProfile, column: str, value: Any, *, actor: str, action: str
) -> StoredProfile:
    pool = before.profile.pool
    await conn.execute(update(profiles).where(profiles.c.pool == pool).values({column: value}))
    was = to_mapping(getattr(before, column))
    if was != value:
        await record_change(conn, actor=actor, action=action, pool=pool, before={column: was}, after={column: value})
    return await get_profile(conn, pool)


def _out_of_reach(profile: Profile, override: Override) -> list[str]:
    """Why the bounds would not let ``override`` be, at no hour: they have the last word all the same."""
    where = f"profile {profile.pool!r}: override.workers={override.workers}"
    if profile.pinned is not None:
        return [f"{where}: the pool is pinned to {profile.pinned}"] if override.workers != profile.pinned else []
    bounds = [(each.workers_min, each.workers_max) for each in profile.schedules]
    lowest = min([profile.workers_min, *(floor for floor, _ in bounds if floor is not None)])
    highest = max([profile.workers_max, *(ceiling for _, ceiling in bounds if ceiling is not None)])
    if lowest <= override.workers <= highest:
        return []
    return [f"{where} lies outside workers_min={lowest}..workers_max={highest}: bounds hold for an override, too"]
