"""Queues that patterns match, on a real Postgres: who owns them, when they come and go, which hosts receive them."""

from typing import Any

import pytest
from sqlalchemy import insert, select, text

from headway.errors import Conflict
from headway.scaling.profile import Profile
from headway.store.claimed_names import forget_queues
from headway.store.engine import Engine, transaction
from headway.store.hosts.host_assignments import read_standings
from headway.store.pools.profiles import (
    Expected,
    Outcome,
    StoredProfile,
    delete_profile,
    get_profile,
    list_profiles,
    put_profile,
)
from headway.store.pools.queue_ownership import read_queue_news, read_unserved, settle_queues
from headway.store.tables import assignments, hosts, profile_queues, profiles, queue_samples


def pool(name: str, *queues: str, **values: Any) -> Profile:
    return Profile(pool=name, queues=queues, template="rq", **values)


async def put(engine: Engine, profile: Profile, *, version: int | None = None) -> tuple[StoredProfile, Outcome]:
    async with transaction(engine) as conn:
        return await put_profile(conn, profile, expected=Expected(version=version), actor="local")


async def see(engine: Engine, *queues: str, ago_s: float = 0.0) -> None:
    async with transaction(engine) as conn:
        for queue in queues:
            await conn.execute(
                text(
                    "insert into queue_samples (queue, sampled_at_s, received_at)"
                    " values (:queue, 0, now() - make_interval(secs => :ago_s))"
                    " on conflict (queue) do update set received_at = excluded.received_at"
                ),
                {"queue": queue, "ago_s": ago_s},
            )


async def settle(engine: Engine) -> frozenset[str]:
    async with transaction(engine) as conn:
        return await settle_queues(conn)


async def queues_of(engine: Engine, name: str) -> tuple[str, ...]:
    async with transaction(engine) as conn:
        stored = await get_profile(conn, name)
    return stored.profile.queues if stored.has_queues else ()


async def test_a_profile_has_the_queues_that_its_patterns_match_and_keeps_what_was_written(engine: Engine) -> None:
    await see(engine, "r/tenant-b", "r/tenant-a", "r/mail")
    stored, _ = await put(engine, pool("tenants", "r/first", "r/tenant-*"))
    assert stored.profile.queues == ("r/first", "r/tenant-a", "r/tenant-b")
    assert stored.written.queues == ("r/first", "r/tenant-*")
    assert stored.has_queues


async def test_a_queue_that_comes_is_matched_when_it_is_settled(engine: Engine) -> None:
    stored, _ = await put(engine, pool("tenants", "r/tenant-*"))
    assert not stored.has_queues
    await see(engine, "r/tenant-a")
    assert await settle(engine) == {"tenants"}
    assert await queues_of(engine, "tenants") == ("r/tenant-a",)
    assert await settle(engine) == frozenset()


async def test_without_a_pattern_there_is_no_news(engine: Engine) -> None:
    await put(engine, pool("mail", "r/mail"))
    await see(engine, "r/other")
    async with transaction(engine) as conn:
        news = await read_queue_news(conn)
    assert not news.unowned
    assert not news.patterns


async def test_the_pool_that_names_a_matched_queue_takes_it_over_and_its_absence_returns_it(engine: Engine) -> None:
    await see(engine, "r/tenant-a", "r/tenant-vip")
    await put(engine, pool("tenants", "r/tenant-*"))
    await put(engine, pool("vip", "r/tenant-vip"))
    assert await queues_of(engine, "tenants") == ("r/tenant-a",)
    assert await queues_of(engine, "vip") == ("r/tenant-vip",)
    async with transaction(engine) as conn:
        await delete_profile(conn, "vip", expected=Expected(version=1), actor="local")
    await settle(engine)
    assert await queues_of(engine, "tenants") == ("r/tenant-a", "r/tenant-vip")


async def test_a_pattern_that_crosses_another_pools_is_refused_and_its_exception_is_not(engine: Engine) -> None:
    await put(engine, pool("tenants", "r/tenant-*"))
    with pytest.raises(Conflict, match=r"'r/\*-mail' of pool 'mail' and 'r/tenant-\*' of pool 'tenants'"):
        await put(engine, pool("mail", "r/*-mail"))
    await put(engine, pool("big", "r/tenant-big-*"))
    await see(engine, "r/tenant-big-1", "r/tenant-1")
    assert await settle(engine) == {"big", "tenants"}
    assert await queues_of(engine, "big") == ("r/tenant-big-1",)
    assert await queues_of(engine, "tenants") == ("r/tenant-1",)


async def test_the_same_patterns_again_change_nothing(engine: Engine) -> None:
    await see(engine, "r/tenant-a")
    await put(engine, pool("tenants", "r/tenant-*"))
    stored, outcome = await put(engine, pool("tenants", "r/tenant-*"), version=1)
    assert (stored.version, outcome) == (1, "unchanged")


async def test_a_name_with_a_star_of_an_earlier_version_is_a_name_until_it_is_applied_again(engine: Engine) -> None:
    async with transaction(engine) as conn:
        await conn.execute(insert(profiles).values(pool="odd", body={"queues": ["r/*"], "template": "rq"}))
        await conn.execute(insert(profile_queues).values(queue="r/*", pool="odd", rank=0))
    await see(engine, "r/a")
    assert await settle(engine) == frozenset()
    assert await queues_of(engine, "odd") == ("r/*",)
    stored, outcome = await put(engine, pool("odd", "r/*"), version=1)
    assert (stored.profile.queues, outcome) == (("r/a",), "updated")


async def test_a_queue_leaves_once_its_collector_sees_others_of_the_connection_and_it_no_more(engine: Engine) -> None:
    await see(engine, "r/tenant-a", "r/tenant-b", "s/x", ago_s=7200)
    await put(engine, pool("tenants", "r/tenant-*"))
    assert await queues_of(engine, "tenants") == ("r/tenant-a", "r/tenant-b"), "nobody has read the connection since"
    await see(engine, "s/x")
    assert await settle(engine) == frozenset(), "another connection says nothing of this one"
    await see(engine, "r/tenant-b")
    async with transaction(engine) as conn:
        assert (await read_queue_news(conn)).gone == {"r/tenant-a"}
    assert await settle(engine) == {"tenants"}
    assert await queues_of(engine, "tenants") == ("r/tenant-b",)


async def test_a_queue_without_a_reading_stays_in_its_pool(engine: Engine) -> None:
    await see(engine, "r/tenant-a", "r/tenant-b")
    await put(engine, pool("tenants", "r/tenant-*"))
    async with transaction(engine) as conn:
        await conn.execute(queue_samples.delete().where(queue_samples.c.queue == "r/tenant-a"))
    assert await settle(engine) == frozenset()
    assert await queues_of(engine, "tenants") == ("r/tenant-a", "r/tenant-b")


async def test_a_matched_queue_can_be_forgotten(engine: Engine) -> None:
    await see(engine, "r/tenant-a", "r/tenant-b")
    await put(engine, pool("tenants", "r/tenant-*"))
    async with transaction(engine) as conn:
        await forget_queues(conn, ["r/tenant-a"], actor="local")
    await settle(engine)
    assert await queues_of(engine, "tenants") == ("r/tenant-b",)


async def test_hosts_that_run_a_pool_receive_its_new_queues(engine: Engine) -> None:
    await see(engine, "r/tenant-b")
    await put(engine, pool("tenants", "r/tenant-*"))
    async with transaction(engine) as conn:
        for name in ("runs", "other"):
            await conn.execute(insert(hosts).values(host_id=name, name=name, assignment_revision=7, assignment_epoch=3))
        await conn.execute(
            insert(assignments).values(
                pool="tenants", host_id="runs", template="rq", base_workers=1, burst_workers=0, epoch=3, revision=7
            )
        )
    await see(engine, "r/tenant-a")
    await settle(engine)
    async with transaction(engine) as conn:
        found = await read_standings(conn, ["runs", "other"])
    assert (found["runs"].revision, found["other"].revision) == (8, 7)
    assert found["runs"].pools[0].queues == ("r/tenant-a", "r/tenant-b")


async def test_what_a_pool_cannot_take_more_stays_without_an_owner(engine: Engine) -> None:
    await put(engine, pool("tenants", "r/*"))
    async with transaction(engine) as conn:
        await conn.execute(
            text(
                "insert into queue_samples (queue, sampled_at_s) select 'r/' || lpad(n::text, 5, '0'), 0"
                " from generate_series(1, 2003) as n"
            )
        )
    await settle(engine)
    async with transaction(engine) as conn:
        owned = set((await conn.execute(select(profile_queues.c.queue))).scalars())
    assert len(owned) == 2_000
    assert not owned & {"r/02001", "r/02002", "r/02003"}


async def made(engine: Engine) -> dict[str, tuple[str, ...]]:
    """The pools that were made, with their queues."""
    async with transaction(engine) as conn:
        return {each.profile.pool: each.profile.queues for each in await list_profiles(conn) if each.made_of}


async def test_each_queue_that_no_pool_names_becomes_a_pool_of_its_own(engine: Engine) -> None:
    await put(engine, pool("mail", "r/mail"))
    await put(engine, pool("big", "r/big-*"))
    await see(engine, "r/mail", "r/big-1", "r/a", "r/b")
    stored, _ = await put(engine, pool("sla_defaults", "r/*", pools_max=9, workers_max=7))
    assert not stored.has_queues
    assert await made(engine) == {"r.a": ("r/a",), "r.b": ("r/b",)}
    async with transaction(engine) as conn:
        own = await get_profile(conn, "r.a")
    assert (own.profile.workers_max, own.profile.pools_max, own.made_of) == (7, None, "sla_defaults")
    assert await queues_of(engine, "mail") == ("r/mail",)


async def test_no_more_pools_are_made_than_allowed_and_the_others_are_named(engine: Engine) -> None:
    await see(engine, "r/b", "r/c")
    await put(engine, pool("sla_defaults", "r/*", pools_max=2))
    await see(engine, "r/a")
    await settle(engine)
    assert await made(engine) == {"r.b": ("r/b",), "r.c": ("r/c",)}, "what has a pool keeps it"
    async with transaction(engine) as conn:
        assert await read_unserved(conn) == {"sla_defaults": ("r/a",)}


async def test_a_pool_that_was_made_goes_when_another_names_its_queue_and_follows_its_profile(engine: Engine) -> None:
    await see(engine, "r/a", "r/b")
    await put(engine, pool("sla_defaults", "r/*", pools_max=9))
    await put(engine, pool("own", "r/a"))
    assert await made(engine) == {"r.b": ("r/b",)}
    await put(engine, pool("sla_defaults", "r/*", pools_max=9, workers_max=3), version=1)
    async with transaction(engine) as conn:
        stored = await get_profile(conn, "r.b")
    assert (stored.profile.workers_max, stored.version) == (3, 2)
    async with transaction(engine) as conn:
        with pytest.raises(Conflict, match=r"'r\.b' is made of profile 'sla_defaults' for queue 'r/b'"):
            await delete_profile(conn, "r.b", expected=Expected(version=2), actor="local")
    async with transaction(engine) as conn:
        await delete_profile(conn, "sla_defaults", expected=Expected(version=2), actor="local")
    assert await made(engine) == {}


async def test_a_pool_that_is_written_is_never_taken_for_one_that_was_made(engine: Engine) -> None:
    await put(engine, pool("r.a", "r/other"))
    await see(engine, "r/a", "r/b")
    await put(engine, pool("sla_defaults", "r/*", pools_max=9))
    assert await made(engine) == {"r.b": ("r/b",)}
    assert await queues_of(engine, "r.a") == ("r/other",)
    await put(engine, pool("r.b", "r/b", workers_max=2), version=1)
    assert await made(engine) == {}, "a person has taken it over"
    assert await queues_of(engine, "r.b") == ("r/b",)
