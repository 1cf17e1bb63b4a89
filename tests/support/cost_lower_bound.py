"""The least that a pool pays which has no worker at the first moment, whatever it knows of the jobs to come.

A bound by arithmetic, not a policy: `fixed_pool` flatters, and this says how much of it no pool can have. All work is
done by somebody, and every worker that is started takes a start-up that is paid for. Of the jobs that come up to a
moment, all but those that may be late start between the first start-up and that moment plus the objective. In that time
so many workers start no more jobs than one each, and beside these as many as the shortest that fit in.
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate

from headway.simulate.replay import RecordedJob

MOMENT_S = 1.0  # between two moments that are tried: any of them gives a bound, and the greatest counts
ROUNDING = 1e-9


def least_hours(
    jobs: Sequence[RecordedJob], *, start_up_s: float, objective_s: float, percent: float, workers_max: int
) -> float:
    """Worker-hours below which no pool that starts from nothing has ``percent`` of ``jobs`` start in time.

    Infinite where no pool of ``workers_max`` has. The arguments are those of `least_starts`.
    """
    workers = least_starts(jobs, start_up_s=start_up_s, objective_s=objective_s, percent=percent)
    return math.inf if workers > workers_max else (sum(job.service_s for job in jobs) + workers * start_up_s) / 3600


def least_starts(jobs: Sequence[RecordedJob], *, start_up_s: float, objective_s: float, percent: float) -> float:
    """Workers below which no pool that starts from nothing has ``percent`` of ``jobs`` start in time.

    Infinite where none has, however great it is: more jobs are due before a worker can be up than may be late.

    Args:
        jobs: in order of arrival, counted from the moment at which the pool may ask for its first worker.
        start_up_s: From that moment until the first worker can be ready.
        objective_s: How long a job may wait.
        percent: The share of all jobs that must start in time, 0 to 100.
    """
    late_jobs = len(jobs) - math.ceil(len(jobs) * percent / 100 - ROUNDING)
    moments_s = [MOMENT_S * number for number in range(1 + math.ceil((start_up_s + objective_s) / MOMENT_S))]
    return max(
        _least_until(at_s, jobs, within_s=at_s + objective_s - start_up_s, late_jobs=late_jobs) for at_s in moments_s
    )


def _least_until(at_s: float, jobs: Sequence[RecordedJob], *, within_s: float, late_jobs: int) -> float:
    """Workers that start the jobs that came up to ``at_s``, less those that may be late, ``within_s`` of being up."""
    arrived = bisect_right(jobs, at_s, key=lambda job: job.at_s)
    due_jobs = arrived - late_jobs
    if due_jobs <= 0:
        return 0
    if within_s < 0:
        return math.inf
    work_s = [0.0, *accumulate(sorted(job.service_s for job in jobs[:arrived]))]
    # Each worker's last job may go on beyond the time; the others are done within it.
    over_s = [work_s[due_jobs - workers] - workers * within_s for workers in range(due_jobs + 1)]
    return bisect_left(over_s, -ROUNDING, key=lambda each_s: -each_s)
