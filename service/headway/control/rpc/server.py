"""The gRPC server: its options, who may call it, and its port."""

import socket
from collections.abc import Awaitable, Callable, Iterable
from contextlib import closing
from typing import Any, Protocol

import grpc
import grpc.aio

from headway.control.callers import Caller, Callers
from headway.control.certificates import Certificates
from headway.control.rpc.errors import status_of
from headway.control.rpc.rights import CALLER, ENROL, NOBODY, may_call
from headway.errors import HeadwayError, Misconfigured
from headway.wire.channel import ANSWERED

SETTING = "HEADWAY_GRPC_ADDRESS"
_OPTIONS: tuple[tuple[str, int], ...] = (
    # When every agent reconnects at once, calls wait their turn. With gRPC's own bounds thousands of them come back as
    # CANCELLED, which a client takes for its own doing.
    ("grpc.server.max_pending_requests", 50_000),
    ("grpc.server.max_pending_requests_hard_limit", 60_000),
    ("grpc.max_concurrent_streams", 100_000),
    # Nor are they dropped for having waited: who is dropped comes again, and waits anew.
    ("grpc.server_max_unrequested_time_in_server", 300),
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


async def serve(
    servicers: Iterable[Servicer],
    *,
    address: Address,
    token: str | None,
    callers: Callers | None = None,
    certificates: Certificates | None = None,
) -> RpcServer:
    """A running server that answers for ``servicers``.

    With a ``token``, each call must carry ``authorization: Bearer …`` with it, or with what ``callers`` know.

    Raises:
        Misconfigured: the address cannot be bound.
    """
    server = grpc.aio.server(interceptors=[CallerCheck(callers or Callers(token=token))], options=_OPTIONS)
    for servicer in servicers:
        servicer.add_to(server)
    try:
        _try_to_bind(address)
        if certificates is None:
            port = server.add_insecure_port(str(address))
        else:
            port = server.add_secure_port(str(address), certificates.for_grpc())
    except (OSError, RuntimeError) as error:
        raise Misconfigured(
            f"{SETTING}={address} cannot be bound: another program listens there, or the address is not this "
            "machine's; stop that program or choose another address"
        ) from error
    await server.start()
    return RpcServer(server, port=port)


def _try_to_bind(address: Address) -> None:
    """Raise ``OSError`` where gRPC could not listen: it would say so on standard error, in words of its own."""
    family, kind, protocol, _, place = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)[0]
    with closing(socket.socket(family, kind, protocol)) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as gRPC does
        probe.bind(place)


class CallerCheck(grpc.aio.ServerInterceptor):
    """Refuses every call of somebody who may not make it, whatever its method; ``CALLER`` tells the others."""

    def __init__(self, callers: Callers) -> None:
        self._callers = callers

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Any]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Any:
        """The handler of the call, or one that refuses it."""
        method = handler_call_details.method
        try:
            caller = await self._who(method, _shown(handler_call_details.invocation_metadata or ()))
            if not may_call(caller, method):
                raise await self._callers.refusal(caller, why=f"its role is {caller.role}", subject=method)
        except HeadwayError as error:
            return _refusing(error)
        CALLER.set(caller)
        return await continuation(handler_call_details)

    async def _who(self, method: str, secret: str | None) -> Caller:
        if method == ENROL and secret is None and not self._callers.is_open:
            return NOBODY
        return await self._callers.who(secret)


def _shown(metadata: Iterable[tuple[str, str | bytes]]) -> str | None:
    for key, value in metadata:
        text = value.decode("latin-1") if isinstance(value, bytes) else value
        if key == "authorization" and text.startswith("Bearer "):
            return text.removeprefix("Bearer ")
    return None


def _refusing(error: HeadwayError) -> Any:
    async def refuse(_request: Any, context: grpc.aio.ServicerContext[Any, Any]) -> None:
        await context.abort(status_of(error), str(error), (ANSWERED,))

    return grpc.unary_unary_rpc_method_handler(refuse)
