"""Hosts whose connection has ended: their agent has not called since its last poll ended with it, or was answered.

An agent reports each 15 s, so that by its reports alone one that was killed seems well for as long. The end of its
connection is known at once, and of one that hangs or was cut off once a ping has had no answer. A poll that was
answered just before holds nothing that could end: of its agent it is known that it polls again at once.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

from headway.errors import HeadwayError
from headway.store.engine import Engine, transaction
from headway.store.hosts.hang_ups import note_back, note_hung_up

DISCONNECT_CALLS_AGAIN_S = 2.0  # an agent that begins anew, or that gave up a poll of its own, calls well within
DISCONNECT_POLLS_AGAIN_S = 5.0  # one that was answered waits a second at most; beside it, all the others may call
DISCONNECT_FORGOTTEN_S = 60.0  # by then its lease has ended
WRITE_EVERY_S = 0.5

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Silence:
    """Since when a host holds no poll, and for how long that means nothing."""

    since_s: float
    usual_s: float


class Disconnects:
    """Whose connection has ended here. ``watch`` writes it down for every control plane to show."""

    def __init__(self, *, engine: Engine, clock: Callable[[], float] = time.monotonic) -> None:
        self._engine = engine
        self._clock = clock
        self._silent: dict[str, _Silence] = {}
        """Of hosts that have not called since and are not written down."""
        self._noted: set[str] = set()
        self._back: set[str] = set()

    def ended(self, host_id: str) -> None:
        """The last poll that was held for the host has ended with its connection."""
        self._silent[host_id] = _Silence(since_s=self._clock(), usual_s=DISCONNECT_CALLS_AGAIN_S)

    def answered(self, host_id: str) -> None:
        """The last poll that was held for the host has been answered."""
        self._silent[host_id] = _Silence(since_s=self._clock(), usual_s=DISCONNECT_POLLS_AGAIN_S)

    def called(self, host_id: str) -> None:
        """The host calls."""
        self._silent.pop(host_id, None)
        if host_id in self._noted:
            self._noted.discard(host_id)
            self._back.add(host_id)

    async def watch(self) -> None:
        """Write down what has happened, for ever."""
        is_written = True
        while True:
            await asyncio.sleep(WRITE_EVERY_S)
            try:
                await self.write()
                is_written = True
            except HeadwayError as error:
                if is_written:
                    log.warning("ends of hosts' connections are not written down: %s", error)
                is_written = False

    async def write(self) -> None:
        """Write down which hosts have not called again, and which of those that are written down have."""
        now_s = self._clock()
        due = {
            host_id: now_s - silence.since_s
            for host_id, silence in self._silent.items()
            if now_s - silence.since_s >= silence.usual_s
        }
        back = frozenset(self._back)
        if not due and not back:
            return
        async with transaction(self._engine) as conn:
            noted = await note_hung_up(conn, due)
            await note_back(conn, back)
        self._back -= back
        for host_id, age_s in due.items():
            # A row that somebody else writes just now is left for the next time.
            if (host_id in noted or age_s > DISCONNECT_FORGOTTEN_S) and self._silent.pop(host_id, None) is not None:
                self._noted |= {host_id} & noted
            elif host_id in noted:
                self._back.add(host_id)  # it has called meanwhile
