"""Connections of the gRPC port whose callers have shown no credential: what may come over them without a call."""

import asyncio
import re
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import grpc.aio
import pytest

from control.telemetry import batch, ingesting
from headway.control.rpc import stranger_calls, stranger_connections
from headway.control.rpc.grpc_server import RpcServer, serve
from headway.control.rpc.stranger_calls import (
    EXCEEDING_MAX,
    EXCEEDING_S,
    STRANGER_CALLS_MAX,
    StrangerCalls,
)
from headway.control.rpc.stranger_connections import UNASKED_BYTES_MAX
from headway.control.rpc.telemetry_servicer import TelemetryServicer
from headway.settings import Address
from headway.wire import codec
from headway.wire.v1 import agent_pb2, agent_pb2_grpc, telemetry_pb2_grpc
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


def half_calls(count: int, method: str = "AgentService/Enrol") -> bytes:
    """Calls without a credential and without their messages."""
    named = {
        ":path": f"/headway.wire.v1.{method}",
        ":authority": "a",
        "content-type": "application/grpc",
        "te": "trailers",
    }
    block = b"\x83\x86" + b"".join(b"\0%c%s%c%s" % (len(k), k.encode(), len(v), v.encode()) for k, v in named.items())
    head = len(block).to_bytes(3, "big") + b"\x01\x04"
    return b"".join(head + (2 * number + 1).to_bytes(4, "big") + block for number in range(count))


def on_stream_3(frame: bytes) -> bytes:
    return frame[:8] + b"\x03" + frame[9:]


class Enrolling(agent_pb2_grpc.AgentServiceServicer):
    """Lets in whoever asks, as with a join token."""

    def add_to(self, server: grpc.aio.Server) -> None:
        agent_pb2_grpc.add_AgentServiceServicer_to_server(self, server)

    async def Enrol(self, _request: Any, _context: Any) -> agent_pb2.EnrolResponse:  # noqa: N802
        return agent_pb2.EnrolResponse()


@pytest.fixture
async def server(migrated_url: str, tmp_path: Path) -> AsyncIterator[RpcServer]:
    async with ingesting(migrated_url, tmp_path) as ingest:
        servicers = [TelemetryServicer(ingest), Enrolling()]
        server = await serve(servicers, address=Address(host="127.0.0.1", port=0), token=TOKEN)
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


# --- many calls without a credential ---------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["AgentService/Enrol", "AgentService/Report", "TelemetryService/Ingest"])
async def test_a_connection_with_many_calls_without_a_credential_is_ended(
    server: RpcServer, caplog: pytest.LogCaptureFixture, method: str
) -> None:
    """1,000 connections with 100 halves of a call each, 1.6 MB, took 1 GB and three quarters of a core."""
    with connection(server) as each, connection(server) as other:
        other.sendall(half_calls(STRANGER_CALLS_MAX))
        each.sendall(half_calls(100, method))  # each refusal takes its time
        assert await asyncio.to_thread(is_ended, each)
        assert await eventually_of(lambda: server.strangers.ended) == 1
    assert "too many calls without a credential come from there" in caplog.text


async def test_an_address_of_which_several_connections_have_too_many_calls_loses_them_all(server: RpcServer) -> None:
    with ExitStack() as stack:
        several = [stack.enter_context(connection(server)) for _ in range(EXCEEDING_MAX + 3)]
        for each in several[: EXCEEDING_MAX + 1]:
            each.sendall(half_calls(100))
        assert await eventually_of(lambda: server.strangers.ended == len(several))


async def test_many_connections_with_few_calls_each_are_ended_together(
    server: RpcServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stranger_calls, "STRANGERS_CALLS_MAX", 20)
    with ExitStack() as stack:
        several = [stack.enter_context(connection(server)) for _ in range(4)]
        for each in several:
            each.sendall(half_calls(STRANGER_CALLS_MAX))
        assert await eventually_of(lambda: server.strangers.ended == len(several))


async def test_of_several_addresses_the_one_with_the_most_calls_floods(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stranger_calls, "STRANGERS_CALLS_MAX", 5)
    calls = StrangerCalls()
    with ExitStack() as stack:
        for host, port in (("192.0.2.1", 1), ("2001:db8::1", 1), ("2001:db8::2", 2), ("2001:db8::3", 3)):
            assert stack.enter_context(calls.counted((host, port)))
        assert not calls.has_any_to_end.is_set()
        for port in (2, 3):
            stack.enter_context(calls.counted(("192.0.2.2", port)))
        assert calls.has_any_to_end.is_set()
        to_end = calls.take()
        assert [to_end.has((host, 9)) for host in ("2001:db8::9", "2001:db9::9", "192.0.2.2")] == [True, False, False]
    with calls.counted(("192.0.2.1", 1)):
        assert not calls.has_any_to_end.is_set()


async def test_connections_that_exceeded_long_ago_make_no_flood() -> None:
    now = [0.0]
    calls = StrangerCalls(clock=lambda: now[0])
    for port in range(2 * EXCEEDING_MAX):
        now[0] += EXCEEDING_S
        with ExitStack() as stack:
            for _ in range(STRANGER_CALLS_MAX + 1):
                stack.enter_context(calls.counted(("192.0.2.1", port)))
    assert not calls.take().addresses


@pytest.mark.parametrize("shown", [(("authorization", f"Bearer {TOKEN}"),), ()], ids=["a credential", "a join token"])
async def test_a_connection_on_which_somebody_was_let_in_stays(server: RpcServer, shown: Any) -> None:
    """A proxy passes on calls of hosts that are known, and of others that are not yet."""
    async with grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        await agent_pb2_grpc.AgentServiceStub(channel).Enrol(agent_pb2.EnrolRequest(), metadata=shown)
        call = channel.stream_unary("/headway.wire.v1.AgentService/Enrol")
        halves = [call(timeout=BOUND_S) for _ in range(3 * STRANGER_CALLS_MAX)]
        codes = {await half.code() for half in halves}
        assert codes == {grpc.StatusCode.INVALID_ARGUMENT}  # each has a second for its message
        assert server.strangers.ended == 0
