"""Evaluations at which nothing is new are passed over, and nothing of a rehearsal changes by that."""

import itertools
from random import Random

import pytest

from headway.scaling.profile import Profile
from headway.simulate.controller import Controller, Observation
from headway.simulate.engine.results import Result
from headway.simulate.engine.simulation import Rehearsal, Target, simulate
from headway.simulate.engine.simulation_plan import PoolPlan
from headway.simulate.workloads.jobs import Jobs
from support.installed import INSTALLED


class Watched:
    """A controller of which the engine does not know that it is one: every evaluation is taken."""

    def __init__(self, controller: Controller) -> None:
        self._controller = controller
        self.observations = 0

    def step(self, observation: Observation, /, *, now_s: float | None = None) -> Target:
        self.observations += 1
        return self._controller.step(observation, now_s=now_s)


class Counted(Controller):
    """A controller that counts its observations."""

    observations = 0

    def step(self, observation: Observation, *, now_s: float | None = None):  # type: ignore[no-untyped-def]
        self.observations += 1
        return super().step(observation, now_s=now_s)


def sparse(seed: int) -> Jobs:
    """A handful of jobs, some together, with hours of nothing between them."""
    chance = Random(seed)
    at_s = sorted(chance.choice((0.0, 40.0, 2_000.0, 6_000.0, 6_005.0)) + chance.random() * 60 for _ in range(12))
    return Jobs(at_s=at_s, service_s=[chance.expovariate(0.2) for _ in at_s])


def controller(kind: type[Controller], *, strategy: str, workers_min: int, start_up_s: float) -> Controller:
    profile = Profile(
        pool="mail", queues=("redis/mail",), template="rq", strategy=strategy, workers_min=workers_min, workers_max=9
    )
    return kind(profile=profile, start_up_s=start_up_s, strategies=INSTALLED)


KINDS = list(itertools.product([2.0, 30.0], [0, 2], ["hybrid", "hybrid_v3", "backlog_only", "simple_rate"]))


@pytest.mark.parametrize(("seed", "kind"), list(enumerate(KINDS)))  # jobs of its own for each
def test_every_figure_is_the_same_as_with_every_evaluation(seed: int, kind: tuple[float, int, str]) -> None:
    start_up_s, workers_min, strategy = kind
    plan = PoolPlan(jobs=sparse(seed), start_up_s=start_up_s, start_up_spread=0.3)
    ticks: tuple[list[float], list[float]] = ([], [])
    results: list[Result] = []
    for given, hidden in zip(ticks, (False, True), strict=True):
        one = controller(Controller, strategy=strategy, workers_min=workers_min, start_up_s=start_up_s)
        (result,) = simulate(
            [plan],
            [Watched(one) if hidden else one],
            rehearsal=Rehearsal(begins_at_s=1_760_000_000.0, seed=seed),
            on_tick=given.append,
        )
        results.append(result)
    assert results[0] == results[1]
    assert ticks[0] == ticks[1]


def test_two_pools_are_passed_over_together_only() -> None:
    def all_of(kind: type[Controller], *, hidden: bool) -> tuple[Result, ...]:
        made = [controller(kind, strategy="hybrid", workers_min=0, start_up_s=2.0) for _ in range(2)]
        plans = [PoolPlan(jobs=sparse(seed), name=str(seed)) for seed in range(2)]
        return simulate(plans, [Watched(one) for one in made] if hidden else made)

    assert all_of(Controller, hidden=False) == all_of(Controller, hidden=True)


def test_a_quiet_pool_is_hardly_evaluated() -> None:
    one = controller(Counted, strategy="hybrid", workers_min=0, start_up_s=2.0)
    assert isinstance(one, Counted)
    (result,) = simulate([PoolPlan(jobs=Jobs(at_s=[0.0, 86_000.0], service_s=[1.0, 1.0]))], [one])
    assert result.ticks > 17_000
    assert one.observations < 300
