"""The connections of the HTTP server: how many there are, and for how long each may keep it waiting.

Uvicorn waits for headers and bodies as long as their senders like, and for room to write an answer as long as whoever
asked does not read it; it takes connections until no descriptor is left. Where there is no room for another one, the
oldest that keeps the server waiting makes room: whoever asks, and reads the answer, is served.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from itertools import chain
from typing import Any

from headway.control.bounds import DEFAULT

HEADERS_S = 10.0
CONNECTION_BODY_S = 60.0  # 8 MB over a slow line
CONNECTION_ANSWER_S = 30.0  # without a byte of the answer being taken
WAITS_S = {"headers": HEADERS_S, "body": CONNECTION_BODY_S, "answer": CONNECTION_ANSWER_S}
SWEEP_S = 1.0
WHY = ("room", *WAITS_S)
"""Why one is ended: there is no room for it, or its headers or body do not come, or its answer is not read."""


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
            others = [each for each in self._open if each is not protocol]
            waited_for, ahead = filter(_waits_for, others), filter(_has_sent_ahead, others)
            self._end(next(chain(waited_for, ahead), protocol), "room")

    def lost(self, protocol: Any) -> None:
        """It is closed."""
        self._open.pop(protocol, None)
        self._ends.pop(protocol, None)

    def sweep(self) -> None:
        """End those that have kept the server waiting for too long."""
        now_s = self._clock()
        for protocol, (seen, since_s) in list(self._open.items()):
            what = _waits_for(protocol)
            # Of the same request still the same: any other one begins anew.
            waits_for = (what, protocol.cycle, _unread_bytes(protocol, what)) if what else None
            if waits_for != seen or waits_for is None:
                self._open[protocol] = (waits_for, since_s if seen is None and what else now_s)
            elif now_s - since_s > WAITS_S[what]:
                self._end(protocol, what)

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


def _waits_for(protocol: Any) -> str:
    """What the server waits for: headers, a body, or that its answer is read; empty where it is at work itself."""
    cycle = protocol.cycle
    if cycle is None:
        return "headers"
    if cycle.response_complete:  # and written, but perhaps not sent
        return "answer" if protocol.transport.get_write_buffer_size() else "headers"
    if cycle.more_body:
        return "body"
    return "answer" if protocol.flow.write_paused else ""


def _has_sent_ahead(protocol: Any) -> bool:
    """Whether a request came before the answer to the last one: nobody who means well does so.

    Otherwise such a connection never waits for anything, and a few thousand of these leave no room for anybody.
    """
    return bool(protocol.conn.trailing_data[0])


def _unread_bytes(protocol: Any, what: str) -> int:
    """How much of an answer has not been taken: fewer a second later, and it is being read."""
    return int(protocol.transport.get_write_buffer_size()) if what == "answer" else 0
