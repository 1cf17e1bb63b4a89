"""Bursts of short jobs that no new worker can start in time, or hardly: no worker for each, and no job late for it."""

from collections.abc import Sequence
from dataclasses import replace
from random import Random

import pytest

from headway.scaling.metrics.behaviour import Behaviour, Spread
from headway.scaling.model import Decision, Objective
from headway.scaling.profile import Profile
from headway.simulate.controller import Controller
from headway.simulate.engine.results import Result
from headway.simulate.engine.simulated_pool import PoolPlan
from headway.simulate.engine.simulation import simulate
from headway.simulate.observation import Observation
from headway.simulate.studies.single_pool import Setting, controller_of, plan_of, rehearsal_of, rehearse
from headway.simulate.workloads.jobs import Jobs

BURST_JOBS = 150
BURST_AT_S = 602.0
DISPATCH_S = 0.01  # measured of a prefork child: the library hands out the next job at once
SHAPES = {
    "at once": [0.0] * BURST_JOBS,
    "over three seconds": [3.0 * number / BURST_JOBS for number in range(BURST_JOBS)],
    "over twenty seconds": [20.0 * number / BURST_JOBS for number in range(BURST_JOBS)],
    "in two parts": [0.0] * (BURST_JOBS // 2) + [13.0] * (BURST_JOBS // 2),
}


def load(shape: Sequence[float], *, service_s: float, seed: int = 1) -> Jobs:
    """The burst after ten minutes of a job each two seconds, which have taught how long one takes."""
    rng = Random(seed)
    burst_at_s = BURST_AT_S + rng.uniform(0.0, 5.0)  # evaluations find it at any age
    steady_s = [2.0 * number + rng.random() for number in range(450)]
    at_s = sorted([*steady_s, *(burst_at_s + late_s for late_s in shape)])
    return Jobs(at_s=at_s, service_s=[service_s + DISPATCH_S] * len(at_s), dispatch_s=DISPATCH_S)


class Watched(Controller):
    """A controller that remembers the greatest target from the burst on."""

    most_workers = 0

    def step(self, observation: Observation, *, now_s: float | None = None) -> Decision:
        decision = super().step(observation, now_s=now_s)
        if observation.at_s >= BURST_AT_S:
            self.most_workers = max(self.most_workers, decision.target_workers)
        return decision


def served(jobs: Jobs, *, service_s: float, start_up_s: float) -> tuple[Result, Watched]:
    profile = Profile(
        pool="simulated",
        queues=("simulated/jobs",),
        template="simulated",
        objective=Objective(target_s=10.0),
        workers_max=200,
        service_time_guess_s=service_s,
    )
    controller = Watched(profile=profile, start_up_s=start_up_s, behaviour=Behaviour(dispatch_overhead_s=DISPATCH_S))
    plan = PoolPlan(jobs=jobs, start_up_s=start_up_s, workers_max=200)
    (result,) = simulate([plan], [controller])
    return result, controller


@pytest.mark.parametrize("seed", range(5))
def test_a_burst_of_short_jobs_takes_few_workers(seed: int) -> None:
    """Each new worker starts five a second: twenty, as many as there is room for, would be no better."""
    jobs = load(SHAPES["at once"], service_s=0.2, seed=seed)
    result, controller = served(jobs, service_s=0.2, start_up_s=5.2)
    assert 1 < controller.most_workers <= 15
    assert result.pickup_max_s is not None
    assert result.pickup_max_s <= 5.0 + 5.2 + 2.0 + 0.5  # seen, started, and 2 s for the last


def test_bursts_take_about_twice_the_starts_of_a_plan_that_knows_all_and_no_job_is_late() -> None:
    """The plan has a worker up when the first job comes; whoever learns of the burst 5 s later has less time for it."""
    starts = known_starts = 0
    for service_s, start_up_s in ((0.1, 2.0), (0.5, 2.0), (2.0, 2.0), (0.2, 5.2), (1.0, 5.2)):
        for shape in SHAPES.values():
            jobs = load(shape, service_s=service_s)
            result, _ = served(jobs, service_s=service_s, start_up_s=start_up_s)
            known, _ = served(
                replace(jobs, scheduled_at_s=[0.0] * len(jobs)), service_s=service_s, start_up_s=start_up_s
            )
            assert result.attainment_percent == known.attainment_percent == 100.0
            starts, known_starts = starts + result.spawns, known_starts + known.spawns
    assert starts <= 2.2 * known_starts


@pytest.mark.parametrize("start_up_s", [6.0, 8.0])
@pytest.mark.parametrize("shape", SHAPES)
def test_slow_starts_are_no_reason_for_more_of_them(shape: str, start_up_s: float) -> None:
    """A new worker starts nineteen of these jobs in the 2 s after it is up."""
    _, controller = served(load(SHAPES[shape], service_s=0.1), service_s=0.1, start_up_s=start_up_s)
    assert controller.most_workers <= 20


def test_a_burst_on_two_cores_starts_no_more_workers_than_help() -> None:
    """Each start takes 1.5 s of a core: fewer of them are up sooner, and no job starts later for it."""
    behaviour = Behaviour(start_up=Spread(p50_s=2.0, p95_s=2.0), start_up_cpu_s=1.5, dispatch_overhead_s=DISPATCH_S)
    profile = Profile(
        pool="simulated",
        queues=("simulated/jobs",),
        template="simulated",
        objective=Objective(target_s=10.0),
        workers_max=200,
        service_time_guess_s=1.0,
    )
    jobs = load(SHAPES["at once"], service_s=1.0)
    setting = Setting(behaviour=behaviour, host_cores=2.0)
    knowing = rehearse(jobs, profile, setting)
    (unknowing,) = simulate(
        [plan_of(jobs, profile, setting)],
        [controller_of(profile, replace(setting, host_cores=None))],
        rehearsal=rehearsal_of(setting, hosts=(), begins_at_s=0.0),
    )
    assert knowing.spawns <= unknowing.spawns / 2  # 24 and 60
    assert knowing.attainment_percent >= unknowing.attainment_percent
    assert knowing.pickup_max_s is not None
    assert unknowing.pickup_max_s is not None
    assert knowing.pickup_max_s <= unknowing.pickup_max_s
