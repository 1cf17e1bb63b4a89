"""The rules of `benchmarks/loads.py` that `hybrid` keeps, on the loads that are quick to play."""

from dataclasses import replace

import pytest

from headway.scaling.model import Objective
from headway.scaling.profile import Profile
from headway.simulate.replay import RecordedJob
from headway.simulate.studies.fixed_pool import smallest_fixed_pool
from headway.simulate.studies.single_pool import Setting, rehearse
from headway.simulate.workloads.loads import LOADS

OBJECTIVE_S = 10.0
COST_MAX = 1.1
PERCENT_MIN = 99.5


@pytest.mark.parametrize(
    ("name", "start_up_s", "jobs_max", "cost_max"),
    [
        ("square_wave_15", 2.0, None, COST_MAX),  # the pauses are short: the pool keeps what a constant one would
        ("square_wave", 2.0, None, COST_MAX),
        ("square_wave", 8.0, None, COST_MAX),
        ("poison", 8.0, None, COST_MAX),
        ("blips_and_blocks", 2.0, 25_000, COST_MAX),  # how long the forty take is recalled among 6,000 short jobs
        ("giants", 8.0, 256, COST_MAX),  # four at once, and each needs a worker that stands; the first 20 hours of 60
        # A start for each job until it is known how long they take, and in the first minute, before the rates are of a
        # whole window, three workers for a dispatch that nobody has measured: 1.107 over half an hour.
        ("dispatch", 8.0, None, 1.12),
    ],
)
def test_jobs_are_in_time_for_little_more_than_a_constant_pool_as_good_would_cost(
    name: str, start_up_s: float, jobs_max: int | None, cost_max: float
) -> None:
    whole = LOADS[name].jobs()
    jobs = replace(whole, at_s=whole.at_s[:jobs_max], service_s=whole.service_s[:jobs_max])
    profile = Profile(
        pool=name,
        queues=(f"loads/{name}",),
        template="simulated",
        objective=Objective(target_s=OBJECTIVE_S, percentile=99.0),
        workers_max=LOADS[name].workers_max,
    )
    result = rehearse(jobs, profile, Setting(start_up_s=start_up_s))
    served = [RecordedJob(at_s=at_s, service_s=each) for at_s, each in zip(jobs.at_s, jobs.service_s, strict=True)]
    equal = smallest_fixed_pool(served, objective_s=OBJECTIVE_S, fraction=result.attainment_percent / 100 - 1e-9)
    assert result.attainment_percent >= PERCENT_MIN
    assert result.worker_hours <= cost_max * equal.workers * equal.ends_at_s / 3600
