"""Pools of a rehearsal share the room of their hosts as live ones do."""

from contextlib import suppress
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.scaling.metrics.behaviour import Behaviour, Spread
from headway.scaling.model import Host, Objective
from headway.scaling.profile import Profile
from headway.simulate.controller import Controller, Observation
from headway.simulate.engine.faults import HostOutage, Stretch
from headway.simulate.engine.results import Result
from headway.simulate.engine.simulation import Rehearsal, simulate
from headway.simulate.engine.simulation_plan import PoolPlan
from headway.simulate.workloads.jobs import Jobs
from simulate.stepping import Script, always, by_time, jobs
from support.hosts import any_host, costing

NAMES = ("a", "b", "c", "d", "e", "f")


def host(name: str, *, cores: float, costs: dict[str, float] | None = None) -> Host:
    kinds = costing(costs or {"rq": 1.0})
    return any_host(name, cpu_cores=cores, memory_bytes=64 * 1024**3, templates=kinds)


def profile(pool: str, **values: object) -> Profile:
    given_ = {"queues": (f"redis/{pool}",), "template": "rq", "objective": Objective(target_s=10.0), "workers_max": 20}
    return Profile(pool=pool, **{**given_, **values})


def rehearsed(
    profiles: list[Profile], workloads: list[Jobs], hosts: list[Host], **rehearsal: object
) -> dict[str, Result]:
    plans = [
        PoolPlan(jobs=workload, name=each.pool, template=each.template, workers_max=each.workers_max)
        for each, workload in zip(profiles, workloads, strict=True)
    ]
    controllers = [Controller(profile=each) for each in profiles]
    results = simulate(plans, controllers, rehearsal=Rehearsal(hosts=tuple(hosts), **rehearsal))
    return {result.pool: result for result in results}


def crowd(seed: int) -> Jobs:
    """Two jobs of 2 s a second for ten minutes: four workers' worth of work."""
    chance, at_s, found = Random(seed), 0.0, []
    while at_s < 600.0:
        at_s += chance.expovariate(2.0)
        found.append(at_s)
    return Jobs(at_s=found, service_s=[2.0] * len(found))


@pytest.mark.parametrize("order", [NAMES, NAMES[::-1]])
def test_equal_pools_come_to_the_same_whatever_their_names(order: tuple[str, ...]) -> None:
    """Six pools bring work for four workers each, and there is room for just 24: nobody is served before the others."""
    found = rehearsed([profile(name) for name in order], [crowd(1)] * 6, [host("x", cores=12), host("y", cores=12)])
    reached = [found[name].attainment_percent for name in NAMES]
    assert max(reached) - min(reached) < 2.0
    assert min(reached) > 75.0
    hours = [found[name].worker_hours for name in NAMES]
    assert max(hours) < 1.02 * min(hours)


def test_the_pool_of_greater_priority_is_served_first() -> None:
    profiles = [profile("a", priority=1), profile("b", priority=200)]
    found = rehearsed(profiles, [crowd(1), crowd(2)], [host("x", cores=5)])
    assert found["b"].attainment_percent > 95 > 50 > found["a"].attainment_percent


def test_a_floor_is_kept_beside_a_pool_that_wants_everything() -> None:
    profiles = [profile("a", workers_min=2), profile("b", workers_max=40, priority=200)]
    waits = Jobs(at_s=[100.0], service_s=[1.0])
    found = rehearsed(profiles, [waits, Jobs(at_s=[0.0] * 400, service_s=[5.0] * 400)], [host("x", cores=8)])
    assert found["a"].pickup_max_s == 0.0


def test_a_decision_that_room_cut_is_what_the_next_one_starts_from() -> None:
    """As live: the target that is recorded is what sharing left."""
    (result,) = rehearsed([profile("a")], [Jobs(at_s=[0.0] * 50, service_s=[30.0] * 50)], [host("x", cores=3)]).values()
    assert max(point.target_workers for point in result.points) == 3
    assert max(point.present_workers for point in result.points) == 3


def test_the_next_decision_goes_on_from_what_sharing_left() -> None:
    """Two more at a time: from the four that were wanted to six, from the three that were had to five."""
    wanted, had = (Controller(profile=profile("a", step_up_workers=2)) for _ in range(2))
    for controller in (wanted, had):
        for at_s in (0.0, 5.0):
            controller.step(Observation(at_s=at_s, waiting=50, oldest_age_s=9.0, arrived=50))
    assert had.outcome is not None
    had.continue_from(replace(had.outcome.memory, target_workers=3))
    observation = Observation(at_s=10.0, waiting=50, oldest_age_s=14.0, workers=3, starting=3)
    assert [controller.step(observation).target_workers for controller in (wanted, had)] == [6, 5]


def test_a_wide_worker_gets_its_place_from_narrow_ones() -> None:
    """Eight narrow workers fill two hosts of four cores; one of four cores gets its floor when some have left."""
    kinds = {"rq": 1.0, "wide": 4.0}
    profiles = [profile("a", workers_max=8), profile("w", template="wide", workers_min=1, workers_max=1)]
    narrow = Jobs(at_s=[float(number) / 4 for number in range(2400)], service_s=[2.0] * 2400)
    wide = Jobs(at_s=[60.0], service_s=[5.0])
    found = rehearsed(profiles, [narrow, wide], [host(name, cores=4, costs=kinds) for name in "xy"])
    assert found["w"].unserved_jobs == 0
    assert found["w"].pickup_max_s is not None
    assert found["w"].pickup_max_s < 30


room = st.lists(st.integers(0, 6), min_size=1, max_size=3)
wishes = st.lists(st.lists(st.integers(0, 9), min_size=4, max_size=4), min_size=1, max_size=3)


@given(room, wishes, st.integers(0, 3))
def test_no_host_ever_holds_more_than_its_room(cores: list[int], targets: list[list[int]], outage_at: int) -> None:
    """Whoever decides what, and while a host is gone: leaving workers count as well."""
    hosts = tuple(host(str(number), cores=each) for number, each in enumerate(cores))
    names = NAMES[: len(targets)]
    work = jobs(*((float(number), 7.0) for number in range(20)))
    scripts = [Script(lambda seen, of=of: of[int(seen.at_s / 5) % 4]) for of in targets]
    outage = HostOutage(host_id="0", stretch=Stretch(from_s=5.0 * outage_at + 1, until_s=40.0))
    plans = [PoolPlan(jobs=work, name=name, template="rq", start_up_s=1.0) for name in names]
    present: list[bool] = []

    def on_tick(now_s: float) -> None:
        seen = [script.seen[-1] for script in scripts]
        present.append(sum(each.workers for each in seen) <= sum(cores))
        if now_s >= 90.0:
            raise TimeoutError  # where there is no room it would go on for a day

    with suppress(TimeoutError):
        simulate(plans, scripts, rehearsal=Rehearsal(hosts=hosts, host_outages=(outage,)), on_tick=on_tick)
    assert all(present)
    assert all(seen.capacity_workers is not None for script in scripts for seen in script.seen)


def test_where_nothing_can_run_nothing_is_wanted_and_all_comes_back() -> None:
    outage = HostOutage(host_id="x", stretch=Stretch(from_s=60.0, until_s=120.0))
    (result,) = rehearsed([profile("a")], [crowd(3)], [host("x", cores=8)], host_outages=(outage,)).values()
    assert result.unserved_jobs == 0
    during = [point for point in result.points if 65 <= point.at_s < 120]
    assert {point.present_workers for point in during} == {0}
    assert result.deaths > 0


def test_a_foreign_controller_shares_with_the_products_own() -> None:
    plans = [PoolPlan(jobs=crowd(1), name="a", template="rq"), PoolPlan(jobs=crowd(2), name="b", template="rq")]
    script = always(6)
    controllers = (script, Controller(profile=profile("b")))
    simulate(plans, controllers, rehearsal=Rehearsal(hosts=(host("x", cores=8),)))
    assert 3 <= max(seen.workers for seen in script.seen) <= 6


def test_a_wake_settles_the_pool_beside_the_others_as_they_were() -> None:
    plans = [
        PoolPlan(jobs=jobs((0, 60), (0, 60)), name="a", template="rq"),
        PoolPlan(jobs=jobs((11, 1)), name="b", template="rq"),
    ]
    first, second = always(2), by_time((0, 0), (11, 1))
    behaviour = Behaviour(wake_delay=Spread(p50_s=0.5, p95_s=0.5))
    results = simulate(plans, (first, second), rehearsal=Rehearsal(hosts=(host("x", cores=3),), behaviour=behaviour))
    assert results[1].pickup_max_s == pytest.approx(0.5 + 2.0)
    assert {seen.workers for seen in first.seen[1:3]} == {2}
