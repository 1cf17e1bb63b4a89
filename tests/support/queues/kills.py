"""What was lost with a worker that was killed: reports that its main process had gathered and not sent."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from support.queues.lives import Run

KILLED_MISSES_S = 0.2
LAST = "last 0.2 s of a killed worker"
UNREPORTED = "end of a run that nobody was left to report"


@dataclass(frozen=True, slots=True)
class Kill:
    """A ``kill -9`` of a worker."""

    worker: int
    began_s: float
    done_s: float
    pids: frozenset[int]
    """Of the worker and what it had begun, as far as it lived."""
    with_children: bool


def lost(run: Run, what: str, kills: Sequence[Kill], *, grace_s: float, stopped_s: Iterable[float] = ()) -> str | None:
    """Why the start or the ``end`` of ``run`` was lost with the process that reports for all of its worker, if it was.

    Args:
        run: A run of a process of some worker.
        what: ``start`` or ``end``.
        kills: The workers that were killed.
        grace_s: Until what was under way has arrived.
        stopped_s: When the job was to be ended, each time: a run that wrote no end has ended so or with its worker.
    """
    for kill in kills:
        if what == "end" and run.ended_s is None and run.pid in kill.pids:
            return UNREPORTED
        # A process that had ended a moment before the kill, and what it reported, was of the worker as well.
        is_its = run.pid in kill.pids or run.parent == kill.worker
        from_s = kill.began_s - KILLED_MISSES_S - grace_s
        if is_its and any(at_s >= from_s for at_s in _moments_s(run, what, stopped_s)):
            return LAST
    return None


def _moments_s(run: Run, what: str, stopped_s: Iterable[float]) -> list[float]:
    if what == "start":
        return [run.began_s]
    return [at_s for at_s in stopped_s if at_s >= run.began_s] if run.ended_s is None else [run.ended_s]
