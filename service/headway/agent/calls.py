"""One call of the control plane, whichever of several it is, and what a failed one means. Every call has a deadline.

A control plane that is of no use is left for the next, and what waits there for an answer is asked anew. Left is

- one that gives no answer in time: it hangs, and its connection may go on for ever;
- one whose handshake fails: certificates are read anew for each connection;
- where there are several, or other certificates by now, one whose connection broke, and one that has said for a while
  that it cannot serve.
"""

import logging
import threading
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

import grpc

from headway.errors import Conflict, Forbidden, HeadwayError, NotFound, Refused, Unauthenticated, Unavailable
from headway.wire.channel import ANSWERED, Tls, handshake_failure
from headway.wire.lines import Line, Lines, Stub

CALL_TIMEOUT_S = 10.0
# One that answers and cannot serve may be cut off from its Postgres, and another may not be. Not at once: when Postgres
# itself is away, all agents would go round and round.
PATIENCE_S = 30.0
# One that is only flooded answers late. To call it anew each time would add to the flood.
UNANSWERED_MAX = 2

OPTIONS = (
    ("grpc.initial_reconnect_backoff_ms", 200),
    ("grpc.min_reconnect_backoff_ms", 2_000),
    ("grpc.max_reconnect_backoff_ms", 4_000),
    # A control plane that vanished without a word is noticed within half a minute.
    ("grpc.keepalive_time_ms", 20_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.enable_http_proxy", 0),  # a proxy for the web is none for gRPC
)
# What a repetition may cure. CANCELLED is how gRPC's server refuses a call for which it has no room.
RETRYABLE = {
    grpc.StatusCode.CANCELLED,
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.DEADLINE_EXCEEDED,
    grpc.StatusCode.RESOURCE_EXHAUSTED,
    grpc.StatusCode.INTERNAL,
    grpc.StatusCode.UNKNOWN,
}
_REFUSALS: dict[grpc.StatusCode, type[Refused]] = {
    grpc.StatusCode.UNAUTHENTICATED: Unauthenticated,
    grpc.StatusCode.PERMISSION_DENIED: Forbidden,
    grpc.StatusCode.NOT_FOUND: NotFound,
    grpc.StatusCode.ABORTED: Conflict,
}

_Response = TypeVar("_Response")

log = logging.getLogger(__name__)


class GivenUp(Unavailable):
    """The call was given up on our side, so that it is made anew."""


class Calls(Generic[Stub]):
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
        self._lines = Lines(addresses, stub=stub, options=OPTIONS, tls=tls)
        self._patience = _Patience()
        self._spoken_with: str | None = None
        self._holding = threading.Lock()
        self._held: grpc.Future[Any] | None = None
        """The call that is held until there is news."""
        self.held_since_s = 0.0
        """When the last one that was held was made."""

    def close(self) -> None:
        """Hang up: calls that wait for an answer end at once."""
        self._lines.close()

    def call(
        self,
        method_of: Callable[[Stub], Callable[..., _Response]],
        request: Any,
        *,
        secret: str,
        timeout_s: float | None = None,
    ) -> _Response:
        """The answer to ``request``, which was made with ``secret``.

        Raises:
            Unavailable: try again later.
            Refused: it was understood, and is not wanted; of which ``Unauthenticated`` and so on say more.
        """
        response = self._call(
            lambda line, how: method_of(line.stub)(request, **how), secret, timeout_s or CALL_TIMEOUT_S
        )
        self._patience.ailing_since_s = None
        return response

    def hold(self, method_of: Callable[[Stub], Any], request: Any, *, secret: str, timeout_s: float) -> Any:
        """As ``call``, of what is answered when there is news. Raises ``GivenUp``, too."""

        def held(line: Line[Stub], how: dict[str, Any]) -> Any:
            with self._holding:  # whoever gives up meets this call, or it is made later
                self.held_since_s = self._clock()
                held = self._held = method_of(line.stub).future(request, **how)
            return held.result()

        return self._call(held, secret, timeout_s)

    def give_up(self) -> None:
        """Wait no longer for the answer that is held back. A call made after this returns is not concerned."""
        with self._holding:
            if self._held is not None:
                self._held.cancel()

    def _call(
        self, made: Callable[[Line[Stub], dict[str, Any]], _Response], secret: str, timeout_s: float
    ) -> _Response:
        how = {"timeout": timeout_s, "metadata": (("authorization", f"Bearer {secret}"),) if secret else ()}
        line = self._lines.now
        try:
            response = made(line, how)
        except grpc.FutureCancelledError as error:
            raise GivenUp("the call is given up") from error
        except grpc.RpcError as error:
            raise self._failed(line, error) from error
        except ValueError as error:  # how gRPC says that the channel was closed meanwhile
            raise self._cut_short(line) from error
        self._patience.unanswered = 0
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
            return _REFUSALS.get(code, Refused)(f"the control plane at {line.address} refuses: {details} ({code.name})")
        ends = self._patience.ends(error, has_choice=self._lines.has_choice, now_s=self._clock())
        if failure is not None or ends:
            self._patience = _Patience()
            self._lines.leave(line)
        told = failure or f"does not answer ({code.name}: {details})"
        return Unavailable(f"the control plane at {line.address} {told}")

    def _cut_short(self, line: Line[Stub]) -> Unavailable:
        if line is not self._lines.now:
            return GivenUp(f"the control plane at {line.address} was left meanwhile")
        return Unavailable(f"the connection to {line.address} is closed")


class _Patience:
    """For how long one control plane is borne with."""

    def __init__(self) -> None:
        self.unanswered = 0
        """Calls in a row that got no answer in time."""
        self.ailing_since_s: float | None = None
        """Since when it says that it cannot serve."""

    def ends(self, error: Any, *, has_choice: bool, now_s: float) -> bool:
        """Whether the call that has failed so was one too many."""
        if error.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
            self.unanswered += 1
            return has_choice or self.unanswered >= UNANSWERED_MAX
        if ANSWERED not in (error.trailing_metadata() or ()):
            return has_choice  # alone, gRPC connects anew by itself
        if self.ailing_since_s is None:
            self.ailing_since_s = now_s
        return has_choice and now_s - self.ailing_since_s >= PATIENCE_S
