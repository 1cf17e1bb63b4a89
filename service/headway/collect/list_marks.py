"""How long the oldest job of a list waits, where jobs carry no time: by marks. Pure.

Each poll remembers which job was the newest. A job that stands before a mark entered no later than the mark was seen,
and one that stands behind a mark that has left entered after that. So the age of the oldest is known between two
bounds, as far apart as two polls.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

NEAR_S = 1.0  # marks as near as this, or as this part of their age, say no more than one of them
NEAR_PART = 0.04
MARK_BYTES_MAX = 64_000  # it travels with each poll
ASKED_FIRST = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Entered:
    """Between which moments a job entered its queue; ``None``: not known."""

    after_s: float | None
    until_s: float


@dataclass(frozen=True, slots=True)
class _Mark:
    element: str
    asked_s: float
    """Before it was seen last as the newest: what entered behind it came later."""
    seen_s: float
    """When it had been seen first: it entered earlier."""


class ListMarks:
    """The marks of one list, which jobs enter at one end and leave at the other."""

    __slots__ = ("_after_s", "_is_doubtful", "_marks")

    def __init__(self, *, after_s: float | None) -> None:
        """Everything in the list entered after ``after_s``, when it was empty; ``None``: that is not known."""
        self._marks: list[_Mark] = []
        self._after_s = after_s
        self._is_doubtful = False

    def doubt(self) -> None:
        """The server may be another one, which never had the last jobs.

        At the next reading a mark that is missing shows nothing, unless a later one is there.
        """
        self._is_doubtful = True

    def asked(self) -> list[str]:
        """The marks whose presence shows most, the oldest first."""
        return [mark.element for mark in self._marks[: None if self._is_doubtful else ASKED_FIRST]]

    def asked_further(self, present: Sequence[bool]) -> list[str]:
        """Those to ask for where all of the first have left: ``present`` says which of ``asked`` are still there."""
        return [] if any(present) else [mark.element for mark in self._marks[len(present) :]]

    def read(
        self,
        newest: str,
        present: Sequence[bool],
        *,
        is_passed: Callable[[str], bool] = lambda _: False,
        asked_s: float,
        seen_s: float,
    ) -> Entered:
        """When the oldest job of the list entered it, which is not empty, those that ``is_passed`` names left out.

        ``present`` says which marks were found: of ``asked`` and then, where they were asked for, of the others.
        """
        if self._is_doubtful:
            last = next((index for index in reversed(range(len(present))) if present[index]), -1)
            del self._marks[last + 1 :]
            present = present[: last + 1]
            self._is_doubtful = False
        found = next((index for index, is_there in enumerate(present) if is_there), len(present))
        for mark in self._marks[:found]:
            self._after_s = mark.asked_s if self._after_s is None else max(self._after_s, mark.asked_s)
        del self._marks[:found]
        if self._marks and self._marks[-1].element == newest:
            self._marks[-1] = replace(self._marks[-1], asked_s=asked_s)
        else:
            self._add(_Mark(newest, asked_s, seen_s))
        until_s = next((mark.seen_s for mark in self._marks if not is_passed(mark.element)), seen_s)
        return Entered(after_s=self._after_s, until_s=until_s)

    def _add(self, mark: _Mark) -> None:
        if len(mark.element) > MARK_BYTES_MAX:
            return
        self._marks.append(mark)
        kept = self._marks[:1]
        for index in range(1, len(self._marks) - 1):
            following = self._marks[index + 1]
            near_s = max(NEAR_S, NEAR_PART * (mark.seen_s - following.seen_s))
            if following.seen_s - kept[-1].seen_s > near_s:
                kept.append(self._marks[index])
        self._marks = [*kept, *self._marks[-1:]] if len(self._marks) > 1 else self._marks
