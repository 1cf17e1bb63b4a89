"""Connections of the gRPC port that are ended: with many bytes and no call, or with many calls and no credential.

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
import time
from collections import Counter
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

from headway.control.held_counts import one_more
from headway.control.rpc.stranger_calls import Peer, StrangerCalls, ToEnd
from headway.local.throttle import Throttle

STRANGER_SWEEP_S = 1.0
# What comes within that second counts, too: a sweep begins at once where memory has grown by as much since the last.
GROWTH_CHECK_S = 0.1
GROWTH_BYTES = 16 * 1024 * 1024
# Of one connection since its last call began or ended: what is left of a message that was refused may be under way.
UNASKED_BYTES_MAX = 1024 * 1024
CALLING_BYTES_MAX = 9 * 1024 * 1024  # while a call waits, perhaps for the database: one message
STRANGERS_BYTES_MAX = 64 * 1024 * 1024  # of all together; the largest end first
# Who has shown a credential may bring several messages at once. What counts is what comes after a call has begun: the
# headers of a call that end prove that no flood of them is under way, and the end of another call proves nothing.
KNOWN_BYTES_MAX = 64 * 1024 * 1024
KNOWNS_BYTES_MAX = 256 * 1024 * 1024  # of all with a credential
FEW_BYTES = 32 * 1024  # the handshake of TLS and the headers of a call are 10 KB: whoever has sent no more is spared
UNASKED = "no call came with them"
FLOODS = "too many calls without a credential come from there"
FD_FOLDER = Path("/proc/self/fd")
HAS_FDS = FD_FOLDER.is_dir()  # Linux
STATM = Path("/proc/self/statm")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_BYTES_RECEIVED_AT, _BYTES_RECEIVED_LENGTH = 128, 8  # in Linux's struct tcp_info, since 4.1

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Connection:
    """One that is open. ``peer`` is ``None`` of sockets that are not the port's."""

    peer: Peer | None
    is_known: bool = False
    is_ended: bool = False
    """Shut down here; gRPC lets go of it when it comes to it."""
    bytes_at_call: int = 0


class _Inbound(NamedTuple):
    """An open connection, and how much may come over it without a call."""

    unasked_bytes: int
    fd: int
    inode: int
    peer: Peer
    bytes_max: int


class _CallsSinceSweep(NamedTuple):
    """Who called since the last sweep: a call began or ended, one began, one showed a credential; who calls now.

    And what has had too many calls.
    """

    called: AbstractSet[Peer]
    begun: AbstractSet[Peer]
    known: AbstractSet[Peer]
    now: AbstractSet[Peer]
    to_end: ToEnd

    def bytes_max(self, connection: _Connection) -> int:
        """How much may come over it without a call."""
        if connection.is_known:
            return KNOWN_BYTES_MAX
        if connection.peer is not None and self.to_end.has(connection.peer):
            return -1  # not even none
        is_calling = connection.peer in self.called or connection.peer in self.now
        return CALLING_BYTES_MAX if is_calling else UNASKED_BYTES_MAX


class StrangerConnections:
    """Who calls over which connection, with a credential or as a stranger, and how much has come without a call."""

    def __init__(self) -> None:
        self._open: dict[int, _Connection] = {}
        """By inode, which no later socket has."""
        self._calling: Counter[Peer] = Counter()
        self._called: set[Peer] = set()
        self._begun: set[Peer] = set()
        self._known: set[Peer] = set()
        self._known_before: AbstractSet[Peer] = frozenset()
        """Those of which that was known before the last sweep, as long as their connections are open."""
        self._of_strangers = StrangerCalls()
        self._throttle = Throttle()
        self.ended = 0
        """How many were ended."""

    @contextmanager
    def call(self, peer: str) -> Iterator[None]:
        """A call from ``peer``, in gRPC's words, until the end of the block."""
        place = _peer_of(peer)
        self._called.add(place)
        self._begun.add(place)
        try:
            with one_more(self._calling, place):
                yield
        finally:
            self._called.add(place)

    @contextmanager
    def unauthenticated(self, peer: str) -> Iterator[bool]:
        """A call from ``peer`` that shows no credential, until the end of the block; whether there is room for it.

        Over a connection on which another call has shown one, there is.
        """
        place = _peer_of(peer)
        if place in self._known or place in self._known_before:
            yield True
            return
        with self._of_strangers.counted(place) as has_room:
            yield has_room

    def authenticated(self, peer: str) -> None:
        """A caller there has shown a credential: as long as the connection is open, it is no stranger's."""
        self._known.add(_peer_of(peer))

    async def sweep_for_ever(self, port: int) -> None:
        """``sweep`` each second, as memory grows, and when one has too many calls.

        Where the kernel does not show what it counts, return.
        """
        while HAS_FDS:
            await self._pause()
            with suppress(OSError):  # no descriptor is left to read the folder by; one may be a second later
                await self.sweep(port)

    async def _pause(self) -> None:
        until_s = time.monotonic() + STRANGER_SWEEP_S
        before_bytes = _resident_bytes()
        while time.monotonic() < until_s and _resident_bytes() <= before_bytes + GROWTH_BYTES:
            with suppress(TimeoutError):
                async with asyncio.timeout(GROWTH_CHECK_S):
                    await self._of_strangers.has_any_to_end.wait()
                    return

    async def sweep(self, port: int) -> None:
        """End the connections of ``port`` over which too much has come, and those with too many calls."""
        to_end = self._of_strangers.take()
        calls = _CallsSinceSweep(self._called, self._begun, self._known, frozenset(self._calling), to_end)
        self._known_before |= self._known
        self._called, self._begun, self._known = set(), set(), set()
        # In a thread: there may be 20,000 of them.
        for peer, unasked_bytes in await asyncio.to_thread(self._swept, port, calls):
            self.ended += 1
            if (left_out := self._throttle.due()) is not None:
                log.warning(
                    "connection ended address=%s bytes=%d left_out=%d: %s",
                    *(peer[0], unasked_bytes, left_out, FLOODS if to_end.has(peer) else UNASKED),
                )

    def _swept(self, port: int, calls: _CallsSinceSweep) -> list[tuple[Peer, int]]:
        """Those that were ended, and how much had come over each."""
        still_open: dict[int, _Connection] = {}
        strangers: list[_Inbound] = []
        knowns: list[_Inbound] = []
        for fd, inode in _sockets():
            each = self._open.get(inode) or _Connection(peer=_peer_at(fd, port))
            still_open[inode] = each
            if each.peer is None or each.is_ended:
                continue
            # Or meanwhile: where others flood, one that has just shown a credential is not ended with them.
            each.is_known = each.is_known or each.peer in calls.known or each.peer in self._known
            received_bytes = _received_bytes(fd)
            seen = _Inbound(received_bytes - each.bytes_at_call, fd, inode, each.peer, calls.bytes_max(each))
            (knowns if each.is_known else strangers).append(seen)
            if each.peer in (calls.begun if each.is_known else calls.called):
                each.bytes_at_call = received_bytes
        self._open = still_open
        self._known_before = {each.peer for each in still_open.values() if each.is_known and each.peer is not None}
        found = (*_too_many(strangers, STRANGERS_BYTES_MAX), *_too_many(knowns, KNOWNS_BYTES_MAX))
        ended = [one for one in found if _end(one.fd, one.inode)]
        for one in ended:
            still_open[one.inode].is_ended = True
        return [(one.peer, one.unasked_bytes) for one in ended]


def _too_many(connections: list[_Inbound], all_bytes_max: int) -> Iterator[_Inbound]:
    """Those that are to be ended, the largest first."""
    all_bytes = sum(each.unasked_bytes for each in connections)
    for each in sorted(connections, reverse=True):
        if each.unasked_bytes > each.bytes_max or (all_bytes > all_bytes_max and each.unasked_bytes > FEW_BYTES):
            all_bytes -= each.unasked_bytes
            yield each


def _resident_bytes() -> int:
    """What this process has in memory; 0 where no descriptor is left to read it by."""
    with suppress(OSError):
        return int(STATM.read_text().split()[1]) * PAGE_BYTES
    return 0


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
