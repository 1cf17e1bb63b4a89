"""Leading on a real Postgres: what a process believes of itself while others, the network or Postgres fail it."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from urllib.parse import parse_qs, urlsplit

import psycopg
import pytest

from headway.control.scheduler import leader
from headway.control.scheduler.leader import Leadership
from headway.errors import Unavailable
from headway.store import leadership as store
from headway.store.leadership import LeaderSession

LATER = int(time.time()) + 40_000  # as of a clock that was half a day ahead


class Wire:
    """A way to Postgres that can be cut without a word to either side."""

    def __init__(self, database_url: str) -> None:
        self._far = parse_qs(urlsplit(database_url).query)["host"][0] + "/.s.PGSQL.5432"
        self._name = urlsplit(database_url).path
        self._open = asyncio.Event()
        self._open.set()

    async def start(self) -> str:
        self._server = await asyncio.start_server(self._carry, "127.0.0.1", 0)
        port = self._server.sockets[0].getsockname()[1]
        return f"postgresql://headway@127.0.0.1:{port}{self._name}"

    def cut(self) -> None:
        self._open.clear()

    def mend(self) -> None:
        self._open.set()

    def close(self) -> None:
        self.mend()
        self._server.close()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_unix_connection(self._far)
        await asyncio.gather(self._pass(reader, far_writer), self._pass(far_reader, writer))

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(65_536):
                await self._open.wait()
                writer.write(data)
                await writer.drain()
        writer.close()


async def _becomes(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - what changes is in another process
            await asyncio.sleep(0.01)


@asynccontextmanager
async def _leading(database_url: str) -> AsyncIterator[Leadership]:
    one = Leadership(database_url=database_url, name="one", clock=time.monotonic)
    task = asyncio.ensure_future(one.run(lambda: None))
    try:
        yield one
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


@pytest.fixture(autouse=True)
def _hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leader, "LEADER_STAND_BY_S", 0.05)
    monkeypatch.setattr(leader, "RENEW_S", 0.05)


async def test_a_leader_that_is_cut_off_from_postgres_stops_leading_by_itself(
    migrated_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing notifies it: neither Postgres, which does not answer, nor the next leader."""
    monkeypatch.setattr(store, "LEADER_ANSWER_S", 1.0)
    wire = Wire(migrated_url)
    async with _leading(await wire.start()) as one:
        await _becomes(lambda: one.epoch is not None)
        wire.cut()
        await _becomes(lambda: one.epoch is None)
        wire.mend()
        await _becomes(lambda: one.epoch is not None)
        wire.close()


async def test_why_nobody_leads_is_logged_once_and_not_each_second(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    tries = []

    async def refused(_: str) -> LeaderSession:
        tries.append("Postgres is away" if len(tries) < 3 else "Postgres starts")
        raise Unavailable(tries[-1])

    monkeypatch.setattr(LeaderSession, "open", refused)
    async with _leading("postgresql:///nowhere"):
        await _becomes(lambda: len(tries) > 5)
    assert [record.getMessage() for record in caplog.records] == [
        "cannot lead: Postgres is away",
        "cannot lead: Postgres starts",
    ]


async def test_a_leader_takes_a_later_epoch_once_a_host_has_seen_one(migrated_url: str) -> None:
    """As after a restore: the host reports what the leader of the lost day has assigned to it."""
    async with _leading(migrated_url) as one:
        await _becomes(lambda: one.epoch is not None)
        with psycopg.connect(migrated_url, autocommit=True) as connection:
            connection.execute("insert into hosts (host_id, name, epoch_seen) values ('h', 'h', %s)", [LATER])
        await _becomes(lambda: one.epoch == LATER + 1)


async def test_what_an_earlier_epoch_of_the_same_process_is_refused_ends_nothing(migrated_url: str) -> None:
    """A tick that was begun before the lead was lost may be refused after it was taken again."""
    async with _leading(migrated_url) as one:
        await _becomes(lambda: one.epoch is not None)
        assert one.epoch is not None
        one.step_down(one.epoch - 1)
        assert one.epoch is not None
        one.step_down(one.epoch)
        assert one.epoch is None


async def test_a_host_that_is_not_believed_is_named_once(migrated_url: str, caplog: pytest.LogCaptureFixture) -> None:
    async with _leading(migrated_url) as one:
        await _becomes(lambda: one.epoch is not None)
        epoch = one.epoch
        with psycopg.connect(migrated_url, autocommit=True) as connection:
            connection.execute("insert into hosts (host_id, name, epoch_seen) values ('h', 'web-1', %s)", [2**60])
            await _becomes(lambda: "not followed: hosts=web-1" in caplog.text)
            before = connection.execute("select renewed_at from leader_heartbeat").fetchone()
            await _becomes(lambda: connection.execute("select renewed_at from leader_heartbeat").fetchone() != before)
        assert one.epoch == epoch
    assert caplog.text.count("not followed") == 1


async def test_a_leader_whose_ticks_are_stuck_says_so_and_renews_again_once_one_goes_through(
    migrated_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    now_s = [0.0]
    one = Leadership(database_url=migrated_url, name="one", clock=lambda: now_s[0])
    task = asyncio.ensure_future(one.run(lambda: None))
    with psycopg.connect(migrated_url, autocommit=True) as connection:
        await _becomes(lambda: one.epoch is not None)
        now_s[0] = leader.LEADER_LEASE_S + 1.0
        await _becomes(lambda: "no tick has gone through for 9 s" in caplog.text)
        connection.execute("update leader_heartbeat set renewed_at = '2001-01-01'")
        one.progressed()
        is_old = "select renewed_at < '2002-01-01' from leader_heartbeat"
        await _becomes(lambda: connection.execute(is_old).fetchone() == (False,))
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    assert caplog.text.count("no tick has gone through") == 1
