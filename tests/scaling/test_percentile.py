"""An objective's percentile: a lower one never asks for more, and p99 is what everything was measured with."""

import math
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.scaling.decide import decide
from headway.scaling.demands.safety_stock import SafetyStock, learned, spare_jobs
from headway.scaling.demands.trust import RISK_LEAST, confidence, leeway
from headway.scaling.model import Memory, Objective
from headway.scaling.profile import Profile
from headway.simulate.engine.results import Result
from headway.simulate.studies.single_pool import Setting, rehearse
from headway.simulate.workloads.jobs import Jobs
from headway.simulate.workloads.synthetic import Poisson, Synthetic
from scaling.bands import watched
from support.pools import NOW_S, exposed_of, profile, queue, view

PERCENTILES = (1.0, 50.0, 90.0, 95.0, 99.0, 99.9, 99.99)


def promising(percentile: float, **values: Any) -> Profile:
    return profile(objective=Objective(target_s=10.0, percentile=percentile), **values)


@pytest.mark.parametrize(
    ("percentile", "risk", "late_jobs", "deviations"),
    [
        (99.0, 1.0, 1.0, 1.0),  # as measured
        (90.0, 1.0, 10.0, 0.5),
        (99.9, 1.0, 0.1, 1.5),
        (99.99, 1.0, 0.01, 2.0),
        (90.0, 0.1, 1.0, 0.5),  # risk multiplies what may be late
        (1.0, 1.0, 99.0, 0.0022),
    ],
)
def test_the_percentile_and_the_risk_multiply(
    percentile: float, risk: float, late_jobs: float, deviations: float
) -> None:
    assert leeway(promising(percentile, risk=risk)) == pytest.approx(late_jobs)
    assert confidence(promising(percentile, risk=risk)) == pytest.approx(deviations, rel=0.01)


@pytest.mark.parametrize("percentile", [1e-300, 50.0, 99.0, math.nextafter(100.0, 0.0)])
@pytest.mark.parametrize("risk", [5e-324, 1e-300, RISK_LEAST])
def test_however_little_risk_a_pool_is_decided_for_and_every_figure_is_finite(risk: float, percentile: float) -> None:
    """A burst of scattered size every 30 s, of which half was late, in a pool that reacts too slowly."""
    careful, memory = promising(percentile, risk=risk, hold_down_s=None), Memory()
    for tick in range(90):
        at_s, jobs = NOW_S + 5.0 * tick, 0 if tick % 6 else 20 + tick % 4
        known = {"arrived_jobs": jobs, "arrived_until_s": at_s, "start_rate_per_s": 0.8, "late_rate_per_s": 0.4}
        seen = queue(sampled_at_s=at_s, waiting_jobs=jobs, in_flight_jobs=4, oldest_age_s=1.0, **known)
        exposed = view(seen, running_workers=4, start_up_s=8.0, profile=careful)
        decision, memory = decide(exposed, memory, now_s=at_s)
        for demand in decision.demands:
            assert all(map(math.isfinite, (demand.slots, *demand.terms.values())))
    assert {"standing", "rhythm"} & {demand.name for demand in decision.demands}


def test_of_members_the_strictest_percentile_counts() -> None:
    members = promising(90.0, queues=("redis/a", "redis/b"), member_objectives={"redis/b": Objective(percentile=99.0)})
    assert leeway(members) == pytest.approx(1.0)


def test_percentiles_decide_differently() -> None:
    """Twenty jobs that must start within a second and a half, of which sixteen busy slots start some."""
    seen = queue(waiting_jobs=20, in_flight_jobs=16, oldest_age_s=7.5)
    wants = [
        decide(view(seen, running_workers=16, profile=promising(each)), Memory(), now_s=NOW_S)[0].target_workers
        for each in PERCENTILES
    ]
    assert wants == sorted(wants)
    assert len(set(wants)) >= 4


@given(
    waiting=st.integers(0, 500),
    in_flight=st.integers(0, 50),
    age_s=st.floats(0.0, 100.0),
    service_s=st.floats(0.01, 100.0),
    start_up_s=st.floats(0.0, 40.0),
    rate=st.floats(0.0, 50.0),
    spans=st.lists(st.floats(0.1, 40.0), max_size=5),
)
def test_a_lower_percentile_never_asks_for_more(
    waiting: int, in_flight: int, age_s: float, service_s: float, start_up_s: float, rate: float, spans: list[float]
) -> None:
    seen = queue(
        waiting_jobs=waiting,
        in_flight_jobs=in_flight,
        oldest_age_s=age_s if waiting else 0.0,
        service_time_s=service_s,
        arrival_rate_per_s=rate,
        arrived_until_s=NOW_S,
    )
    guard = SafetyStock(began_at_s=0.0, at_s=NOW_S - 5, by_rate=watched(*spans), seen_until_s=NOW_S - 5)
    memory = Memory(strategy_state={"guard": guard.stored()})
    targets = []
    for each in PERCENTILES:
        seen_view = view(seen, running_workers=in_flight, start_up_s=start_up_s, profile=promising(each))
        targets.append(decide(seen_view, memory, now_s=NOW_S)[0].target_workers)
    assert targets == sorted(targets)


def test_a_generous_percentile_does_not_make_a_late_job_cheap() -> None:
    """At p80 a fifth may be late: where reacting is always too late, workers stand all the same."""
    guard = SafetyStock(
        began_at_s=0.0, at_s=NOW_S, by_rate=watched(*[1.0] * 40, for_s=40 * 280.0), beyond_log=math.log(0.01)
    )
    assert spare_jobs(guard, exposed_of(queue(), view(profile=promising(80.0), start_up_s=8.0), now_s=NOW_S)) > 0.9


def test_late_jobs_tighten_the_guard_less_where_more_may_be_late() -> None:
    late = queue(arrived_until_s=NOW_S, arrived_jobs=1, start_rate_per_s=1.0, late_rate_per_s=0.05)
    logs = [
        learned(
            SafetyStock(began_at_s=0.0, at_s=NOW_S - 5),
            exposed_of(late, view(profile=promising(each), start_up_s=8.0)),
        )
        for each in (50.0, 99.0, 99.9)
    ]
    assert [each.beyond_log for each in logs] == sorted((each.beyond_log for each in logs), reverse=True)
    assert logs[0].beyond_log > math.log(0.01) > logs[1].beyond_log


@pytest.fixture(scope="module")
def reached() -> dict[float, Result]:
    """The same two hours of jobs of 5 s at 0.3/s, with a start-up that is too long to react."""
    arrivals = Poisson(rate_per_s=0.3)
    drawn = Synthetic(arrivals=arrivals, service_s=5.0, tail="none", for_s=7200.0, seed=3).jobs()
    at_s, service_s = zip(*drawn, strict=True)
    jobs = Jobs(at_s=at_s, service_s=service_s)
    return {
        each: rehearse(jobs, promising(each, hold_down_s=None, workers_max=50), Setting(start_up_s=8.0))
        for each in (50.0, 90.0, 99.0, 99.9)
    }


def test_attainment_is_at_least_the_percentile_and_never_falls_as_it_rises(reached: dict[float, Result]) -> None:
    percents = [result.attainment_percent for result in reached.values()]
    assert percents == sorted(percents)
    # The first jobs come before anything is known of the pool: they are late at any percentile.
    assert all(result.attainment_percent >= min(each, 99.5) for each, result in reached.items())


def test_cost_never_rises_as_the_percentile_falls(reached: dict[float, Result]) -> None:
    """But for chance: the pool's own history differs from the first decision on."""
    hours = [result.worker_hours for result in reached.values()]
    assert all(low <= high * 1.01 for low, high in pairwise(hours))
    assert hours[0] < hours[-1] * 0.95
