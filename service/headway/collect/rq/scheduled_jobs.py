"""When the jobs are due that RQ keeps in a registry of its own: scheduled ones, retries with an interval, repeats.

RQ moves them into their queue once they are due, by a worker that has its scheduler (``--with-scheduler``). One that is
due and has not been moved waits like any in the queue.

A job may be moved, run, fail, and be back in the registry before the next poll: then only its due time has changed. So
the first jobs of the registry are compared from poll to poll, and the records of those that differ are read.
"""

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from headway.collect.prepared_commands import Prepared, prepared, scores_of, sound, together
from headway.scaling.model import DueJobs
from headway.scaling.model.due_jobs import DUE_EDGES_S

DUE_COMMANDS = 2 + len(DUE_EDGES_S)
COMPARED_MAX = 200  # of one queue, which are due first: 400 attempts a second; of the others, an attempt may be missed
COMPARED_IN_ALL_MAX = 5_000  # of all queues together: some 300 kB a poll


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduledJobs:
    """The registry of one queue."""

    overdue_jobs: int = 0
    """Due by now, and not in the queue yet."""
    overdue_since_s: float | None = None
    """When the first of them was due; ``None`` also where it came while they were counted."""
    due: tuple[DueJobs, ...] = ()
    """When the others are."""
    first_due_s: Mapping[str, float] = field(default_factory=dict)
    """When those are due that are compared with the next poll, the first of them first."""
    is_whole: bool = True
    """Whether these are all of the registry."""


NOTHING_SCHEDULED = ScheduledJobs()


def compared_jobs(queues: int) -> int:
    """How many jobs are compared in each of so many ``queues`` that have scheduled ones, at least 1."""
    return max(1, min(COMPARED_MAX, COMPARED_IN_ALL_MAX // max(queues, 1)))


def due_commands(registry: str, *, at_s: float, compared_jobs: int) -> Prepared:
    """What asks the ``registry``, by its key, how many of its jobs are due when; scores are their due times.

    Of the first ``compared_jobs``, it asks for the ids, too.
    """
    return together(
        prepared("ZRANGE", registry, 0, compared_jobs - 1, "WITHSCORES"),
        prepared("ZCOUNT", registry, "-inf", repr(at_s)),
        *(prepared("ZCOUNT", registry, f"({at_s!r}", repr(at_s + edge_s)) for edge_s in DUE_EDGES_S),
    )


def scheduled_from(replies: Sequence[Any], *, at_s: float, scheduled_jobs: int, compared_jobs: int) -> ScheduledJobs:
    """What the replies to ``due_commands`` say; of ``scheduled_jobs`` a moment before, some may have been moved since.

    RQ moves jobs between two counts, too: then fewer are due within the later time than within the sooner one.

    Raises ``ResponseError`` where a reply is an error.
    """
    first, overdue, *counts = sound(replies)
    first_due_s = scores_of(first)
    overdue_jobs = min(overdue, scheduled_jobs)
    later_jobs = scheduled_jobs - overdue_jobs
    due: list[DueJobs] = []
    jobs = 0
    for edge_s, count in zip(DUE_EDGES_S, counts, strict=True):
        jobs = max(jobs, min(count, later_jobs))
        due.append(DueJobs(within_s=edge_s, jobs=jobs))
        if jobs == later_jobs:
            break
    return ScheduledJobs(
        overdue_jobs=overdue_jobs,
        overdue_since_s=min(at_s, *first_due_s.values()) if overdue_jobs and first_due_s else None,
        due=tuple(due) if jobs else (),
        first_due_s=first_due_s,
        is_whole=len(first_due_s) < compared_jobs,
    )


class ScheduledComparison:
    """The first scheduled jobs of one queue, as they were at the last poll."""

    __slots__ = ("due_s",)

    def __init__(self) -> None:
        self.due_s: dict[str, float] = {}

    def changed(self, scheduled: ScheduledJobs) -> list[str]:
        """Jobs that are new among the first, have another time, or may have gone behind all that are compared."""
        now_s = scheduled.first_due_s
        new = [job for job, due_s in now_s.items() if self.due_s.get(job) != due_s]
        if scheduled.is_whole:
            return new
        # One that was due after the last of them is still there, though others are due before.
        last_s = max(now_s.values())
        return new + [job for job, due_s in self.due_s.items() if due_s < last_s and job not in now_s]

    def note(self, scheduled: ScheduledJobs, *, unread: Container[str] = ()) -> None:
        """Compare with ``scheduled`` from now on; ``unread`` are jobs whose records were not read: they stay new."""
        self.due_s = {job: due_s for job, due_s in scheduled.first_due_s.items() if job not in unread}

    def to_state(self) -> dict[str, float]:
        """What ``from_state`` makes an equal of this from; JSON can carry it."""
        return self.due_s

    @classmethod
    def from_state(cls, state: Any) -> "ScheduledComparison":
        """The jobs as they were at the last poll."""
        self = cls()
        self.due_s = dict(state)
        return self
