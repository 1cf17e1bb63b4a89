"""Law 10. One pool's failure does not touch another's.

Who catches an exception is the tick (tests/control/test_tick.py). Here is what makes that enough: nothing is shared
between two pools but room, and of that no more than was theirs anyway.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.errors import Invalid
from headway.scaling.allocation.allocate import allocate
from headway.scaling.decide import decide
from headway.scaling.model import Host, Memory, Worker
from headway.scaling.placement.pool_parts import placed_workers
from headway.scaling.profile import profile_from_mapping
from headway.scaling.reconcile import Drain, reconcile
from headway.scaling.view import PoolView
from scaling.laws.drawn import LAW, MEMORIES, by_every_strategy, views
from scaling.laws.fleets import HOSTS, WORKERS, outcomes, pools, rows_of
from support.pools import NOW_S


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
