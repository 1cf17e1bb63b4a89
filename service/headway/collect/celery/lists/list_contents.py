"""What stands in one list of Celery's in Redis: of each message a key, and when it is due. Pure.

Producers add at the newest end of a list, workers take at the other one, and there they put back. So what was read once
stays known by its place, from the newest on: whatever is missing later was taken at the other end.
"""

import math
from array import array
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from headway.collect.celery.celery_message import Message

AT_ONCE_S = -math.inf
MARKS = 50  # of the newest messages one at least is still there, unless the list was emptied


class Standing(NamedTuple):
    """One message in its list."""

    key: int
    due_s: float
    """``AT_ONCE_S`` of a message without a time of its own."""


def standing(message: Message, text: str) -> Standing:
    """``message``, which is written as ``text``. The key stays the same when a worker puts it back."""
    return Standing(hash(message.tag or text), AT_ONCE_S if message.due_s is None else message.due_s)


class StandingJobs(NamedTuple):
    """What is known of the jobs in one list."""

    jobs: int
    """Those that were read."""
    due_s: Sequence[float]
    """When those of them are due that have a time of their own, in ascending order."""
    is_whole: bool
    """Whether each job in the list was read."""


class ListContents:
    """The newest messages of a list, as many as were read: others may stand behind them."""

    __slots__ = ("_due_s", "_keys", "_timed_s")

    def __init__(self) -> None:
        # The message that is taken next comes first, the newest last: most is added there.
        self._keys = array("q")
        self._due_s = array("d")
        self._timed_s: list[float] | None = []

    def __len__(self) -> int:
        return len(self._keys)

    def timed_s(self) -> list[float]:
        """When those are due that have a time of their own, in ascending order."""
        if self._timed_s is None:
            self._timed_s = sorted(due_s for due_s in self._due_s if due_s != AT_ONCE_S)
        return self._timed_s

    def newest_places(self) -> dict[int, int]:
        """Key -> how many newer messages there are, of the newest."""
        newest = self._keys[-MARKS:]
        return {key: len(newest) - 1 - index for index, key in enumerate(newest)}

    def oldest_key(self) -> int | None:
        """The key of the message that was read and is taken first; ``None`` of no message."""
        return self._keys[0] if self._keys else None

    def has(self, key: int, *, place: int) -> bool:
        """Whether the message that ``place`` others are newer than has this key."""
        return 0 <= place < len(self._keys) and self._keys[-1 - place] == key

    def has_next(self, messages: Sequence[Standing]) -> bool:
        """Whether ``messages`` are those that are taken next, the first of them first."""
        return self._keys[: len(messages)] == array("q", [each.key for each in messages])

    def add_newer(self, messages: Sequence[Standing]) -> None:
        """Add what entered since, the newest first."""
        self._keys.extend(each.key for each in reversed(messages))
        self._due_s.extend(each.due_s for each in reversed(messages))
        self._note(each.due_s for each in messages)

    def add_older(self, messages: Sequence[Standing]) -> None:
        """Add what stands behind the others, the newest first."""
        self._keys[:0] = array("q", [each.key for each in reversed(messages)])
        self._due_s[:0] = array("d", [each.due_s for each in reversed(messages)])
        self._note(each.due_s for each in messages)

    def drop_oldest(self, count: int) -> Sequence[float]:
        """Drop those that are taken next. When each is due, the first of them first."""
        dropped = self._due_s[:count]
        del self._keys[:count], self._due_s[:count]
        self._note(dropped)
        return dropped

    def drop_newest(self, count: int) -> None:
        """Drop those that entered last."""
        if count:
            self._note(self._due_s[-count:])
            del self._keys[-count:], self._due_s[-count:]

    def _note(self, changed_s: Iterable[float]) -> None:
        if any(due_s != AT_ONCE_S for due_s in changed_s):
            self._timed_s = None
