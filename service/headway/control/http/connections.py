"""The connections of the HTTP server: how many there are, and for how long each may be without a whole request.

Uvicorn waits for headers and bodies as long as their senders like, and takes connections until no descriptor is left.
Where there is no room for another one, the oldest that has asked for nothing yet makes room: whoever asks is served.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from headway.control.bounds import DEFAULT

HEADERS_S = 10.0
BODY_S = 60.0  # 8 MB over a slow line
SWEEP_S = 1.0
WHY = ("room", "headers", "body")
"""Why one is ended: there is no room for it, or its next headers or its body do not come."""


class Connections:
    """Those that are open, in the order in which they came."""

    def __init__(
        self, most: int = DEFAULT.http_connections_max, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._most = most
        self._clock = clock
        self._open: dict[Any, tuple[object, float]] = {}
        """Protocol -> what it was last seen to wait for, and since when."""
        self._ends: dict[Any, Callable[[], object]] = {}
        """Of those that have not agreed on TLS yet: what ends them."""
        self.ended: Counter[str] = Counter()
        """How many were ended, by why."""

    def bounded(self, protocol: type[asyncio.Protocol]) -> type[asyncio.Protocol]:
        """``protocol``, each of whose instances is one of these connections."""
        connections = self

        class Bounded(protocol):  # type: ignore[misc, valid-type]
            def connection_made(self, transport: Any) -> None:
                super().connection_made(transport)
                connections.made(self)

            def connection_lost(self, error: Exception | None) -> None:
                super().connection_lost(error)
                connections.lost(self)

        return Bounded

    def accepted(self, protocol: Any, *, end: Callable[[], object]) -> None:
        """One that has to agree on TLS before ``protocol`` has it; until then ``end`` ends it."""
        self._ends[protocol] = end
        self._count(protocol)

    def made(self, protocol: Any) -> None:
        """Another one is open, or one that was accepted has agreed; without room one ends."""
        self._ends.pop(protocol, None)
        self._count(protocol)

    def _count(self, protocol: Any) -> None:
        self._open[protocol] = (None, self._clock())
        if len(self._open) > self._most:
            self._end(next((each for each in self._open if _lacks(each)), protocol), "room")

    def lost(self, protocol: Any) -> None:
        """It is closed."""
        self._open.pop(protocol, None)
        self._ends.pop(protocol, None)

    def sweep(self) -> None:
        """End those that have waited too long for the rest of a request."""
        now_s = self._clock()
        for protocol, (seen, since_s) in list(self._open.items()):
            lacks = _lacks(protocol)
            # Of the same request still the same: any other one begins anew.
            waits_for = (lacks, protocol.cycle) if lacks else None
            if waits_for != seen or waits_for is None:
                self._open[protocol] = (waits_for, since_s if seen is None and lacks else now_s)
            elif now_s - since_s > (BODY_S if lacks == "body" else HEADERS_S):
                self._end(protocol, lacks)

    async def sweep_for_ever(self) -> None:
        """``sweep`` each second."""
        while True:
            await asyncio.sleep(SWEEP_S)
            self.sweep()

    def _end(self, protocol: Any, why: str) -> None:
        self._open.pop(protocol, None)
        self.ended[why] += 1
        end = self._ends.pop(protocol, None)
        if end is None:
            protocol.transport.abort()
        else:
            end()


def _lacks(protocol: Any) -> str:
    """What of its next request has not come: its headers or its body; empty where one is being answered."""
    cycle = protocol.cycle
    if cycle is None or cycle.response_complete:
        return "headers"
    return "body" if cycle.more_body else ""
