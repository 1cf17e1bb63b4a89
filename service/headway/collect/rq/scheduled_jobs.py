"""When the jobs are due that RQ keeps in a registry of its own: scheduled ones, retries with an interval, repeats.

RQ moves them into their queue once they are due, by a worker that has its scheduler (``--with-scheduler``). One that is
due and has not been moved waits like any in the queue.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from headway.collect.prepared_commands import Prepared, prepared, together
from headway.scaling.model import DueJobs
from headway.scaling.model.due_jobs import DUE_EDGES_S

DUE_COMMANDS = 2 + len(DUE_EDGES_S)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduledJobs:
    """The registry of one queue."""

    overdue_jobs: int = 0
    """Due by now, and not in the queue yet."""
    overdue_since_s: float | None = None
    """When the first of them was due; ``None`` also where it came while they were counted."""
    due: tuple[DueJobs, ...] = ()
    """When the others are."""


NOTHING_SCHEDULED = ScheduledJobs()


def due_commands(registry: str, *, at_s: float) -> Prepared:
    """What asks the ``registry``, by its key, how many of its jobs are due when; scores are their due times."""
    return together(
        prepared("ZRANGE", registry, 0, 0, "WITHSCORES"),
        prepared("ZCOUNT", registry, "-inf", repr(at_s)),
        *(prepared("ZCOUNT", registry, f"({at_s!r}", repr(at_s + edge_s)) for edge_s in DUE_EDGES_S),
    )


def scheduled_from(replies: Sequence[Any], *, at_s: float, scheduled_jobs: int) -> ScheduledJobs:
    """What the replies to ``due_commands`` say; of ``scheduled_jobs`` a moment before, some may have been moved since.

    RQ moves jobs between two counts, too: then fewer are due within the later time than within the sooner one.

    Raises ``ResponseError`` where a reply is an error.
    """
    for reply in replies:
        if isinstance(reply, Exception):
            raise reply
    first, overdue, *counts = replies
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
        overdue_since_s=min(at_s, _score(first)) if overdue_jobs and first else None,
        due=tuple(due) if jobs else (),
    )


def _score(reply: Sequence[Any]) -> float:
    """The score of the only member, which RESP2 gives beside it and RESP3 in a pair with it."""
    return float(reply[0][1] if isinstance(reply[0], list) else reply[1])
