"""A retry storm in a rehearsal: jobs that come back are work, and teach nothing of what will come."""

from dataclasses import replace

import pytest

from headway.errors import Invalid
from headway.scaling.strategies.hybrid import HybridState
from headway.simulate.controller import Controller
from headway.simulate.engine.faults import Faults
from headway.simulate.engine.results import Result
from headway.simulate.engine.simulated_pool import PoolPlan
from headway.simulate.engine.simulation import Rehearsal, Stepping, simulate
from simulate.stepping import Script, jobs

STEADY = jobs(*((10.0 + number / 2, 2.0) for number in range(1_200)))
"""Two jobs a second for ten minutes."""
STORM = Faults(job_failure_fraction=0.4, attempts_max=4)


def run(controller: Stepping, faults: Faults) -> Result:
    plan = PoolPlan(jobs=STEADY, start_up_s=8.0, faults=faults)
    (result,) = simulate([plan], [controller], rehearsal=Rehearsal())
    return result


def learned_jobs(faults: Faults) -> float:
    """The arrivals that the guard of an exposed pool has learned from."""
    controller = Controller(target_s=10.0, start_up_s=8.0)
    run(controller, faults)
    assert controller.outcome is not None
    guard = HybridState.of(controller.outcome.memory.strategy_state).guard
    assert guard is not None
    return guard.by_rate.jobs / guard.by_rate.scale


def test_each_observation_counts_how_many_of_the_arrivals_came_back() -> None:
    script = Script(lambda seen: 20)
    run(script, STORM)
    arrived, retried = sum(seen.arrived for seen in script.seen), sum(seen.retried for seen in script.seen)
    assert arrived - retried == 1_200
    assert retried == pytest.approx(1_200 * (0.4 + 0.16 + 0.064), rel=0.1)


def test_recorded_jobs_say_which_of_them_came_back() -> None:
    """Played again they are jobs like any, and still no news of what will come."""
    came_back = [number % 5 == 0 for number in range(1_200)]
    recorded = replace(STEADY, retries=came_back)
    script = Script(lambda seen: 20)
    simulate([PoolPlan(jobs=recorded, start_up_s=8.0)], [script], rehearsal=Rehearsal())
    assert sum(seen.retried for seen in script.seen) == sum(came_back)
    assert list(recorded.part(5, 8, from_s=10.0).retries) == [True, False, False]
    with pytest.raises(Invalid, match="1200 arrivals, and 3 of them are known for retries or not"):
        replace(STEADY, retries=[True] * 3)


def test_a_storm_of_retries_teaches_the_forecast_as_many_arrivals_as_calm() -> None:
    """With 40 % of all attempts failing and three retries, 1.62 times as many jobs enter the queue."""
    calm = learned_jobs(Faults())
    assert calm == pytest.approx(1_200, rel=0.01)
    assert learned_jobs(STORM) == pytest.approx(calm, rel=0.01)


@pytest.mark.parametrize("retry_after_s", [0.0, 30.0])
def test_jobs_that_come_back_are_served_like_any(retry_after_s: float) -> None:
    faults = Faults(job_failure_fraction=0.4, attempts_max=4, retry_after_s=retry_after_s)
    result = run(Controller(target_s=10.0, start_up_s=8.0), faults)
    assert result.unserved_jobs == 0
    assert result.attainment_percent > 99.0
