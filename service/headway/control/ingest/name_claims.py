"""Which names of queues and producers telemetry may bring: as many as there is room for, and each its sender's own.

What is known is kept here, so that a batch of known names costs no query to Postgres. What was refused for want of
room is refused for some seconds more without one.
"""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import asynccontextmanager
from dataclasses import replace

from headway.control.auth.authenticator import Caller
from headway.control.bounds import Bounds
from headway.control.ingest.batch_validation import Admitted
from headway.control.ingest.batch_validation import items as items_of
from headway.errors import Invalid, Overloaded
from headway.local.throttle import Throttle
from headway.scaling.model import TelemetryBatch
from headway.store.access.credentials import Role
from headway.store.claimed_names import Full, Kind, NameCapacity, Sender, claim, read_known
from headway.store.engine import Engine, transaction

CLAIMS_FULL_S = 5.0  # so long is nobody asked again whether there is room
CLAIM_TOUCHED_S = 60.0  # how often it is written down that a producer sends; a third of what counts as silent
CLAIMS_WAITING_MAX = 200
FULL_MAX = 10_000
SHOWN_CHARS_MAX = 80
ADVICE: Mapping[Kind, str] = {
    Kind.QUEUES: "forget those that are gone (`headway queue forget`), name them in a profile",
    Kind.PRODUCERS: "keep one name for each program, wait until those that are gone are forgotten",
}

log = logging.getLogger(__name__)


class NameClaims:
    """The queues and producers that this control plane knows."""

    def __init__(self, *, engine: Engine, bounds: Bounds, clock: Callable[[], float] = time.monotonic) -> None:
        self._engine = engine
        self._bounds = bounds
        self._clock = clock
        self._queues: frozenset[str] = frozenset()
        self._producers: dict[str, tuple[str, float]] = {}
        """Producer -> the digest that it sends with, and when that was last written down."""
        self._full_until_s: dict[tuple[Kind, Full, str], float] = {}
        self._throttle = Throttle()
        self._one = asyncio.Lock()
        self._waiting = 0
        self.refused: Counter[str] = Counter()
        """What was refused, by the bound."""

    async def refresh(self) -> None:
        """Read what is known, as what others have claimed or forgotten."""
        async with transaction(self._engine) as connection:
            self._queues = await read_known(connection)

    def forget(self) -> None:
        """Queues were forgotten, any of them: those that go on sending are asked for anew."""
        self._queues = frozenset()

    def due(self, producers: Iterable[str]) -> list[str]:
        """Those of which it is time to write down that they send; asked once, they are due again later."""
        now_s = self._clock()
        due = [name for name in producers if now_s - self._producers.get(name, ("", now_s))[1] >= CLAIM_TOUCHED_S]
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
        named |= {each.queue for each in batch.counts}
        takes_over = caller.role in {Role.ADMIN, Role.HOST}
        sender = Sender(name=caller.actor, sha256=caller.sha256, takes_over=takes_over)
        if self._producers.get(batch.producer, (None,))[0] != sender.sha256:
            refused, why = await self._refused(Kind.PRODUCERS, {batch.producer}, sender)
            if refused:
                self.refused[Kind.PRODUCERS] += 1
                self._log_refusal(sender, why)
                raise Overloaded(why)
        if not named - self._queues:
            return Admitted(batch=batch)
        refused, why = await self._refused(Kind.QUEUES, named, sender)
        if not refused:
            return Admitted(batch=batch)
        left = replace(
            batch,
            events=tuple(each for each in batch.events if each.queue not in refused),
            samples=tuple(each for each in batch.samples if each.queue not in refused),
            counts=tuple(each for each in batch.counts if each.queue not in refused),
        )
        items = items_of(batch) - items_of(left)
        self.refused[Kind.QUEUES] += items
        self._log_refusal(sender, why)
        if not items_of(left):
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

    async def _refused(self, kind: Kind, named: AbstractSet[str], sender: Sender) -> tuple[AbstractSet[str], str]:
        """Those of ``named`` that there is no room for, and why. The others are known from here on."""
        async with self._turn():
            new = sorted(named - self._queues if kind is Kind.QUEUES else named)
            full = self._full(kind, sender)
            if full is None and new:
                async with transaction(self._engine) as connection:
                    claimed = await claim(connection, kind, new, sender=sender, room=_room(kind, self._bounds))
                self._keep(kind, claimed.known, sender)
                new = [name for name in new if name not in claimed.known]
                if (full := claimed.full) is not None:
                    self._note_full(kind, sender, full)
        if full is None or not new:
            return frozenset(), ""
        return frozenset(new), _why(kind, new, full, sender, self._bounds)

    def _keep(self, kind: Kind, known: AbstractSet[str], sender: Sender) -> None:
        if kind is Kind.QUEUES:
            self._queues |= known
            return
        if len(self._producers) >= self._bounds.producers_max:
            self._producers.clear()
        self._producers.update(dict.fromkeys(known, (sender.sha256, self._clock())))

    def _full(self, kind: Kind, sender: Sender) -> Full | None:
        """The bound that was met a moment ago."""
        now_s = self._clock()
        return next((full for full in Full if self._full_until_s.get(_key(kind, full, sender), 0.0) > now_s), None)

    def _note_full(self, kind: Kind, sender: Sender, full: Full) -> None:
        if len(self._full_until_s) >= FULL_MAX:
            self._full_until_s.clear()
        self._full_until_s[_key(kind, full, sender)] = self._clock() + CLAIMS_FULL_S

    def _log_refusal(self, sender: Sender, why: str) -> None:
        if self._throttle.due(sender.name) is not None:
            log.warning("telemetry refused sender=%s: %s", sender.name, why)


def _key(kind: Kind, full: Full, sender: Sender) -> tuple[Kind, Full, str]:
    return kind, full, sender.name if full is Full.OWN else ""


def _room(kind: Kind, bounds: Bounds) -> NameCapacity:
    if kind is Kind.QUEUES:
        return NameCapacity(one_max=bounds.queues_per_token_max, all_max=bounds.queues_max)
    return NameCapacity(one_max=bounds.producers_per_token_max, all_max=bounds.producers_max)


def _why(kind: Kind, refused: Sequence[str], full: Full, sender: Sender, bounds: Bounds) -> str:
    room, of_one = _room(kind, bounds), full is Full.OWN
    more = f" and {len(refused) - 1} more" if len(refused) > 1 else ""
    return (
        f"{kind.removesuffix('s')} {shown(refused[0])}{more}: {room.one_max if of_one else room.all_max} {kind} are "
        f"known of {sender.name if of_one else 'all senders'}, as many as "
        f"HEADWAY_{kind.upper()}{'_PER_TOKEN' if of_one else ''} allows: {ADVICE[kind]}, or raise it"
    )


def shown(name: str) -> str:
    """``name`` as a sentence quotes it: short, and without what would forge a line."""
    return repr(name if len(name) <= SHOWN_CHARS_MAX else f"{name[:SHOWN_CHARS_MAX]}…")
