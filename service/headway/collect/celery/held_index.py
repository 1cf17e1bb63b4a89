"""Which messages Celery's workers hold in Redis, by their tags: a copy of a sorted set that costs what has changed.

The set has a score per tag, when it was taken. It is copied in blocks of scores. Of each block but the newest, a poll
asks how many tags are in it, and reads those blocks whose number has changed. Tags of due jobs may go at any moment, so
a poll asks for them by name: else each job that ends would have a block read.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

HELD_MAX = 200_000
BLOCK_TAGS = 500
NEWEST_MAX = 10_000  # of the newest block, in one poll
BLOCKS_MAX = 20  # that are read anew in one poll
ASKED_BY_NAME_MAX = 1_000


@dataclass(slots=True)
class HeldChanges:
    """What one poll found."""

    new: dict[str, float] = field(default_factory=dict)
    """Tag -> when it was taken."""
    gone: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Block:
    """The tags whose scores are ``from_s`` or more, and less than those of the next block."""

    from_s: float
    tags: set[str] = field(default_factory=set)


class HeldIndex:
    """The sorted set ``key``, as of the last poll. One thread uses it."""

    def __init__(self, client: Any, key: str) -> None:
        self._client = client
        self._key = key
        self._blocks = [_Block(-math.inf)]
        self._asked: list[str] = []
        self._checked = 0
        self.is_whole = False
        """Whether the last poll found each tag that is in the set."""

    def __len__(self) -> int:
        return sum(len(block.tags) for block in self._blocks)

    def ask(self, pipe: Any, *, by_name: Iterable[str]) -> int:
        """Add to ``pipe`` what is asked for, of ``by_name`` whether they are still there. How many commands it was."""
        self._asked = list(islice(by_name, ASKED_BY_NAME_MAX if len(self._blocks) > 1 else 0))
        pipe.zcard(self._key)
        for block, following in zip(self._blocks, self._blocks[1:], strict=False):
            pipe.zcount(self._key, *_bounds(block.from_s, following.from_s))
        self._ask_newest(pipe)
        if self._asked:
            pipe.zmscore(self._key, self._asked)
        return 1 + len(self._blocks) + bool(self._asked)

    def take(self, replies: Sequence[Any]) -> HeldChanges:
        """Go by the replies to what was asked."""
        error = next((reply for reply in replies if isinstance(reply, Exception)), None)
        if error is not None:
            raise error
        rest = iter(replies)
        total, counts = next(rest), list(islice(rest, len(self._blocks) - 1))
        newest = next(rest)
        changes = HeldChanges()
        if total <= NEWEST_MAX < len(self):  # most have gone, as when a worker ends: read what is left at once
            changes.gone = [tag for block in self._blocks for tag in block.tags]
            self._blocks = [_Block(-math.inf)]
            with self._client.pipeline(transaction=False) as pipe:
                self._ask_newest(pipe)
                (newest,) = pipe.execute()
            counts = []
        elif self._asked:
            there = zip(self._asked, next(rest), strict=True)
            self._drop([tag for tag, score in there if score is None], changes)
        changed = [
            index
            for index, (block, count) in enumerate(zip(self._blocks, counts, strict=False))
            if len(block.tags) != count
        ]
        # One that has not changed: tags of a worker with a slow clock may stand there in place of others that are gone.
        self._checked = (self._checked + 1) % max(1, len(counts))
        also = [self._checked] if counts and self._checked not in changed else []
        self._read([*changed[:BLOCKS_MAX], *also], changes)
        is_cut = self._take_newest(newest, changes)
        self.is_whole = not is_cut and len(changed) <= BLOCKS_MAX
        self._join()
        # Those that were given back and taken again have another score: they are in another block.
        gone = set(changes.gone)
        moved = set[str]().union(*(gone & block.tags for block in self._blocks))
        changes.gone = [tag for tag in changes.gone if tag not in moved]
        return changes

    def _ask_newest(self, pipe: Any) -> None:
        room = max(0, min(NEWEST_MAX, HELD_MAX - len(self) + len(self._blocks[-1].tags)))
        low, high = _bounds(self._blocks[-1].from_s, math.inf)
        pipe.zrange(self._key, low, high, byscore=True, offset=0, num=room, withscores=True)

    def _drop(self, tags: Sequence[str], changes: HeldChanges) -> None:
        for tag in tags:
            for block in self._blocks[:-1]:
                if tag in block.tags:
                    block.tags.remove(tag)
                    changes.gone.append(tag)
                    break

    def _read(self, changed: Sequence[int], changes: HeldChanges) -> None:
        """Read blocks anew."""
        if not changed:
            return
        with self._client.pipeline(transaction=False) as pipe:
            for index in changed:
                low, high = _bounds(self._blocks[index].from_s, self._blocks[index + 1].from_s)
                pipe.zrange(self._key, low, high, byscore=True, offset=0, num=NEWEST_MAX, withscores=True)
            replies = pipe.execute()
        for index, found in zip(changed, replies, strict=True):
            self._blocks[index].tags = _compare(self._blocks[index].tags, found, changes)

    def _take_newest(self, found: Sequence[tuple[str, float]], changes: HeldChanges) -> bool:
        """Go by the newest block, and close full blocks of it. Whether it may have more."""
        newest = self._blocks[-1]
        is_cut = len(found) >= NEWEST_MAX or (bool(found) and len(self) - len(newest.tags) + len(found) >= HELD_MAX)
        newest.tags = _compare(newest.tags, found, changes)
        first = 0
        for index in range(1, len(found)):
            is_full = index - first >= BLOCK_TAGS and len(found) - index >= BLOCK_TAGS
            if is_full and found[index][1] > found[index - 1][1]:
                self._blocks[-1].tags = {tag for tag, _ in found[first:index]}
                self._blocks.append(_Block(found[index][1]))
                first = index
        self._blocks[-1].tags = {tag for tag, _ in found[first:]}
        return is_cut

    def _join(self) -> None:
        """Join closed blocks of which few tags are left."""
        joined: list[_Block] = []
        for block in self._blocks[:-1]:
            if joined and len(joined[-1].tags) + len(block.tags) <= BLOCK_TAGS:
                joined[-1].tags |= block.tags
            else:
                joined.append(block)
        self._blocks = [*joined, self._blocks[-1]]


def _bounds(from_s: float, below_s: float) -> tuple[str, str]:
    return _score(from_s), f"({_score(below_s)}" if below_s < math.inf else "+inf"


def _score(at_s: float) -> str:
    return "-inf" if at_s == -math.inf else repr(at_s)


def _compare(before: set[str], found: Sequence[tuple[str, float]], changes: HeldChanges) -> set[str]:
    """The tags of ``found``; what is new or gone is noted."""
    tags = {tag for tag, _ in found}
    changes.new.update((tag, score) for tag, score in found if tag not in before)
    changes.gone.extend(before - tags)
    return tags
