"""TLS at the HTTP port, in both of asyncio's loops: a control plane runs in uvloop's."""

import asyncio
import errno
import os
import socket
import ssl
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import uvloop

from headway.control.auth.certificates import Certificates
from headway.control.auth.pki import make_ca, make_server, write_pair
from headway.control.http import tls_handshakes
from headway.control.http.app import App
from headway.control.http.connections import Connections
from headway.control.http.http_server import HttpServer
from headway.settings import Address

LOOPS = pytest.mark.parametrize("run", [asyncio.run, uvloop.run])
ASKED = b"GET /v1/health HTTP/1.1\r\nHost: h\r\n\r\n"
ENDS_S = 60.0  # of a whole test on a machine that is busy


class Client:
    """TLS by hand: its packets are ours to hold back or to divide."""

    def __init__(self) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing)

    def hello(self) -> bytes:
        """The first packet."""
        with suppress(ssl.SSLWantReadError):
            self._tls.do_handshake()
        return self._outgoing.read()

    async def finish(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, step: int = 65_536) -> None:
        """The handshake after the first packet, in pieces of so many bytes."""
        while True:
            try:
                self._tls.do_handshake()
                return
            except ssl.SSLWantReadError:
                await in_pieces(writer, self._outgoing.read(), step=step)
                self._incoming.write(await received(reader))

    async def get(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        """The answer to a request, which is in the packet that ends the handshake."""
        self._tls.write(ASKED)
        writer.write(self._outgoing.read())
        said = b""
        while b"\r\n\r\n{}" not in said:
            self._incoming.write(await received(reader))
            with suppress(ssl.SSLWantReadError):
                while True:  # a packet may bring several records
                    said += self._tls.read(65_536)
        return said


async def received(reader: asyncio.StreamReader) -> bytes:
    found = await reader.read(65_536)
    assert found, "the end of the connection in place of TLS"
    return found


async def in_pieces(writer: asyncio.StreamWriter, data: bytes, *, step: int) -> None:
    for at in range(0, len(data), step):
        writer.write(data[at : at + step])
        await writer.drain()
        await asyncio.sleep(0.01)


@pytest.fixture
def tls(tmp_path: Path) -> ssl.SSLContext:
    certificate, key = tmp_path / "server.crt", tmp_path / "server.key"
    write_pair(make_server(make_ca("x"), ["x"]), certificate=certificate, key=key, is_replacing=False)
    return Certificates(certificate, key).context


async def _healthy() -> dict[str, Any]:
    return {}


async def _nothing() -> None:
    """There is nothing to close."""


@asynccontextmanager
async def serving(tls: ssl.SSLContext, *, connections_max: int = 1_000) -> AsyncIterator[HttpServer]:
    app = App()
    app.add_api_route("/v1/health", _healthy)
    app.close = _nothing  # type: ignore[method-assign]
    server = HttpServer(
        app, address=Address(host="127.0.0.1", port=0), tls=tls, connections=Connections(connections_max)
    )
    await server.start()
    try:
        async with asyncio.timeout(ENDS_S):
            yield server
    finally:
        await server.stop()


async def answered(port: int) -> bytes:
    """What a client that does as it should is answered."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    client = Client()
    writer.write(client.hello())
    await client.finish(reader, writer)
    said = await client.get(reader, writer)
    writer.close()
    return said.splitlines()[0]


async def ended(reader: asyncio.StreamReader) -> None:
    with suppress(ConnectionError):
        while await reader.read(4096):  # an alert, then the end
            pass


@LOOPS
@pytest.mark.parametrize("said", [b"", b"\x16\x03\x01\x02\x00", b"GET / HTTP/1.1\r\n\r\n"])
def test_a_handshake_that_does_not_end_is_ended(
    tls: ssl.SSLContext, said: bytes, run: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each took a descriptor for a minute."""
    monkeypatch.setattr(tls_handshakes, "HEADERS_S", 0.5)

    async def held() -> None:
        async with serving(tls) as server:
            silent = [await asyncio.open_connection("127.0.0.1", server.port) for _ in range(20)]
            for _, writer in silent:
                writer.write(said)
            began_s = time.monotonic()
            await asyncio.gather(*(ended(reader) for reader, _ in silent))
            assert time.monotonic() - began_s < ENDS_S / 2
            assert await answered(server.port) == b"HTTP/1.1 200 OK"
            for _, writer in silent:
                writer.close()

    run(held())


@LOOPS
def test_handshakes_under_way_count_as_connections_and_the_oldest_makes_room(
    tls: ssl.SSLContext, run: Callable[..., None]
) -> None:
    """No bound counted them."""

    async def held() -> None:
        async with serving(tls, connections_max=8) as server:
            silent = [await asyncio.open_connection("127.0.0.1", server.port) for _ in range(40)]
            await asyncio.gather(*(ended(reader) for reader, _ in silent[:32]))
            assert not any(reader.at_eof() for reader, _ in silent[32:])
            assert await answered(server.port) == b"HTTP/1.1 200 OK"
            await ended(silent[32][0])  # it had to make room, and none else
            assert not any(reader.at_eof() for reader, _ in silent[33:])
            for _, writer in silent:
                writer.close()

    run(held())


@LOOPS
def test_many_who_are_slow_to_agree_are_all_answered(tls: ssl.SSLContext, run: Callable[..., None]) -> None:
    async def slow(port: int) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        client = Client()
        await in_pieces(writer, client.hello(), step=40)
        await client.finish(reader, writer, step=20)
        said = await client.get(reader, writer)
        writer.close()
        return said.splitlines()[0]

    async def asked() -> None:
        async with serving(tls, connections_max=100) as server:
            assert set(await asyncio.gather(*(slow(server.port) for _ in range(100)))) == {b"HTTP/1.1 200 OK"}

    run(asked())


@LOOPS
def test_a_packet_that_is_there_before_the_connection_is_accepted_is_not_lost(
    tls: ssl.SSLContext, run: Callable[..., None]
) -> None:
    """A control plane that is busy for a moment accepts a connection when its client has long said the first word."""

    async def late() -> None:
        async with serving(tls) as server:
            early = socket.create_connection(("127.0.0.1", server.port), timeout=ENDS_S)
            client = Client()
            early.sendall(client.hello())
            time.sleep(0.1)  # noqa: ASYNC251 - the loop is busy, and the packet is there
            reader, writer = await asyncio.open_connection(sock=early)
            await client.finish(reader, writer)
            assert (await client.get(reader, writer)).startswith(b"HTTP/1.1 200")
            writer.close()

    run(late())


class Exhausted(socket.socket):
    """A listening socket of a process that has no descriptor left for a moment."""

    refused = 0

    def accept(self) -> tuple[socket.socket, Any]:
        if self.refused < 1:
            self.refused += 1
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return super().accept()


@LOOPS
def test_without_a_descriptor_left_it_waits_and_then_goes_on(
    tls: ssl.SSLContext, run: Callable[..., None], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(tls_handshakes, "PAUSE_S", 0.05)
    bound = HttpServer.start.__globals__["_bound"]

    def exhausted(address: Address) -> Exhausted:
        return Exhausted(fileno=bound(address).detach())

    monkeypatch.setitem(HttpServer.start.__globals__, "_bound", exhausted)

    async def asked() -> None:
        async with serving(tls) as server:
            assert await answered(server.port) == b"HTTP/1.1 200 OK"

    run(asked())
    assert "no connection accepted for 0.05 s: Too many open files" in caplog.text


@LOOPS
def test_a_server_that_stops_ends_handshakes_under_way(tls: ssl.SSLContext, run: Callable[..., None]) -> None:
    async def stopped() -> None:
        async with serving(tls) as server:
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            assert await answered(server.port) == b"HTTP/1.1 200 OK"  # by now the other was accepted, too
            await server.stop()
            await ended(reader)
            writer.close()

    run(stopped())
