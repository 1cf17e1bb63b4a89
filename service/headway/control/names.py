"""Which names of queues and producers telemetry may bring: as many as there is room for, and each its sender's own.

What is known is kept here, so that a batch of known names costs no look into Postgres. What was refused for want of
room is refused for some seconds more without one.
"""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable
from collections.abc import Set as AbstractSet
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from headway.control.bounds import Bounds
from headway.control.callers import Caller
from headway.control.seldom import Seldom
from headway.errors import Invalid, Overloaded
from headway.scaling.model import TelemetryBatch
from headway.store.credentials import Role
from headway.store.engine import WAKE, Engine, transaction
from headway.store.names import Room, Sender, claim_producer, claim_queues, read_known

FULL_S = 5.0  # so long is nobody asked again whether there is room
TOUCHED_S = 60.0  # how often it is written down that a producer sends; a third of what counts as silent
CLAIMS_WAITING_MAX = 200
FULL_MAX = 10_000
SHOWN_CHARS_MAX = 80
OWN, ALL = "own", "all"

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Admitted:
    """What of a batch is taken."""

    batch: TelemetryBatch
    refused_items: int = 0
    why: str = ""


class Names:
    """The queues and producers that this control plane knows."""

    def __init__(self, *, engine: Engine, bounds: Bounds, clock: Callable[[], float] = time.monotonic) -> None:
        self._engine = engine
        self._bounds = bounds
        self._clock = clock
        self._queues: frozenset[str] = frozenset()
        self._producers: dict[str, tuple[str, float]] = {}
        """Producer -> the digest that it sends with, and when that was last written down."""
        self._full_until_s: dict[str, float] = {}
        self._told = Seldom()
        self._one = asyncio.Lock()
        self._waiting = 0
        self.refused: Counter[str] = Counter()
        """What was refused, by the bound."""

    async def refresh(self) -> None:
        """Read what is known, as what others have claimed or forgotten."""
        async with transaction(self._engine) as connection:
            self._queues = await read_known(connection)

    def forget(self, queue: str) -> None:
        """A queue was forgotten; ``WAKE`` means any may have been."""
        self._queues = frozenset() if queue == WAKE else self._queues - {queue}

    def due(self, producers: Iterable[str]) -> list[str]:
        """Those of which it is time to write down that they send; asked once, they are due again later."""
        now_s = self._clock()
        due = [name for name in producers if now_s - self._producers.get(name, ("", now_s))[1] >= TOUCHED_S]
        for name in due:
            self._producers[name] = (self._producers[name][0], now_s)
        return due

    async def admit(self, batch: TelemetryBatch, caller: Caller) -> Admitted:
        """What of ``batch`` is taken: all but the items of queues for which there is no room.

        Raises:
            Forbidden: somebody else sends under the producer's name.
            Invalid: there is room for none of its queues.
            Overloaded: there is no room for its producer, or too many wait to be asked for.
        """
        named = {each.queue for each in batch.events} | {each.queue for each in batch.samples}
        sender = Sender(name=caller.actor, sha256=caller.sha256, is_admin=caller.role is Role.ADMIN)
        if self._producers.get(batch.producer, (None,))[0] != sender.sha256:
            await self._claim_producer(batch.producer, sender)
        if not named - self._queues:
            return Admitted(batch=batch)
        refused, why = await self._claim_queues(named, sender)
        if not refused:
            return Admitted(batch=batch)
        left = replace(
            batch,
            events=tuple(each for each in batch.events if each.queue not in refused),
            samples=tuple(each for each in batch.samples if each.queue not in refused),
        )
        items = len(batch.events) + len(batch.samples) - len(left.events) - len(left.samples)
        self.refused["queues"] += items
        self._tell(sender, why)
        if not (left.events or left.samples or left.activities):
            raise Invalid(why)
        return Admitted(batch=left, refused_items=items, why=why)

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        """One claim at a time: names that are new must not take every connection to the database."""
        if self._waiting >= CLAIMS_WAITING_MAX:
            raise Overloaded(f"{self._waiting} batches with names that are new wait to be taken: send again later")
        self._waiting += 1
        try:
            async with self._one:
                yield
        finally:
            self._waiting -= 1

    async def _claim_producer(self, producer: str, sender: Sender) -> None:
        bounds = self._bounds
        async with self._turn():
            full = self._full("producers", sender)
            if full is None:
                async with transaction(self._engine) as connection:
                    room = Room(one_max=bounds.producers_per_token_max, all_max=bounds.producers_max)
                    full = await claim_producer(connection, producer, sender=sender, room=room)
                if full is not None:
                    self._note_full("producers", sender, full)
        if full is None:
            if len(self._producers) >= bounds.producers_max:
                self._producers.clear()
            self._producers[producer] = (sender.sha256, self._clock())
            return
        self.refused["producers"] += 1
        setting, most = (
            ("PRODUCERS_PER_TOKEN", bounds.producers_per_token_max)
            if full == OWN
            else ("PRODUCERS", bounds.producers_max)
        )
        why = (
            f"producer {shown(producer)}: {most} names are in use {_by(full, sender)}, as many as HEADWAY_{setting} "
            "allows: keep one name for each program, wait until those that are gone are forgotten, or raise it"
        )
        self._tell(sender, why)
        raise Overloaded(why)

    async def _claim_queues(self, named: AbstractSet[str], sender: Sender) -> tuple[AbstractSet[str], str]:
        """Those of ``named`` that there is no room for, and why."""
        bounds = self._bounds
        async with self._turn():
            new = sorted(named - self._queues)
            full = self._full("queues", sender)
            if full is None and new:
                async with transaction(self._engine) as connection:
                    room = Room(one_max=bounds.queues_per_token_max, all_max=bounds.queues_max)
                    claimed = await claim_queues(connection, new, sender=sender, room=room)
                self._queues |= claimed.known
                new = [name for name in new if name not in claimed.known]
                if new:
                    full = OWN if claimed.is_own_full and sender.sha256 else ALL
                    self._note_full("queues", sender, full)
        if not new:
            return frozenset(), ""
        setting, most = (
            ("QUEUES_PER_TOKEN", bounds.queues_per_token_max) if full == OWN else ("QUEUES", bounds.queues_max)
        )
        more = f" and {len(new) - 1} more" if len(new) > 1 else ""
        return frozenset(new), (
            f"queue {shown(new[0])}{more}: {most} queues are known {_by(full, sender)}, as many as HEADWAY_{setting} "
            "allows: forget those that are gone (`headway queue forget`), name them in a profile, or raise it"
        )

    def _full(self, what: str, sender: Sender) -> str | None:
        """The bound that was met a moment ago."""
        now_s = self._clock()
        return next(
            (full for full in (OWN, ALL) if self._full_until_s.get(_key(what, full, sender), 0.0) > now_s), None
        )

    def _note_full(self, what: str, sender: Sender, full: str) -> None:
        if len(self._full_until_s) >= FULL_MAX:
            self._full_until_s.clear()
        self._full_until_s[_key(what, full, sender)] = self._clock() + FULL_S

    def _tell(self, sender: Sender, why: str) -> None:
        if self._told.due(sender.name) is not None:
            log.warning("telemetry refused sender=%s: %s", sender.name, why)


def _key(what: str, full: str, sender: Sender) -> str:
    return f"{what} {full} {sender.name if full == OWN else ''}"


def _by(full: str | None, sender: Sender) -> str:
    return f"of {sender.name}" if full == OWN else "of all senders"


def shown(name: str) -> str:
    """``name`` as a sentence quotes it: short, and without what would forge a line."""
    return repr(name if len(name) <= SHOWN_CHARS_MAX else f"{name[:SHOWN_CHARS_MAX]}…")
