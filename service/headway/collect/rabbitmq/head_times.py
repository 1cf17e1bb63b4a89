"""When the oldest message of a queue entered, for classic queues whose messages have a timestamp."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from headway.collect.rabbitmq.broker_reader import QueueCount
from headway.errors import Unavailable

ASKED_MAX = 5  # queues a poll: each is a request of its own, 1 to 2 ms of the broker's processor
AGAIN_S = 2.0
STATISTICS_S = 5.0  # how old the broker's statistics may be
AGAIN_MAX_S = 640.0  # of messages without a timestamp
RESOLUTION_S = 1.0


@dataclass(slots=True)
class _Head:
    ask_s: float
    """When to ask the next time."""
    pause_s: float = STATISTICS_S
    entered_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Age:
    """How long the oldest waiting job waits, and the most that it may be; ``None``: not known."""

    age_s: float | None = None
    age_max_s: float | None = None


class HeadTimes:
    """What is known of the heads of the queues that have messages."""

    def __init__(self, head_time_s: Callable[[str], float | None]) -> None:
        """``head_time_s`` asks the broker."""
        self._head_time_s = head_time_s
        self._heads: dict[str, _Head] = {}
        self._empty_at_s: dict[str, float] = {}

    def read(self, counts: Mapping[str, QueueCount], at_s: float) -> None:
        """Ask for the heads of some queues, those whose turn came first."""
        for queue, count in counts.items():
            if not count.ready_jobs:
                self._empty_at_s[queue] = at_s
                self._heads.pop(queue, None)
            elif count.is_classic and queue not in self._heads:
                self._heads[queue] = _Head(ask_s=at_s)
        self._heads = {queue: head for queue, head in self._heads.items() if queue in counts}
        self._empty_at_s = {queue: empty_s for queue, empty_s in self._empty_at_s.items() if queue in counts}
        due = sorted((head.ask_s, queue) for queue, head in self._heads.items() if head.ask_s <= at_s)
        for _, queue in due[:ASKED_MAX]:
            try:
                self._take(queue, self._head_time_s(queue), at_s)
            except Unavailable:  # the next poll logs it
                return

    def age(self, queue: str, count: QueueCount, at_s: float) -> Age:
        """The age of the oldest message that waits in ``queue``.

        The broker names the oldest of those that wait and those that consumers hold. Where these hold some, a job that
        has run for an hour would count as one that waits: then the age is unknown.
        """
        if not count.ready_jobs:
            return Age(age_s=0.0)
        head = self._heads.get(queue)
        if head is None or head.entered_s is None or count.unacked_jobs != 0:
            return Age()
        age_max_s = max(0.0, at_s - head.entered_s)
        return Age(age_s=max(0.0, age_max_s - RESOLUTION_S), age_max_s=age_max_s)

    def _take(self, queue: str, entered_s: float | None, at_s: float) -> None:
        head = self._heads[queue]
        empty_s = self._empty_at_s.get(queue, float("-inf"))
        if entered_s is not None and not empty_s - RESOLUTION_S <= entered_s <= at_s + RESOLUTION_S:
            # From before the queue was empty: statistics that are older than that, or a publisher's own idea of time.
            # One that is yet to come is of a clock that is ahead: what waits would have no age until then.
            entered_s = None
        head.entered_s = entered_s
        if entered_s is not None:
            head.pause_s = STATISTICS_S
            head.ask_s = at_s + AGAIN_S
        else:
            head.ask_s = at_s + head.pause_s
            head.pause_s = min(2 * head.pause_s, AGAIN_MAX_S)
