"""What the laws are tried on: pools, memories and hosts of every kind, the unlikely ones included."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st

from headway.scaling.model import Arrivals, Memory, Mode, Objective, QueueMetrics, QueueSample, Wanted
from headway.scaling.profile import Override, Profile
from headway.scaling.schedule import Schedule
from headway.scaling.strategies import BUILT_IN
from headway.scaling.view import PoolView
from scaling.pools import NOW_S

LAW = settings(max_examples=max(30, settings.default.max_examples // 2))
"""For laws that decide for every strategy: a pool has many fields to draw, and each is decided a dozen times."""

AGES_S = st.floats(0, 1_000)
RATES = st.floats(0, 500)
SERVICE_S = st.floats(0.001, 600)
COUNTS = st.integers(0, 5_000)
WORKERS = st.integers(0, 300)


def maybe(known: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | known


ARRIVALS = st.lists(
    st.builds(Arrivals, jobs=st.integers(1, 500), ended_ago_s=st.floats(0, 600)), max_size=5, unique_by=lambda a: a
).map(lambda rows: tuple(sorted(rows, key=lambda row: row.ended_ago_s)))


def queues(name: str, *, sampled_ago_s: st.SearchStrategy[Any]) -> st.SearchStrategy[QueueMetrics]:
    """Whatever of a queue may be known, may be unknown; of one that was never seen nothing is known."""
    return st.builds(
        QueueMetrics,
        queue=st.just(name),
        sampled_at_s=sampled_ago_s.map(lambda ago_s: None if ago_s is None else NOW_S - ago_s),
        waiting_jobs=maybe(COUNTS),
        in_flight_jobs=maybe(st.integers(0, 500)),
        oldest_age_s=maybe(AGES_S),
        in_flight_mean_jobs=maybe(st.floats(0, 500)),
        window_s=st.floats(5, 300),
        arrived_jobs=maybe(st.integers(0, 500)),
        arrived_until_s=maybe(st.floats(0, 20).map(lambda ago_s: NOW_S - ago_s)),
        arrival_rate_per_s=maybe(RATES),
        start_rate_per_s=maybe(RATES),
        late_rate_per_s=maybe(st.floats(0, 10)),
        completion_rate_per_s=maybe(RATES),
        failure_rate_per_s=maybe(st.floats(0, 10)),
        arrival_trend_per_s2=maybe(st.floats(-5, 5)),
        service_time_s=maybe(SERVICE_S),
        pickup_p95_s=maybe(AGES_S),
        pickup_objective_s=maybe(AGES_S),
        arrivals=ARRIVALS,
    ).map(lambda queue: QueueMetrics(queue=name) if queue.sampled_at_s is None else queue)


@st.composite
def profiles(draw: st.DrawFn, names: tuple[str, ...]) -> Profile:
    """A profile with any of its limits."""
    low = draw(st.integers(0, 50))
    high = low + draw(st.integers(0, 200))
    cost = draw(maybe(st.floats(0.01, 10)))
    budget = st.none() if cost is None else maybe(st.floats(0.01, 5_000))
    schedules = st.just(Schedule(starts="00:00", ends="24:00", workers_min=low, workers_max=high + 7))
    return Profile(
        pool="mail",
        queues=names,
        template="mail",
        mode=draw(st.sampled_from(list(Mode))),
        objective=Objective(target_s=draw(st.floats(0.5, 600)), percentile=draw(st.floats(50, 99.9))),
        workers_min=low,
        workers_max=high,
        override=draw(maybe(st.builds(Override, workers=WORKERS, until_s=st.just(NOW_S + 60), reason=st.just("why")))),
        schedules=draw(st.just(()) | st.tuples(schedules)),
        rate_limit_per_s=draw(maybe(st.floats(0.01, 100))),
        hold_up_s=draw(st.sampled_from([0.0, 30.0])),
        hold_down_s=draw(maybe(st.floats(0, 60))),
        risk=draw(st.sampled_from([0.1, 1.0, 10.0])),
        step_up_workers=draw(maybe(st.integers(1, 20))),
        step_down_fraction=draw(maybe(st.floats(0.01, 1))),
        tolerance_fraction=draw(st.floats(0, 0.9)),
        fallback_workers=draw(maybe(st.integers(1, 100))),
        cost_per_worker_hour=cost,
        budget_per_hour=draw(budget),
        budget_per_day=draw(budget),
    )


SAMPLED_AGO_S = st.none() | st.floats(0, 20) | st.floats(21, 3_000)


@st.composite
def views(
    draw: st.DrawFn, *, sampled_ago_s: st.SearchStrategy[Any] = SAMPLED_AGO_S, is_plain: bool = False
) -> PoolView:
    """A pool at ``NOW_S`` with the strategy ``hybrid``; ``is_plain``: its profile has nothing but bounds."""
    names = ("redis/mail", "redis/news")[: draw(st.integers(1, 2))]
    profile = draw(profiles(names))
    if is_plain:
        bounds = {"workers_min": profile.workers_min, "workers_max": profile.workers_max}
        profile = Profile(pool="mail", queues=names, template="mail", objective=profile.objective, **bounds)
    running = draw(st.integers(0, 100))
    return PoolView(
        profile=profile,
        queues=tuple(draw(queues(name, sampled_ago_s=sampled_ago_s)) for name in names),
        direct=draw(
            st.lists(
                st.builds(
                    QueueSample,
                    queue=st.sampled_from(names),
                    at_s=st.floats(0, 600).map(lambda ago_s: NOW_S - ago_s),
                    waiting_jobs=COUNTS,
                    in_flight_jobs=maybe(COUNTS),
                    oldest_age_s=maybe(AGES_S),
                ),
                max_size=2,
                unique_by=lambda sample: sample.queue,
            ).map(tuple)
        ),
        slots_per_worker=draw(st.integers(1, 8)),
        start_up_s=draw(maybe(st.floats(0, 60))),
        capacity_workers=draw(maybe(WORKERS)),
        assigned_workers=draw(WORKERS),
        running_workers=running,
        starting_workers=draw(st.integers(0, 50)),
        unknown_workers=draw(st.integers(0, 20)),
        busy_workers=draw(maybe(st.integers(0, running))),
        recalled_jobs=draw(maybe(st.floats(0, 500))),
        lag_s=draw(st.floats(0, 5)),
        worker_hours_today=draw(maybe(st.floats(0, 2_000))),
    )


MEMORIES = st.builds(
    Memory,
    target_workers=maybe(WORKERS),
    wanted=st.lists(
        st.builds(Wanted, at_s=st.floats(0, 100).map(lambda ago_s: NOW_S - ago_s), workers=WORKERS), max_size=3
    ).map(lambda rows: tuple(sorted(rows, key=lambda row: row.at_s))),
)


def by_every_strategy(view: PoolView) -> Iterator[PoolView]:
    """``view`` once for each strategy that comes with Headway."""
    for name in sorted(BUILT_IN):
        yield by(name, view)


def by(name: str, view: PoolView) -> PoolView:
    return replace(
        view,
        profile=replace(view.profile, strategy=name),
        options={**BUILT_IN[name].options, **view.profile.strategy_options},
    )
