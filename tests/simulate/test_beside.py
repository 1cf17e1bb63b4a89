"""Pools of a scenario beside each other: each by its own objective, and missing places with their reason."""

import pytest

from headway.errors import Invalid
from headway.scaling.group import Group
from headway.scaling.model import Host, Objective
from headway.scaling.profile import Placement, Profile
from headway.simulate.engine.faults import HostOutage, Stretch
from headway.simulate.engine.results import Result
from headway.simulate.studies.pool_group import GROUP_STALLED_S, PoolLoad, rehearse_beside
from headway.simulate.studies.single_pool import Setting, rehearse
from headway.simulate.workloads.jobs import Jobs
from simulate.stepping import jobs
from support.hosts import any_host, costing

CORES = {"rq": 1.0, "wide": 4.0, "giant": 16.0}


def host(name: str, *, cores: float, **values: object) -> Host:
    return any_host(name, cpu_cores=cores, memory_bytes=64 * 1024**3, templates=costing(CORES), **values)


def load(pool: str, workload: Jobs, *, start_up_s: float | None = None, slots: int = 1, **values: object) -> PoolLoad:
    plain = {"queues": (f"redis/{pool}",), "template": "rq", "objective": Objective(target_s=10.0), "workers_max": 8}
    return PoolLoad(
        profile=Profile(pool=pool, **{**plain, **values}), jobs=workload, start_up_s=start_up_s, slots=slots
    )


def found(loads: list[PoolLoad], hosts: list[Host], **setting: object) -> dict[str, Result]:
    return {result.pool: result for result in rehearse_beside(loads, hosts, Setting(**setting))}


STEADY = Jobs(at_s=[float(number) for number in range(600)], service_s=[2.0] * 600)
CROWD = Jobs(at_s=[float(number) / 4 for number in range(1200)], service_s=[2.0] * 1200)


def test_a_pool_alone_with_room_for_all_is_what_it_is_by_itself() -> None:
    alone = rehearse(STEADY, load("a", STEADY).profile, Setting(hosts=2, workers_per_host=4))
    (beside,) = found([load("a", STEADY)], [host("x", cores=4), host("y", cores=4)]).values()
    for name in ("attainment_percent", "pickup_p95_s", "spawns", "flips", "unplaced"):
        assert getattr(beside, name) == getattr(alone, name), name


def test_each_pool_is_judged_by_its_own_promise() -> None:
    """Both wait 30 s for the only host: in time for who promises a minute."""
    outage = HostOutage(host_id="x", stretch=Stretch(from_s=0.0, until_s=30.0))
    loads = [
        load(name, jobs((1, 1)), objective=Objective(target_s=target_s)) for name, target_s in (("a", 10), ("b", 60))
    ]
    reached = found(loads, [host("x", cores=8)], host_outages=(outage,))
    assert [reached[name].attainment_percent for name in "ab"] == [0.0, 100.0]
    assert [reached[name].objective_s for name in "ab"] == [10, 60]


def test_workers_start_and_have_slots_as_their_template_says() -> None:
    loads = [load("a", jobs((0, 1)), start_up_s=7.0), load("b", jobs((0, 3), (0, 3)), slots=2, workers_max=1)]
    reached = found(loads, [host("x", cores=8)], start_up_s=1.0)
    assert reached["a"].pickup_max_s == pytest.approx(7.0)
    assert reached["b"].pickup_max_s == pytest.approx(1.0)  # both jobs by the one worker


def test_what_has_its_place_is_not_reported() -> None:
    reached = found([load("a", STEADY), load("b", STEADY)], [host("x", cores=16)])
    assert [result.unplaced for result in reached.values()] == [None, None]


def test_a_worker_that_no_host_can_hold_is_reported_with_what_would_help() -> None:
    reached = found(
        [load("a", STEADY), load("g", jobs((0, 1)), template="giant", workers_min=1, workers_max=2)],
        [host("x", cores=8)],
    )
    missing = reached["g"].unplaced
    assert missing is not None
    assert missing.reasons[0].text.endswith(
        "one takes 16 cores, and no host is that large (largest: 8 cores on host x); add a host of 16 cores"
    )
    assert missing.reasons[0].text.startswith("workers_min 1: 0 placed")
    assert reached["g"].unserved_jobs == 1
    # Nobody waits for a day for what will never come.
    assert missing.for_s == pytest.approx(600 + GROUP_STALLED_S, abs=60)


def test_room_in_pieces_is_distinguished_from_no_room() -> None:
    """Six narrow floors leave two cores on each of two hosts of five: four, and nowhere enough for a worker of four."""
    narrow = load("n", STEADY, workers_min=6, workers_max=6, placement=Placement(spread="host"))
    wide = load("w", jobs((60, 1), (300, 1)), template="wide", workers_max=1)
    missing = found([narrow, wide], [host(name, cores=5) for name in "xy"])["w"].unplaced
    assert missing is not None
    assert [each.text for each in missing.reasons] == [
        "room is left, but in pieces: no host has enough for one worker more"
    ]


def test_scarce_room_is_reported_for_whoever_gets_less() -> None:
    reached = found([load(name, CROWD) for name in "ab"], [host("x", cores=10)])
    for name in "ab":
        missing = reached[name].unplaced
        assert missing is not None
        assert {each.text for each in missing.reasons} == {"room is short, and this is its share of it"}
        assert 0 < missing.workers_max <= 8
        assert missing.worker_hours * 3600 <= missing.workers_max * missing.for_s


def test_while_a_host_is_gone_its_workers_have_no_place() -> None:
    outage = HostOutage(host_id="y", stretch=Stretch(from_s=100.0, until_s=200.0))
    (result,) = found(
        [load("a", CROWD, workers_min=8)], [host("x", cores=4), host("y", cores=4)], host_outages=(outage,)
    ).values()
    assert result.unplaced is not None
    assert result.unplaced.workers_max == 4
    assert result.unplaced.for_s == pytest.approx(100.0, abs=10.0)


def test_workers_are_paid_until_all_pools_are_done() -> None:
    """A floor of two that has nothing to do for ten minutes is paid for them, as the hosts are."""
    loads = [load("a", jobs((0, 1)), workers_min=2), load("b", jobs((600, 1)))]
    assert found(loads, [host("x", cores=8)])["a"].worker_hours * 3600 == pytest.approx(2 * 603, abs=15)


def test_two_pools_of_a_name_are_refused() -> None:
    with pytest.raises(Invalid, match="pool 'a' is rehearsed twice"):
        found([load("a", STEADY), load("a", CROWD)], [host("x", cores=8)])


def test_wherever_it_runs_the_same_comes_out() -> None:
    loads = [load("a", CROWD), load("w", jobs((60, 20), (90, 20)), template="wide", workers_min=1)]
    hosts = [host(name, cores=5) for name in "xyz"]
    first, second = (rehearse_beside(loads, hosts, Setting(start_up_spread=0.5, seed=3)) for _ in range(2))
    assert first == second


def test_pools_of_a_group_share_its_cap_and_lack_no_place_for_it() -> None:
    loads = [load("a", CROWD), load("b", CROWD)]
    hosts, setting = [host("x", cores=64)], Setting()
    group = Group(name="database", workers_max=9, pools=("a", "b"))
    apart = {each.pool: each for each in rehearse_beside(loads, hosts, setting)}
    capped = {each.pool: each for each in rehearse_beside(loads, hosts, setting, groups=[group])}
    assert sum(each.worker_hours for each in capped.values()) < sum(each.worker_hours for each in apart.values())
    assert all(each.unplaced is None for each in capped.values())
    assert all(each.unserved_jobs == 0 for each in capped.values())
    by_tick = list(zip(*(each.points for each in capped.values()), strict=True))
    assert max(sum(each.target_workers for each in points) for points in by_tick) == 9
    assert max(sum(each.present_workers for each in points) for points in by_tick) <= 9
