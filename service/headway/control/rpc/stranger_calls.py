"""Calls under way whose callers have shown no credential: how many, of each connection and of all together.

Half of a call, 16 bytes on the line, costs this process some 15 KB and half a millisecond. So a connection has few of
these at once, and so have all connections together. A connection with more is to be ended. Where several connections of
one address have more, the address floods, and all of its connections on which nobody has shown a credential are to be
ended: to refuse their calls one by one would take what the flood is after.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache

from headway.control.auth.failed_sign_ins import address_of
from headway.control.held_counts import one_more

# Of one connection: an agent makes one call until it has a credential, and a proxy may pass on those of several hosts.
STRANGER_CALLS_MAX = 8
# Of all: a thousand hosts that enrol in the same moment. With more, the address with the most calls floods.
STRANGERS_CALLS_MAX = 1_000
EXCEEDING_MAX = 3  # connections of one address that had too many calls within
EXCEEDING_S = 10.0

Peer = tuple[str, int]

cached_address = lru_cache(maxsize=10_000)(address_of)  # asked with each call


class StrangerCalls:
    """Those calls, by connection and by address."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._of_connection: Counter[Peer] = Counter()
        self._of_address: Counter[str] = Counter()
        self._to_end = ToEnd(peers=set(), addresses=set())
        self._exceeded: dict[str, set[Peer]] = {}
        """By address, the connections that had too many calls, since this moment:"""
        self._exceeded_since_s = clock()
        self._clock = clock
        self.has_any_to_end = asyncio.Event()

    @contextmanager
    def counted(self, peer: Peer) -> Iterator[bool]:
        """One more call from ``peer`` until the end of the block; whether there is room for it."""
        here = cached_address(peer[0])
        with one_more(self._of_connection, peer), one_more(self._of_address, here):
            has_room = self._of_connection[peer] <= STRANGER_CALLS_MAX
            if not has_room:
                self._end(peer, here)
            elif self._of_address.total() > STRANGERS_CALLS_MAX:
                self._end_address(self._of_address.most_common(1)[0][0])
            yield has_room

    def take(self) -> "ToEnd":
        """What is to be ended, and was not taken before."""
        taken, self._to_end = self._to_end, ToEnd(peers=set(), addresses=set())
        self.has_any_to_end.clear()
        return taken

    def _end(self, peer: Peer, address: str) -> None:
        if self._clock() > self._exceeded_since_s + EXCEEDING_S:
            self._exceeded, self._exceeded_since_s = {}, self._clock()
        exceeded = self._exceeded.setdefault(address, set())
        if len(exceeded | {peer}) > EXCEEDING_MAX:
            self._end_address(address)
            return
        exceeded.add(peer)
        self._to_end.peers.add(peer)
        self.has_any_to_end.set()

    def _end_address(self, address: str) -> None:
        self._to_end.addresses.add(address)
        self.has_any_to_end.set()


@dataclass(frozen=True, slots=True, kw_only=True)
class ToEnd:
    """Connections that are to be ended: these, and all of these addresses on which nobody has shown a credential."""

    peers: set[Peer]
    addresses: set[str]

    def has(self, peer: Peer) -> bool:
        """Whether the connection of ``peer`` is one of them, as long as nobody there has shown a credential."""
        return peer in self.peers or (bool(self.addresses) and cached_address(peer[0]) in self.addresses)
