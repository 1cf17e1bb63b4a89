"""What was measured of workers reaches whoever decides, as it does live."""

from random import Random

import pytest

from headway.scaling.metrics.behaviour import Behaviour, Spread, mean_s
from headway.scaling.model import QueueMetrics
from headway.scaling.reading.pool_times import LAG_S
from headway.scaling.strategies import BUILT_IN
from headway.scaling.strategy import Advice, State, Strategy
from headway.scaling.view import PoolView
from headway.simulate.controller import Controller, Observation
from headway.simulate.engine.draws import drawn
from headway.simulate.engine.simulation import Rehearsal, simulate
from headway.simulate.engine.simulation_plan import PoolPlan
from simulate.stepping import by_time, jobs
from support.pools import profile

MEASURED = Behaviour(
    start_up=Spread(p50_s=2.0, p95_s=5.0),
    start_up_cpu_s=1.1,
    exit=Spread(p50_s=0.5, p95_s=0.5),
    dispatch_overhead_s=0.03,
    sample_lag=Spread(p50_s=0.7, p95_s=1.2),
)


def seen_by(controller_of: dict[str, object], observation: Observation) -> PoolView:
    """What a strategy is given at one evaluation."""
    views: list[PoolView] = []

    def advise(queue: QueueMetrics, view: PoolView, state: State, now_s: float) -> Advice:
        views.append(view)
        return BUILT_IN["hybrid"].advise(queue, view, state, now_s)

    strategies = {"mine": Strategy(name="mine", advise=advise)}
    Controller(profile=profile(strategy="mine"), strategies=strategies, **controller_of).step(observation)
    return views[-1]


def test_what_was_measured_is_in_the_view() -> None:
    view = seen_by({"behaviour": MEASURED}, Observation(at_s=0.0, waiting=0, leaving=3))
    assert view.start_up_s == pytest.approx(mean_s(Spread(p50_s=2.0, p95_s=5.0)))
    assert (view.start_up_p95_s, view.start_up_cpu_s, view.exit_s) == (5.0, 1.1, 0.5)
    assert (view.dispatch_overhead_s, view.lag_s, view.leaving_workers) == (0.03, LAG_S, 3)


def test_what_is_seen_later_counts_more() -> None:
    observation = Observation(at_s=0.0, waiting=0, start_up_s=9.0, dispatch_overhead_s=0.5, capacity_workers=4)
    view = seen_by({"behaviour": MEASURED}, observation)
    assert (view.start_up_s, view.dispatch_overhead_s, view.capacity_workers) == (9.0, 0.5, 4)


def test_without_a_behaviour_nothing_is_known_but_the_start_up() -> None:
    view = seen_by({"start_up_s": 8.0}, Observation(at_s=0.0, waiting=0))
    assert (view.start_up_s, view.lag_s) == (8.0, 0.0)
    assert {view.start_up_p95_s, view.start_up_cpu_s, view.exit_s, view.dispatch_overhead_s} == {None}


@pytest.mark.parametrize("spread", [Spread(p50_s=2.0, p95_s=5.0), Spread(p50_s=0.0, p95_s=1.0)])
def test_the_mean_of_a_spread_is_that_of_its_draws(spread: Spread) -> None:
    draw = drawn(spread, Random(1))
    assert draw is not None
    draws = sorted(draw() for _ in range(200_000))
    assert draws[100_000] == pytest.approx(spread.p50_s, rel=0.03, abs=0.002)
    assert draws[190_000] == pytest.approx(spread.p95_s, rel=0.03)
    if spread.p50_s:
        assert sum(draws) / len(draws) == pytest.approx(mean_s(spread), rel=0.03)


def test_one_that_became_ready_after_the_sample_still_starts() -> None:
    """Ready at 4.5 s, seen at 5 s beside a sample of 4 s; busy at once with a job that the sample has waiting."""
    script = by_time((0, 1))
    behaviour = Behaviour(start_up=Spread(p50_s=4.5, p95_s=4.5), sample_lag=Spread(p50_s=1.0, p95_s=1.0))
    simulate([PoolPlan(jobs=jobs((3.0, 9.0)), behaviour=behaviour, is_live=True)], [script], rehearsal=Rehearsal())
    second, third = script.seen[1:3]
    assert (second.waiting, second.workers, second.starting, second.busy) == (1, 1, 1, 0)
    assert (third.waiting, third.starting, third.busy, third.in_flight) == (0, 0, 1, 1)


def test_workers_that_leave_are_seen_where_that_is_so_live() -> None:
    script = by_time((0, 2), (5, 0))
    plan = PoolPlan(jobs=jobs((0, 12), (0, 22)), warm_workers=2, is_live=True)
    simulate([plan], [script], rehearsal=Rehearsal())
    assert [(seen.workers, seen.leaving) for seen in script.seen[1:6]] == [(2, 0), (0, 2), (0, 1), (0, 1), (0, 0)]


def test_dispatch_is_learned_from_rows_as_the_leader_learns_it() -> None:
    """Two workers with always a job waiting: 0.3 s of service and 0.2 s beside it; nobody says so beforehand."""
    views: list[PoolView] = []

    def advise(queue: QueueMetrics, view: PoolView, state: State, now_s: float) -> Advice:
        views.append(view)
        return BUILT_IN["fixed"].advise(queue, view, state, now_s)

    pool = profile(strategy="mine", workers_min=2, workers_max=2)
    controller = Controller(profile=pool, strategies={"mine": Strategy(name="mine", advise=advise)})
    busy = jobs(*((0.0, 0.3),) * 400)
    plan = PoolPlan(jobs=busy, warm_workers=2, is_live=True, behaviour=Behaviour(dispatch_overhead_s=0.2))
    simulate([plan], [controller], rehearsal=Rehearsal(begins_at_s=1_000_000.0))
    assert views[0].dispatch_overhead_s is None
    assert views[-1].dispatch_overhead_s == pytest.approx(0.2, rel=0.1)
