"""How long the messages of Celery's lists in Redis are: before they are read, nothing says how much a reply will be."""

from collections.abc import Iterable

TYPICAL_CHARS = 1_000  # of a task with few arguments
DOUBTED_CHARS = 4_000_000  # any may be as long as that where a reply turned out too long


def expected_chars(before: int, texts: Iterable[str]) -> int:
    """How long the next messages may be behind ``texts``, where so much was expected ``before``.

    The length of one that was seen is forgotten by halves: a single long one stands for others, but not for good.
    """
    return max(before // 2, 1, *map(len, texts))


class MessageSizes:
    """How long the next messages of each list may be. It outlives a lost connection."""

    def __init__(self) -> None:
        self._chars: dict[str, int] = {}

    def of(self, key: str) -> int:
        """Characters of the longest message that is expected in the list ``key``."""
        return self._chars.setdefault(key, TYPICAL_CHARS)

    def expect(self, key: str, chars: int) -> None:
        """Expect messages of ``chars`` in the list ``key``."""
        self._chars[key] = chars

    def doubt(self) -> None:
        """Expect long ones everywhere: a reply was too long, and nobody knows of which list."""
        self._chars = dict.fromkeys(self._chars, DOUBTED_CHARS)
