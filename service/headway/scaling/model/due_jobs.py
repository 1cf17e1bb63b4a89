"""When delayed jobs are due, as a reading of their queue reports it, and as an evaluation goes by it."""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

DUE_EDGES_S = (
    *(float(edge_s) for edge_s in range(5, 61, 5)),
    *(float(edge_s) for edge_s in range(70, 121, 10)),
    *(150.0, 180.0, 240.0, 300.0, 450.0, 600.0, 900.0, 1200.0, 1800.0, 2700.0, 3600.0),
)
"""What a source distinguishes: finest where workers that are asked for now would come too late."""
DUE_TOGETHER_S = 0.01  # what is due so soon after a time is not distinguished from it
DUE_STEPS_MAX = 100  # of one reading


@dataclass(frozen=True, slots=True, kw_only=True)
class DueJobs:
    """``jobs`` of the delayed ones are due within ``within_s`` from the reading; those due sooner are among them.

    A job whose time is not known exactly counts from when it may be due.
    """

    within_s: float
    jobs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DelayedJobs:
    """``jobs`` that are due in ``due_in_s`` or somewhat later; below 0 they were due so long ago."""

    jobs: int
    due_in_s: float


def due_by_edges(due_s: Sequence[float], *, at_s: float = 0.0) -> tuple[DueJobs, ...]:
    """How many of the jobs that are due at ``due_s``, in ascending order, are due within each edge from ``at_s`` on.

    The edges end with the first by which all are due that ever are; none where there are no such jobs. Between two
    edges, a time just before the first job that is due there says that none is due sooner: jobs that are due together
    are known exactly.
    """
    ever = bisect_left(due_s, math.inf)
    found: list[DueJobs] = []
    jobs, since_s = 0, 0.0
    for edge_s in DUE_EDGES_S if ever else ():
        sooner_jobs, jobs = jobs, bisect_right(due_s, at_s + edge_s)
        if jobs > sooner_jobs and (just_before_s := due_s[sooner_jobs] - at_s - DUE_TOGETHER_S) > since_s:
            found.append(DueJobs(within_s=just_before_s, jobs=sooner_jobs))
        found.append(DueJobs(within_s=edge_s, jobs=jobs))
        if jobs == ever:
            break
        since_s = edge_s
    return tuple(found)


def due_by_groups(delayed: Iterable[DelayedJobs]) -> tuple[DueJobs, ...]:
    """The same of jobs in groups, each of which is due together."""
    groups = sorted(delayed, key=lambda each: each.due_in_s)
    found: list[DueJobs] = []
    jobs, first, since_s = 0, 0, 0.0
    for edge_s in DUE_EDGES_S if groups else ():
        next_first = bisect_right(groups, edge_s, key=lambda each: each.due_in_s)
        if next_first > first and (just_before_s := groups[first].due_in_s - DUE_TOGETHER_S) > since_s:
            found.append(DueJobs(within_s=just_before_s, jobs=jobs))
        jobs += sum(each.jobs for each in groups[first:next_first])
        found.append(DueJobs(within_s=edge_s, jobs=jobs))
        if next_first == len(groups):
            break
        first, since_s = next_first, edge_s
    return tuple(found)


def delayed_from(due: Sequence[DueJobs], *, ago_s: float = 0.0) -> Iterator[DelayedJobs]:
    """The jobs of a reading that was taken ``ago_s`` ago, the soonest first, each as early as it may be due."""
    for sooner, each in pairwise((DueJobs(within_s=0.0, jobs=0), *due)):
        if each.jobs > sooner.jobs:
            yield DelayedJobs(jobs=each.jobs - sooner.jobs, due_in_s=sooner.within_s - ago_s)


def due_to_pairs(due: Iterable[DueJobs]) -> list[list[float | int]]:
    """``due`` as what JSON knows: ``[within_s, jobs]`` of each."""
    return [[each.within_s, each.jobs] for each in due]


def due_from_pairs(pairs: Iterable[tuple[float, int]]) -> tuple[DueJobs, ...]:
    """What ``due_to_pairs`` made ``pairs`` of."""
    return tuple(DueJobs(within_s=within_s, jobs=jobs) for within_s, jobs in pairs)


def due_breaches(due: Sequence[DueJobs], *, delayed_jobs: int | None) -> Iterator[str]:
    """What in ``due``, of at least one time, cannot be. Some may be known to be due where ``delayed_jobs`` is not."""
    if len(due) > DUE_STEPS_MAX:
        yield f"due has {len(due)} times, at most {DUE_STEPS_MAX} are taken"
    if any(not 0 <= each.within_s < math.inf or each.jobs < 0 for each in due):  # which NaN is not
        yield "due has a time or a number of jobs that is none"
    elif any(later.within_s <= each.within_s or later.jobs < each.jobs for each, later in pairwise(due)):
        yield "due does not ascend"
    elif delayed_jobs is not None and due[-1].jobs > delayed_jobs:
        yield f"{due[-1].jobs} jobs are due, of delayed_jobs={delayed_jobs}"
