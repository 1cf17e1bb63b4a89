"""Jobs that are scheduled start within the objective of their due time, for what it would cost to know them all."""

from collections.abc import Iterator
from dataclasses import replace
from random import Random

import pytest

from headway.simulate.controller import Controller
from headway.simulate.engine.results import Result
from headway.simulate.engine.simulated_pool import PoolPlan
from headway.simulate.engine.simulation import simulate
from headway.simulate.workloads.jobs import Jobs
from simulate.stepping import Script, jobs

HALF_AN_HOUR_S = 1800.0


def scheduled(rng: Random) -> Iterator[tuple[float, float, float]]:
    """When each is scheduled and due, and how long it takes: at once, in seconds, in minutes, again, all together."""
    for _ in range(400):
        at_s = rng.uniform(0.0, HALF_AN_HOUR_S)
        yield at_s, at_s, rng.expovariate(1.0)
    for least_s, most_s in ((1.0, 30.0), (60.0, 900.0)):
        for _ in range(300):
            at_s = rng.uniform(0.0, HALF_AN_HOUR_S - 300.0)
            yield at_s, at_s + rng.uniform(least_s, most_s), rng.expovariate(1.0)
    for _ in range(60):
        at_s = rng.uniform(0.0, HALF_AN_HOUR_S - 300.0)
        for attempt in range(4):
            yield at_s, at_s + 5.0 * 3.0**attempt, rng.expovariate(1.0)
            at_s += 5.0 * 3.0**attempt
    minute_s = rng.uniform(200.0, 1200.0)
    for _ in range(10_000):
        yield minute_s - 60.0, minute_s, 0.05


def load(seed: int) -> Jobs:
    rows = sorted(scheduled(Random(seed)), key=lambda row: row[1])
    scheduled_at_s, at_s, service_s = zip(*rows, strict=True)
    return Jobs(at_s=at_s, service_s=service_s, scheduled_at_s=scheduled_at_s)


def served(given: Jobs, *, start_up_s: float) -> Result:
    plan = PoolPlan(jobs=given, start_up_s=start_up_s, workers_max=200)
    (result,) = simulate([plan], [Controller(target_s=10.0, start_up_s=start_up_s, workers_max=200)])
    return result


@pytest.mark.parametrize("start_up_s", [2.0, 8.0])
def test_they_start_in_time_for_little_more_than_a_plan_that_knows_all(start_up_s: float) -> None:
    loads = [load(seed) for seed in range(2)]  # of twenty, the twentieth differs no more: docs/why/demand.md
    results = [served(given, start_up_s=start_up_s) for given in loads]
    known = [served(replace(given, scheduled_at_s=[0.0] * len(given)), start_up_s=start_up_s) for given in loads]
    assert min(result.attainment_percent for result in results) >= 99.0
    assert sum(result.spawns for result in results) <= 1.2 * sum(result.spawns for result in known)
    assert sum(result.worker_hours for result in results) <= 1.1 * sum(result.worker_hours for result in known)


def test_who_does_not_know_them_starts_too_late() -> None:
    """With a start-up that the objective leaves no time for: the burst that nobody has seen coming."""
    given = load(0)
    assert served(replace(given, scheduled_at_s=()), start_up_s=8.0).attainment_percent < 80.0


def test_an_observation_shows_what_is_scheduled_and_has_not_come() -> None:
    given = replace(jobs((12.0, 1.0), (40.0, 1.0), (41.0, 1.0)), scheduled_at_s=[0.0, 7.0, 7.0])
    script = Script(lambda _: 1)
    simulate([PoolPlan(jobs=given, start_up_s=1.0)], [script])
    seen = {each.at_s: [(one.jobs, round(one.due_in_s, 1)) for one in each.delayed] for each in script.seen}
    assert (seen[5.0], seen[10.0]) == ([(1, 7.0)], [(1, 2.0), (1, 30.0), (1, 31.0)])
    assert (seen[15.0], seen[40.0]) == ([(1, 25.0), (1, 26.0)], [(1, 1.0)])
