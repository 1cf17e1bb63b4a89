"""The gRPC server: its options, its token and its port."""

import hmac
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Protocol

import grpc
import grpc.aio

from headway.errors import Misconfigured

SETTING = "HEADWAY_GRPC_ADDRESS"
_OPTIONS: tuple[tuple[str, int], ...] = (
    # When every agent reconnects at once, calls wait their turn. With gRPC's own bounds thousands of them come back as
    # CANCELLED, which a client takes for its own doing.
    ("grpc.server.max_pending_requests", 50_000),
    ("grpc.server.max_pending_requests_hard_limit", 60_000),
    ("grpc.max_concurrent_streams", 100_000),
    # An agent that vanished without a word frees its held call within a minute.
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 15_000),
    # Agents may ping as often as they like, calls or none: a connection dropped as "too many pings" helps nobody.
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.min_ping_interval_without_data_ms", 1_000),
    ("grpc.http2.max_ping_strikes", 0),
    ("grpc.max_receive_message_length", 8 * 1024 * 1024),  # a full batch is 2 MB
    # Two servers on one port would each get half of the agents.
    ("grpc.so_reuseport", 0),
)


class Address(Protocol):
    """Where to listen: its text is ``host:port``; port 0 takes any free one."""

    @property
    def host(self) -> str:
        """The name or number of an interface."""

    @property
    def port(self) -> int:
        """The port."""


class Servicer(Protocol):
    """What answers the calls of one service."""

    def add_to(self, server: grpc.aio.Server) -> None:
        """Make ``server`` route the service's calls here."""


class RpcServer:
    """A gRPC server that is running."""

    def __init__(self, server: grpc.aio.Server, *, port: int) -> None:
        self._server = server
        self.port = port
        """The port it listens on, also where any free one was asked for."""

    async def stop(self, grace_s: float) -> None:
        """Take no more calls; end those that remain after ``grace_s``."""
        await self._server.stop(grace_s)


async def serve(servicers: Iterable[Servicer], *, address: Address, token: str | None) -> RpcServer:
    """A running server that answers for ``servicers``.

    With a ``token``, each call must carry ``authorization: Bearer <token>``.

    Raises:
        Misconfigured: the address cannot be bound.
    """
    server = grpc.aio.server(interceptors=[TokenCheck(token)] if token else [], options=_OPTIONS)
    for servicer in servicers:
        servicer.add_to(server)
    try:
        port = server.add_insecure_port(str(address))
    except RuntimeError as error:
        raise Misconfigured(
            f"{SETTING}={address} cannot be bound: another program listens there, or the address is not this "
            "machine's; stop that program or choose another address"
        ) from error
    await server.start()
    return RpcServer(server, port=port)


class TokenCheck(grpc.aio.ServerInterceptor):
    """Refuses every call that does not carry the token, whatever its method."""

    def __init__(self, token: str) -> None:
        self._expected = f"Bearer {token}".encode()

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Any]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Any:
        """The handler of the call, or one that refuses it."""
        for key, value in handler_call_details.invocation_metadata or ():
            if key == "authorization" and hmac.compare_digest(_bytes(value), self._expected):
                return await continuation(handler_call_details)
        return grpc.unary_unary_rpc_method_handler(_refuse)


async def _refuse(_request: Any, context: grpc.aio.ServicerContext[Any, Any]) -> None:
    await context.abort(
        grpc.StatusCode.UNAUTHENTICATED,
        "the call carries no token or another one than the control plane's: set the same HEADWAY_TOKEN here and there",
    )


def _bytes(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else value
