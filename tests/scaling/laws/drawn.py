"""What the laws are tried on: pools, memories and hosts of every kind, the unlikely ones included."""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st

from headway.scaling.model import Arrivals, Memory, Mode, Objective, QueueMetrics, QueueOrder, QueueSample, Wanted
from headway.scaling.profile import Fallback, Override, Pause, Profile
from headway.scaling.profile_keys.pauses import PAUSES
from headway.scaling.profile_keys.schedule import Schedule
from headway.scaling.view import PoolView
from support.installed import INSTALLED
from support.pools import NOW_S

LAW = settings(max_examples=max(30, settings.default.max_examples))
"""For laws that decide for every strategy, a dozen times an example: thirty at least, whatever the profile."""

# Each strategy is made once: what Hypothesis finds out of one, it finds out anew of another made in its place.
AGES_S = st.floats(0, 1_000)
RATES = st.floats(0, 500)
SERVICE_S = st.floats(0.001, 600)
COUNTS = st.integers(0, 5_000)
WORKERS = st.integers(0, 300)
MODES = st.sampled_from(list(Mode))
ENDS_S = (NOW_S - 60, NOW_S, NOW_S + 60)


def maybe(known: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | known


def possible(limits: dict[str, Any]) -> dict[str, Any]:
    """``limits`` without those that contradict others."""
    if limits["mode"] is Mode.RECOMMEND:
        limits = {**limits, "pause": None}
    if limits["fallback"] is Fallback.CURRENT:
        return {**limits, "fallback_workers": None}
    return limits if limits["fallback_workers"] else {**limits, **NO_FALLBACK}


NO_FALLBACK = {"fallback": Fallback.FIXED, "fallback_after_evaluations": None}
ARRIVALS = st.lists(
    st.builds(Arrivals, jobs=st.integers(1, 500), ended_ago_s=st.floats(0, 600)), max_size=5, unique_by=lambda a: a
).map(lambda rows: tuple(sorted(rows, key=lambda row: row.ended_ago_s)))


@cache
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
        retried_jobs=maybe(st.integers(0, 500)),
        retry_rate_per_s=maybe(RATES),
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


BOUNDS = st.builds(
    lambda low, more: {"workers_min": low, "workers_max": low + more}, st.integers(0, 50), st.integers(0, 200)
)
OBJECTIVES = st.builds(Objective, target_s=st.floats(0.5, 600), percentile=st.floats(50, 99.9))
LIMITS = st.fixed_dictionaries(
    {
        "mode": MODES,
        "pause": maybe(st.builds(Pause, mode=st.sampled_from(sorted(PAUSES)), until_s=maybe(st.sampled_from(ENDS_S)))),
        "override": maybe(st.builds(Override, workers=WORKERS, until_s=st.just(NOW_S + 60), reason=st.just("why"))),
        "rate_limit_per_s": maybe(st.floats(0.01, 100)),
        "hold_up_s": st.sampled_from([0.0, 30.0]),
        "hold_down_s": maybe(st.floats(0, 60)),
        "risk": st.sampled_from([0.1, 1.0, 10.0]),
        "step_up_workers": maybe(st.integers(1, 20)),
        "step_down_fraction": maybe(st.floats(0.01, 1)),
        "tolerance_fraction": st.floats(0, 0.9),
        "activation_jobs": st.sampled_from([0, 0, 0, 3]),
        "fallback_workers": maybe(st.integers(1, 100)),
        "fallback": st.sampled_from(list(Fallback)),
        "fallback_after_evaluations": maybe(st.integers(1, 2)),
    }
).map(lambda limits: possible(limits))
COSTS = st.fixed_dictionaries(
    {
        "cost_per_worker_hour": st.floats(0.01, 10),
        "budget_per_hour": maybe(st.floats(0.01, 5_000)),
        "budget_per_day": maybe(st.floats(0.01, 5_000)),
    }
)
MAYBE_COSTS = st.just({}) | COSTS


def drawn_profile(draw: st.DrawFn, names: tuple[str, ...], *, is_plain: bool) -> Profile:
    """A profile with any of its limits; ``is_plain``: with nothing but bounds."""
    bounds, objective = draw(BOUNDS), draw(OBJECTIVES)
    of_member = draw(maybe(OBJECTIVES)) if len(names) > 1 else None
    of_members = {} if of_member is None else {names[0]: of_member}
    plain = Profile(
        pool="mail", queues=names, template="mail", objective=objective, member_objectives=of_members, **bounds
    )
    if is_plain:
        return plain
    raised = {**bounds, "workers_max": bounds["workers_max"] + 7}
    schedules = (Schedule(starts="00:00", ends="24:00", **raised),) if draw(st.booleans()) else ()
    return replace(plain, schedules=schedules, **draw(LIMITS), **draw(MAYBE_COSTS))


@cache
def samples(names: tuple[str, ...]) -> st.SearchStrategy[tuple[QueueSample, ...]]:
    """Readings that came round the pipeline, at most one a queue."""
    one = st.builds(
        QueueSample,
        queue=st.sampled_from(names),
        at_s=st.floats(0, 600).map(lambda ago_s: NOW_S - ago_s),
        waiting_jobs=COUNTS,
        in_flight_jobs=maybe(COUNTS),
        oldest_age_s=maybe(AGES_S),
    )
    return st.lists(one, max_size=2, unique_by=lambda sample: sample.queue).map(tuple)


@cache
def busy(running: int) -> st.SearchStrategy[int | None]:
    return maybe(st.integers(0, running))


def startable(view: PoolView, ceiling: int, *, busy_workers: int = 0) -> int:
    """Of ``ceiling`` what the pool may have: less what may run unseen, but for busy workers; and where some still
    leave, nothing more starts than may exist with them, but what is assigned may stay.
    """
    known = max(0, ceiling - view.unknown_workers, min(ceiling, busy_workers))
    return min(known, max(view.assigned_workers, known - view.leaving_workers))


SAMPLED_AGO_S = st.none() | st.floats(0, 20) | st.floats(21, 3_000)
OF_POOL = st.fixed_dictionaries(
    {
        "slots_per_worker": st.integers(1, 8),
        "queue_order": st.sampled_from([None, *QueueOrder]),
        "strict_queues": st.sampled_from([("mail", "news"), ("news", "mail"), ("mail",)]),
        "start_up_s": maybe(st.floats(0, 60)),
        "capacity_workers": maybe(WORKERS),
        "assigned_workers": WORKERS,
        "running_workers": st.integers(0, 100),
        "starting_workers": st.integers(0, 50),
        "unknown_workers": st.integers(0, 20),
        "leaving_workers": st.sampled_from([0, 0, 3, 30]),
        "taken_jobs": st.sampled_from([0, 0, 1, 9]),
        "dispatch_overhead_s": maybe(st.floats(0, 0.5)),
        "recalled_jobs": maybe(st.floats(0, 500)),
        "lag_s": st.floats(0, 5),
        "worker_hours_today": maybe(st.floats(0, 2_000)),
    }
)


@st.composite
def views(
    draw: st.DrawFn, *, sampled_ago_s: st.SearchStrategy[Any] = SAMPLED_AGO_S, is_plain: bool = False
) -> PoolView:
    """A pool at ``NOW_S`` with the strategy ``hybrid``; ``is_plain``: its profile has nothing but bounds."""
    names = ("redis/mail", "redis/news")[: draw(st.integers(1, 2))]
    of_pool = draw(OF_POOL)
    return PoolView(
        profile=drawn_profile(draw, names, is_plain=is_plain),
        queues=tuple(draw(queues(name, sampled_ago_s=sampled_ago_s)) for name in names),
        direct=draw(samples(names)),
        busy_workers=draw(busy(of_pool["running_workers"])),
        **of_pool,
    )


MEMORIES = st.builds(
    Memory,
    target_workers=maybe(WORKERS),
    paused_workers=maybe(WORKERS),
    wanted=st.lists(
        st.builds(Wanted, at_s=st.floats(0, 100).map(lambda ago_s: NOW_S - ago_s), workers=WORKERS), max_size=3
    ).map(lambda rows: tuple(sorted(rows, key=lambda row: row.at_s))),
)


def by_every_strategy(view: PoolView) -> Iterator[PoolView]:
    """``view`` once for each strategy that comes with Headway."""
    for name in sorted(INSTALLED):
        yield by(name, view)


def by(name: str, view: PoolView) -> PoolView:
    return replace(
        view,
        profile=replace(view.profile, strategy=name),
        options={**INSTALLED[name].options, **view.profile.strategy_options},
    )
