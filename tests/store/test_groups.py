"""Groups on a real Postgres: versions, what profiles contradict, and the audit log."""

from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import select

from headway.errors import Conflict, NotFound
from headway.scaling.group import Group
from headway.scaling.profile import Override, Profile
from headway.store.engine import Engine, transaction
from headway.store.pools.groups import (
    Outcome,
    StoredGroup,
    delete_group,
    get_group,
    list_groups,
    put_group,
    read_groups,
)
from headway.store.pools.overrides import set_override
from headway.store.pools.profiles import delete_profile, list_profiles, put_profile
from headway.store.pools.versions import Expected, StaleVersion, VersionUnstated
from headway.store.tables import audit_log

DATABASE = Group(name="database", workers_max=10, pools=("mail", "news"))


def profile(pool: str, **values: Any) -> Profile:
    return Profile(**{"pool": pool, "queues": (f"redis/{pool}",), "template": "rq", **values})


async def with_pools(engine: Engine, *profiles: Profile) -> None:
    async with transaction(engine) as conn:
        for each in profiles or (profile("mail"), profile("news")):
            await put_profile(conn, each, expected=Expected(), actor="local")


async def put(engine: Engine, group: Group, **expected: Any) -> tuple[StoredGroup, Outcome]:
    async with transaction(engine) as conn:
        known = {each.profile.pool: each.profile for each in await list_profiles(conn)}
        return await put_group(conn, group, known, expected=Expected(**expected), actor="local")


async def test_a_group_is_created_changed_and_deleted_and_each_is_in_the_audit_log(engine: Engine) -> None:
    await with_pools(engine)
    stored, outcome = await put(engine, DATABASE, is_absent=True)
    assert (stored.group, stored.version, outcome) == (DATABASE, 1, "created")
    assert await put(engine, DATABASE, version=1) == (stored, "unchanged")
    changed, outcome = await put(engine, replace(DATABASE, workers_max=12), version=1)
    assert (changed.group.workers_max, changed.version, outcome) == (12, 2, "updated")
    async with transaction(engine) as conn:
        assert await list_groups(conn) == [changed]
        assert await read_groups(conn) == (changed.group,)
        await delete_group(conn, "database", expected=Expected(version=2), actor="local")
        assert await list_groups(conn) == []
        rows = await conn.execute(
            select(audit_log).where(audit_log.c.subject == "group database").order_by(audit_log.c.acted_at)
        )
        acts = [(row.action, row.before, row.after) for row in rows]
    ten, twelve = ({"workers_max": cap, "pools": ["mail", "news"]} for cap in (10, 12))
    assert acts[0] == ("group created", None, ten)
    assert ("group updated", ten, twelve) in acts
    assert ("group deleted", twelve, None) in acts


async def test_a_change_of_another_version_is_refused(engine: Engine) -> None:
    await with_pools(engine)
    await put(engine, DATABASE)
    with pytest.raises(StaleVersion, match="group 'database' is at version 1, not 3"):
        await put(engine, replace(DATABASE, workers_max=12), version=3)
    with pytest.raises(VersionUnstated):
        await put(engine, replace(DATABASE, workers_max=12))
    async with transaction(engine) as conn:
        with pytest.raises(NotFound, match="no group 'other'"):
            await get_group(conn, "other")


async def test_a_group_that_profiles_contradict_is_refused(engine: Engine) -> None:
    await with_pools(engine, profile("mail", workers_min=11))
    with pytest.raises(Conflict, match="workers_min=11 exceeds workers_max=10; group 'database': pool 'news' has no"):
        await put(engine, DATABASE)


async def test_a_profile_or_an_override_beyond_the_cap_of_its_group_is_refused(engine: Engine) -> None:
    await with_pools(engine)
    await put(engine, DATABASE)
    async with transaction(engine) as conn:
        with pytest.raises(Conflict, match="pool 'mail': workers_min=11 exceeds workers_max=10"):
            await put_profile(conn, profile("mail", workers_min=11), expected=Expected(version=1), actor="local")
    async with transaction(engine) as conn:
        with pytest.raises(Conflict, match="pool 'mail': override=11 exceeds workers_max=10"):
            await set_override(conn, "mail", Override(workers=11, until_s=1e10, reason="a sale"), actor="local")


async def test_a_group_keeps_the_name_of_a_pool_that_is_deleted_and_the_others_can_still_be_changed(
    engine: Engine,
) -> None:
    await with_pools(engine)
    await put(engine, DATABASE)
    async with transaction(engine) as conn:
        await delete_profile(conn, "news", expected=Expected(version=1), actor="local")
        await put_profile(conn, profile("mail", workers_min=3), expected=Expected(version=1), actor="local")
        assert await read_groups(conn) == (DATABASE,)
