"""Ticks of pools whose workers something beside Headway keeps from taking jobs, on a real Postgres."""

import asyncio
from typing import Any

from control.ticks import LATE, Database, leading
from headway.scaling.model import QueueSample, Suspension
from headway.store.engine import listen, transaction
from headway.store.events.telemetry import SUSPENSIONS, upsert_samples
from headway.store.overview import read_samples
from support.engines import engine_to
from support.pools import NOW_S

LIBRARY, NONE = Suspension.LIBRARY, Suspension.NONE


async def read(url: str, suspension: Suspension | None, *, at_s: float = NOW_S, **values: Any) -> None:
    """A collector's reading of the queue, as ingest stores it."""
    sample = QueueSample(queue="redis/mail", at_s=at_s, suspension=suspension, **{"waiting_jobs": 4, **values})
    engine = engine_to(url)
    async with transaction(engine) as connection:
        await upsert_samples(connection, [sample])
        assert (await read_samples(connection))["redis/mail"] == sample
    await engine.dispose()


def suspended(database: Database) -> bool | None:
    """Whether the rows of the pool are marked as suspended; ``None`` where it has none."""
    return database.read("select bool_or(is_suspended) from assignments")


async def test_a_suspended_pool_is_not_woken_and_starts_when_it_may(migrated_url: str, database: Database) -> None:
    database.profile()
    database.host()
    database.bucket(**LATE)
    await read(migrated_url, LIBRARY)
    async with leading(migrated_url) as (ticker, epoch):
        await ticker.tick(epoch=epoch, is_all_due=True)
        assert (database.assigned(), database.decisions()) == ({}, [("mail", 0, "suspended")])
        await read(migrated_url, NONE, at_s=NOW_S + 0.5)
        await ticker.tick(epoch=epoch, is_all_due=False)
    assert database.assigned() == {("mail", "a"): 4}
    assert suspended(database) is False
    assert [binding for _, _, binding in database.decisions()] == ["suspended", "backlog_drain"]


async def test_a_pool_that_runs_is_evaluated_as_soon_as_its_suspension_begins_and_ends(
    migrated_url: str, database: Database
) -> None:
    """It does not stand at zero, and no clock has made it due."""
    database.profile(workers_min=1)
    database.host()
    database.bucket(at_s=NOW_S - 5)
    await read(migrated_url, NONE, waiting_jobs=0)
    async with leading(migrated_url) as (ticker, epoch):
        await ticker.tick(epoch=epoch, is_all_due=True)
        assert (database.assigned(), suspended(database)) == ({("mail", "a"): 1}, False)
        before = database.revision_of()
        database.bucket(**LATE)
        await read(migrated_url, LIBRARY, at_s=NOW_S + 1)
        await ticker.tick(epoch=epoch, is_all_due=False)
        assert (database.assigned(), suspended(database)) == ({("mail", "a"): 1}, True)
        assert database.revision_of() == before + 1  # so that the agent hears of it
        await read(migrated_url, NONE, at_s=NOW_S + 2)
        await ticker.tick(epoch=epoch, is_all_due=False)
        assert suspended(database) is False
        assert database.assigned()["mail", "a"] > 1
        decided = len(database.decisions())
        await ticker.tick(epoch=epoch, is_all_due=False)
        assert len(database.decisions()) == decided, "nothing has turned since"


async def test_a_reading_of_long_ago_suspends_nobody(migrated_url: str, database: Database) -> None:
    """Its collector is away: whether workers may take jobs is not known."""
    database.profile()
    database.host()
    database.bucket(**LATE)
    await read(migrated_url, LIBRARY, at_s=NOW_S - 60)
    async with leading(migrated_url) as (ticker, epoch):
        await ticker.tick(epoch=epoch, is_all_due=True)
    assert database.assigned() == {("mail", "a"): 4}


async def test_who_leads_after_a_suspension_began_knows_since_when(migrated_url: str, database: Database) -> None:
    database.profile()
    database.host()
    database.bucket(**LATE)
    await read(migrated_url, LIBRARY)
    for now_s in (NOW_S, NOW_S + 7.0):
        async with leading(migrated_url, now_s=now_s) as (ticker, epoch):
            await ticker.tick(epoch=epoch, is_all_due=True)
    assert database.read("select memory -> 'stoppage' from pool_states") == {"since_s": NOW_S, "until_s": None}
    assert database.read("select body -> 'suspension' from decisions order by decided_at desc limit 1") == "library"


async def test_a_turn_is_announced_and_what_comes_and_goes_with_workers_is_not(migrated_url: str) -> None:
    received: list[str] = []
    listening = asyncio.create_task(_receive(migrated_url, received))
    nobody = Suspension.NO_CONSUMERS
    try:
        async with asyncio.timeout(30):
            while len(received) < 2:  # noqa: ASYNC110 - each channel is announced once it is listened to
                await asyncio.sleep(0.01)
        await read(migrated_url, NONE)
        received.clear()
        for second, suspension in enumerate((NONE, nobody, nobody, None, None)):
            await read(migrated_url, suspension, at_s=NOW_S + 11 + second)
            if suspension is nobody:
                assert await _settled(migrated_url, received) == []
        received.clear()
        await read(migrated_url, LIBRARY, at_s=NOW_S + 20)
        await read(migrated_url, LIBRARY, at_s=NOW_S + 21)
        assert await _settled(migrated_url, received) == [SUSPENSIONS]
    finally:
        listening.cancel()


async def _receive(url: str, received: list[str]) -> None:
    async for channel, _ in listen(url, (SUSPENSIONS, "headway_test_mark")):
        received.append(channel)


async def _settled(url: str, received: list[str]) -> list[str]:
    """What was received up to a mark that is announced now."""
    engine = engine_to(url)
    async with transaction(engine) as connection:
        await connection.exec_driver_sql("notify headway_test_mark")
    await engine.dispose()
    async with asyncio.timeout(30):
        while "headway_test_mark" not in received:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    received.remove("headway_test_mark")
    return list(received)
