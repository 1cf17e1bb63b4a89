"""When jobs entered their queues whose messages carry no time, between two moments. Pure.

Two sources meet here: readings of the broker by a collector, and receptions by workers, which agents report. A job that
a reading named entered between this reading and the one before. A job that no reading had seen before its worker
received it entered after the last reading. In a queue that names no jobs, their order decides: see
``reception_order``. Nothing is answered that is not within its bounds for certain. See docs/decisions/0031.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace

from headway.scaling.entries.broker_polls import BrokerPolls, KeptPoll
from headway.scaling.entries.reception_order import ReceptionOrder
from headway.scaling.model import BrokerPoll, EnteredJob, EventKind, JobEvent, QueueReceptions

ENTRY_BOUND_MAX_S = 2.0  # bounds that are farther apart say nothing, except
ENTRY_BOUND_PART = 0.04  # of a wait that is so much longer
UNCLEAR_POLLS = 8  # readings that are tried beside the one where the answer changes
JOBS_MAX = 200_000  # that were named and have not begun: some 60 MB
BEGUN_MAX = 20_000
QUEUES_MAX = 1_000  # whose receptions are known
CONNECTIONS_MAX = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryBounds:
    """Between which moments a job entered."""

    after_s: float
    until_s: float
    estimate_s: float

    def is_close(self, *, started_at_s: float) -> bool:
        """Whether the bounds say enough of the wait of a job that started then."""
        return self.until_s - self.after_s <= _bound_s(started_at_s - self.until_s)


def _bound_s(wait_s: float) -> float:
    return max(ENTRY_BOUND_MAX_S, ENTRY_BOUND_PART * wait_s)


@dataclass(frozen=True, slots=True)
class _Named:
    """When a reading named a job; ``after_s`` is ``None`` where no reading before it is known."""

    after_s: float | None
    until_s: float


_Key = tuple[str, str, int]
"""Queue, job and attempt."""


class EntryTimes:
    """What is known of entries, of all connections, within a bound."""

    def __init__(self) -> None:
        self._polls: dict[str, BrokerPolls] = {}
        self._orders: dict[str, ReceptionOrder] = {}
        """By queue, the one reported longest ago first."""
        self._named: dict[_Key, _Named] = {}
        self._begun: dict[_Key, tuple[float, EntryBounds | None]] = {}
        """Start and entry of jobs that began lately: a second start of one of them is another delivery."""

    # --- what comes --------------------------------------------------------------------------------------------------

    def take_poll(self, poll: BrokerPoll, producer: str) -> None:
        """Take one reading of a broker; one that came before changes nothing."""
        if poll.connection not in self._polls and len(self._polls) >= CONNECTIONS_MAX:
            del self._polls[next(iter(self._polls))]
        polls = self._polls.setdefault(poll.connection, BrokerPolls())
        if not polls.take(poll, producer):
            return
        for row in poll.queues:
            for job in row.entered:
                self._name(row.queue, job, _Named(poll.after_s, poll.until_s))
        while len(self._named) > JOBS_MAX:
            key = next(iter(self._named))
            del self._named[key]
            self._polls_of(key[0]).doubt(key[0])

    def note_read(self, queue: str, at_s: float, producer: str) -> None:
        """Note that the collector ``producer`` read ``queue`` then."""
        self._polls_of(queue).note_read(queue, at_s, producer)

    def _name(self, queue: str, job: EnteredJob, named: _Named) -> None:
        key = (queue, job.job_id, job.attempt)
        self._begun.pop(key, None)
        self._named.setdefault(key, named)

    def take_receptions(self, receptions: QueueReceptions, producer: str) -> None:
        """Take what the agent ``producer`` says of one queue; what came before changes nothing."""
        polls = self._polls_of(receptions.queue).kept
        if not polls:
            return
        order = self._orders.pop(receptions.queue, None) or ReceptionOrder()
        self._orders[receptions.queue] = order
        if len(self._orders) > QUEUES_MAX:
            del self._orders[next(iter(self._orders))]
        order.take(receptions, producer, polls)

    @property
    def reported_queues(self) -> frozenset[str]:
        """Queues whose receptions are known."""
        return frozenset(self._orders)

    def _polls_of(self, queue: str) -> BrokerPolls:
        return self._polls.get(queue.partition("/")[0]) or BrokerPolls()

    # --- what it means ------------------------------------------------------------------------------------------------

    def completed(self, events: Sequence[JobEvent]) -> tuple[JobEvent, ...]:
        """``events`` with the entry of each job that began, where it is known, and that has no time of its own.

        The arrival that was reported with such a start happened then, too.
        """
        entered: dict[tuple[str, str, float], float] = {}
        for event in events:
            if event.kind is EventKind.STARTED and event.enqueued_at_s is None:
                bounds = self.entry(event)
                if bounds is not None:
                    entered[event.queue, event.job_id, event.at_s] = min(event.at_s, bounds.estimate_s)
        if not entered:
            return tuple(events)
        return tuple(_with_entry(event, entered) for event in events)

    def entry(self, started: JobEvent) -> EntryBounds | None:
        """Between which moments the job of a start entered; ``None``: it is not known, or not well enough."""
        key = (started.queue, started.job_id, started.attempt or 1)
        if key in self._begun:
            at_s, known = self._begun[key]
            return known if at_s == started.at_s else None
        named = self._named.pop(key, None)
        bounds = self._unnamed_entry(started) if named is None else _named_entry(named, started)
        if bounds is not None and not bounds.is_close(started_at_s=started.at_s):
            bounds = None
        self._begun[key] = started.at_s, bounds
        if len(self._begun) > BEGUN_MAX:
            del self._begun[next(iter(self._begun))]
        return bounds

    def _unnamed_entry(self, started: JobEvent) -> EntryBounds | None:
        received_at_s = started.received_at_s
        if received_at_s is None:
            return None
        queue = started.queue
        polls = self._polls_of(queue).before(received_at_s, queue)
        order = self._orders.get(queue) or ReceptionOrder()
        if started.is_redelivered:
            return _redelivered_entry(polls, queue, received_at_s)
        farthest_s = received_at_s - _bound_s(started.at_s - received_at_s)
        index = _last_after(polls, queue, received_at_s, order, farthest_s=farthest_s)
        if index is None:
            return None
        lower = polls[index]
        upper = _first_before(polls[index + 1 :], queue, received_at_s, order)
        if upper is not None:
            until_s = min(upper.until_s, received_at_s)
            return EntryBounds(after_s=lower.at_s, until_s=until_s, estimate_s=(lower.at_s + until_s) / 2)
        # Into an empty queue it came to a worker that waited for it, as a rule.
        row = lower.rows.get(queue)
        is_awaited = row is None or not row.waiting_jobs
        estimate_s = received_at_s if is_awaited else (lower.at_s + received_at_s) / 2
        return EntryBounds(after_s=lower.at_s, until_s=received_at_s, estimate_s=estimate_s)


def _last_after(
    polls: Sequence[KeptPoll], queue: str, received_at_s: float, order: ReceptionOrder, *, farthest_s: float
) -> int | None:
    """The index of the last of ``polls`` after which the job entered for certain."""

    def is_after(poll: KeptPoll) -> bool:
        return queue in poll.sure or order.is_after(poll, queue, received_at_s)

    last = len(polls)
    while last and polls[last - 1].at_s >= farthest_s:
        last -= 1
        if is_after(polls[last]):
            return last
    # It waited for longer. What entered after a reading entered after those before, too, but not each of them shows it.
    found = bisect_left(polls, 1, hi=last, key=lambda each: int(not is_after(each)))
    for index in range(min(last, found + UNCLEAR_POLLS) - 1, -1, -1):
        if is_after(polls[index]):
            return index
        if index < found - 1:
            break
    return None


def _redelivered_entry(polls: Sequence[KeptPoll], queue: str, received_at_s: float) -> EntryBounds | None:
    """The entry of a job that another worker had: it was nowhere when no job waited, and no worker held one."""
    lower = next((each for each in reversed(polls) if queue not in each.rows), None)
    if lower is None:
        return None
    return EntryBounds(after_s=lower.at_s, until_s=received_at_s, estimate_s=(lower.at_s + received_at_s) / 2)


def _first_before(
    polls: Sequence[KeptPoll], queue: str, received_at_s: float, order: ReceptionOrder
) -> KeptPoll | None:
    """The first of the next ``polls`` before the end of which the job had entered for certain."""
    return next((each for each in polls[:UNCLEAR_POLLS] if order.is_before(each, queue, received_at_s)), None)


def _named_entry(named: _Named, started: JobEvent) -> EntryBounds | None:
    taken_at_s = started.at_s if started.received_at_s is None else started.received_at_s
    until_s = min(named.until_s, taken_at_s)
    if named.after_s is None or until_s < named.after_s:
        return None
    return EntryBounds(after_s=named.after_s, until_s=until_s, estimate_s=(named.after_s + until_s) / 2)


def _with_entry(event: JobEvent, entered: dict[tuple[str, str, float], float]) -> JobEvent:
    at_s = entered.get((event.queue, event.job_id, event.at_s))
    if at_s is None:
        return event
    if event.kind is EventKind.ENQUEUED:
        return replace(event, at_s=at_s)
    is_start = event.kind is EventKind.STARTED and event.enqueued_at_s is None
    return replace(event, enqueued_at_s=at_s) if is_start else event
