"""The gRPC server: its options, who may call it, and its port."""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterable
from contextlib import closing
from typing import Any, Protocol

import grpc
import grpc.aio

from headway.control.auth.authenticator import Authenticator, Caller
from headway.control.auth.certificates import Certificates
from headway.control.bounds import DEFAULT, Bounds
from headway.control.listen_address import ListenAddress
from headway.control.rpc.call_permissions import CALLER, ENROL, NOBODY, address_of_call, may_call
from headway.control.rpc.grpc_errors import status_of
from headway.control.rpc.message_intake import Intake
from headway.control.rpc.paced_call import PacedCall
from headway.control.rpc.stranger_calls import STRANGER_CALLS_MAX
from headway.control.rpc.stranger_connections import StrangerConnections
from headway.errors import HeadwayError, Misconfigured, Overloaded
from headway.store.access.credentials import Role
from headway.wire.channel import ANSWERED

Context = grpc.aio.ServicerContext[Any, Any]

SETTING = "HEADWAY_GRPC_ADDRESS"
OPTIONS: tuple[tuple[str, int], ...] = (
    # When every agent reconnects at once, calls wait their turn, of each method as many, and each takes 15 KB. Beyond
    # that, gRPC answers CANCELLED, and an agent comes again. With gRPC's own 1,000, too many agents would have to.
    ("grpc.server.max_pending_requests", 3_000),
    ("grpc.server.max_pending_requests_hard_limit", 4_000),
    # Who connects and then says nothing, or has nothing to ask, makes room: agents hold a call, and others come again.
    ("grpc.server_handshake_timeout_ms", 10_000),
    ("grpc.max_connection_idle_ms", 120_000),
    # Method, token and trace of a call are some hundred bytes.
    ("grpc.max_metadata_size", 8_192),
    ("grpc.absolute_max_metadata_size", 16_384),
    # Nor are they dropped for having waited: who is dropped comes again, and waits anew.
    ("grpc.server_max_unrequested_time_in_server", 300),
    # An agent that hangs, or is cut off, is noticed 7 s after its last word at most: gRPC pings a connection that is
    # quiet for keepalive_time, and ends it after ping_timeout without an answer. Pings need no Python: those of 1,000
    # agents take less than 1 % of a core.
    ("grpc.keepalive_time_ms", 3_000),
    ("grpc.keepalive_timeout_ms", 4_000),
    ("grpc.http2.ping_timeout_ms", 4_000),  # else gRPC waits a minute for the answer, whatever the line above sets
    ("grpc.http2.max_pings_without_data", 0),  # else two after an answer, and then none for a minute
    # Agents may ping as often as they like, calls or none: a connection dropped as "too many pings" helps nobody.
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.min_ping_interval_without_data_ms", 1_000),
    ("grpc.http2.max_ping_strikes", 0),
    ("grpc.max_receive_message_length", 8 * 1024 * 1024),  # a full batch is 2 MB
    # Two servers on one port would each get half of the agents.
    ("grpc.so_reuseport", 0),
)


class Servicer(Protocol):
    """What answers the calls of one service."""

    def add_to(self, server: grpc.aio.Server) -> None:
        """Make ``server`` route the service's calls here."""


class RpcServer:
    """A gRPC server that is running."""

    def __init__(self, server: grpc.aio.Server, *, port: int, strangers: StrangerConnections) -> None:
        self._server = server
        self._sweeping = asyncio.create_task(strangers.sweep_for_ever(port), name="grpc connections")
        self.port = port
        """The port it listens on, also where any free one was asked for."""
        self.strangers = strangers

    async def stop(self, grace_s: float) -> None:
        """Take no more calls; end those that remain after ``grace_s``."""
        self._sweeping.cancel()
        await self._server.stop(grace_s)


async def serve(
    servicers: Iterable[Servicer],
    *,
    address: ListenAddress,
    token: str | None,
    callers: Authenticator | None = None,
    certificates: Certificates | None = None,
    bounds: Bounds = DEFAULT,
) -> RpcServer:
    """A running server that answers for ``servicers``.

    With a ``token``, each call must carry ``authorization: Bearer …`` with it, or with what ``callers`` know.

    Raises:
        Misconfigured: the address cannot be bound.
    """
    strangers = StrangerConnections()
    server = grpc.aio.server(
        interceptors=[CallerCheck(callers or Authenticator(token=token), strangers)],
        options=(
            *OPTIONS,
            ("grpc.max_allowed_incoming_connections", bounds.grpc_connections_max),
            # A caller with that many waits for an answer before it calls again, and a refusal takes its time. gRPC has
            # one bound for all connections: how many calls strangers have is counted by ``StrangerCalls``.
            ("grpc.max_concurrent_streams", bounds.grpc_calls_per_connection_max),
        ),
    )
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
    return RpcServer(server, port=port, strangers=strangers)


def _try_to_bind(address: ListenAddress) -> None:
    """Raise ``OSError`` where gRPC could not listen: it would say so on standard error, in words of its own."""
    family, kind, protocol, _, place = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)[0]
    with closing(socket.socket(family, kind, protocol)) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as gRPC does
        probe.bind(place)


class CallerCheck(grpc.aio.ServerInterceptor):
    """Refuses every call of somebody who may not make it, whatever its method; ``CALLER`` names the others."""

    def __init__(self, callers: Authenticator, strangers: StrangerConnections) -> None:
        self._callers = callers
        self._strangers = strangers
        self._intake = Intake()

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Any]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Any:
        """A handler that asks who calls, and only then for the call's message."""
        method = handler_call_details.method
        secret = _shown(handler_call_details.invocation_metadata or ())
        handler = await continuation(handler_call_details)

        async def answer(_messages: Any, context: Context) -> Any:
            paced = PacedCall(context, throttle=self._callers.throttle, who=address_of_call(context))
            try:
                with self._strangers.call(context.peer()):
                    return await self._answer(method, secret, handler, paced)
            except grpc.aio.AbortError as aborted:
                # gRPC keeps it in a cycle with the context, and with its trace it would keep all that the call brought.
                aborted.__context__ = None
                raise aborted.with_traceback(None) from None

        # gRPC waits for the message of a unary call before it asks anybody, for as long as the caller likes.
        serializer = None if handler is None else handler.response_serializer
        return grpc.stream_unary_rpc_method_handler(answer, response_serializer=serializer)

    async def _answer(self, method: str, secret: str | None, handler: Any, paced: PacedCall) -> Any:
        try:
            caller = await self._entitled(method, secret, address=paced.who)
            paced.who = caller.paced_as(paced.who)
            if caller.role is Role.JOIN:
                return await self._joined(handler, paced, caller)
            self._strangers.authenticated(paced.peer())
            return await self._handled(handler, paced, caller)
        except HeadwayError as error:
            with self._strangers.unauthenticated(paced.peer()):
                return await paced.abort(status_of(error), str(error), (ANSWERED,))

    async def _joined(self, handler: Any, paced: PacedCall, caller: Caller) -> Any:
        """The answer to a host that shows its join token in the message."""
        with self._strangers.unauthenticated(paced.peer()) as has_room:
            if not has_room:
                raise Overloaded(
                    f"{STRANGER_CALLS_MAX} calls without a credential wait on this connection: wait for one of them"
                )
            answer = await self._handled(handler, paced, caller)
        self._strangers.authenticated(paced.peer())
        return answer

    async def _handled(self, handler: Any, paced: PacedCall, caller: Caller) -> Any:
        """The answer of the method, once the call has brought its message."""
        if handler is None:
            return await paced.abort(grpc.StatusCode.UNIMPLEMENTED, "there is no such method", (ANSWERED,))
        CALLER.set(caller)
        return await handler.unary_unary(await self._intake.read(handler, paced, caller), paced)

    async def _entitled(self, method: str, secret: str | None, *, address: str) -> Caller:
        if method == ENROL and secret is None and not self._callers.is_open:
            caller = NOBODY
        else:
            caller = await self._callers.signed_in(secret, address=address, what=method)
        if not may_call(caller, method):
            raise await self._callers.refusal(caller, why=f"its role is {caller.role}", subject=method)
        return caller


def _shown(metadata: Iterable[tuple[str, str | bytes]]) -> str | None:
    for key, value in metadata:
        text = value.decode("latin-1") if isinstance(value, bytes) else value
        if key == "authorization" and text.startswith("Bearer "):
            return text.removeprefix("Bearer ")
    return None
