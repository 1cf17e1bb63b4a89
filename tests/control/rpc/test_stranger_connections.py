"""Connections of the gRPC port whose callers have shown no credential: what may come over them without a call."""

import asyncio
import re
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import grpc.aio
import pytest

from control.telemetry import batch, ingesting
from headway.control.rpc import stranger_connections
from headway.control.rpc.grpc_server import RpcServer, serve
from headway.control.rpc.stranger_connections import UNASKED_BYTES_MAX
from headway.control.rpc.telemetry_servicer import TelemetryServicer
from headway.settings import Address
from headway.wire import codec
from headway.wire.v1 import telemetry_pb2_grpc
from support.sockets import is_ended
from support.waiting import eventually_of

BOUND_S = 30.0
TOKEN = "k7Qm2vX9tL4pZ8sR3wN6yB1c"
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\x04\0\0\0\0\0"
HEADERS = b"\0\0\x08\x01\0\0\0\0\x01" + b"\x83\x86\x44\x04/abc"  # not the last frame of them
CONTINUATION = b"\0\0\x05\x09\0\0\0\0\x01" + b"\0\x01a\x01b"  # gRPC itself ends a connection for empty ones


def headers_of_a_call(token: str) -> bytes:
    """A whole call with a credential but without its message, on stream 1."""
    named = {":path": "/headway.wire.v1.TelemetryService/Ingest", ":authority": "a", "te": "trailers"}
    named |= {"content-type": "application/grpc", "authorization": f"Bearer {token}"}
    literal = [b"\0%c%s%c%s" % (len(k), k.encode(), len(v), v.encode()) for k, v in named.items()]
    block = b"\x83\x86" + b"".join(literal)
    return len(block).to_bytes(3, "big") + b"\x01\x04\0\0\0\x01" + block


def on_stream_3(frame: bytes) -> bytes:
    return frame[:8] + b"\x03" + frame[9:]


@pytest.fixture
async def server(migrated_url: str, tmp_path: Path) -> AsyncIterator[RpcServer]:
    async with ingesting(migrated_url, tmp_path) as ingest:
        server = await serve([TelemetryServicer(ingest)], address=Address(host="127.0.0.1", port=0), token=TOKEN)
        yield server
        await server.stop(0)


@contextmanager
def connection(server: RpcServer) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", server.port), timeout=BOUND_S) as each:
        each.sendall(PREFACE)
        yield each


def flood(each: socket.socket) -> None:
    """Send headers without an end, up to 56 MB of them, or until the connection is closed at this end."""
    with suppress(OSError):
        each.sendall(HEADERS)
        for _ in range(50):
            each.sendall(CONTINUATION * 80_000)


async def test_headers_without_an_end_are_ended(server: RpcServer) -> None:
    """Ten connections took 738 MB in 11 s, and kept it for as long as they liked."""
    with connection(server) as each, connection(server):
        each.sendall(HEADERS + CONTINUATION * (UNASKED_BYTES_MAX // len(CONTINUATION) + 1))
        assert await asyncio.to_thread(is_ended, each)
        assert await eventually_of(lambda: server.strangers.ended) == 1


async def test_of_many_that_bring_little_the_largest_are_ended(
    server: RpcServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """20,000 connections that each stay below their own bound would take gigabytes, too."""
    monkeypatch.setattr(stranger_connections, "STRANGERS_BYTES_MAX", 250_000)
    with connection(server) as large, connection(server) as small, connection(server):
        for each, count in ((small, 8_000), (large, 12_000)):
            each.sendall(HEADERS + CONTINUATION * count)
        assert await asyncio.to_thread(is_ended, large)
        assert await eventually_of(lambda: server.strangers.ended) == 1
    (brought,) = re.findall(r"bytes=(\d+)", caplog.text)
    assert int(brought) > len(PREFACE + HEADERS + CONTINUATION * 8_000)


@pytest.fixture
def no_sweeps(monkeypatch: pytest.MonkeyPatch) -> None:
    """None begins by the clock."""
    monkeypatch.setattr(stranger_connections, "STRANGER_SWEEP_S", 3_600.0)
    monkeypatch.setattr(stranger_connections, "GROWTH_BYTES", 1_000_000)


@pytest.mark.usefixtures("no_sweeps", "server")  # in this order: a sweep that has begun waits for a second
async def test_memory_that_grows_is_answered_before_the_second_is_over(server: RpcServer) -> None:
    """What came within a second was bounded by the line alone.

    A process first fills what it had and freed before, some 20 MB after other tests, and does not grow by that.
    """
    with connection(server) as each:
        sending = asyncio.create_task(asyncio.to_thread(flood, each))
        try:
            assert await eventually_of(lambda: server.strangers.ended) == 1
        finally:
            with suppress(OSError):  # where the other end has reset it
                each.shutdown(socket.SHUT_RDWR)  # what waits for room there would wait for a minute
            await sending


async def test_headers_without_an_end_are_ended_of_who_has_shown_a_credential_too(
    server: RpcServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever had a token, of whatever role, was not bounded on that connection."""
    monkeypatch.setattr(stranger_connections, "KNOWN_BYTES_MAX", 1_000_000)  # less than a stranger's who calls
    with connection(server) as each:
        each.sendall(headers_of_a_call(TOKEN) + on_stream_3(HEADERS) + on_stream_3(CONTINUATION) * 100_000)
        sending = asyncio.create_task(asyncio.to_thread(each.sendall, on_stream_3(CONTINUATION) * 50_000))
        assert await eventually_of(lambda: server.strangers.ended) == 1
        await asyncio.wait([sending])
        sending.exception()


async def test_who_has_shown_a_credential_sends_as_much_as_there_is(server: RpcServer) -> None:
    target = f"127.0.0.1:{server.port}"
    async with grpc.aio.insecure_channel(target) as channel:
        ingest = telemetry_pb2_grpc.TelemetryServiceStub(channel).Ingest
        for sequence in range(3):
            message = codec.batch_to_message(batch(sequence, events=3_000))
            assert (await ingest(message, metadata=(("authorization", f"Bearer {TOKEN}"),))).accepted_events == 3_000
            await server.strangers.sweep(server.port)
    assert server.strangers.ended == 0


async def test_a_refusal_reaches_a_stranger_with_a_large_message(server: RpcServer) -> None:
    """It names what is wrong with the token: a connection that is cut off says nothing."""
    async with grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        ingest = telemetry_pb2_grpc.TelemetryServiceStub(channel).Ingest
        for sequence in range(3):
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await ingest(codec.batch_to_message(batch(sequence, events=9_000)))
            assert refused.value.code() is grpc.StatusCode.UNAUTHENTICATED
            await server.strangers.sweep(server.port)
    assert server.strangers.ended == 0
