"""What a pool of constant size would have made of the same jobs: first come, first served, no start-up, no idle rest.

It flatters the fixed pool: its size is chosen knowing the whole workload, and its workers are there from the first
moment.
"""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

from headway.errors import Invalid
from headway.simulate.replay import RecordedJob


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedPool:
    """A pool of constant size and what it reaches."""

    workers: int
    in_time_fraction: float
    ends_at_s: float
    """When its last job ends."""


def pickup_times(jobs: Sequence[RecordedJob], *, workers: int) -> tuple[list[float], float]:
    """How long each job waits, in order of arrival, and when the last one ends."""
    free_at_s = [float("-inf")] * workers
    waits: list[float] = []
    ends_at_s = float("-inf")
    for job in sorted(jobs, key=lambda item: item.at_s):
        starts_at_s = max(job.at_s, free_at_s[0])
        heapq.heapreplace(free_at_s, starts_at_s + job.service_s)
        waits.append(starts_at_s - job.at_s)
        ends_at_s = max(ends_at_s, starts_at_s + job.service_s)
    return waits, ends_at_s


def fixed_pool(jobs: Sequence[RecordedJob], *, workers: int, objective_s: float) -> FixedPool:
    """What a pool of ``workers`` reaches with ``jobs``."""
    if workers < 1 or not jobs:
        raise Invalid(f"a fixed pool needs a worker and a job, got workers={workers}, jobs={len(jobs)}")
    waits, ends_at_s = pickup_times(jobs, workers=workers)
    in_time = sum(wait_s <= objective_s for wait_s in waits)
    return FixedPool(workers=workers, in_time_fraction=in_time / len(waits), ends_at_s=ends_at_s)


def smallest_fixed_pool(
    jobs: Sequence[RecordedJob], *, objective_s: float, fraction: float, workers_max: int | None = None
) -> FixedPool:
    """The smallest pool that picks up at least ``fraction`` of ``jobs`` within ``objective_s``.

    One more worker never makes any job wait longer, so the sizes can be halved; as many workers as jobs reach all. With
    ``workers_max``, at least 1, it is that large where no smaller one does.
    """
    least, most = 1, workers_max or max(len(jobs), 1)
    while least < most:
        middle = (least + most) // 2
        if fixed_pool(jobs, workers=middle, objective_s=objective_s).in_time_fraction >= fraction:
            most = middle
        else:
            least = middle + 1
    return fixed_pool(jobs, workers=least, objective_s=objective_s)
