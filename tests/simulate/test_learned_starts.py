from random import Random

import pytest

from headway.connections import EVERY_S as COLLECTED_EACH_S
from headway.scaling.metrics.behaviour import Behaviour, Spread, mean_s
from headway.simulate.controller import Controller
from headway.simulate.engine.learned_starts import RECENT_MAX, WEIGHT, LearnedStarts
from headway.simulate.engine.pool_lane import POLL_S
from headway.simulate.engine.simulation import Rehearsal, simulate
from headway.simulate.engine.simulation_plan import PoolPlan
from headway.store.hosts import start_timings
from simulate.stepping import by_time, jobs


def test_learns_as_the_store_does_and_polls_as_collectors_do() -> None:
    assert (WEIGHT, RECENT_MAX, POLL_S) == (start_timings.WEIGHT, start_timings.RECENT_MAX, COLLECTED_EACH_S)


@pytest.mark.parametrize("count", [1, 16, 500])
def test_begins_with_what_was_measured(count: int) -> None:
    known = Spread(p50_s=2.0, p95_s=3.0, count=count)
    starts = LearnedStarts(known, draws=Random(1))
    assert (starts.mean_s, starts.p95_s) == (mean_s(known), 3.0)
    assert LearnedStarts(known, of_late_s=0.7, draws=Random(1)).mean_s == 0.7


def test_a_lone_quick_start_lowers_the_mean_and_not_the_95th_percentile() -> None:
    starts = LearnedStarts(Spread(p50_s=2.0, p95_s=3.0, count=50), of_late_s=2.2, draws=Random(1))
    starts.add(0.6)
    assert starts.mean_s == pytest.approx(0.7 * 2.2 + 0.3 * 0.6)
    assert starts.p95_s == pytest.approx(3.0, rel=0.05)


def test_what_was_measured_is_forgotten_after_a_hundred_starts() -> None:
    starts = LearnedStarts(Spread(p50_s=2.0, p95_s=3.0, count=100), draws=Random(1))
    for _ in range(RECENT_MAX):
        starts.add(0.5)
    assert (starts.mean_s, starts.p95_s) == (pytest.approx(0.5), 0.5)


def test_nothing_is_known_before_the_first_start() -> None:
    starts = LearnedStarts(draws=Random(1))
    assert (starts.mean_s, starts.p95_s) == (None, None)
    starts.add(1.5)
    assert (starts.mean_s, starts.p95_s) == (1.5, 1.5)


def test_a_rehearsal_shows_slow_starts_to_who_decides() -> None:
    """Known are starts beside each other, of up to 3 s; those of the rehearsal take 1 s."""
    behaviour = Behaviour(start_up=Spread(p50_s=1.0, p95_s=1.0))
    known = Spread(p50_s=2.0, p95_s=3.0)
    script = by_time((0, 1), (5, 2))
    plan = PoolPlan(jobs=jobs((0, 30)), behaviour=behaviour, known_start_up=known, is_live=True)
    simulate([plan], [script], rehearsal=Rehearsal())
    assert [seen.start_up_p95_s for seen in script.seen[:2]] == [3.0, pytest.approx(2.0, rel=0.5)]

    controller = Controller()
    controller.step(script.seen[0])
    assert controller.outcome is not None
    assert controller.outcome.view.start_up_p95_s == 3.0


@pytest.mark.parametrize(
    ("lag_s", "began_s", "taken"),
    [
        (0.8, 4.5, 1),  # sampled at 4.2 s and polled again at 4.7 s
        (0.8, 4.8, 0),  # begun since
        (0.8, 4.1, 0),  # it is in the sample
        (0.4, 4.7, 0),  # no poll since the sample
    ],
)
def test_jobs_that_were_begun_since_the_sample_are_seen_as_collectors_see_them(
    lag_s: float, began_s: float, taken: int
) -> None:
    behaviour = Behaviour(sample_lag=Spread(p50_s=lag_s, p95_s=lag_s))
    plan = PoolPlan(jobs=jobs((began_s, 3.0)), warm_workers=1, behaviour=behaviour, is_live=True)
    script = by_time((0, 1))
    simulate([plan], [script], rehearsal=Rehearsal())
    seen = script.seen[1]
    assert (seen.taken, seen.in_flight) == (taken, int(began_s < 5.0 - lag_s))

    controller = Controller()
    controller.step(seen, now_s=seen.at_s + lag_s)
    assert controller.outcome is not None
    assert controller.outcome.view.taken_jobs == taken
