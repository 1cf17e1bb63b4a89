from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.errors import Invalid
from headway.scaling.model import Assignment, Host, Template, Worker, WorkerState
from headway.scaling.placement.host_capacity import HOST_PROCESSES_MAX
from headway.scaling.placement.host_choice import HostCapacities
from headway.scaling.placement.pool_parts import PoolTarget, placed_workers
from support.hosts import any_host
from support.placements import place

MAIL = Template(name="mail", content_hash="1", cpu_cores=1.0, memory_bytes=100)
LARGE = Template(name="large", content_hash="1", cpu_cores=3.0, memory_bytes=100)
FREE = Template(name="free", content_hash="1", cpu_cores=0.0, memory_bytes=0)
WIDE = Template(name="wide", content_hash="1", cpu_cores=0.1, memory_bytes=4_000)
TEMPLATES = (MAIL, LARGE, FREE, WIDE)


def host(name: str, *, workers: Sequence[Worker] = (), **values: Any) -> Host:
    return any_host(name, *workers, **{"cpu_cores": 4.0, "memory_bytes": 10_000, "templates": TEMPLATES, **values})


def target(
    workers: int, pool: str = "mail", priority: int = 100, *, burst_workers: int = 0, template: str = "mail"
) -> PoolTarget:
    return PoolTarget(pool=pool, template=template, workers=workers, burst_workers=burst_workers, priority=priority)


def row(
    host_id: str, base_workers: int, pool: str = "mail", *, burst_workers: int = 0, template: str = "mail"
) -> Assignment:
    return Assignment(
        pool=pool, host_id=host_id, template=template, base_workers=base_workers, burst_workers=burst_workers
    )


def worker(pool: str = "mail", *, is_busy: bool | None) -> Worker:
    return Worker(
        worker_id="w", pool=pool, template="mail", pid=1, state=WorkerState.RUNNING, started_at_s=0.0, is_busy=is_busy
    )


def counts(rows: Sequence[Assignment]) -> dict[tuple[str, str], int]:
    return {(each.pool, each.host_id): each.workers for each in rows}


def test_workers_spread_over_hosts_in_proportion_to_what_the_hosts_are() -> None:
    rows = place([target(9)], [host("a", cpu_cores=16.0), host("b", cpu_cores=2.0)], [])
    assert counts(rows) == {("mail", "a"): 8, ("mail", "b"): 1}  # half of each


def test_workers_that_cost_nothing_spread_too() -> None:
    rows = place([target(4, template="free")], [host("a"), host("b")], [])
    assert counts(rows) == {("mail", "a"): 2, ("mail", "b"): 2}


def test_what_is_in_place_stays() -> None:
    rows = place([target(3)], [host("a"), host("b")], [row("b", 2)])
    assert counts(rows) == {("mail", "b"): 2, ("mail", "a"): 1}


def test_a_surplus_leaves_the_fullest_host_first() -> None:
    current = [row("a", 2), row("b", 2)]
    rows = place([target(3)], [host("a", cpu_cores=8.0), host("b", cpu_cores=2.0)], current)
    assert counts(rows) == {("mail", "a"): 2, ("mail", "b"): 1}


def test_an_idle_worker_leaves_before_a_busy_one_of_a_fuller_host() -> None:
    """Law 9; whether a worker is busy may be not known, which counts as busy."""
    hosts = [
        host("a", workers=[worker(is_busy=True), worker(is_busy=None)]),
        host("b", cpu_cores=8.0, workers=[worker(is_busy=False), worker(is_busy=True)]),
    ]
    assert counts(place([target(3)], hosts, [row("a", 2), row("b", 2)])) == {("mail", "a"): 2, ("mail", "b"): 1}
    assert counts(place([target(2)], hosts, [row("a", 2), row("b", 2)])) == {("mail", "a"): 1, ("mail", "b"): 1}


def test_a_place_in_which_no_worker_is_ready_is_given_up_before_a_busy_workers() -> None:
    """Whether its worker starts, or has yet to be started."""
    full = host("a", workers=[worker(is_busy=True), worker(is_busy=True)])
    roomy = host("b", cpu_cores=8.0, workers=[replace(worker(is_busy=None), state=WorkerState.STARTING)])
    for hosts in ([full, roomy], [full, replace(roomy, workers=())]):
        assert counts(place([target(2)], hosts, [row("a", 2), row("b", 1)])) == {("mail", "a"): 2}


def test_a_worker_of_which_nobody_knows_leaves_after_idle_and_starting_ones_and_before_busy_ones() -> None:
    busy = host("a", workers=[worker(is_busy=True), worker(is_busy=True)])
    unknown = host("b", cpu_cores=8.0, workers=[worker(is_busy=None)])
    starting = host("c", cpu_cores=8.0, workers=[replace(worker(is_busy=None), state=WorkerState.STARTING)])
    rows = [row("a", 2), row("b", 1), row("c", 1)]
    assert counts(place([target(3)], [busy, unknown, starting], rows)) == {("mail", "a"): 2, ("mail", "b"): 1}
    assert counts(place([target(2)], [busy, unknown, starting], rows)) == {("mail", "a"): 2}


@pytest.mark.parametrize(("room_cores", "stays"), [(1.0, {"low"}), (2.0, {"low", "middle"})])
def test_a_host_that_shrinks_keeps_busy_workers_and_then_those_that_may_be(room_cores: float, stays: set[str]) -> None:
    """Whatever their priority."""
    known = {"low": True, "middle": None, "high": False}
    workers = [worker(pool, is_busy=is_busy) for pool, is_busy in known.items()]
    targets = [target(1, pool, priority) for priority, pool in enumerate(known, start=1)]
    there = [row("a", 1, pool) for pool in known]
    shrunk = host("a", cpu_cores=room_cores, workers=workers)
    placed = place(targets, [shrunk], there, may_take_over=False)
    assert {each.pool for each in placed if each.workers} == stays


def test_a_silent_host_gets_nothing_and_its_share_goes_elsewhere() -> None:
    assert counts(place([target(2)], [host("a"), host("b", is_known=False)], [row("b", 2)])) == {("mail", "a"): 2}


def test_short_room_goes_to_the_higher_priority() -> None:
    rows = place([target(3, "low", 1), target(3, "high", 9)], [host("a")], [])
    assert counts(rows) == {("high", "a"): 3, ("low", "a"): 1}


def test_a_pool_without_a_place_takes_one_over_from_the_lowest_priority_and_that_one_moves() -> None:
    current = [row("a", 2, "low"), row("b", 2, "low"), row("a", 1, "middle")]
    targets = [target(4, "low", 1), target(1, "middle", 5), target(1, "high", 9, template="large")]
    rows = place(targets, [host("a"), host("b")], current)
    assert counts(rows) == {("high", "b"): 1, ("low", "a"): 3, ("low", "b"): 1, ("middle", "a"): 1}


def test_no_pool_takes_a_place_from_one_of_the_same_priority() -> None:
    current = [row("a", 2, "mail"), row("b", 2, "mail")]
    targets = [target(4), target(1, "another", template="large")]
    assert place(targets, [host("a"), host("b")], current) == tuple(current)


def test_nobody_takes_a_place_over_where_that_is_not_wanted() -> None:
    current = [row("a", 4, "low")]
    assert counts(place([target(4, "low", 1), target(1, "high", 9)], [host("a")], current, may_take_over=False)) == {
        ("low", "a"): 4
    }


def test_a_host_without_the_template_is_no_place() -> None:
    assert place([target(1)], [host("a", templates=())], [row("a", 1)]) == ()
    taking_over = [target(1, "low", 1, template="free"), target(1)]
    assert counts(place(taking_over, [host("a", templates=[FREE])], [row("a", 1, "low", template="free")])) == {
        ("low", "a"): 1
    }


def test_rows_of_pools_that_are_not_decided_keep_their_room() -> None:
    held = [row("a", 3, "held")]
    assert counts(place([target(9)], [host("a"), host("b")], [], held=held)) == {("mail", "a"): 1, ("mail", "b"): 4}


def test_base_and_burst_workers_are_kept_apart() -> None:
    current = [row("a", 2, burst_workers=1), row("b", 1)]
    rows = place([target(5, burst_workers=3)], [host("a"), host("b")], current)
    assert {each.host_id: (each.base_workers, each.burst_workers) for each in rows} == {"a": (1, 2), "b": (1, 1)}


def test_no_target_has_more_burst_workers_than_workers() -> None:
    with pytest.raises(Invalid, match="'mail': 2 burst workers of 1"):
        target(1, burst_workers=2)


def test_the_restart_generation_stays_with_the_assignment() -> None:
    current = [replace(row("a", 1), restart_generation=7)]
    assert place([target(2)], [host("a")], current)[0].restart_generation == 7


def test_a_changed_template_changes_the_assignment_and_not_its_place() -> None:
    (after,) = place([target(2)], [host("a"), host("b")], [row("b", 2, template="free")])
    assert after == row("b", 2)


def test_a_host_shrunk_below_what_it_runs_keeps_the_higher_priority() -> None:
    current = [row("a", 3, "low"), row("a", 3, "high")]
    rows = place([target(3, "low", 1), target(3, "high", 9)], [host("a")], current)
    assert counts(rows) == {("high", "a"): 3, ("low", "a"): 1}


def test_ten_workers_of_a_tenth_of_a_core_fit_into_one_core() -> None:
    tenth = replace(MAIL, cpu_cores=0.1)
    assert HostCapacities([host("a", cpu_cores=1.0, templates=[tenth])]).capacity("mail") == 10


def test_capacity_counts_the_scarcest_resource_of_each_known_host_and_processes() -> None:
    hosts = [host("a", memory_bytes=250), host("b"), host("c", is_known=False)]
    assert HostCapacities(hosts).capacity("mail") == 6  # 2 by memory and 4 by cores
    assert HostCapacities(hosts).capacity("free") == 2 * HOST_PROCESSES_MAX
    assert HostCapacities(hosts, held=[row("b", 3)]).capacity("mail") == 3


def test_room_that_was_given_back_is_found_again() -> None:
    rooms = HostCapacities([host("a", cpu_cores=1.0)])
    assert [rooms.add("mail"), rooms.add("mail")] == ["a", None]
    rooms.put("a", "mail", -1)
    assert rooms.add("mail") == "a"


def test_capacity_is_unknown_where_no_known_host_has_the_template() -> None:
    assert HostCapacities([host("a", is_known=False)]).capacity("mail") is None
    assert HostCapacities([host("a", templates=())]).capacity("mail") is None


NAMES = ["mail", "video", "web", "thumbs"]
HOSTS = st.lists(
    st.tuples(
        st.sampled_from("abcdef"),
        st.floats(0, 16),
        st.integers(0, 20_000),
        st.lists(st.sampled_from(TEMPLATES), unique_by=lambda each: each.name, min_size=1),
        st.sampled_from([True, True, True, False]),
    ),
    unique_by=lambda each: each[0],
).map(
    lambda rows: [
        host(name, cpu_cores=cpu, memory_bytes=memory, templates=templates, is_known=is_known)
        for name, cpu, memory, templates, is_known in rows
    ]
)
TARGETS = st.lists(
    st.tuples(
        st.sampled_from(NAMES),
        st.integers(0, 20),
        st.integers(0, 20),
        st.integers(0, 3),
        st.sampled_from([each.name for each in TEMPLATES]),
    ),
    unique_by=lambda each: each[0],
).map(
    lambda rows: [
        target(workers, pool, priority, burst_workers=min(workers, burst), template=template)
        for pool, workers, burst, priority, template in rows
    ]
)


def rooms_after(hosts: Sequence[Host], rows: Sequence[Assignment]) -> HostCapacities:
    return HostCapacities(hosts, held=rows)


def used(hosts: Sequence[Host], rows: Sequence[Assignment]) -> dict[str, tuple[float, int]]:
    """Cores and bytes by host, reckoned apart from the rooms."""
    costs = {template.name: template for template in TEMPLATES}
    return {
        each.host_id: (
            sum(costs[one.template].cpu_cores * one.workers for one in rows if one.host_id == each.host_id),
            sum(costs[one.template].memory_bytes * one.workers for one in rows if one.host_id == each.host_id),
        )
        for each in hosts
    }


@given(targets=TARGETS, before=TARGETS, hosts=HOSTS, may_take_over=st.booleans())
def test_placement_neither_loses_nor_invents_a_worker(
    targets: list[PoolTarget], before: list[PoolTarget], hosts: list[Host], may_take_over: bool
) -> None:
    """Law 7: each pool gets its target, burst and base, or no known host has room for one more of its workers."""
    rows = place(targets, hosts, place(before, hosts, []), may_take_over=may_take_over)
    left = rooms_after(hosts, rows)
    assert len(set(counts(rows))) == len(rows)
    for wanted in targets:
        mine = [each for each in rows if each.pool == wanted.pool]
        base, burst = sum(each.base_workers for each in mine), sum(each.burst_workers for each in mine)
        assert all(each.template == wanted.template and each.workers for each in mine)
        assert burst <= wanted.burst_workers
        assert base <= wanted.workers - wanted.burst_workers
        assert base + burst == wanted.workers or not left.capacity(wanted.template)


@given(targets=TARGETS, before=TARGETS, hosts=HOSTS)
def test_no_host_is_filled_above_its_capacity(
    targets: list[PoolTarget], before: list[PoolTarget], hosts: list[Host]
) -> None:
    """Law 6: and what stands on a host is of a template that this known host reports."""
    rows = place(targets, hosts, place(before, hosts, []))
    by_id = {each.host_id: each for each in hosts}
    for each in rows:
        assert by_id[each.host_id].is_known
        assert each.template in {template.name for template in by_id[each.host_id].templates}
    for host_id, (cpu_cores, memory_bytes) in used(hosts, rows).items():
        assert cpu_cores <= by_id[host_id].capacity.cpu_cores + 1e-5
        assert memory_bytes <= by_id[host_id].capacity.memory_bytes


@given(targets=TARGETS, before=TARGETS, hosts=HOSTS)
def test_placement_moves_as_few_as_it_can(
    targets: list[PoolTarget], before: list[PoolTarget], hosts: list[Host]
) -> None:
    """Law 7: of a pool that keeps its template stays as much as is wanted, base and burst, where nobody takes over."""
    current = place(before, hosts, [])
    rows = {(each.pool, each.host_id): each for each in place(targets, hosts, current, may_take_over=False)}
    for wanted in targets:
        present = [each for each in current if each.pool == wanted.pool]
        if any(each.template != wanted.template for each in current):
            continue  # workers that change their size may find no room where they are
        both = [
            (each, rows.get((each.pool, each.host_id), replace(each, base_workers=0, burst_workers=0)))
            for each in present
        ]
        kept_base = sum(min(was.base_workers, now.base_workers) for was, now in both)
        kept_burst = sum(min(was.burst_workers, now.burst_workers) for was, now in both)
        assert kept_base == min(sum(e.base_workers for e in present), wanted.workers - wanted.burst_workers)
        assert kept_burst == min(sum(e.burst_workers for e in present), wanted.burst_workers)


@given(targets=TARGETS, before=TARGETS, hosts=HOSTS)
def test_placing_again_moves_nothing(targets: list[PoolTarget], before: list[PoolTarget], hosts: list[Host]) -> None:
    first = place(targets, hosts, place(before, hosts, []))
    again = place(targets, hosts, first)
    assert again == first
    assert all(one is other for one, other in zip(again, first, strict=True))


@given(targets=TARGETS, before=TARGETS, hosts=HOSTS, data=st.data())
def test_the_order_of_what_is_given_does_not_matter(
    targets: list[PoolTarget], before: list[PoolTarget], hosts: list[Host], data: st.DataObject
) -> None:
    current = place(before, hosts, [])
    shuffled = [data.draw(st.permutations(each)) for each in (targets, hosts, current)]
    assert place(*shuffled) == place(targets, hosts, current)


@given(targets=TARGETS, lower=TARGETS, before=TARGETS, hosts=HOSTS)
def test_no_pool_gets_less_because_of_pools_of_lower_priority(
    targets: list[PoolTarget], lower: list[PoolTarget], before: list[PoolTarget], hosts: list[Host]
) -> None:
    """Whatever they are and wherever they stand: all that is placed of them would make way."""
    others = [replace(each, pool=f"low-{each.pool}", priority=-1) for each in lower]
    low_rows = place(others, hosts, [])
    alone = placed_workers(place(targets, hosts, []))
    beside = placed_workers(place([*targets, *others], hosts, low_rows))
    top = max((each.priority for each in targets), default=0)
    for wanted in targets:
        if wanted.priority == top and [each.priority for each in targets].count(top) == 1:
            assert beside.get(wanted.pool, 0) == alone.get(wanted.pool, 0)


@given(workers=st.integers(0, 60), sizes=st.lists(st.integers(1, 16), min_size=1, max_size=6))
def test_hosts_fill_evenly_by_their_capacity(workers: int, sizes: list[int]) -> None:
    """Without its last worker, no host was fuller than any other is, but for a hundredth."""
    hosts = [host(f"h{number}", cpu_cores=float(size)) for number, size in enumerate(sizes)]
    taken = Counter({each.host_id: each.workers for each in place([target(workers)], hosts, [])})
    loads = [(taken[each.host_id], round(each.capacity.cpu_cores)) for each in hosts]
    for count, size in loads:
        for other_count, other_size in loads:
            assert count == 0 or (count - 1) / size <= other_count / other_size + 0.011
