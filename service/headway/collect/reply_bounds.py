"""Bounds on what a Redis answers: the client has a timeout for each piece of a reply, and none for the whole."""

import time
from typing import Any

from redis.exceptions import InvalidResponse

REPLIES_BYTES_MAX = 128 * 1024 * 1024  # to what is sent at once; of 1,500 jobs of RQ: 2 MB
REPLIES_S_MAX = 20.0  # four times what a broker may take to begin


def bound_replies(connection: Any) -> None:
    """Let a connection of redis-py that has a socket, and has read nothing yet, end where a reply is too long."""
    connection._sock = _BoundedSocket(connection._sock)  # noqa: SLF001 - the client offers no other place


def begin_anew(connection: Any) -> None:
    """Take what comes from now on for another reply: a subscription is sent messages, and asks for none of them."""
    if isinstance(connection._sock, _BoundedSocket):  # noqa: SLF001 - else it is not connected
        connection._sock.begin()  # noqa: SLF001


class _BoundedSocket:
    """A socket whose peer answers what was sent last in so many bytes, and within so long."""

    def __init__(self, sock: Any) -> None:
        self._socket = sock
        self.begin()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._socket, name)

    def sendall(self, data: Any) -> None:
        self._socket.sendall(data)
        self.begin()

    def recv_into(self, buffer: Any, *given: Any) -> int:
        received: int = self._socket.recv_into(buffer, *given)
        self._count(received)
        return received

    def recv(self, *given: Any) -> bytes:
        received: bytes = self._socket.recv(*given)
        self._count(len(received))
        return received

    def begin(self) -> None:
        self._left_bytes = REPLIES_BYTES_MAX
        self._until_s = time.monotonic() + REPLIES_S_MAX

    def _count(self, received_bytes: int) -> None:
        if not received_bytes:
            return  # the end of a connection is late for nothing, however long it waited in the pool
        self._left_bytes -= received_bytes
        if self._left_bytes < 0:
            raise InvalidResponse(f"a reply is longer than {REPLIES_BYTES_MAX:,} bytes")
        if time.monotonic() > self._until_s:
            raise InvalidResponse(f"a reply is not whole after {REPLIES_S_MAX:g} s")
