"""Which messages Celery's workers hold in Redis, by their tags: a copy of a sorted set that costs what has changed.

The set has a score per tag, when it was taken. It is copied in blocks of scores. Of each block but the newest, a poll
asks how many tags are in it, and reads those blocks whose number has changed. Tags of due jobs may go at any moment, so
a poll asks for them by name: else each job that ends would have a block read.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from headway.collect.prepared_commands import Prepared, exchange, prepared, scores_of, sound

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

    def ask(self, *, by_name: Iterable[str]) -> list[Prepared]:
        """The commands that ask what has changed, of ``by_name`` whether they are still there."""
        self._asked = list(islice(by_name, ASKED_BY_NAME_MAX if len(self._blocks) > 1 else 0))
        spans = zip(self._blocks, self._blocks[1:], strict=False)
        return [
            prepared("ZCARD", self._key),
            *(prepared("ZCOUNT", self._key, *_bounds(block.from_s, following.from_s)) for block, following in spans),
            self._ask_newest(),
            *([prepared("ZMSCORE", self._key, *self._asked)] if self._asked else []),
        ]

    def take(self, replies: Sequence[Any]) -> HeldChanges:
        """Go by the replies to what was asked."""
        rest = iter(sound(replies))
        total, counts = next(rest), list(islice(rest, len(self._blocks) - 1))
        newest = next(rest)
        changes = HeldChanges()
        if total <= NEWEST_MAX < len(self):  # most have gone, as when a worker ends: read what is left at once
            changes.gone = [tag for block in self._blocks for tag in block.tags]
            self._blocks = [_Block(-math.inf)]
            (newest,) = sound(exchange(self._client, [self._ask_newest()]))
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
        is_cut = self._take_newest(scores_of(newest), changes)
        self.is_whole = not is_cut and len(changed) <= BLOCKS_MAX
        self._join()
        # Those that were given back and taken again have another score: they are in another block.
        gone = set(changes.gone)
        moved = set[str]().union(*(gone & block.tags for block in self._blocks))
        changes.gone = [tag for tag in changes.gone if tag not in moved]
        return changes

    def _ask_newest(self) -> Prepared:
        room = max(0, min(NEWEST_MAX, HELD_MAX - len(self) + len(self._blocks[-1].tags)))
        return self._range(self._blocks[-1].from_s, math.inf, most=room)

    def _range(self, from_s: float, below_s: float, *, most: int) -> Prepared:
        bounds = _bounds(from_s, below_s)
        return prepared("ZRANGE", self._key, *bounds, "BYSCORE", "LIMIT", 0, most, "WITHSCORES")

    def _drop(self, tags: Sequence[str], changes: HeldChanges) -> None:
        for tag in tags:
            for block in self._blocks[:-1]:
                if tag in block.tags:
                    block.tags.remove(tag)
                    changes.gone.append(tag)
                    break

    def _read(self, changed: Sequence[int], changes: HeldChanges) -> None:
        """Read blocks anew."""
        spans = [(self._blocks[index].from_s, self._blocks[index + 1].from_s) for index in changed]
        replies = exchange(self._client, [self._range(*span, most=NEWEST_MAX) for span in spans])
        for index, reply in zip(changed, sound(replies), strict=True):
            self._blocks[index].tags = _compare(self._blocks[index].tags, scores_of(reply), changes)

    def _take_newest(self, scores: Mapping[str, float], changes: HeldChanges) -> bool:
        """Go by the newest block, and close full blocks of it. Whether it may have more."""
        newest, found = self._blocks[-1], list(scores.items())
        is_cut = len(found) >= NEWEST_MAX or (bool(found) and len(self) - len(newest.tags) + len(found) >= HELD_MAX)
        newest.tags = _compare(newest.tags, scores, changes)
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
    return "-inf" if from_s == -math.inf else repr(from_s), "+inf" if below_s == math.inf else f"({below_s!r}"


def _compare(before: set[str], scores: Mapping[str, float], changes: HeldChanges) -> set[str]:
    """The tags of ``scores``; what is new or gone is noted."""
    changes.new.update((tag, score) for tag, score in scores.items() if tag not in before)
    changes.gone.extend(before - scores.keys())
    return set(scores)
