"""The crowd's HTTP/2 client keeps to what a real gRPC server allows on one connection."""

import asyncio
from collections.abc import AsyncIterator
from importlib import import_module
from typing import Any

import grpc.aio
import pytest

STREAMS_MAX = 3
WITHIN_S = 30.0
PATH = "/held.Service/Poll"


class HeldCalls:
    """Calls that a server holds until they are let go, each of which is then answered with its request."""

    def __init__(self) -> None:
        self.count = 0
        self._changed = asyncio.Condition()
        self._goes_on = asyncio.Event()

    async def answer(self, request: bytes, _context: Any) -> bytes:
        async with self._changed:
            self.count += 1
            self._changed.notify_all()
        await self._goes_on.wait()
        return request

    async def until(self, count: int) -> None:
        """Return once so many are held."""
        async with self._changed:
            await asyncio.wait_for(self._changed.wait_for(lambda: self.count == count), WITHIN_S)

    def let_go(self) -> None:
        self._goes_on.set()


@pytest.fixture
def held() -> HeldCalls:
    return HeldCalls()


@pytest.fixture
async def address(held: HeldCalls) -> AsyncIterator[str]:
    server = grpc.aio.server(options=[("grpc.max_concurrent_streams", STREAMS_MAX)])
    handler = grpc.unary_unary_rpc_method_handler(held.answer)
    server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler("held.Service", {"Poll": handler})])
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    yield f"127.0.0.1:{port}"
    await server.stop(None)


@pytest.mark.parametrize(("calls", "connections"), [(3, 1), (4, 2), (8, 3)])
async def test_calls_beyond_what_a_connection_takes_get_connections_of_their_own(
    held: HeldCalls, address: str, calls: int, connections: int
) -> None:
    channel = import_module("many_agents.http2").Channel(address)
    requests = [str(number).encode() for number in range(calls)]
    asked = asyncio.gather(*(channel.call(PATH, request, timeout_s=WITHIN_S) for request in requests))
    await held.until(calls)
    assert channel.connections == connections
    held.let_go()
    assert await asked == requests
    channel.close()


async def test_a_connection_whose_calls_were_answered_takes_the_next(held: HeldCalls, address: str) -> None:
    channel = import_module("many_agents.http2").Channel(address)
    held.let_go()
    for number in range(2 * STREAMS_MAX):
        request = str(number).encode()
        assert await channel.call(PATH, request, timeout_s=WITHIN_S) == request
    assert channel.connections == 1
    channel.close()


async def test_a_call_that_is_refused_is_made_again(held: HeldCalls, address: str) -> None:
    """The server counts an answered call for a moment longer than its caller does."""
    channel = import_module("many_agents.http2").Channel(address)
    held.let_go()

    async def call_again_and_again() -> None:
        for number in range(100):
            request = str(number).encode()
            assert await channel.call(PATH, request, timeout_s=WITHIN_S) == request

    await asyncio.gather(*(call_again_and_again() for _ in range(STREAMS_MAX)))
    channel.close()


async def test_a_server_that_allows_no_call_is_unavailable() -> None:
    http2 = import_module("many_agents.http2")
    server = grpc.aio.server(options=[("grpc.max_concurrent_streams", 0)])
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    channel = http2.Channel(f"127.0.0.1:{port}")
    with pytest.raises(http2.Failed, match="UNAVAILABLE: the server allows no call"):
        await channel.call(PATH, b"", timeout_s=WITHIN_S)
    await server.stop(None)
