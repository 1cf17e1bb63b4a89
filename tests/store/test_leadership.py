"""Two sessions on one Postgres: one leads, and whatever an older leader still tries to write is refused."""

import asyncio
import time
from collections.abc import AsyncIterator

import psycopg
import pytest

from headway.errors import Unavailable
from headway.store import leadership
from headway.store.engine import Engine, create_engine
from headway.store.hosts.hosts import load_hosts
from headway.store.leadership import (
    AHEAD_MAX_S,
    MOVE_EVERY_S,
    MOVES_AT_ONCE,
    REVISION_MAX,
    LeaderSession,
    Superseded,
    fence,
    note_ahead,
)
from headway.store.overview import read_health
from headway.store.pools.evaluation_io import hold_hosts

Led = tuple[LeaderSession, int]  # a session that leads, and its epoch
LATER = int(time.time()) + 40_000  # as of a clock that was half a day ahead


async def _led(session: LeaderSession, leader: str) -> int:
    """The epoch once the lock is free: the server gives a closed session's lock back in its own time."""
    async with asyncio.timeout(60):
        while (epoch := await session.try_lead(leader)) is None:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    return epoch


@pytest.fixture
async def led(migrated_url: str) -> AsyncIterator[Led]:
    session = await LeaderSession.open(migrated_url)
    epoch = await session.try_lead("here")
    assert epoch is not None
    yield session, epoch
    await session.close()


async def test_one_session_leads_and_the_next_takes_a_greater_epoch(migrated_url: str) -> None:
    first, second = await LeaderSession.open(migrated_url), await LeaderSession.open(migrated_url)
    epoch = await first.try_lead("first")
    assert epoch is not None
    assert await second.try_lead("second") is None
    await first.close()
    assert await _led(second, "second") > epoch
    await second.close()


async def test_the_options_of_a_database_url_hold_for_the_leader_as_well(migrated_url: str) -> None:
    """Some hosted Postgres is not reached without them, and some keep Headway's tables in a schema of its own."""
    with psycopg.connect(migrated_url, autocommit=True) as connection:
        connection.execute("alter schema public rename to elsewhere")
    session = await LeaderSession.open(f"{migrated_url}&options=-csearch_path%3Delsewhere")
    assert await session.try_lead("leader") is not None
    assert await session._rows("show statement_timeout") == [("4s",)]
    await session.close()


async def test_a_new_epoch_is_above_every_epoch_a_host_has_seen(migrated_url: str) -> None:
    """A database restored from yesterday must not lock out agents that have followed today's leader."""
    with psycopg.connect(migrated_url, autocommit=True) as connection:
        connection.execute("insert into hosts (host_id, name, epoch_seen) values ('h', 'h', %s)", [LATER])
    session = await LeaderSession.open(migrated_url)
    assert await session.try_lead("restored") == LATER + 1
    await session.close()


async def test_a_restored_database_does_not_give_an_epoch_twice(migrated_url: str) -> None:
    """Its next leader cannot know what the lost one was called; the time shows it, before any host does."""
    session = await LeaderSession.open(migrated_url)
    lost = await session.try_lead("lost")
    assert lost is not None
    with psycopg.connect(migrated_url, autocommit=True) as connection:
        connection.execute("update leader_epoch set epoch = 0")  # the backup's
        connection.execute("select pg_sleep_until(to_timestamp(%s))", [lost])
    await session.close()
    following = await LeaderSession.open(migrated_url)
    assert await _led(following, "following") > lost
    await following.close()


async def seen_by(connection: psycopg.Connection, name: str, epoch: int) -> None:
    connection.execute(
        "insert into hosts (host_id, name, epoch_seen) values (%s, %s, %s) "
        "on conflict (name) do update set epoch_seen = excluded.epoch_seen",
        [name, name, epoch],
    )


async def test_an_epoch_far_ahead_of_the_clock_was_no_leaders_and_moves_nothing(migrated_url: str) -> None:
    """Believed once, it would carry the epochs away from the time for good."""
    nonsense = int(time.time() + 2 * AHEAD_MAX_S)
    session = await LeaderSession.open(migrated_url)
    with psycopg.connect(migrated_url, autocommit=True) as connection:
        await seen_by(connection, "h", nonsense)
        epoch = await session.try_lead("sane")
        assert epoch is not None
        assert epoch < nonsense - AHEAD_MAX_S / 2
        assert await session.renew(epoch) == ("h",)
        connection.execute("update hosts set assignment_revision = 7, reported_at = now()")
        engine = create_engine(migrated_url)
        async with engine.begin() as notified:
            (host,) = await load_hosts(notified)
        assert (host.is_undecided, host.is_confirmed) == (False, True)  # what is decided anew it would not take
        await engine.dispose()
    await session.close()


async def test_a_leader_gives_way_once_a_host_has_seen_a_later_epoch(migrated_url: str, led: Led) -> None:
    session, epoch = led
    with psycopg.connect(migrated_url, autocommit=True) as connection:
        await seen_by(connection, "h", epoch + 7)
    with pytest.raises(Superseded, match=f"host h has seen epoch {epoch + 7}, later than {epoch}: this database was"):
        await session.renew(epoch)
    await session.close()
    following = await LeaderSession.open(migrated_url)
    assert await _led(following, "following") == epoch + 8
    assert await following.renew(epoch + 8) == ()
    await following.close()


async def _moves(session: LeaderSession, epoch: int, connection: psycopg.Connection, name: str) -> int:
    """How often in a row ``name`` moves the lead by reporting ever later epochs, until it is not believed."""
    for moves in range(100):
        await seen_by(connection, name, epoch + 10 + moves)
        try:
            assert await session.renew(epoch) == (name,)
        except Superseded:
            continue
        return moves
    raise AssertionError("the lead changes hands for ever")


def passes(connection: psycopg.Connection, seconds: float) -> None:
    connection.execute(
        "update hosts set lead_moves_count_until = lead_moves_count_until - make_interval(secs => %s)", [seconds]
    )


async def test_a_host_that_reports_ever_later_epochs_moves_the_lead_a_few_times_and_then_seldom(
    migrated_url: str, led: Led
) -> None:
    session, epoch = led
    with psycopg.connect(migrated_url, autocommit=True) as connection:
        assert await _moves(session, epoch, connection, "broken") == MOVES_AT_ONCE
        passes(connection, MOVE_EVERY_S - 60.0)
        assert await _moves(session, epoch, connection, "broken") == 0
        passes(connection, 61.0)
        assert await _moves(session, epoch, connection, "broken") == 1
        passes(connection, MOVES_AT_ONCE * MOVE_EVERY_S)
        assert await _moves(session, epoch, connection, "broken") == MOVES_AT_ONCE


async def test_a_host_that_is_not_believed_keeps_no_other_from_being_believed(migrated_url: str, led: Led) -> None:
    session, epoch = led
    with psycopg.connect(migrated_url, autocommit=True) as connection:
        await _moves(session, epoch, connection, "broken")
        await seen_by(connection, "honest", epoch + 5)
        with pytest.raises(Superseded, match=f"host honest has seen epoch {epoch + 5}"):
            await session.renew(epoch)


async def test_a_database_that_is_restored_twice_within_the_hour_locks_no_host_out(migrated_url: str) -> None:
    """The lost database's clock was ahead, so the time alone does not carry the new epochs above its own."""
    with psycopg.connect(migrated_url, autocommit=True) as connection:
        for restored in range(3):
            session = await LeaderSession.open(migrated_url)
            epoch = await _led(session, f"restored {restored}")
            await seen_by(connection, "h", epoch + 7)  # of a leader that the backup does not know
            with pytest.raises(Superseded):
                await session.renew(epoch)
            await session.close()
            following = await LeaderSession.open(migrated_url)
            epoch = await _led(following, f"following {restored}")
            assert await following.renew(epoch) == ()
            await following.close()


async def test_moves_that_were_noted_by_a_clock_far_ahead_count_for_nothing(migrated_url: str, led: Led) -> None:
    session, epoch = led
    with psycopg.connect(migrated_url, autocommit=True) as connection:
        await seen_by(connection, "h", epoch + 1)
        connection.execute("update hosts set lead_moves_count_until = now() + interval '1 day'")
        assert await _moves(session, epoch, connection, "h") == MOVES_AT_ONCE


async def test_renewing_waits_for_no_host_that_somebody_writes_to(migrated_url: str, led: Led) -> None:
    session, epoch = led
    with psycopg.connect(migrated_url) as writing:
        writing.execute("insert into hosts (host_id, name, epoch_seen) values ('h', 'h', %s)", [epoch + 1])
        writing.commit()
        writing.execute("update hosts set boot_id = 'b'")
        assert await session.renew(epoch) == ()
        writing.rollback()
        with pytest.raises(Superseded):
            await session.renew(epoch)


async def test_a_host_that_reports_a_nonsensical_revision_keeps_its_numbers(migrated_url: str) -> None:
    engine = create_engine(migrated_url)
    async with engine.begin() as connection:
        await connection.exec_driver_sql("insert into hosts (host_id, name) values ('h', 'h')")
        await note_ahead(connection, "h", epoch=0, revision=REVISION_MAX)
        rows = await connection.exec_driver_sql("select epoch_seen, assignment_revision from hosts")
        assert tuple(rows.one()) == (0, 0)
    await engine.dispose()


@pytest.mark.parametrize(
    ("lease_s", "silent_s", "known"),
    [
        (30.0, 3600.0, True),  # it had half a minute left when the last leader fell silent, and has it still
        (-5.0, 3600.0, False),  # it was lost before
    ],
)
async def test_a_lease_does_not_run_while_nobody_leads(
    migrated_url: str, lease_s: float, silent_s: float, known: bool
) -> None:
    """Perhaps no report could arrive: Postgres was down, or this is a backup of it."""
    with psycopg.connect(migrated_url, autocommit=True) as connection:
        connection.execute("update leader_heartbeat set renewed_at = now() - make_interval(secs => %s)", [silent_s])
        connection.execute(
            """
            insert into hosts (host_id, name, lease_ends_at)
            select 'h', 'h', renewed_at + make_interval(secs => %s) from leader_heartbeat
            """,
            [lease_s],
        )
        session = await LeaderSession.open(migrated_url)
        await session.try_lead("next")
        row = connection.execute("select lease_ends_at > now() from hosts").fetchone()
        assert row == (known,)
        await session.close()


@pytest.mark.parametrize(
    ("has", "has_reported", "is_undecided", "is_confirmed"),
    [
        ((5, 9), True, True, True),  # the backup is of the same epoch: what it runs is the truth
        ((6, 2), True, True, True),  # of an earlier one
        ((6, 2), False, False, False),  # what is known of its workers is the backup's, too
        ((5, 7), True, False, True),  # nothing was restored
        ((5, 7), False, False, True),  # it will report when it is due
        ((999_999_999_999, 1), True, False, True),  # no leader's, and it would not take what is decided
    ],
)
async def test_a_host_that_acts_on_lost_orders_is_decided_anew_from_what_it_reports(
    migrated_url: str, *, has: tuple[int, int], has_reported: bool, is_undecided: bool, is_confirmed: bool
) -> None:
    engine = create_engine(migrated_url)
    async with engine.begin() as connection:
        await connection.exec_driver_sql(
            "insert into hosts (host_id, name, epoch_seen, assignment_epoch, assignment_revision, reported_at) "
            "values ('h', 'h', 5, 5, 7, now() - interval '10 seconds')"
        )
        await connection.exec_driver_sql("update leader_epoch set epoch = 9, taken_at = now() - interval '5 seconds'")
        if has > (5, 7):
            await note_ahead(connection, "h", epoch=has[0], revision=has[1])
        if has_reported:
            await connection.exec_driver_sql("update hosts set reported_at = now()")
        (host,) = await load_hosts(connection)
        assert (host.is_undecided, host.is_confirmed) == (is_undecided, is_confirmed)
    await engine.dispose()


@pytest.mark.parametrize(
    ("renewed", "is_perhaps_restored"),
    [
        ("now() - interval '1 second'", False),
        ("now() - interval '10 seconds'", False),  # it hung, and was replaced
        ("now() - interval '1 minute'", True),
        ("pg_postmaster_start_time() - interval '1 second'", True),
    ],
)
async def test_hosts_must_report_anew_where_the_database_may_have_been_restored(
    migrated_url: str, renewed: str, *, is_perhaps_restored: bool
) -> None:
    with psycopg.connect(migrated_url, autocommit=True) as connection:
        # The server of these tests must have begun before what a test calls a sign of life.
        connection.execute("select pg_sleep_until(pg_postmaster_start_time() + interval '12 seconds')")
        connection.execute("insert into hosts (host_id, name, reported_at) values ('h', 'h', now())")
        session = await LeaderSession.open(migrated_url)
        first = await session.try_lead("first")
        assert first is not None
        assert await _is_confirmed(migrated_url), "nobody has led before: there is nothing that was lost"
        await session.close()
        connection.execute(f"update leader_heartbeat set renewed_at = {renewed}")
        following = await LeaderSession.open(migrated_url)
        await _led(following, "following")
        assert await _is_confirmed(migrated_url) is not is_perhaps_restored
        await following.close()
        third = await LeaderSession.open(migrated_url)
        await _led(third, "third")
        assert await _is_confirmed(migrated_url) is not is_perhaps_restored, "its successor knows as much"
        connection.execute("update hosts set reported_at = now()")
        assert await _is_confirmed(migrated_url)
        await third.close()


async def _is_confirmed(url: str) -> bool:
    engine = create_engine(url)
    async with engine.begin() as connection:
        (host,) = await load_hosts(connection)
    await engine.dispose()
    return host.is_confirmed


async def test_a_leader_that_hangs_inside_a_transaction_does_not_hold_the_next_one_up(
    migrated_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has locked the epoch's row and says nothing more; its session was ended, that of its tick was not."""
    monkeypatch.setattr(leadership, "FENCED_IDLE_S", 1)
    engine = create_engine(migrated_url)
    hung, following = await LeaderSession.open(migrated_url), await LeaderSession.open(migrated_url)
    epoch = await hung.try_lead("hung")
    assert epoch is not None
    connection = await engine.connect()
    await fence(connection, epoch=epoch)
    await hung.close()
    assert await _led(following, "following") > epoch
    await connection.invalidate()
    await connection.close()
    await following.close()
    await engine.dispose()


async def test_a_report_that_hangs_inside_its_transaction_does_not_hold_the_next_leader_up(migrated_url: str) -> None:
    """The control plane that took it was cut off; until Postgres ends its session the host's row stays locked."""
    engine = create_engine(migrated_url)
    async with engine.begin() as reporting:
        await reporting.exec_driver_sql("insert into hosts (host_id, name, lease_ends_at) values ('h', 'h', now())")
    async with engine.begin() as reporting:
        await reporting.exec_driver_sql("update hosts set lease_ends_at = now() + interval '45 s'")
        following = await LeaderSession.open(migrated_url)
        assert await following.try_lead("following") is not None
        await following.close()
    await engine.dispose()


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


async def test_the_next_leader_waits_for_what_the_last_one_is_writing(migrated_url: str) -> None:
    """Else it decides from what was so before, and then the other is committed, under an epoch that is over."""
    engine = create_engine(migrated_url)
    old, new = await LeaderSession.open(migrated_url), await LeaderSession.open(migrated_url)
    epoch = await old.try_lead("old")
    assert epoch is not None
    async with engine.begin() as writing:
        await fence(writing, epoch=epoch)
        await old.close()
        taking = asyncio.create_task(_led(new, "new"))
        async with asyncio.timeout(60):
            while not (taking.done() or await _waits(engine)):  # noqa: ASYNC110 - Postgres tells nobody who waits
                await asyncio.sleep(0.01)
        assert not taking.done()
    assert await taking > epoch
    await new.close()
    await engine.dispose()


async def test_a_superseded_leader_holds_no_host_for_known(migrated_url: str, led: Led) -> None:
    """It was away, and takes the hosts' silence for its own; the next leader has received their reports, or not."""
    engine = create_engine(migrated_url)
    with psycopg.connect(migrated_url, autocommit=True) as connection:
        connection.execute("insert into hosts (host_id, name, lease_ends_at) values ('h', 'h', now() + interval '1 s')")
        read = "select lease_ends_at from hosts"
        before = connection.execute(read).fetchone()
        with pytest.raises(Superseded):
            await hold_hosts(engine, since_s=time.time() - 30.0, epoch=led[1] - 1)
        assert connection.execute(read).fetchone() == before
    await engine.dispose()


async def _waits(engine: Engine) -> bool:
    """Whether somebody waits for the epoch's row."""
    async with engine.begin() as reading:
        found = await reading.exec_driver_sql(
            "select count(*) from pg_stat_activity where wait_event_type = 'Lock' "
            "and datname = current_database() and query like '%%update leader_epoch%%'"
        )
        return bool(found.scalar_one())


async def test_a_silent_leaders_session_is_ended_and_a_lively_ones_is_not(migrated_url: str) -> None:
    silent, waiting = await LeaderSession.open(migrated_url), await LeaderSession.open(migrated_url)
    epoch = await silent.try_lead("silent")
    assert epoch is not None
    assert not await waiting.end_silent_leader(lease_s=8.0)
    with psycopg.connect(migrated_url, autocommit=True) as connection:
        connection.execute("update leader_heartbeat set renewed_at = now() - interval '9 seconds'")
    assert not await waiting.end_silent_leader(lease_s=8.0)  # it has just asked for something
    assert await waiting.end_silent_leader(lease_s=0.0)
    with pytest.raises(Unavailable):
        await silent.renew(epoch)
    await silent.close()
    await waiting.close()


async def test_health_names_the_leader_and_the_age_of_its_heartbeat(migrated_url: str) -> None:
    engine = create_engine(migrated_url)
    session = await LeaderSession.open(migrated_url)
    epoch = await session.try_lead("here")
    async with engine.connect() as connection:
        seen = await read_health(connection)
    assert (seen.epoch, seen.leader) == (epoch, "here")
    assert seen.leader_age_s is not None
    assert 0 <= seen.leader_age_s < 60
    await session.close()
    await engine.dispose()
