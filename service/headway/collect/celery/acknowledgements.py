"""Whether Celery's workers acknowledge a job before they run it or afterwards, as far as that shows.

With early acknowledgements, Celery's default, what runs is not among what workers hold; with late ones it is. A broker
does not say which it is. It shows in what happens:

- More jobs run than are held: early.
- Jobs end, none begins, and so many fewer are held: late. With early ones a job that ends changes nothing that is held.
"""

from dataclasses import dataclass

SHOWN_AFTER_S = 5.0  # two heartbeats: for a moment an old one shows anything


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldAndRunning:
    """What one poll found of the only queue of a broker."""

    waiting_jobs: int
    held_jobs: int
    running_jobs: int
    begun_jobs: int
    """Since the workers began."""


class Acknowledgements:
    """Learns from poll to poll."""

    def __init__(self, *, is_early: bool = False, is_late: bool = False) -> None:
        """Go on with what was learned before."""
        self.is_early = is_early
        self.is_late = is_late and not is_early
        self._more_run_since_s: float | None = None
        self._newest: HeldAndRunning | None = None
        self._newest_since_s = 0.0
        self._settled: HeldAndRunning | None = None
        """The last that stayed for ``SHOWN_AFTER_S``."""

    def see(self, seen: HeldAndRunning, *, at_s: float) -> None:
        """Learn from one poll."""
        self._see_early(seen, at_s)
        if seen != self._newest:
            self._newest, self._newest_since_s = seen, at_s
        elif at_s - self._newest_since_s > SHOWN_AFTER_S:
            if self._settled is not None and not self.is_early and _is_late(self._settled, seen):
                self.is_late = True
            self._settled = seen

    def _see_early(self, seen: HeldAndRunning, at_s: float) -> None:
        if seen.running_jobs <= seen.held_jobs:
            self._more_run_since_s = None
        elif self._more_run_since_s is None:
            self._more_run_since_s = at_s
        elif at_s - self._more_run_since_s > SHOWN_AFTER_S:
            self.is_early, self.is_late = True, False


def _is_late(before: HeldAndRunning, after: HeldAndRunning) -> bool:
    ended_jobs = before.running_jobs - after.running_jobs
    return (
        ended_jobs > 0
        and before.begun_jobs == after.begun_jobs
        and before.waiting_jobs == after.waiting_jobs == 0  # else others may have been taken meanwhile
        and before.held_jobs - after.held_jobs == ended_jobs
    )
