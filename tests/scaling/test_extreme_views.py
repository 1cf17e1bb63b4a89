"""Deciding answers for whatever sources, hosts and operators can bring about: a decision that raises holds its pool.

Zero, the smallest float, counts of 2⁶³ and pauses of weeks are all taken in by what checks telemetry, reports and
profiles. NaN and infinity are not.
"""

import math
from collections.abc import Iterator
from dataclasses import asdict, fields
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from headway.scaling.allocation.allocate import allocate
from headway.scaling.decisions.finite_figures import non_finite_decided
from headway.scaling.decisions.outcome import Outcome
from headway.scaling.explain import explained
from headway.scaling.model import Arrivals, DelayedJobs, Memory, Objective, QueueMetrics, QueueOrder, SharedJobs
from headway.scaling.profile import Forecast, Profile
from headway.scaling.view import PoolView
from scaling.laws.drawn import LAW, maybe
from scaling.laws.fleets import HOSTS, TEMPLATE
from support.installed import INSTALLED, decide
from support.pools import NOW_S

LEAST, MOST_JOBS = 5e-324, 2**63 - 1
COUNTS = st.sampled_from([0, 0, 1, 2, 50, 5_000, 10**9, MOST_JOBS]) | st.integers(0, 300)
TIMES_S = st.sampled_from([0.0, LEAST, 1e-12, 0.001, 0.3, 1.0, 300.0, 86_400.0, 1e10]) | st.floats(0, 100)
RATES = st.sampled_from([0.0, LEAST, 1e-12, 0.5, 50.0, 1e15]) | st.floats(0, 20)
WORKERS = st.sampled_from([0, 0, 1, 3, 300, 10_000])
GAPS_S = st.sampled_from([5.0, 5.0, 60.0, 3_600.0, 13 * 3_600.0, 14 * 86_400.0, -1.0, -13 * 3_600.0])
OBJECTIVES = st.builds(
    Objective,
    target_s=st.sampled_from([LEAST, 0.001, 0.2, 10.0, 86_400.0]),
    percentile=st.sampled_from([LEAST, 50.0, 99.0, math.nextafter(100.0, 0.0)]),
)
AMONG = ("redis/mail", "redis/news")
OTHERS = "redis/other"


def above_0(most: float) -> st.SearchStrategy[float]:
    """What a profile takes that must be above 0, up to ``most``."""
    return st.sampled_from([LEAST, 1e-12, min(1.0, most), most])


@st.composite
def extreme_queues(draw: st.DrawFn, name: str, now_s: float) -> QueueMetrics:
    """A queue of which each figure may be unknown, none, tiny or huge."""
    figures = {
        each.name: draw(maybe(TIMES_S if each.name.endswith("_s") and not each.name.endswith("per_s") else RATES))
        for each in fields(QueueMetrics)
        if each.type == float | None and not each.name.endswith(("_at_s", "_until_s", "per_s2"))
    }
    counts = {each.name: draw(maybe(COUNTS)) for each in fields(QueueMetrics) if each.type == int | None}
    waiting_jobs, in_flight_jobs = counts["waiting_jobs"], counts["in_flight_jobs"]
    counts["waiting_min_jobs"] = None if waiting_jobs is not None else counts["waiting_min_jobs"]
    counts["in_flight_min_jobs"] = None if in_flight_jobs is not None else counts["in_flight_min_jobs"]
    age_s, width_s = figures["oldest_age_s"], figures["oldest_age_max_s"]
    figures["oldest_age_max_s"] = None if age_s is None or width_s is None else age_s + width_s
    return QueueMetrics(
        queue=name,
        sampled_at_s=now_s - draw(st.sampled_from([0.0, 4.0, 400.0, -2.0])),
        arrived_until_s=draw(maybe(st.sampled_from([now_s, now_s - 60.0]))),
        arrival_trend_per_s2=draw(maybe(st.sampled_from([0.0, -1e6, 1e6, LEAST]))),
        has_unknown_rates=draw(st.booleans()),
        overdue_jobs=draw(st.integers(0, waiting_jobs or 0)),
        delayed=draw(st.sampled_from([(), (DelayedJobs(jobs=MOST_JOBS, due_in_s=1e-12),)])),
        arrivals=draw(st.sampled_from([(), (Arrivals(jobs=MOST_JOBS, ended_ago_s=0.0),)])),
        **figures,
        **counts,
    )


@st.composite
def extreme_profiles(draw: st.DrawFn) -> Profile:
    names = AMONG[: draw(st.integers(1, 2))]
    strategy = INSTALLED[draw(st.sampled_from(["hybrid", *sorted(INSTALLED)]))]
    low = draw(WORKERS)
    return Profile(
        pool="mail",
        queues=names,
        template=TEMPLATE.name,
        objective=draw(OBJECTIVES),
        member_objectives={names[0]: draw(OBJECTIVES)} if len(names) > 1 and draw(st.booleans()) else {},
        workers_min=low,
        workers_max=max(low, draw(WORKERS)),
        hold_down_s=draw(st.sampled_from([None, 0.0, 86_400.0])),
        hold_up_s=draw(st.sampled_from([0.0, 0.0, LEAST, 60.0])),
        risk=draw(above_0(100.0)),
        weight=draw(above_0(1_000.0)),
        forecast=draw(st.sampled_from(list(Forecast))),
        rate_limit_per_s=draw(maybe(above_0(1e9))),
        service_time_guess_s=draw(maybe(above_0(86_400.0))),
        step_down_fraction=draw(maybe(above_0(10_000.0))),
        cost_per_worker_hour=draw(above_0(1e9)),
        budget_per_hour=draw(maybe(above_0(1e9))),
        budget_per_day=draw(maybe(above_0(1e9))),
        strategy=strategy.name,
        strategy_options=draw(st.fixed_dictionaries({}, optional=dict.fromkeys(strategy.options, OPTIONS))),
    )


OPTIONS = st.sampled_from([0.0, -1.0, LEAST, 1e9, -1e9])


@st.composite
def extreme_views(draw: st.DrawFn, profile: Profile, now_s: float) -> PoolView:
    running = draw(WORKERS)
    others = (draw(extreme_queues(OTHERS, now_s)),) if draw(st.booleans()) else ()
    helped = [SharedJobs(queue=name, pool="other", jobs=1, most_jobs=3) for name in profile.queues]
    return PoolView(
        profile=profile,
        queues=tuple(draw(extreme_queues(name, now_s)) for name in profile.queues),
        slots_per_worker=draw(st.sampled_from([1, 4, 1_000])),
        queue_order=draw(st.sampled_from([None, *QueueOrder])),
        strict_queues=("news", "mail"),
        start_up_s=draw(maybe(TIMES_S)),
        start_up_p95_s=draw(maybe(TIMES_S)),
        start_up_cpu_s=draw(maybe(TIMES_S)),
        host_cores=draw(maybe(st.sampled_from([LEAST, 2.0, 1e9]))),
        exit_s=draw(maybe(TIMES_S)),
        dispatch_overhead_s=draw(maybe(TIMES_S)),
        leaves_due_jobs=draw(st.booleans()),
        capacity_workers=draw(maybe(WORKERS)),
        assigned_workers=draw(WORKERS),
        running_workers=running,
        starting_workers=draw(WORKERS),
        unknown_workers=draw(WORKERS),
        leaving_workers=draw(WORKERS),
        useful_workers=draw(maybe(WORKERS)),
        idle_workers=draw(maybe(st.integers(0, running))),
        unknown_activity_workers=draw(st.integers(0, running)),
        certain_jobs=draw(COUNTS),
        taken_jobs=draw(COUNTS),
        helped=tuple(helped) if draw(st.booleans()) else (),
        helping=tuple(SharedJobs(queue=each.queue, pool="other", jobs=1, most_jobs=1) for each in others),
        helping_workers=len(others),
        helped_queues=others,
        recalled_jobs=draw(maybe(RATES)),
        worker_hours_today=draw(maybe(RATES)),
        lag_s=draw(st.sampled_from([0.0, LEAST, 1.0])),
    )


def numbers_in(value: Any) -> Iterator[float]:
    """Every number in ``value``, however deep."""
    if isinstance(value, dict):
        for each in value.values():
            yield from numbers_in(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from numbers_in(each)
    elif isinstance(value, float):
        yield value


@LAW
@given(data=st.data())
def test_whatever_can_be_known_of_a_pool_it_is_decided_for_with_finite_figures(data: st.DataObject) -> None:
    """Evaluation after evaluation, each with what the one before remembered. JSON, which is stored, has no infinity."""
    profile, memory, now_s = data.draw(extreme_profiles()), Memory(), NOW_S
    hosts = data.draw(HOSTS)
    for _ in range(data.draw(st.integers(1, 4))):
        view, before = data.draw(extreme_views(profile, now_s)), memory
        decision, memory = decide(view, before, now_s=now_s)
        outcome = Outcome(view=view, before=before, decision=decision, memory=memory)
        assert non_finite_decided(outcome) is None
        assert all(math.isfinite(each) for demand in decision.demands for each in demand.terms.values())
        assert all(map(math.isfinite, numbers_in(asdict(memory))))
        assert explained(decision, strategies=INSTALLED)
        allocate([outcome], hosts, [])
        now_s += data.draw(GAPS_S)
