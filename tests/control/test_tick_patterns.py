"""Ticks of pools whose profiles name queues by patterns, on a real Postgres."""

from control.ticks import LATE, Database, leading
from headway.scaling.model import QueueSample
from headway.scaling.profile import profile_to_mapping
from headway.store.engine import transaction
from headway.store.events.telemetry import upsert_samples
from headway.store.hosts.host_assignments import read_standings
from support.engines import engine_to
from support.pools import NOW_S, profile


def pattern_pool(database: Database, *queues: str, pool: str = "tenants", **values: object) -> None:
    database.body(pool, profile_to_mapping(profile(pool=pool, queues=queues, **values)))


async def read(url: str, *queues: str, waiting_jobs: int = 0) -> None:
    """Readings of a collector, as ingest stores them."""
    engine = engine_to(url)
    async with transaction(engine) as connection:
        rows = [
            QueueSample(
                queue=queue,
                at_s=NOW_S,
                waiting_jobs=waiting_jobs,
                in_flight_jobs=0,
                oldest_age_s=60.0 * bool(waiting_jobs),
            )
            for queue in queues
        ]
        await upsert_samples(connection, rows)
    await engine.dispose()


async def pool_queues(url: str) -> dict[str, tuple[str, ...]]:
    """What the agent of the host receives."""
    engine = engine_to(url)
    async with transaction(engine) as connection:
        found = (await read_standings(connection, ["a"]))["a"]
    await engine.dispose()
    return {each.pool: each.queues for each in found.pools}


async def test_a_pool_is_decided_from_the_first_queue_that_its_pattern_matches(
    migrated_url: str, database: Database
) -> None:
    pattern_pool(database, "redis/tenant-*", workers_min=1)
    database.host()
    async with leading(migrated_url) as (ticker, epoch):
        await ticker.tick(epoch=epoch, is_all_due=True)
        assert (database.assigned(), database.decisions()) == ({}, []), "there is no queue that a worker could serve"
        await read(migrated_url, "redis/tenant-a", "redis/mail", waiting_jobs=4)
        database.bucket("tenant-a", **LATE)
        await ticker.tick(epoch=epoch, is_all_due=True)
    assert [(pool, target) for pool, target, _ in database.decisions()] == [("tenants", 4)]
    assert database.assigned() == {("tenants", "a"): 4}
    assert await pool_queues(migrated_url) == {"tenants": ("redis/tenant-a",)}


async def test_hosts_that_run_a_pool_receive_a_new_queue_with_the_next_tick(
    migrated_url: str, database: Database
) -> None:
    pattern_pool(database, "redis/urgent-*", "redis/tenant-*", workers_min=1)
    database.host()
    await read(migrated_url, "redis/tenant-b")
    async with leading(migrated_url) as (ticker, epoch):
        await ticker.tick(epoch=epoch, is_all_due=True)
        before = database.revision_of()
        await ticker.tick(epoch=epoch, is_all_due=True)
        assert database.revision_of() == before, "nothing has changed"
        await read(migrated_url, "redis/tenant-a", "redis/urgent-z")
        await ticker.tick(epoch=epoch, is_all_due=True)
    assert database.revision_of() == before + 1
    assert database.assigned() == {("tenants", "a"): 1}
    assert await pool_queues(migrated_url) == {"tenants": ("redis/urgent-z", "redis/tenant-a", "redis/tenant-b")}


async def test_a_pool_without_a_queue_any_more_lets_its_workers_go(migrated_url: str, database: Database) -> None:
    pattern_pool(database, "redis/tenant-*", workers_min=1)
    database.host()
    await read(migrated_url, "redis/tenant-a", "redis/mail")
    async with leading(migrated_url) as (ticker, epoch):
        await ticker.tick(epoch=epoch, is_all_due=True)
        assert database.assigned() == {("tenants", "a"): 1}
        database.run("update queue_samples set received_at = now() - interval '2 hours' where queue = 'redis/tenant-a'")
        await ticker.tick(epoch=epoch, is_all_due=True)
    assert database.assigned() == {}


async def test_while_nobody_reads_the_broker_every_queue_stays(migrated_url: str, database: Database) -> None:
    pattern_pool(database, "redis/tenant-*", workers_min=1)
    database.host()
    await read(migrated_url, "redis/tenant-a", "redis/mail")
    async with leading(migrated_url) as (ticker, epoch):
        await ticker.tick(epoch=epoch, is_all_due=True)
        database.run("update queue_samples set received_at = now() - interval '20 hours'")
        await ticker.tick(epoch=epoch, is_all_due=True)
    assert database.assigned() == {("tenants", "a"): 1}


async def test_each_queue_that_no_pool_names_has_a_pool_of_its_own_which_is_decided(
    migrated_url: str, database: Database
) -> None:
    pattern_pool(database, "redis/*", pool="sla_defaults", workers_min=1, pools_max=2)
    database.profile("mail")
    database.host()
    await read(migrated_url, "redis/mail", "redis/tenant-a", "redis/tenant-b")
    async with leading(migrated_url) as (ticker, epoch):
        await ticker.tick(epoch=epoch, is_all_due=True)
        await read(migrated_url, "redis/tenant-c")
        await ticker.tick(epoch=epoch, is_all_due=True)
    assert database.assigned() == {("redis.tenant-a", "a"): 1, ("redis.tenant-b", "a"): 1}
    assert await pool_queues(migrated_url) == {
        "redis.tenant-a": ("redis/tenant-a",),
        "redis.tenant-b": ("redis/tenant-b",),
    }


async def test_a_name_with_a_star_that_was_stored_before_is_decided_as_it_was(
    migrated_url: str, database: Database
) -> None:
    """Its row in ``profile_queues`` says that it is one queue; the next apply makes a pattern of it."""
    pattern_pool(database, "redis/*", pool="odd", workers_min=2)
    database.run("insert into profile_queues (queue, pool, rank) values ('redis/*', 'odd', 0)")
    database.host()
    await read(migrated_url, "redis/tenant-a", waiting_jobs=9)
    async with leading(migrated_url) as (ticker, epoch):
        await ticker.tick(epoch=epoch, is_all_due=True)
    assert database.assigned() == {("odd", "a"): 2}
    assert database.read("select count(*) from profile_queues") == 1
