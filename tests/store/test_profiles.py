"""Profiles on a real Postgres: versions, queues that belong to one pool, and the audit log."""

import asyncio
from typing import Any

import pytest
from sqlalchemy import select

from headway.errors import Conflict, NotFound
from headway.scaling.profile import Profile
from headway.store.engine import Engine, transaction
from headway.store.pools.profiles import Outcome, StoredProfile, delete_profile, get_profile, list_profiles, put_profile
from headway.store.pools.versions import Expected, StaleVersion, VersionUnstated
from headway.store.tables import audit_log, profile_queues


def mail(**values: Any) -> Profile:
    return Profile(**{"pool": "mail", "queues": ("redis/mail", "redis/news"), "template": "rq", **values})


async def put(engine: Engine, profile: Profile, **expected: Any) -> tuple[StoredProfile, Outcome]:
    async with transaction(engine) as conn:
        return await put_profile(conn, profile, expected=Expected(**expected), actor="local")


async def audit(engine: Engine) -> list[Any]:
    async with transaction(engine) as conn:
        return list(await conn.execute(select(audit_log).order_by(audit_log.c.acted_at)))


async def test_a_profile_is_created_at_version_one_and_read_back_whole(engine: Engine) -> None:
    profile = mail(workers_max=7, priority=3)
    stored, outcome = await put(engine, profile, is_absent=True)
    assert (stored.profile, stored.version, outcome) == (profile, 1, "created")
    async with transaction(engine) as conn:
        assert await get_profile(conn, "mail") == stored
        assert await list_profiles(conn) == [stored]


async def test_an_update_of_the_version_that_was_read_makes_the_next(engine: Engine) -> None:
    await put(engine, mail())
    stored, outcome = await put(engine, mail(workers_max=9), version=1)
    assert (stored.profile.workers_max, stored.version, outcome) == (9, 2, "updated")


async def test_the_same_profile_again_changes_nothing_and_is_not_in_the_audit_log(engine: Engine) -> None:
    await put(engine, mail())
    stored, outcome = await put(engine, mail(), version=1)
    assert (stored.version, outcome) == (1, "unchanged")
    assert [row.action for row in await audit(engine)] == ["profile created"]


@pytest.mark.parametrize(
    ("expected", "error", "says"),
    [
        ({"version": 1}, StaleVersion, "version 2, not 1"),
        ({"is_absent": True}, StaleVersion, "exists already, at version 2"),
        ({}, VersionUnstated, "say which version"),
    ],
)
async def test_a_change_for_another_state_is_refused(
    engine: Engine, expected: dict[str, Any], error: type[Exception], says: str
) -> None:
    await put(engine, mail())
    await put(engine, mail(workers_max=9), version=1)
    with pytest.raises(error, match=says):
        await put(engine, mail(workers_max=30), **expected)


async def test_a_version_of_an_absent_profile_is_refused(engine: Engine) -> None:
    with pytest.raises(StaleVersion, match="does not exist"):
        await put(engine, mail(), version=1)


async def test_a_queue_belongs_to_one_pool_and_the_refusal_names_both(engine: Engine) -> None:
    await put(engine, mail())
    with pytest.raises(Conflict, match=r"queue 'redis/news' belongs to pool 'mail' and .* under helps of pool 'news'"):
        await put(engine, mail(pool="news", queues=("redis/news",)))
    assert len(await audit(engine)) == 1


async def test_queues_keep_their_order_and_a_queue_let_go_is_free(engine: Engine) -> None:
    await put(engine, mail())
    await put(engine, mail(queues=("redis/urgent", "redis/mail")), version=1)
    await put(engine, mail(pool="news", queues=("redis/news",)))
    async with transaction(engine) as conn:
        rows = await conn.execute(select(profile_queues).order_by(profile_queues.c.pool, profile_queues.c.rank))
        assert [(row.queue, row.pool) for row in rows] == [
            ("redis/urgent", "mail"),
            ("redis/mail", "mail"),
            ("redis/news", "news"),
        ]


async def test_two_who_create_one_profile_at_once_are_distinguished(engine: Engine) -> None:
    outcomes = await asyncio.gather(
        put(engine, mail(), is_absent=True), put(engine, mail(), is_absent=True), return_exceptions=True
    )
    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["StaleVersion", "tuple"]


async def test_deleting_needs_the_version_and_frees_the_queues(engine: Engine) -> None:
    await put(engine, mail())
    async with transaction(engine) as conn:
        with pytest.raises(StaleVersion):
            await delete_profile(conn, "mail", expected=Expected(version=5), actor="local")
        with pytest.raises(VersionUnstated):
            await delete_profile(conn, "mail", expected=Expected(), actor="local")
        await delete_profile(conn, "mail", expected=Expected(version=1), actor="local")
        with pytest.raises(NotFound, match="no profile 'mail'"):
            await delete_profile(conn, "mail", expected=Expected(version=1), actor="local")
    assert (await put(engine, mail(pool="news", queues=("redis/news",))))[1] == "created"


async def test_every_change_is_in_the_audit_log_with_before_and_after(engine: Engine) -> None:
    await put(engine, mail())
    await put(engine, mail(workers_max=9), version=1)
    async with transaction(engine) as conn:
        await delete_profile(conn, "mail", expected=Expected(version=2), actor="token")
    rows = await audit(engine)
    assert [(row.actor, row.action, row.subject) for row in rows] == [
        ("local", "profile created", "profile mail"),
        ("local", "profile updated", "profile mail"),
        ("token", "profile deleted", "profile mail"),
    ]
    limits = [(row.before and row.before["workers_max"], row.after and row.after["workers_max"]) for row in rows]
    assert limits == [(None, 20), (20, 9), (9, None)]
