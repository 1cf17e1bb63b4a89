"""Law 10. One pool's failure does not touch another's.

Who catches an exception is the tick (tests/control/test_tick.py). Here is what makes that enough: nothing is shared
between two pools but room, and of that no more than was theirs anyway.
"""

import math
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.errors import Invalid
from headway.scaling.allocation.allocate import allocate
from headway.scaling.decisions.outcome import Outcome
from headway.scaling.model import (
    Arrivals,
    Decision,
    Host,
    HostCapacity,
    Memory,
    Objective,
    QueueMetrics,
    QueueSample,
    Step,
    Worker,
)
from headway.scaling.placement.pool_parts import placed_workers
from headway.scaling.profile import profile_from_mapping
from headway.scaling.reconcile import Drain, reconcile
from headway.scaling.view import PoolView, copied
from scaling.laws.drawn import LAW, MEMORIES, by_every_strategy, views
from scaling.laws.fleets import HOSTS, TEMPLATE, WORKERS, outcomes, pools, rows_of
from support.installed import decide
from support.pools import NOW_S, profile, queue, view


@LAW
@given(hosts=HOSTS, data=st.data())
def test_a_pool_that_could_not_be_decided_keeps_its_workers(hosts: list[Host], data: st.DataObject) -> None:
    """Its rows are held: whatever the others want, they stay, and the others get what is left."""
    _, rows = allocate(data.draw(pools(hosts)), hosts, [])
    failing = data.draw(st.sampled_from(["mail", "news", "video"]))
    held = [row for row in rows if row.pool == failing]
    others = tuple(each for each in data.draw(pools(hosts)) if each.decision.pool != failing)
    after, placed = allocate(others, hosts, [row for row in rows if row.pool != failing], held=held)
    assert failing not in placed_workers(placed)
    for outcome in after:
        if outcome.view.capacity_workers is not None:
            assert placed_workers(placed).get(outcome.decision.pool, 0) == outcome.decision.target_workers
    for host in hosts:
        standing = sum(row.workers for row in (*held, *placed) if row.host_id == host.host_id)
        assert standing <= max(host.capacity.cpu_cores, sum(row.workers for row in rows_of(host.host_id, held)))


NON_FINITE = st.sampled_from([math.nan, math.inf, -math.inf])


def floats_of(kind: type[Any]) -> st.SearchStrategy[str]:
    """The name of a field that holds a number."""
    return st.sampled_from([each.name for each in fields(kind) if each.type in (float, float | None)])


@st.composite
def spoilt(draw: st.DrawFn, outcome: Outcome) -> Outcome:
    """The outcome with a figure in its view that is no number; the decision may show the figure, too."""
    view = outcome.view
    (queue,) = view.queues
    where = draw(st.sampled_from([PoolView, QueueMetrics, QueueMetrics, Arrivals, QueueSample]))
    spoils = {draw(floats_of(where)): draw(NON_FINITE)}
    if where is PoolView:
        return replace(outcome, view=replace(view, **spoils))
    if where is QueueSample:
        sample = QueueSample(queue=queue.queue, at_s=NOW_S, waiting_jobs=1)
        return replace(outcome, view=replace(view, direct=(copied(sample, **spoils),)))  # a source's would be refused
    spoils = {"arrivals": (Arrivals(jobs=1, **spoils),)} if where is Arrivals else spoils
    queue = replace(queue, **spoils)
    metrics = (queue,) if draw(st.booleans()) else outcome.decision.metrics
    return replace(outcome, view=replace(view, queues=(queue,)), decision=replace(outcome.decision, metrics=metrics))


@LAW
@given(hosts=HOSTS, data=st.data())
def test_a_pool_with_a_number_that_is_none_keeps_its_workers_and_touches_no_other(
    hosts: list[Host], data: st.DataObject
) -> None:
    """Its evaluation has failed: the others get what they would get beside its rows."""
    before = [data.draw(outcomes(pool, hosts)) for pool in ("mail", "news", "video")]
    _, rows = allocate(before, hosts, [])
    failing = data.draw(st.sampled_from(["mail", "news", "video"]))
    after = [data.draw(outcomes(pool, hosts)) for pool in ("mail", "news", "video")]
    spoiled = [data.draw(spoilt(each)) if each.decision.pool == failing else each for each in after]
    held = [row for row in rows if row.pool == failing]
    others = [row for row in rows if row.pool != failing]

    left, placed = allocate(spoiled, hosts, rows)
    expected, beside = allocate([each for each in after if each.decision.pool != failing], hosts, others, held=held)

    assert [each.decision.pool for each in left] == ["mail", "news", "video"]
    assert tuple(each for each in left if each.decision.pool != failing) == expected
    assert [row for row in placed if row.pool != failing] == list(beside)
    assert [row for row in placed if row.pool == failing] == held
    (failed,) = (each for each in left if each.decision.pool == failing)
    if held or next(each for each in after if each.decision.pool == failing).decision.target_workers:
        assert failed.decision.target_workers == sum(row.workers for row in held)
        assert failed.decision.binding == "failed"
        assert "not evaluated: " in failed.decision.notes[-1]
        assert failed.memory == failed.before, "nothing is learned of it"


@pytest.mark.parametrize("cpu_cores", [4.0, 40.0])
@pytest.mark.parametrize("age_s", [math.nan, math.inf, -math.inf])
def test_an_age_that_is_no_number_is_its_own_pools_failure(age_s: float, cpu_cores: float) -> None:
    """Where room is short the pools are compared by what their jobs have waited."""
    hosts = [
        Host(
            host_id="a",
            name="a",
            capacity=HostCapacity(cpu_cores=cpu_cores, memory_bytes=100_000),
            templates=(TEMPLATE,),
        )
    ]
    good, bad = (a_busy_pool(pool, age_s=age) for pool, age in (("mail", 20.0), ("news", age_s)))
    left, rows = allocate([good, bad], hosts, [])
    assert left[0] == allocate([good], hosts, [])[0][0]
    assert {row.pool: row.workers for row in rows} == {"mail": min(int(cpu_cores), 9)}
    assert left[1].decision.notes[-1] == (
        f"not evaluated: oldest_age_s={age_s} of queue 'redis/news'; the pool keeps the workers that are assigned to it"
    )


@pytest.mark.parametrize("age_s", [1e300, 1.7e308])  # twice that, and twice an objective of 0.5 s, is infinite
def test_an_age_beyond_all_ages_is_an_age(age_s: float) -> None:
    """As one in the wrong unit: the pool is urgent, and no pool goes without for it."""
    hosts = [
        Host(host_id="a", name="a", capacity=HostCapacity(cpu_cores=6.0, memory_bytes=1_000), templates=(TEMPLATE,))
    ]
    pools = [a_busy_pool(pool, age_s=age) for pool, age in (("mail", 20.0), ("news", age_s))]
    left, rows = allocate(pools, hosts, [])
    assert all(each.decision.binding == "share" for each in left)
    assert {row.pool for row in rows} == {"mail", "news"}


def a_busy_pool(pool: str, *, age_s: float) -> Outcome:
    """One that asks for nine workers and has an objective of 0.5 s, with a job that has waited for so long."""
    jobs = queue(queue=f"redis/{pool}", waiting_jobs=9, oldest_age_s=age_s)
    seen = view(
        jobs,
        profile=profile(pool=pool, queues=(jobs.queue,), template=TEMPLATE.name, objective=Objective(target_s=0.5)),
    )
    decision = Decision(
        pool=pool,
        at_s=NOW_S,
        target_workers=9,
        binding="backlog_drain",
        objective=seen.profile.objective,
        steps=(Step(name="wanted", workers=9),),
        metrics=(jobs,),
    )
    return Outcome(view=seen, before=Memory(), decision=decision, memory=Memory(target_workers=9))


@LAW
@given(hosts=HOSTS, data=st.data())
def test_a_pool_of_lower_priority_takes_nothing_that_is_not_guaranteed(hosts: list[Host], data: st.DataObject) -> None:
    mine = data.draw(outcomes("mail", hosts))
    high = replace(mine, view=replace(mine.view, profile=replace(mine.view.profile, priority=9)))
    greedy = data.draw(outcomes("news", hosts))
    greedy = replace(greedy, view=replace(greedy.view, profile=replace(greedy.view.profile, workers_min=0)))
    (alone,), _ = allocate([high], hosts, [])
    (beside, _), _ = allocate([high, greedy], hosts, [])
    assert beside.decision == alone.decision


@LAW
@given(workers=WORKERS, hosts=HOSTS, data=st.data())
def test_reconcile_starts_and_stops_nobody_elses_workers_where_one_pool_crash_loops(
    workers: list[Worker], hosts: list[Host], data: st.DataObject
) -> None:
    _, rows = allocate(data.draw(pools(hosts)), hosts, [])
    crashing = data.draw(st.sampled_from(["mail", "news", "video"]))
    pool_of = {worker.worker_id: worker.pool for worker in workers}

    def to_do(among: list[Worker], host_id: str) -> list[Any]:
        actions = reconcile(among, rows_of(host_id, rows))
        return [
            action
            for action in actions
            if (pool_of[action.worker_id] if isinstance(action, Drain) else action.pool) != crashing
        ]

    for host in hosts:
        others = [worker for worker in workers if worker.pool != crashing]
        assert to_do(workers, host.host_id) == to_do(others, host.host_id)


@LAW
@given(view=views(), other=views(), memory=MEMORIES, other_memory=MEMORIES)
def test_deciding_leaves_nothing_behind(view: PoolView, other: PoolView, memory: Memory, other_memory: Memory) -> None:
    """The same view, memory and time give the same decision, whatever was decided in between."""
    for seen, strange in zip(by_every_strategy(view), by_every_strategy(other), strict=True):
        before = decide(seen, memory, now_s=NOW_S)
        decide(strange, other_memory, now_s=NOW_S + 1e6)
        assert decide(seen, memory, now_s=NOW_S) == before


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=20) | st.integers(), inner, max_size=4)
    ),
    max_leaves=12,
)
KEYS = st.sampled_from(
    [
        "queues", "template", "preset", "mode", "pause", "override", "objective", "member_objectives", "workers_min",
        "workers_max", "activation_jobs", "activation_wait_s", "schedules", "pinned", "rate_limit_per_s", "priority",
        "weight", "strategy", "strategy_options", "risk", "forecast", "hold_up_s", "hold_down_s", "step_up_workers",
        "step_up_fraction", "tolerance_fraction", "stale_after_s", "fallback_workers", "fallback_after_s",
        "fallback", "fallback_after_evaluations", "cost_per_worker_hour", "budget_per_day", "service_time_guess_s",
    ]
)  # fmt: skip
NEARLY = (
    st.sampled_from(
        ["critical", "balanced", "act", "pause", "hybrid", "mail", "auto", "", " ", "08:00", "25:99", "UTC"]
    )
    | st.fixed_dictionaries({}, optional={"target_s": ANYTHING, "percentile": ANYTHING, "window_s": ANYTHING})
    | st.fixed_dictionaries({}, optional={"mode": ANYTHING, "until_s": ANYTHING, "reason": ANYTHING})
    | st.fixed_dictionaries({}, optional={"workers": ANYTHING, "until_s": ANYTHING, "reason": ANYTHING})
    | st.lists(
        st.fixed_dictionaries(
            {},
            optional={
                "starts": ANYTHING | st.sampled_from(["08:00", "2026-11-27T08:00", "2026-11-27T08:00+01:00"]),
                "ends": ANYTHING | st.sampled_from(["24:00", "2026-11-28T08:00", "0001-01-01T00:00-23:59"]),
                "days": ANYTHING | st.lists(st.sampled_from(["mon", "sun", "someday"]), max_size=3),
                "time_zone": ANYTHING,
                "workers_min": ANYTHING,
            },
        ),
        max_size=2,
    )
    | st.integers(0, 10)
    | st.floats(0, 100)
    | st.just(10**400)
)


@given(
    pool=st.text(max_size=10),
    values=st.dictionaries(KEYS | st.text(max_size=10), ANYTHING | NEARLY, max_size=8)
    | st.dictionaries(KEYS, NEARLY, max_size=8).map(
        lambda given: {"queues": ["redis/mail"], "template": "rq", **given}
    ),
)
def test_of_a_profile_nothing_but_invalid_escapes(pool: str, values: Mapping[Any, Any]) -> None:
    """What a person wrote may be anything: the tick knows it by one error."""
    profile, breaches = None, ()
    try:
        profile = profile_from_mapping(pool, values)
    except Invalid as error:
        breaches = error.breaches
    assert profile or breaches
    assert all(f"profile {pool!r}" in breach for breach in breaches)


@pytest.mark.parametrize("values", [{}, {"queues": None}, {"objective": []}, {"preset": []}, {"preset": {}}, {1: 2}])
def test_a_profile_of_the_wrong_shape_is_reported(values: Mapping[Any, Any]) -> None:
    with pytest.raises(Invalid):
        profile_from_mapping("mail", values)
