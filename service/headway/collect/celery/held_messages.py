"""What Celery's workers hold in Redis: messages that they took and did not acknowledge yet, by their tags.

A worker holds each task that is due later which it has taken, a hundred thousand if so many were sent. Of these only
the time is kept, in the order of time.
"""

from bisect import bisect_left, bisect_right, insort
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from operator import itemgetter

from headway.collect.celery.celery_message import taken_from
from headway.collect.celery.held_index import HeldChanges
from headway.collect.list_marks import Entered

LEFT_MAX = 20_000  # of those that are held no longer: a worker may have put them back
ENVELOPES_MAX = 4_000  # a poll; the rest is read by the next
ENVELOPES_BYTES_MAX = 4_000_000
ENVELOPE_CHARS = 10_000  # before any was seen
MOVED_SINGLY_MAX = 100  # of more, all are sorted again

Route = tuple[str, str]
"""Exchange and routing key."""


@dataclass(frozen=True, slots=True)
class _Held:
    """A message without a time of its own that is known, as it was when it was first seen there."""

    route: Route
    taken_at_s: float
    entered: Entered
    is_due_known: bool


class _TimedMessages:
    """The messages of one route that have a time of their own."""

    __slots__ = ("_due_s", "entries")

    def __init__(self) -> None:
        self.entries: list[_Timed] = []
        """Ascending: when each is due, its tag, and this object."""
        self._due_s: list[float] | None = []

    @property
    def due_s(self) -> list[float]:
        """When each is due, in ascending order."""
        if self._due_s is None:
            self._due_s = [entry[0] for entry in self.entries]
        return self._due_s

    def add(self, entries: "Sequence[_Timed]") -> None:
        self._due_s = None
        if len(entries) > MOVED_SINGLY_MAX:
            self.entries = sorted([*self.entries, *entries])
        else:
            for entry in entries:
                insort(self.entries, entry)

    def remove(self, entries: "Sequence[_Timed]") -> None:
        self._due_s = None
        if len(entries) > MOVED_SINGLY_MAX:
            tags = {entry[1] for entry in entries}
            self.entries = [entry for entry in self.entries if entry[1] not in tags]
        else:
            for entry in entries:
                del self.entries[bisect_left(self.entries, entry)]


_Timed = tuple[float, str, _TimedMessages]


@dataclass(slots=True)
class HeldOfQueue:
    """What workers hold of one queue."""

    due: list[Entered] = field(default_factory=list)
    """When the jobs that are due entered, in the order in which a worker could begin them."""
    due_later_s: list[float] = field(default_factory=list)
    """When each of the others is due, in ascending order."""
    undated_jobs: int = 0
    """Beside these: nobody knows whether they are due."""


class HeldMessages:
    """The messages that workers hold, and those that they held lately: a worker may put them back."""

    def __init__(self, queue_of: Callable[[str, str], str | None]) -> None:
        """``queue_of`` gives the queue of an exchange and a routing key."""
        self._queue_of_route = queue_of
        self._unread: dict[str, float] = {}
        """Tag -> when it was taken, of those whose messages were not read."""
        self._at_once: dict[str, _Held] = {}
        self._timed: dict[str, _Timed] = {}
        self._by_route: dict[Route, _TimedMessages] = {}
        self._left: dict[str, Entered] = {}
        self._put_back: dict[str, Entered] = {}
        """Those that were taken and put back between two polls."""
        self._chars = ENVELOPE_CHARS

    @property
    def are_read(self) -> bool:
        """Whether the message of each was read."""
        return not self._unread

    def doubt_sizes(self) -> None:
        """Read few at a time for a while: a reply was too long."""
        self._chars = ENVELOPES_BYTES_MAX

    def unread(self) -> list[str]:
        """The tags of the messages to read next."""
        return list(islice(self._unread, min(ENVELOPES_MAX, max(1, ENVELOPES_BYTES_MAX // self._chars))))

    def due_tags(self, *, at_s: float) -> Iterator[str]:
        """The tags of the messages that are due: those that may go next, by and large in this order."""
        for messages in self._by_route.values():
            yield from (tag for _, tag, _ in messages.entries[: bisect_right(messages.due_s, at_s)])
        yield from self._at_once

    def entered(self, tag: str) -> Entered | None:
        """When a message entered its queue that a worker held; ``None`` where that is not known."""
        held = self._at_once.get(tag)
        return self._left.get(tag) if held is None else held.entered

    def put_back(self, tag: str, *, after_s: float | None, seen_s: float) -> Entered:
        """When a message entered its queue that was put back, and which no poll saw a worker hold.

        It was taken since the poll before its first sighting: ``after_s`` is then when the job entered that was next.
        """
        return _remember(self._put_back, tag, Entered(after_s=after_s, until_s=seen_s))

    def change(self, changes: HeldChanges) -> None:
        """Go by what workers took and what is held no longer."""
        timed: dict[_TimedMessages, list[_Timed]] = {}
        for tag in changes.gone:
            self._unread.pop(tag, None)
            if (held := self._at_once.pop(tag, None)) is not None:
                _remember(self._left, tag, held.entered)
            if (entry := self._timed.pop(tag, None)) is not None:
                timed.setdefault(entry[2], []).append(entry)
        for messages, entries in timed.items():
            messages.remove(entries)
        known = (self._at_once, self._timed)
        self._unread |= {tag: at_s for tag, at_s in changes.new.items() if not any(tag in each for each in known)}

    def take(self, messages: Mapping[str, str | None], heads: Mapping[str, float]) -> None:
        """Remember ``messages`` by their tags.

        ``heads`` is, queue by queue, after when the job entered that was the next one at the poll before: whatever was
        taken since entered later than that.
        """
        timed: dict[_TimedMessages, list[_Timed]] = {}
        for tag, text in messages.items():
            taken_at_s, taken = self._unread.pop(tag), taken_from(text)
            if taken is None:
                continue
            route = (taken.exchange, taken.routing_key)
            before = self._left.pop(tag, None) or self._put_back.pop(tag, None)
            if taken.message.due_s is None:
                after_s = heads.get(self._queue_of_route(*route) or "")
                entered = before or Entered(after_s=after_s, until_s=taken_at_s)
                self._at_once[tag] = _Held(route, taken_at_s, entered, taken.message.is_due_known)
            else:
                of_route = self._by_route.setdefault(route, _TimedMessages())
                self._timed[tag] = (taken.message.due_s, tag, of_route)
                timed.setdefault(of_route, []).append(self._timed[tag])
        for of_route, entries in timed.items():
            of_route.add(entries)
        if messages:
            self._chars = max(self._chars // 2, 1, *(len(text or "") for text in messages.values()))

    def counts(self) -> Counter[str]:
        """How many are held of each queue; those whose queue is not known are missing."""
        of_routes = Counter(held.route for held in self._at_once.values())
        of_routes.update({route: len(messages.entries) for route, messages in self._by_route.items()})
        found: Counter[str] = Counter()
        for route, count in of_routes.items():
            if count and (queue := self._queue_of_route(*route)) is not None:
                found[queue] += count
        return found

    def of_queues(self, *, at_s: float) -> dict[str, HeldOfQueue]:
        """What is held now, queue by queue; a queue of which nothing is held is missing."""
        found: dict[str, HeldOfQueue] = {}
        began: dict[str, list[tuple[float, Entered]]] = {}
        for held in self._at_once.values():
            queue = self._queue_of_route(*held.route)
            if queue is not None and not held.is_due_known:
                found.setdefault(queue, HeldOfQueue()).undated_jobs += 1
            elif queue is not None:
                began.setdefault(queue, []).append((held.taken_at_s, held.entered))
        for route, messages in self._by_route.items():
            queue = self._queue_of_route(*route)
            if queue is None or not messages.entries:
                continue
            due = bisect_right(messages.due_s, at_s)
            later = found.setdefault(queue, HeldOfQueue())
            later.due_later_s = sorted([*later.due_later_s, *messages.due_s[due:]])
            due_s = messages.due_s[:due]
            began.setdefault(queue, []).extend((each, Entered(after_s=each, until_s=each)) for each in due_s)
        for queue, of_queue in began.items():
            in_order = sorted(of_queue, key=itemgetter(0))
            found.setdefault(queue, HeldOfQueue()).due = [entered for _, entered in in_order]
        return found


def _remember(among: dict[str, Entered], tag: str, entered: Entered) -> Entered:
    """What is known of ``tag``, which is ``entered`` where nothing was."""
    if tag not in among:
        among[tag] = entered
        if len(among) > LEFT_MAX:
            del among[next(iter(among))]
    return among[tag]
