"""The jobs of a rehearsal that are known before they come: what a broker keeps as scheduled."""

from bisect import bisect_right, insort
from collections.abc import Sequence
from math import inf

from headway.scaling.model import DelayedJobs
from headway.scaling.model.due_jobs import delayed_from, due_by_edges


class ScheduledJobs:
    """Those of one pool, as time goes on."""

    def __init__(self, scheduled_at_s: Sequence[float], due_at_s: Sequence[float]) -> None:
        """When each job was scheduled, and when it comes; both empty where none is known before."""
        early = ((at_s, due_s) for at_s, due_s in zip(scheduled_at_s, due_at_s, strict=False) if at_s < due_s)
        self._unknown = sorted(early, reverse=True)
        self._due_at_s: list[float] = []

    @property
    def next_s(self) -> float:
        """When the next job is scheduled."""
        return self._unknown[-1][0] if self._unknown else inf

    def delayed(self, now_s: float) -> tuple[DelayedJobs, ...]:
        """Those that are scheduled by ``now_s`` and have not come, as a reading of the broker distinguishes them."""
        while self._unknown and self._unknown[-1][0] <= now_s:
            insort(self._due_at_s, self._unknown.pop()[1])
        del self._due_at_s[: bisect_right(self._due_at_s, now_s)]
        if not self._due_at_s:
            return ()
        return tuple(delayed_from(due_by_edges([due_s - now_s for due_s in self._due_at_s])))
