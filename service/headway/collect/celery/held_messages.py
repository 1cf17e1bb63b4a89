"""What workers hold: messages that they took and did not acknowledge yet, by their tags."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from headway.collect.celery.celery_message import Taken, taken_from
from headway.collect.list_marks import Entered

HELD_MAX = 20_000


@dataclass(frozen=True, slots=True)
class _Held:
    """A message as it was when it was first seen there."""

    taken: Taken | None
    entered: Entered


@dataclass(slots=True)
class HeldOfQueue:
    """What workers hold of one queue."""

    due: list[Entered] = field(default_factory=list)
    """When the jobs that are due entered, in the order in which they were taken."""
    delayed_jobs: int = 0
    """Jobs that are due later."""


class HeldMessages:
    """The messages that workers hold, and those that they held lately: a worker may put them back."""

    def __init__(self, queue_of: Callable[[str, str], str | None]) -> None:
        """``queue_of`` gives the queue of an exchange and a routing key."""
        self._queue_of_route = queue_of
        self._held: dict[str, _Held] = {}
        self._put_back: dict[str, Entered] = {}
        """Those that were taken and put back between two polls."""

    def unknown(self, tags: Mapping[str, float]) -> list[str]:
        """Those of ``tags`` whose messages were not read yet."""
        return [tag for tag in tags if tag not in self._held]

    def entered(self, tag: str) -> Entered | None:
        """When a message entered its queue that a worker held; ``None`` where that is not known."""
        held = self._held.get(tag)
        return None if held is None else held.entered

    def put_back(self, tag: str, *, after_s: float | None, seen_s: float) -> Entered:
        """When a message entered its queue that was put back, and which no poll saw a worker hold.

        It was taken since the poll before its first sighting: ``after_s`` is then when the job entered that was next.
        """
        if tag not in self._put_back:
            self._put_back[tag] = Entered(after_s=after_s, until_s=seen_s)
            if len(self._put_back) > HELD_MAX:
                del self._put_back[next(iter(self._put_back))]
        return self._put_back[tag]

    def take(
        self, taken_at_s: Mapping[str, float], messages: Mapping[str, str | None], heads: Mapping[str, float]
    ) -> None:
        """Remember ``messages`` by their tags.

        ``heads`` is, queue by queue, after when the job entered that was the next one at the poll before: whatever was
        taken since entered later than that.
        """
        for tag, text in messages.items():
            taken = taken_from(text)
            after_s = heads.get(self._queue_of(taken) or "")
            entered = self._put_back.pop(tag, None) or Entered(after_s=after_s, until_s=taken_at_s[tag])
            self._held[tag] = _Held(taken, entered)
        gone = [tag for tag in self._held if tag not in taken_at_s]
        for tag in gone[: max(0, len(self._held) - HELD_MAX)]:
            del self._held[tag]

    def counts(self, tags: Iterable[str]) -> Counter[str]:
        """How many of ``tags`` are of each queue; those whose queue is not known are missing."""
        held = (self._held[tag].taken for tag in tags if tag in self._held)
        return Counter(queue for taken in held if (queue := self._queue_of(taken)) is not None)

    def of_queues(self, taken_at_s: Mapping[str, float], *, at_s: float) -> dict[str, HeldOfQueue]:
        """What is held now, queue by queue; a queue of which nothing is held is missing."""
        found: dict[str, HeldOfQueue] = {}
        for tag in taken_at_s:
            held = self._held.get(tag)
            queue = self._queue_of(held.taken) if held is not None else None
            if held is None or held.taken is None or queue is None:
                continue
            of_queue = found.setdefault(queue, HeldOfQueue())
            due_s = held.taken.message.due_s
            if due_s is not None and due_s > at_s:
                of_queue.delayed_jobs += 1
            else:
                of_queue.due.append(held.entered if due_s is None else Entered(after_s=due_s, until_s=due_s))
        return found

    def _queue_of(self, taken: Taken | None) -> str | None:
        return None if taken is None else self._queue_of_route(taken.exchange, taken.routing_key)
