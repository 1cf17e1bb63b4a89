"""The gRPC server over a real channel: its token, its port and the statuses of errors."""

import asyncio
import gc
import signal
import sys
import weakref
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import grpc
import grpc.aio
import pytest

from headway import errors
from headway.control.agents.disconnects import DISCONNECT_CALLS_AGAIN_S, WRITE_EVERY_S
from headway.control.http.overview.overview_builder import AILING_MAX_S
from headway.control.rpc.grpc_errors import status_of, with_status
from headway.control.rpc.grpc_server import OPTIONS, RpcServer, serve
from headway.settings import Address
from headway.wire.statuses import STATUSES
from headway.wire.v1 import telemetry_pb2, telemetry_pb2_grpc

ANY_PORT = Address(host="127.0.0.1", port=0)
BOUND_S = 30.0
SHOWN_WITHIN_S = 15.0  # no view is green for longer on a host that hangs
CALLER = """
import sys, grpc
channel = grpc.insecure_channel(sys.argv[1])
channel.unary_unary("/headway.wire.v1.TelemetryService/Ingest")(b"", timeout=600)
"""


class Raising(telemetry_pb2_grpc.TelemetryServiceServicer):
    """Answers each call with the error it is given, or with an empty receipt."""

    def __init__(self, error: BaseException | None = None) -> None:
        self._error = error

    def add_to(self, server: grpc.aio.Server) -> None:
        telemetry_pb2_grpc.add_TelemetryServiceServicer_to_server(self, server)

    @with_status
    async def Ingest(self, request: Any, context: Any) -> telemetry_pb2.IngestResponse:  # noqa: N802
        if self._error is not None:
            raise self._error
        return telemetry_pb2.IngestResponse()


@asynccontextmanager
async def serving(error: BaseException | None = None, *, token: str | None = None) -> AsyncIterator[RpcServer]:
    server = await serve([Raising(error)], address=ANY_PORT, token=token)
    try:
        yield server
    finally:
        await server.stop(0)


async def call(server: RpcServer, *metadata: tuple[str, str]) -> telemetry_pb2.IngestResponse:
    async with grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        stub = telemetry_pb2_grpc.TelemetryServiceStub(channel)
        return await stub.Ingest(telemetry_pb2.IngestRequest(), metadata=metadata, timeout=BOUND_S)


async def test_without_a_token_every_call_is_answered() -> None:
    async with serving() as server:
        await call(server)
        await call(server, ("authorization", "Bearer whatever"))


@pytest.mark.parametrize(
    "metadata",
    [
        (),
        (("authorization", "Bearer wrong"),),
        (("authorization", "s3cret"),),
        (("authorization", "bearer s3cret"),),
        (("authorization", "Bearer s3cret2"),),
        (("x-token", "Bearer s3cret"),),
    ],
)
async def test_with_a_token_a_call_that_does_not_carry_it_is_refused(metadata: tuple[tuple[str, str], ...]) -> None:
    async with serving(token="s3cret") as server:
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await call(server, *metadata)
        assert refused.value.code() is grpc.StatusCode.UNAUTHENTICATED
        assert "HEADWAY_TOKEN" in (refused.value.details() or "")
        assert "s3cret" not in str(refused.value)
        await call(server, ("authorization", "Bearer s3cret"))


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (errors.Invalid("a=1: too few", "b=2: too many"), grpc.StatusCode.INVALID_ARGUMENT),
        (errors.NotFound("no pool 'mail'"), grpc.StatusCode.NOT_FOUND),
        (errors.Conflict("pool 'mail' changed"), grpc.StatusCode.ABORTED),
        (errors.Unauthenticated("no token"), grpc.StatusCode.UNAUTHENTICATED),
        (errors.Misconfigured("no marker"), grpc.StatusCode.FAILED_PRECONDITION),
        (errors.Refused("no"), grpc.StatusCode.INVALID_ARGUMENT),
        (errors.Overloaded("too much"), grpc.StatusCode.RESOURCE_EXHAUSTED),
        (errors.Unavailable("Postgres is away"), grpc.StatusCode.UNAVAILABLE),
    ],
)
async def test_each_error_has_its_status_and_says_its_sentence(
    error: errors.HeadwayError, status: grpc.StatusCode
) -> None:
    async with serving(error) as server:
        with pytest.raises(grpc.aio.AioRpcError) as answered:
            await call(server)
    assert (answered.value.code(), answered.value.details()) == (status, str(error))


def test_no_error_of_the_tree_is_left_without_a_status() -> None:
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and kind is not errors.HeadwayError]
    assert set(kinds) == set(STATUSES)

    class Narrower(errors.Overloaded):
        """One that a later version adds."""

    assert status_of(Narrower("x")) is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert status_of(errors.HeadwayError("x")) is grpc.StatusCode.INTERNAL


async def test_a_defect_of_ours_is_logged_and_the_client_learns_nothing_of_our_insides(caplog) -> None:
    async with serving(ZeroDivisionError("at /secret/place")) as server:
        with pytest.raises(grpc.aio.AioRpcError) as answered:
            await call(server)
    assert answered.value.code() is grpc.StatusCode.INTERNAL
    assert "secret" not in str(answered.value)
    assert "rpc failed method=Raising.Ingest" in caplog.text
    assert "/secret/place" in caplog.text


async def test_a_long_refusal_is_cut_before_it_outgrows_its_header() -> None:
    async with serving(errors.Invalid(*(f"queue {n} is no name" for n in range(10_000)))) as server:
        with pytest.raises(grpc.aio.AioRpcError) as answered:
            await call(server)
    assert answered.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert len(answered.value.details() or "") == 1_001


async def test_a_taken_port_is_named_with_its_setting_and_nothing_else_is_said(
    capfd: pytest.CaptureFixture[str],
) -> None:
    async with serving() as server:
        taken = Address(host="127.0.0.1", port=server.port)
        with pytest.raises(errors.Misconfigured, match=rf"HEADWAY_GRPC_ADDRESS=127\.0\.0\.1:{server.port} cannot be"):
            await serve([], address=taken, token=None)
        await call(server)
    assert capfd.readouterr().err == ""


async def test_two_thousand_calls_at_once_are_all_answered() -> None:
    """As when every agent connects anew: gRPC's own bounds would send some back as CANCELLED."""
    own = [("grpc.use_local_subchannel_pool", 1)]
    async with serving() as server, AsyncExitStack() as stack:
        calls = []
        for _ in range(20):
            channel = grpc.aio.insecure_channel(f"127.0.0.1:{server.port}", own)
            stub = telemetry_pb2_grpc.TelemetryServiceStub(await stack.enter_async_context(channel))
            calls += [stub.Ingest(telemetry_pb2.IngestRequest(), timeout=2 * BOUND_S) for _ in range(100)]
        assert len(await asyncio.gather(*calls)) == 2_000


async def test_what_a_refused_call_has_brought_is_not_kept() -> None:
    """200 reports of 0.5 MB each, refused, took 470 MB until garbage was collected: gRPC keeps what aborts a call."""
    kept: list[weakref.ref[Any]] = []

    class Brought:
        """What a message was made into."""

    class Refusing(Raising):
        @with_status
        async def Ingest(self, request: Any, context: Any) -> telemetry_pb2.IngestResponse:  # noqa: N802
            brought = Brought()
            kept.append(weakref.ref(brought))
            raise errors.Invalid("too much")

    gc.disable()
    try:
        server = await serve([Refusing()], address=ANY_PORT, token=None)
        for _ in range(3):
            with pytest.raises(grpc.aio.AioRpcError):
                await call(server)
        await server.stop(0)
        assert [each() for each in kept] == [None] * 3
    finally:
        gc.enable()


class Holding(Raising):
    """Holds each call until it ends."""

    def __init__(self) -> None:
        super().__init__()
        self.has_call, self.has_ended = asyncio.Event(), asyncio.Event()

    @with_status
    async def Ingest(self, request: Any, context: Any) -> telemetry_pb2.IngestResponse:  # noqa: N802
        self.has_call.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.has_ended.set()
        raise AssertionError("it waits for ever")


async def test_the_call_of_a_client_that_hangs_is_ended_soon() -> None:
    """Its kernel still takes what it is sent: only that it answers no ping shows that it hangs."""
    holding = Holding()
    server = await serve([holding], address=ANY_PORT, token=None)
    client = await asyncio.create_subprocess_exec(sys.executable, "-c", CALLER, f"127.0.0.1:{server.port}")
    try:
        async with asyncio.timeout(BOUND_S):
            await holding.has_call.wait()
        client.send_signal(signal.SIGSTOP)
        async with asyncio.timeout(BOUND_S):
            await holding.has_ended.wait()
    finally:
        client.kill()
        await client.wait()
        await server.stop(0)


def test_a_host_that_hangs_is_shown_in_time_at_worst() -> None:
    """Its last word comes just before it hangs, and gRPC pings only after a while without one."""
    options = dict(OPTIONS)
    ended_s = (options["grpc.keepalive_time_ms"] + options["grpc.http2.ping_timeout_ms"]) / 1000.0
    assert ended_s + DISCONNECT_CALLS_AGAIN_S + WRITE_EVERY_S + AILING_MAX_S <= SHOWN_WITHIN_S
