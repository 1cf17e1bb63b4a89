"""What people set beside a profile for a while: an override and a pause. Applying the profile again undoes neither.

Setting them changes no version of the profile, and each is a line of the audit log.
"""

from dataclasses import replace
from typing import Any

from sqlalchemy import update
from sqlalchemy.ext.asyncio import AsyncConnection

from headway.errors import Invalid
from headway.scaling.mapping import to_mapping
from headway.scaling.model import Mode
from headway.scaling.profile import Override, Pause, Profile
from headway.store.pools.groups import require_within_caps
from headway.store.pools.profiles import (
    StoredProfile,
    get_profile,
    list_profiles,
    one_change_at_a_time,
    record_change,
)
from headway.store.tables import profiles


async def set_override(conn: AsyncConnection, pool: str, override: Override | None, *, actor: str) -> StoredProfile:
    """Set the count of ``pool`` by hand, or with ``None`` leave it to deciding again.

    Raises:
        NotFound: there is no such profile.
        Invalid: the profile's bounds would not let the count be.
        Conflict: a group of the pool would not.
    """
    await one_change_at_a_time(conn)
    before = await get_profile(conn, pool)
    if override is not None:
        if breaches := _out_of_reach(before.profile, override):
            raise Invalid(*breaches)
        others = {each.profile.pool: each.profile for each in await list_profiles(conn)}
        await require_within_caps(conn, replace(before.profile, override=override), others)
    action = "override ended" if override is None else "override set"
    was, value = to_mapping(before.override), to_mapping(override)
    return await _set(conn, pool, {"override": was}, {"override": value}, actor=actor, action=action)


async def set_pause(conn: AsyncConnection, pool: str, pause: Pause | None, *, actor: str) -> StoredProfile:
    """Pause ``pool`` in one direction or both, or with ``None`` let it go by its profile's mode again.

    Raises:
        NotFound: there is no such profile.
        Invalid: the profile only recommends.
    """
    await one_change_at_a_time(conn)
    before = await get_profile(conn, pool)
    if pause is not None and before.profile.mode is Mode.RECOMMEND:
        raise Invalid(f"profile {pool!r} has mode recommend: nothing moves that could be paused")
    action = "pool resumed" if pause is None else "pool paused"
    return await _set(conn, pool, _columns(before.pause), _columns(pause), actor=actor, action=action)


def _columns(pause: Pause | None) -> dict[str, Any]:
    if pause is None:
        return {"pause": None, "pause_reason": None, "pause_until_s": None}
    return {"pause": pause.mode.value, "pause_reason": pause.reason, "pause_until_s": pause.until_s}


async def _set(
    conn: AsyncConnection, pool: str, before: dict[str, Any], after: dict[str, Any], *, actor: str, action: str
) -> StoredProfile:
    if before != after:
        await conn.execute(update(profiles).where(profiles.c.pool == pool).values(after))
        await record_change(conn, actor=actor, action=action, pool=pool, before=before, after=after)
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
