"""Halves of calls: HTTP/2 connections that each open gRPC calls, without a credential, and send no message for them.

The bytes are written here: gRPC's own client keeps to the server's bound of calls, and takes more processor for such a
call than the server does. A connection that is open answers pings, as a client does that is well.
"""

import selectors
import socket
import time
from collections import Counter
from collections.abc import Callable

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\x04\0\0\0\0\0"
PING, ACK = 6, 1
CONNECT_S = 5.0
SELECT_S = 0.1
OPENED_AT_ONCE_MAX = 50


def half_calls(path: str, count: int) -> bytes:
    """A connection's beginning, and so many calls of ``path``: 16 bytes each, after the first."""
    fields = {":path": path, ":authority": "a", "content-type": "application/grpc", "te": "trailers"}
    first = b"\x83\x86" + b"".join(
        b"\x40%c%s%c%s" % (len(key), key.encode(), len(value), value.encode()) for key, value in fields.items()
    )
    later = b"\x83\x86" + bytes(
        0x80 | (62 + number) for number in reversed(range(len(fields)))
    )  # as the table has them
    blocks = [first, *[later] * (count - 1)]
    return PREFACE + b"".join(
        len(block).to_bytes(3, "big") + b"\x01\x04" + (2 * number + 1).to_bytes(4, "big") + block
        for number, block in enumerate(blocks)
    )


class HalfCalls:
    """So many connections with halves of calls, each opened again when it is ended, if ``reopens``."""

    def __init__(self, address: str, *, connections: int, calls: int, path: str, reopens: bool) -> None:
        host, port = address.rsplit(":", 1)
        self._place = host, int(port)
        self._sent = half_calls(path, calls)
        self._missing = connections
        self._reopens = reopens
        self._selector = selectors.DefaultSelector()

    def go_on(self, is_over: Callable[[], bool], answers: Counter[str]) -> None:
        """Open them, and keep them open, until ``is_over``; count what becomes of them."""
        while not is_over():
            self._open(answers)
            for key, _ in self._selector.select(0.0 if self._missing else SELECT_S):
                self._read(key.fileobj, answers)

    def _open(self, answers: Counter[str]) -> None:
        for _ in range(min(self._missing, OPENED_AT_ONCE_MAX)):
            try:
                each = socket.create_connection(self._place, timeout=CONNECT_S)
                each.sendall(self._sent)
            except OSError:
                answers["not connected"] += 1
                time.sleep(SELECT_S)
                return
            each.settimeout(0.0)
            self._selector.register(each, selectors.EVENT_READ)
            self._missing -= 1
            answers["connected"] += 1

    def _read(self, each: socket.socket, answers: Counter[str]) -> None:
        try:
            said = each.recv(65_536)
            if said:
                each.sendall(_pongs(said))
                return
        except OSError:
            pass
        self._selector.unregister(each)
        each.close()
        answers["ended"] += 1
        self._missing += self._reopens


def _pongs(said: bytes) -> bytes:
    """The answers to the pings in ``said``, which begins with a frame: the server's are small."""
    pongs, at = b"", 0
    while len(said) - at >= 9:
        size = int.from_bytes(said[at : at + 3], "big")
        if said[at + 3] == PING and not said[at + 4] & ACK:
            pongs += b"\0\0\x08\x06\x01\0\0\0\0" + said[at + 9 : at + 17]
        at += 9 + size
    return pongs
