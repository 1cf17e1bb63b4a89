"""A threshold in a rehearsal: the same ``decide``, so the same jobs wait for others."""

from headway.scaling.model import Objective
from headway.scaling.profile import Profile
from headway.simulate.controller import QUEUE, Controller
from headway.simulate.engine.results import Result
from headway.simulate.engine.simulated_pool import PoolPlan
from headway.simulate.engine.simulation import Rehearsal, simulate
from headway.simulate.workloads.jobs import Jobs
from simulate.stepping import jobs

LONE = jobs(*((600.0 * number + 2.0, 1.0) for number in range(6)))
"""A job each ten minutes."""
RUSH = jobs(*((2.0 + number / 10, 1.0) for number in range(8)))


def run(load: Jobs, **values: object) -> Result:
    profile = Profile(
        pool="simulated",
        queues=(QUEUE,),
        template="simulated",
        objective=Objective(target_s=120.0),
        **values,  # type: ignore[arg-type]
    )
    (result,) = simulate([PoolPlan(jobs=load)], [Controller(profile=profile)], rehearsal=Rehearsal())
    return result


def test_lone_jobs_wait_for_as_long_as_their_objective_lets_them_and_start_in_time() -> None:
    plain, patient = run(LONE), run(LONE, activation_jobs=5)
    assert plain.pickup_max_s is not None
    assert patient.pickup_max_s is not None
    assert plain.pickup_max_s < 10.0
    assert 100.0 < patient.pickup_max_s <= 120.0
    assert patient.unserved_jobs == 0


def test_enough_jobs_at_once_are_not_held_back() -> None:
    patient = run(RUSH, activation_jobs=5)
    assert patient.pickup_max_s is not None
    assert patient.pickup_max_s < 20.0
