"""Events of jobs that wait for their way to the control plane. Whoever shares it between threads holds a lock.

empty -> under way      take: the oldest events become the batch of the next number
under way -> under way  take: the batch failed, and goes again under its number
under way -> empty      sent: the control plane has it, or never takes it
"""

from collections import deque
from collections.abc import Iterable
from uuid import uuid4

from headway.connections import AGENT
from headway.scaling.model import JobEvent, QueueReceptions, TelemetryBatch

EVENTS_KEPT_MAX = 20_000  # some 10 MB; of more, the oldest are dropped
EVENTS_SENT_MAX = 2_000  # in one batch
RECEPTIONS_KEPT_MAX = 1_000  # messages; of more, the oldest are dropped, and the control plane sees the gap
RECEPTION_TIMES_MAX = 8_000  # in all of them: ingest takes 10,000 things at once


class EventQueue:
    """The events of one agent process. A batch keeps its number until it is sent, so that it counts once."""

    def __init__(self) -> None:
        self._events: deque[JobEvent] = deque()
        self._receptions: deque[QueueReceptions] = deque()
        self._under_way: TelemetryBatch | None = None
        self._life = uuid4().hex
        """Of the numbers: another process of the agent begins with 1 again, under another producer's name."""
        self._sequence = 0
        self.dropped_events = 0

    def __len__(self) -> int:
        return len(self._events) + (len(self._under_way.events) if self._under_way else 0)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to send."""
        return not (self._events or self._receptions or self._under_way)

    def add(self, events: Iterable[JobEvent], receptions: Iterable[QueueReceptions] = ()) -> None:
        """Take more; beyond ``EVENTS_KEPT_MAX`` the oldest that are not under way are dropped and counted."""
        self._events.extend(events)
        while len(self._events) > EVENTS_KEPT_MAX:
            self._events.popleft()
            self.dropped_events += 1
        self._receptions.extend(receptions)
        times = sum(len(each.received_at_s) for each in self._receptions)
        while len(self._receptions) > RECEPTIONS_KEPT_MAX or times > RECEPTION_TIMES_MAX:
            times -= len(self._receptions.popleft().received_at_s)

    def take(self, *, host_id: str, sent_at_s: float) -> TelemetryBatch | None:
        """The batch to send now, as ``host_id``; ``None`` where nothing waits."""
        producer = f"{AGENT}{host_id}-{self._life}"
        before = self._under_way
        if self.is_empty:
            return None
        if before is None or before.producer != producer:  # the host was enrolled anew, under another id
            sent_events = min(len(self._events), EVENTS_SENT_MAX)
            events = tuple(before.events) if before else tuple(self._events.popleft() for _ in range(sent_events))
            receptions = tuple(before.receptions) if before else tuple(self._receptions)
            if before is None:
                self._receptions.clear()
            self._sequence += 1
            before = TelemetryBatch(
                producer=producer,
                sequence=self._sequence,
                sent_at_s=sent_at_s,
                events=events,
                receptions=receptions,
            )
        self._under_way = before
        return before

    def sent(self, batch: TelemetryBatch) -> None:
        """Forget ``batch``, which needs no further try."""
        if self._under_way is batch:
            self._under_way = None
