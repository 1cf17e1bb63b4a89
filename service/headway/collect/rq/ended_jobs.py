"""Where in a registry of ended jobs the new ones are. Pure.

RQ keeps ended jobs in a sorted set by when they shall be forgotten: the moment they ended plus how long they are kept,
in whole seconds. Jobs of one queue may be kept for different times, so "the newest" lie at one place for each such
time. The usual times are known, the others are learnt from jobs whose end was seen.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

SLACK_S = 5.0  # whole seconds in the scores, and workers' clocks that differ a little
KEPT_TIMES_MAX = 8  # a queue whose jobs are kept for more different times shows the rest while they wait or run
ALIKE_S = 2.0


@dataclass(slots=True)
class Kept:
    """Jobs that are kept for ``kept_s`` after their end. All those that end before ``read_until_s`` were read."""

    kept_s: float
    read_until_s: float


class EndedJobs:
    """One registry, and up to when it was read."""

    def __init__(self, *, begins_at_s: float, kept_s: Iterable[float]) -> None:
        self._kept = [Kept(each, begins_at_s) for each in kept_s]

    @property
    def read_until_s(self) -> float:
        """All jobs that ended before were read, wherever they lie."""
        return min(kept.read_until_s for kept in self._kept)

    def place(self) -> tuple[float, ...]:
        """What is the same of two registries whose spans are."""
        if len(self._kept) == 1:  # almost always, and asked of each queue at each poll
            (kept,) = self._kept
            return (kept.kept_s, kept.read_until_s)
        return tuple(value for kept in self._kept for value in (kept.kept_s, kept.read_until_s))

    def spans(self, now_s: float) -> list[tuple[int, int]]:
        """The spans of scores, ends included, in which jobs may lie that ended since the last reading."""
        return [
            (math.floor(kept.read_until_s + kept.kept_s - SLACK_S), math.ceil(now_s + kept.kept_s + SLACK_S))
            for kept in self._kept
        ]

    def ended_at_s(self, score: float | None, *, now_s: float) -> float | None:
        """When the job at ``score`` ended, the latest that can be; ``None`` of one that has no place."""
        if score is None:
            return None
        ended_s = [score - kept.kept_s for kept in self._kept]
        return max((each for each in ended_s if each <= now_s + SLACK_S), default=None)

    def read(self, now_s: float, stopped_at: Iterable[float | None]) -> None:
        """Note that every span was read: to its end (None), or to the score where there was too much at once."""
        for kept, score in zip(self._kept, stopped_at, strict=True):
            if score is None:
                kept.read_until_s = now_s
            else:
                # The next span begins at that score; a second that holds more than one reading takes is left behind.
                until_s = score - kept.kept_s + SLACK_S
                kept.read_until_s = until_s if until_s > kept.read_until_s else kept.read_until_s + 1.0

    def read_all(self, now_s: float) -> None:
        """Note that every span was read to its end."""
        for kept in self._kept:
            kept.read_until_s = now_s

    def learn(self, kept_s: float, *, since_s: float) -> None:
        """Poll jobs that are kept for ``kept_s``, too, those that ended since ``since_s`` included."""
        is_known = any(abs(kept.kept_s - kept_s) <= ALIKE_S for kept in self._kept)
        if math.isfinite(kept_s) and kept_s >= 0 and not is_known and len(self._kept) < KEPT_TIMES_MAX:
            self._kept.append(Kept(kept_s, since_s))

    def to_state(self) -> list[list[float]]:
        """What ``from_state`` makes an equal of this from."""
        return [[kept.kept_s, kept.read_until_s] for kept in self._kept]

    @classmethod
    def from_state(cls, state: Any) -> "EndedJobs":
        """The registry's readings as they were."""
        endings = cls(begins_at_s=0.0, kept_s=())
        endings._kept = [Kept(float(kept_s), float(read_until_s)) for kept_s, read_until_s in state]
        return endings
