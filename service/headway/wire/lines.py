"""The line to one of several control planes: whichever answers will do, for they all know the same.

Begun with any of them, so that clients spread, and kept for as long as it serves. Left for the next is

- one that gives no answer in time: it hangs, and its connection may go on for ever;
- one whose handshake fails: certificates are read anew for each line;
- where there are several, or other certificates by now, one whose connection broke, and one that has reported for a
  while that it cannot serve.

gRPC itself would do a part of this for several numbers of one name. Here each address is called by its own name, as its
certificate wants it.
"""

import random
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import grpc

from headway.errors import Misconfigured
from headway.wire.channel import ANSWERED, Tls, handshake_failure, open_channel

# One that answers and cannot serve may be cut off from its Postgres, and another may not be. Not at once: when Postgres
# itself is away, all clients would go round and round.
LINE_PATIENCE_S = 30.0
# One that is only flooded answers late. To call it anew each time would add to the flood: the only one is borne with
# twice as long whenever that brought no answer.
LINE_UNANSWERED_MAX = 2
UNANSWERED_MAX_AT_MOST = 16

# What a repetition may cure. CANCELLED is how gRPC's server refuses a call for which it has no room.
RETRYABLE = {
    grpc.StatusCode.CANCELLED,
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.DEADLINE_EXCEEDED,
    grpc.StatusCode.RESOURCE_EXHAUSTED,
    grpc.StatusCode.INTERNAL,
    grpc.StatusCode.UNKNOWN,
}

Stub = TypeVar("Stub")


@dataclass(slots=True, kw_only=True, eq=False)
class Line(Generic[Stub]):
    """A connection to one control plane, and what that is borne with so far."""

    address: str
    stub: Stub
    channel: grpc.Channel
    unanswered: int = 0
    """Calls in a row that got no answer in time."""
    ailing_since_s: float | None = None
    """Since when it reports that it cannot serve."""


class Lines(Generic[Stub]):
    """The line in use. Threads may share it."""

    def __init__(
        self,
        addresses: Sequence[str],
        *,
        stub: Callable[[grpc.Channel], Stub],
        options: Sequence[tuple[str, int]],
        tls: Callable[[], Tls | None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._addresses = tuple(addresses)
        self._stub = stub
        # Else gRPC gives a new line the connection that the old one has just been left for.
        self._options = (*options, ("grpc.use_local_subchannel_pool", 1))
        self._read_tls = tls
        self._clock = clock
        self._tls = tls()
        self._lock = threading.Lock()
        self._unanswered_max = LINE_UNANSWERED_MAX
        self._is_closed = False
        self._turn = random.randrange(len(self._addresses))  # noqa: S311 - no secret
        self._now = self._open()

    @property
    def now(self) -> Line[Stub]:
        """The line in use. Nothing is connected before its first call."""
        with self._lock:
            return self._now

    @property
    def are_several(self) -> bool:
        """Whether there is another control plane to call."""
        return len(self._addresses) > 1

    def answered(self, line: Line[Stub], *, serves: bool = True) -> None:
        """Note an answer; ``serves``: one that nobody gives who cannot serve."""
        line.unanswered = 0
        self._unanswered_max = LINE_UNANSWERED_MAX
        if serves:
            line.ailing_since_s = None

    def failed(self, line: Line[Stub], error: Any) -> None:
        """Note the ``grpc.RpcError`` of a call, and leave the line if that was one too many."""
        is_handshake = handshake_failure(error.details() or "") is not None
        if is_handshake or (error.code() in RETRYABLE and self._ends_patience(line, error)):
            self.leave(line)

    def leave(self, line: Line[Stub]) -> None:
        """Hang up and call the next address, by the certificates that are there now; nothing if ``line`` was left.

        What waits for an answer on it ends at once.
        """
        with self._lock:
            if self._is_closed or line is not self._now:
                return
            with suppress(Misconfigured):  # of a file that is just being replaced: the next line reads it
                self._tls = self._read_tls()
            self._turn = (self._turn + 1) % len(self._addresses)
            self._now = self._open()
        line.channel.close()

    def close(self) -> None:
        """Hang up for good: calls that wait for an answer end at once."""
        with self._lock:
            self._is_closed = True
            line = self._now
        line.channel.close()

    def _ends_patience(self, line: Line[Stub], error: Any) -> bool:
        if error.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
            line.unanswered += 1
            if self._has_choice:
                return True
            if line.unanswered < self._unanswered_max:
                return False
            self._unanswered_max = min(2 * self._unanswered_max, UNANSWERED_MAX_AT_MOST)
            return True
        if ANSWERED not in (error.trailing_metadata() or ()):
            return self._has_choice  # without one, gRPC connects anew by itself
        now_s = self._clock()
        if line.ailing_since_s is None:
            line.ailing_since_s = now_s
        return self._has_choice and now_s - line.ailing_since_s >= LINE_PATIENCE_S

    @property
    def _has_choice(self) -> bool:
        """Whether a new line would be another: to another control plane, or by other certificates."""
        with suppress(Misconfigured):
            return self.are_several or self._read_tls() != self._tls
        return False

    def _open(self) -> Line[Stub]:
        address = self._addresses[self._turn]
        channel = open_channel(address, options=self._options, tls=self._tls)
        return Line(address=address, stub=self._stub(channel), channel=channel)
