"""Starts that end at once because no job is to be had: no failures, and no reason to back off.

Somebody has suspended the library: the control plane says so too, a moment later, and again when it is over. Or the
worker's command line ends it where its queue is empty. Such a start is repeated now and then.
"""

from collections.abc import Iterable
from dataclasses import replace

from headway.agent.workers.worker_record import Record
from headway.scaling.model import Assignment

SUSPENDED_WORDS = ("RQ is currently suspended",)  # what `rq worker` prints before it exits with 1
SUSPENDED_START_PAUSE_S = 2.0  # as soon as a resume shall be seen
IDLE_START_EVERY_S = 5.0  # as long as a job may wait for a worker that ends where there is none


class SuspendedStarts:
    """The kinds of workers, each a pool and a template, whose last start ended so."""

    def __init__(self) -> None:
        self._until_s: dict[tuple[str, str], float] = {}

    def note(self, kind: tuple[str, str], *, last_words: str, now_s: float) -> bool:
        """Take note of a start that failed. Returns whether that was because the library is suspended."""
        if not any(words in last_words for words in SUSPENDED_WORDS):
            return False
        self._until_s[kind] = now_s + SUSPENDED_START_PAUSE_S
        return True

    def note_idle_end(self, record: Record, *, now_s: float) -> None:
        """Take note of a worker that has ended because it found no job: another would find none, either."""
        self._until_s[record.kind] = max(now_s, record.life.started_at_s + IDLE_START_EVERY_S)

    def holds(self, kind: tuple[str, str], *, now_s: float) -> bool:
        """Whether nothing of the kind is to be started now."""
        until_s = self._until_s.get(kind)
        if until_s is not None and now_s >= until_s:
            del self._until_s[kind]
            return False
        return until_s is not None

    def marked(self, assignments: Iterable[Assignment], *, now_s: float) -> tuple[Assignment, ...]:
        """``assignments``, those of such kinds suspended."""
        return tuple(
            replace(row, is_suspended=True) if self.holds((row.pool, row.template), now_s=now_s) else row
            for row in assignments
        )
