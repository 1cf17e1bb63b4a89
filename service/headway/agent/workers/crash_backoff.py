"""How long a kind of worker is left alone that ends as soon as it is started. A kind is a pool and a template.

Meanwhile one worker of it keeps trying at the shortest interval: it shows when the kind is well again, and takes jobs
until it ends. Where jobs were done since the last failure, the next pause is the shortest again.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from headway.local.backoff import DoublingPause

CRASH_WITHIN_S = 10.0  # a worker that ends sooner after its start has hardly done a job: it has failed
PAUSE = DoublingPause(10.0, 300.0)
CRASH_BACKOFF_RESET_S = 600.0  # a kind that was well for so long after its last pause begins with the shortest again


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """How often in a row a kind has failed, and until when it is left alone."""

    failures: int
    until_s: float
    tried_s: float | None = None
    """When one worker was last let through it, or that one ended; ``None``: none was."""

    @property
    def failed_at_s(self) -> float:
        """When the failure was noted that it follows."""
        return self.until_s - PAUSE.after_s(self.failures)

    @property
    def tries_at_s(self) -> float:
        """From when on one worker may be tried again."""
        return max(self.failed_at_s, self.tried_s or self.failed_at_s) + PAUSE.shortest_s


@dataclass(frozen=True, slots=True)
class Backoff:
    """The pauses of every kind that has failed."""

    pauses: Mapping[tuple[str, str], Pause]

    def until_s(self, kind: tuple[str, str]) -> float | None:
        """Until when the kind is left alone; ``None`` if it never failed. It may be past."""
        pause = self.pauses.get(kind)
        return pause.until_s if pause else None

    def holds(self, kind: tuple[str, str], *, now_s: float) -> bool:
        """Whether nothing of the kind may be started now."""
        until_s = self.until_s(kind)
        return until_s is not None and now_s < until_s

    def tried(self, kind: tuple[str, str], *, now_s: float) -> "Backoff":
        """After one worker of the kind was let through its pause."""
        return replace(self, pauses={**self.pauses, kind: replace(self.pauses[kind], tried_s=now_s)})

    def survived(self, kind: tuple[str, str], *, started_at_s: float, now_s: float) -> "Backoff":
        """After a worker of the kind, started then, has run for long enough: its pause is over if it began after it."""
        pause = self.pauses.get(kind)
        if pause is None or now_s >= pause.until_s or started_at_s <= pause.failed_at_s:
            return self
        return replace(self, pauses={**self.pauses, kind: replace(pause, until_s=now_s)})

    def without(self, kind: tuple[str, str]) -> "Backoff":
        """After a change of how the kind is started: earlier failures no longer count."""
        return replace(self, pauses={each: pause for each, pause in self.pauses.items() if each != kind})

    def failed(
        self, kind: tuple[str, str], *, started_at_s: float, now_s: float, done_at_s: float | None = None
    ) -> "Backoff":
        """After a worker of the kind, started then, has failed; ``done_at_s`` is when one last ended a job.

        Workers that were started together fail together: that is one failure, and the first of them sets the pause.
        """
        known = self.pauses.get(kind)
        has_done_jobs = known is not None and done_at_s is not None and done_at_s >= known.failed_at_s
        is_known = known is not None and started_at_s < known.until_s and not (has_done_jobs and known.failures > 1)
        if known is not None and is_known:
            return self if now_s >= known.until_s else self.tried(kind, now_s=now_s)
        is_new = known is None or has_done_jobs or now_s - known.until_s >= CRASH_BACKOFF_RESET_S
        failures = 1 if known is None or is_new else known.failures + 1
        pause = Pause(failures=failures, until_s=now_s + PAUSE.after_s(failures))
        return replace(self, pauses={**self.pauses, kind: pause})
