"""The line to one of several control planes: whichever answers will do, for they all know the same.

Begun with any of them, so that clients spread, and kept for as long as it answers. gRPC itself would do as much for
several numbers of one name; here each address is called by its own name, as its certificate wants it, and a line whose
other end hangs is left although it is connected.
"""

import random
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Generic, TypeVar

import grpc

from headway.errors import Misconfigured
from headway.wire.channel import Tls, open_channel

Stub = TypeVar("Stub")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Line(Generic[Stub]):
    """A connection to one control plane."""

    address: str
    stub: Stub
    channel: grpc.Channel


class Lines(Generic[Stub]):
    """The line in use. Threads may share it."""

    def __init__(
        self,
        addresses: Sequence[str],
        *,
        stub: Callable[[grpc.Channel], Stub],
        options: Sequence[tuple[str, int]],
        tls: Callable[[], Tls | None],
    ) -> None:
        self._addresses = tuple(addresses)
        self._stub = stub
        # Else gRPC gives a new line the connection that the old one has just been left for.
        self._options = (*options, ("grpc.use_local_subchannel_pool", 1))
        self._read_tls = tls
        self._tls = tls()
        self._lock = threading.Lock()
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

    @property
    def has_choice(self) -> bool:
        """Whether a new line would be another: to another control plane, or by other certificates."""
        with suppress(Misconfigured):
            return self.are_several or self._read_tls() != self._tls
        return False

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

    def _open(self) -> Line[Stub]:
        address = self._addresses[self._turn]
        channel = open_channel(address, options=self._options, tls=self._tls)
        return Line(address=address, stub=self._stub(channel), channel=channel)
