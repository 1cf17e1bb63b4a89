"""Connections of the gRPC port that bring bytes, no call and no credential: they are ended.

gRPC takes the headers of a call for as long as they come. Of CONTINUATION frames without an end it keeps some bytes of
each until the connection ends: it has no bound for these, and shows neither its sockets nor what comes over them. But
the sockets are this process's own, and the kernel counts their bytes.
"""

import asyncio
import ipaddress
import logging
import os
import socket
import stat
from collections import Counter
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

from headway.control.log_throttle import LogThrottle

STRANGER_SWEEP_S = 1.0
# Of one connection since its last call began or ended: what is left of a message that was refused may be under way.
UNASKED_BYTES_MAX = 1024 * 1024
CALLING_BYTES_MAX = 9 * 1024 * 1024  # while a call waits, perhaps for the database: one message
STRANGERS_BYTES_MAX = 64 * 1024 * 1024  # of all together; the largest end first
FEW_BYTES = 32 * 1024  # the handshake of TLS and the headers of a call are 10 KB: whoever has sent no more is spared
FD_FOLDER = Path("/proc/self/fd")
HAS_FDS = FD_FOLDER.is_dir()  # Linux
_BYTES_RECEIVED_AT, _BYTES_RECEIVED_LENGTH = 128, 8  # in Linux's struct tcp_info, since 4.1

Peer = tuple[str, int]

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Connection:
    """One that is open. ``peer`` is ``None`` of sockets that are not the port's."""

    peer: Peer | None
    is_known: bool = False
    bytes_at_call: int = 0


class _Stranger(NamedTuple):
    """An open connection without a credential."""

    unasked_bytes: int
    fd: int
    inode: int
    peer: Peer
    is_calling: bool


class StrangerConnections:
    """Those whose callers have shown no credential, and how much has come over each without a call."""

    def __init__(self) -> None:
        self._open: dict[int, _Connection] = {}
        """By inode, which no later socket has."""
        self._calling: Counter[Peer] = Counter()
        self._called: set[Peer] = set()
        self._known: set[Peer] = set()
        self._throttle = LogThrottle()
        self.ended = 0
        """How many were ended."""

    @contextmanager
    def call(self, peer: str) -> Iterator[None]:
        """A call from ``peer``, in gRPC's words, until the end of the block."""
        place = _peer_of(peer)
        self._called.add(place)
        self._calling[place] += 1
        try:
            yield
        finally:
            self._called.add(place)
            self._calling[place] -= 1
            if not self._calling[place]:
                del self._calling[place]

    def authenticated(self, peer: str) -> None:
        """A caller there has shown a credential: as long as the connection is open, it is no stranger's."""
        self._known.add(_peer_of(peer))

    async def sweep_for_ever(self, port: int) -> None:
        """``sweep`` each second. Where the kernel does not show what it counts, return."""
        while HAS_FDS:
            await asyncio.sleep(STRANGER_SWEEP_S)
            with suppress(OSError):  # no descriptor is left to read the folder by; one may be a second later
                await self.sweep(port)

    async def sweep(self, port: int) -> None:
        """End the connections of ``port`` over which too much has come."""
        called, self._called = self._called, set()
        known, self._known = self._known, set()
        # In a thread: there may be 20,000 of them.
        for peer, unasked_bytes in await asyncio.to_thread(self._swept, port, called, known, frozenset(self._calling)):
            self.ended += 1
            if (left_out := self._throttle.due()) is not None:
                log.warning(
                    "connection ended address=%s bytes=%d left_out=%d: no call came with them, and no credential",
                    *(peer[0], unasked_bytes, left_out),
                )

    def _swept(
        self, port: int, called: AbstractSet[Peer], known: AbstractSet[Peer], calling: AbstractSet[Peer]
    ) -> list[tuple[Peer, int]]:
        """Those that were ended, and how much had come over each."""
        still_open: dict[int, _Connection] = {}
        found: list[_Stranger] = []
        for fd, inode in _sockets():
            each = self._open.get(inode) or _Connection(peer=_peer_at(fd, port))
            still_open[inode] = each
            each.is_known = each.is_known or each.peer in known
            if each.peer is None or each.is_known:
                continue
            received_bytes = _received_bytes(fd)
            unasked_bytes = received_bytes - each.bytes_at_call
            is_calling = each.peer in called or each.peer in calling
            found.append(_Stranger(unasked_bytes, fd, inode, each.peer, is_calling))
            if each.peer in called:
                each.bytes_at_call = received_bytes
        self._open = still_open
        return [(each.peer, each.unasked_bytes) for each in _too_many(found) if _end(each.fd, each.inode)]


def _too_many(strangers: list[_Stranger]) -> Iterator[_Stranger]:
    """Those that are to be ended, the largest first."""
    all_bytes = sum(each.unasked_bytes for each in strangers)
    for each in sorted(strangers, reverse=True):
        own_max = CALLING_BYTES_MAX if each.is_calling else UNASKED_BYTES_MAX
        if each.unasked_bytes > own_max or (all_bytes > STRANGERS_BYTES_MAX and each.unasked_bytes > FEW_BYTES):
            all_bytes -= each.unasked_bytes
            yield each


@lru_cache(maxsize=20_000)  # asked with each call, and a connection has many
def _peer_of(peer: str) -> Peer:
    """Address and port: ``peer`` is ipv4:127.0.0.1:1234 or ipv6:%5B::1%5D:1234."""
    host, _, port = unquote(peer).partition(":")[2].rpartition(":")
    return _plain(host.strip("[]")), int(port or 0)


def _plain(host: str) -> str:
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host
    return str(getattr(address, "ipv4_mapped", None) or address)


def _sockets() -> Iterator[tuple[int, int]]:
    """Each descriptor of this process that is a socket, and its inode."""
    with os.scandir(FD_FOLDER) as entries:
        names = [int(entry.name) for entry in entries]
    for fd in names:
        with suppress(OSError):  # closed meanwhile
            found = os.fstat(fd)
            if stat.S_ISSOCK(found.st_mode):
                yield fd, found.st_ino


def _peer_at(fd: int, port: int) -> Peer | None:
    """Who is at the other end, if this is a connection of ``port``."""
    borrowed = None
    try:
        borrowed = socket.socket(fileno=fd)
        if borrowed.family not in {socket.AF_INET, socket.AF_INET6} or borrowed.getsockname()[1] != port:
            return None
        peer = borrowed.getpeername()
        return _plain(peer[0]), int(peer[1])
    except OSError:  # it listens, or was closed meanwhile
        return None
    finally:
        if borrowed is not None:
            borrowed.detach()


def _received_bytes(fd: int) -> int:
    borrowed = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 0, fileno=fd)
    try:
        info = borrowed.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _BYTES_RECEIVED_AT + _BYTES_RECEIVED_LENGTH)
    except OSError:
        return 0
    finally:
        borrowed.detach()
    return int.from_bytes(info[_BYTES_RECEIVED_AT:], "little")


def _end(fd: int, inode: int) -> bool:
    """Shut the connection down, if the descriptor is still that one's: gRPC notices, and lets go of it."""
    with suppress(OSError), socket.socket(fileno=os.dup(fd)) as own:
        if os.fstat(own.fileno()).st_ino == inode:
            own.shutdown(socket.SHUT_RDWR)
            return True
    return False
