"""Two sessions on one Postgres: one leads, and whatever an older leader still tries to write is refused."""

import asyncio

import psycopg
import pytest

from headway.errors import Unavailable
from headway.store.engine import create_engine
from headway.store.leadership import LeaderSession, Superseded, fence, heartbeat


async def _led(session: LeaderSession, leader: str) -> int:
    """The epoch once the lock is free: the server gives a closed session's lock back in its own time."""
    async with asyncio.timeout(10):
        while (epoch := await session.try_lead(leader)) is None:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    return epoch


async def test_one_session_leads_and_the_next_takes_a_greater_epoch(migrated_url: str) -> None:
    first, second = await LeaderSession.open(migrated_url), await LeaderSession.open(migrated_url)
    epoch = await first.try_lead("first")
    assert epoch is not None
    assert await second.try_lead("second") is None
    await first.close()
    assert await _led(second, "second") == epoch + 1
    await second.close()


async def test_a_new_epoch_is_above_every_epoch_a_host_has_seen(migrated_url: str) -> None:
    """A database restored from yesterday must not lock out agents that have followed today's leader."""
    with psycopg.connect(migrated_url, autocommit=True) as connection:
        connection.execute("insert into hosts (host_id, name, epoch_seen) values ('h', 'h', 41)")
    session = await LeaderSession.open(migrated_url)
    assert await session.try_lead("restored") == 42
    await session.close()


async def test_a_superseded_leader_writes_nothing(migrated_url: str) -> None:
    engine = create_engine(migrated_url)
    old, new = await LeaderSession.open(migrated_url), await LeaderSession.open(migrated_url)
    epoch = await old.try_lead("old")
    assert epoch is not None
    async with engine.begin() as connection:
        await fence(connection, epoch=epoch)
    await old.close()
    await _led(new, "new")
    with pytest.raises(Superseded):
        async with engine.begin() as connection:
            await fence(connection, epoch=epoch)
    await new.close()
    await engine.dispose()


async def test_a_silent_leaders_session_is_ended_and_a_lively_ones_is_not(migrated_url: str) -> None:
    silent, waiting = await LeaderSession.open(migrated_url), await LeaderSession.open(migrated_url)
    epoch = await silent.try_lead("silent")
    assert epoch is not None
    assert not await waiting.end_silent_leader(lease_s=8.0)
    with psycopg.connect(migrated_url, autocommit=True) as connection:
        connection.execute("update leader_heartbeat set renewed_at = now() - interval '9 seconds'")
    assert await waiting.end_silent_leader(lease_s=8.0)
    with pytest.raises(Unavailable):
        await silent.renew(epoch)
    await silent.close()
    await waiting.close()


async def test_the_heartbeat_names_the_leader_and_its_age(migrated_url: str) -> None:
    engine = create_engine(migrated_url)
    session = await LeaderSession.open(migrated_url)
    epoch = await session.try_lead("here")
    async with engine.connect() as connection:
        seen = await heartbeat(connection)
    assert (seen.epoch, seen.leader) == (epoch, "here")
    assert 0 <= seen.age_s < 60
    await session.close()
    await engine.dispose()
