"""One call of the control plane, whichever of several it is, and what a failed one means. Every call has a deadline.

What waits for an answer on a line that is left is asked anew on the next.
"""

import logging
import threading
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

import grpc

from headway.agent.controlplane.retry import Unanswered
from headway.errors import HeadwayError, Refused, Unavailable
from headway.wire.channel import Tls, handshake_failure
from headway.wire.lines import RETRYABLE, Line, Lines, Stub
from headway.wire.statuses import ERRORS

CALL_TIMEOUT_S = 10.0

OPTIONS = (
    ("grpc.initial_reconnect_backoff_ms", 200),
    ("grpc.min_reconnect_backoff_ms", 2_000),
    ("grpc.max_reconnect_backoff_ms", 4_000),
    # A control plane that vanished without a word is noticed within half a minute.
    ("grpc.keepalive_time_ms", 20_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.http2.ping_timeout_ms", 10_000),  # else gRPC waits a minute for the answer, whatever the line above sets
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.enable_http_proxy", 0),  # a proxy for the web is none for gRPC
)

_Response = TypeVar("_Response")

log = logging.getLogger(__name__)


class GivenUp(Unavailable):
    """The call was given up on our side, so that it is made anew."""


class RpcCalls(Generic[Stub]):
    """Calls of one of the control planes at ``addresses``. Safe to use from several threads.

    ``tls`` is asked for each connection.
    """

    def __init__(
        self,
        addresses: Sequence[str],
        *,
        stub: Callable[[grpc.Channel], Stub],
        token: str | None,
        clock: Callable[[], float],
        tls: Callable[[], Tls | None],
    ) -> None:
        self.token = token or ""
        """What is shown where the host shows nothing of its own; empty: nothing."""
        self._clock = clock
        self._lines = Lines(addresses, stub=stub, options=OPTIONS, tls=tls, clock=clock)
        self._spoken_with: str | None = None
        self._holding = threading.Lock()
        self._held: grpc.Future[Any] | None = None
        """The call that is held until there is a change."""
        self.held_since_s = 0.0
        """When the last one that was held was made."""

    def close(self) -> None:
        """Hang up: calls that wait for an answer end at once."""
        self._lines.close()

    def call(self, method_of: Callable[[Stub], Callable[..., _Response]], request: Any, *, secret: str) -> _Response:
        """The answer to ``request``, which was made with ``secret``.

        Raises:
            Unavailable: try again later.
            Refused: it was understood, and is not wanted; ``Unauthenticated`` and the like are more precise.
        """
        return self._call(lambda line, how: method_of(line.stub)(request, **how), secret, CALL_TIMEOUT_S, serves=True)

    def hold(self, method_of: Callable[[Stub], Any], request: Any, *, secret: str, timeout_s: float) -> Any:
        """As ``call``, of what is answered when there is a change. Raises ``GivenUp``, too."""

        def made(line: Line[Stub], how: dict[str, Any]) -> Any:
            with self._holding:  # whoever gives up meets this call, or it is made later
                self.held_since_s = self._clock()
                held = self._held = method_of(line.stub).future(request, **how)
            return held.result()

        return self._call(made, secret, timeout_s, serves=False)  # holding back takes no Postgres

    def give_up(self) -> None:
        """Wait no longer for the answer that is held back. A call made after this returns is not concerned."""
        with self._holding:
            if self._held is not None:
                self._held.cancel()

    def _call(
        self, made: Callable[[Line[Stub], dict[str, Any]], _Response], secret: str, timeout_s: float, *, serves: bool
    ) -> _Response:
        how = {"timeout": timeout_s, "metadata": (("authorization", f"Bearer {secret}"),) if secret else ()}
        line = self._lines.now
        try:
            response = made(line, how)
        except grpc.FutureCancelledError as error:
            raise GivenUp("the call is given up") from error
        except grpc.RpcError as error:
            raise self._failed(line, error) from error
        except ValueError as error:  # gRPC's error for a channel that was closed meanwhile
            raise self._cut_short(line) from error
        self._lines.answered(line, serves=serves)
        if self._lines.are_several and line.address != self._spoken_with:
            log.info("talking with the control plane at %s", line.address)
            self._spoken_with = line.address
        return response

    def _failed(self, line: Line[Stub], error: Any) -> HeadwayError:
        if line is not self._lines.now:
            return self._cut_short(line)
        code, details = error.code(), error.details()
        failure = handshake_failure(details or "")
        if failure is None and code not in RETRYABLE:
            return ERRORS.get(code, Refused)(f"the control plane at {line.address} refuses: {details} ({code.name})")
        self._lines.failed(line, error)
        problem = failure or f"does not answer ({code.name}: {details})"
        kind = Unanswered if code is grpc.StatusCode.DEADLINE_EXCEEDED else Unavailable
        return kind(f"the control plane at {line.address} {problem}")

    def _cut_short(self, line: Line[Stub]) -> Unavailable:
        if line is not self._lines.now:
            return GivenUp(f"the control plane at {line.address} was left meanwhile")
        return Unavailable(f"the connection to {line.address} is closed")
