"""Connections that keep the HTTP server waiting: they end, and leave room to whoever asks and reads."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
from starlette.responses import Response, StreamingResponse

from control.http.conftest import Bound
from headway.control.http.app import App
from headway.control.http.connections import CONNECTION_ANSWER_S, Connections
from headway.control.http.http_server import HttpServer
from support.waiting import eventually_of

MOST = 4
LARGE_BYTES = 32_000_000  # more than the system keeps for a reader
ENDS_S = 60.0
LONG = pytest.mark.parametrize("path", ["large", "parts"])


class Now:
    """A clock that is set."""

    def __init__(self) -> None:
        self.at_s = 0.0

    def __call__(self) -> float:
        return self.at_s


class Site:
    """A server with a long answer, and one that does not come."""

    def __init__(self) -> None:
        self.now = Now()
        self.connections = Connections(MOST, clock=self.now)
        self.asked = 0
        self.over = asyncio.Event()
        self.port = 0

    async def large(self) -> Response:
        return Response(b"x" * LARGE_BYTES)

    async def parts(self) -> Response:
        async def drawn() -> AsyncIterator[bytes]:
            for _ in range(LARGE_BYTES // 100_000):
                yield b"x" * 100_000

        return StreamingResponse(drawn())

    async def never(self) -> None:
        self.asked += 1
        await self.over.wait()

    async def quick(self) -> dict[str, Any]:
        return {}

    async def opened(self, *paths: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection that has asked for these, and reads little."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(b"".join(f"GET /{path} HTTP/1.1\r\nHost: h\r\n\r\n".encode() for path in paths))
        return reader, writer

    async def status(self) -> bytes:
        """The first line that somebody gets who asks for little."""
        reader, writer = await self.opened("quick")
        try:
            return await reader.readline()
        finally:
            writer.close()

    def unread(self) -> list[Any]:
        """The connections whose answer waits for its reader."""
        return [each for each in self.connections._open if each.flow.write_paused]


@asynccontextmanager
async def serving() -> AsyncIterator[Site]:
    site, app = Site(), App()
    for path in ("large", "parts", "never", "quick"):
        app.add_api_route(f"/{path}", getattr(site, path))

    async def closed() -> None:
        """There is nothing to close."""

    app.close = closed  # type: ignore[method-assign]
    server = HttpServer(app, address=Bound(), connections=site.connections)
    await server.start()
    site.port = server.port
    try:
        async with asyncio.timeout(ENDS_S):
            yield site
    finally:
        site.over.set()
        for each in list(site.connections._open):
            each.transport.abort()
        await server.stop()


@LONG
async def test_whoever_reads_no_answer_makes_room(path: str) -> None:
    """As many connections as there may be, without a token, kept everybody else out for as long as they liked."""
    async with serving() as site:
        kept = [await site.opened(path) for _ in range(MOST)]
        await eventually_of(lambda: len(site.unread()) == MOST)
        assert b"200" in await site.status()
        assert site.connections.ended == {"room": 1}
        del kept


async def test_whoever_sends_requests_ahead_makes_room() -> None:
    async with serving() as site:
        kept = [await site.opened("never", "quick") for _ in range(MOST)]
        await eventually_of(lambda: site.asked == MOST)
        assert b"200" in await site.status()
        assert site.connections.ended == {"room": 1}
        del kept


async def test_whoever_is_only_answered_late_makes_none() -> None:
    async with serving() as site:
        kept = [await site.opened("never") for _ in range(MOST)]
        await eventually_of(lambda: site.asked == MOST)
        with suppress(ConnectionError):
            assert await site.status() == b""
        assert len(site.connections._open) == MOST
        del kept


@LONG
async def test_an_answer_that_nobody_reads_is_ended_and_one_that_is_read_slowly_is_not(path: str) -> None:
    """One that is made at once and read for longer than headers may take was cut off."""
    async with serving() as site:
        kept = await site.opened(path)
        await eventually_of(lambda: len(site.unread()) == 1)
        reader, writer = await site.opened(path)
        await eventually_of(lambda: len(site.unread()) == 2)
        site.connections.sweep()
        slow = site.unread()[1]
        for _ in range(2):
            left = slow.transport.get_write_buffer_size()
            while slow.transport.get_write_buffer_size() == left:
                assert await reader.read(100_000)
            site.now.at_s += CONNECTION_ANSWER_S / 2 + 1.0
            site.connections.sweep()
        assert site.connections.ended == {"answer": 1}
        assert site.unread() == [slow]
        del kept, writer
