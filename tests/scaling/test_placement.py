from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from headway.scaling.model import Assignment, Host, HostCapacity, Template
from headway.scaling.placement import PoolTarget, capacity_workers, place

MAIL = Template(name="mail", content_hash="1", cpu_cores=1.0, memory_bytes=100)


def host(name: str, *, cpu_cores: float = 4.0, memory_bytes: int = 10_000, is_known: bool = True) -> Host:
    return Host(
        host_id=name,
        name=name,
        capacity=HostCapacity(cpu_cores=cpu_cores, memory_bytes=memory_bytes),
        templates=(MAIL,),
        is_known=is_known,
    )


def target(workers: int, pool: str = "mail", priority: int = 100) -> PoolTarget:
    return PoolTarget(pool=pool, template="mail", workers=workers, priority=priority)


def counts(rows: tuple[Assignment, ...]) -> dict[tuple[str, str], int]:
    return {(row.pool, row.host_id): row.workers for row in rows}


def test_workers_spread_over_the_hosts_with_the_most_room() -> None:
    rows = place([target(5)], [host("a"), host("b", cpu_cores=2.0)], [])
    assert counts(rows) == {("mail", "a"): 4, ("mail", "b"): 1}


def test_what_is_in_place_stays() -> None:
    current = [Assignment(pool="mail", host_id="b", template="mail", base_workers=2)]
    rows = place([target(3)], [host("a"), host("b")], current)
    assert counts(rows) == {("mail", "b"): 2, ("mail", "a"): 1}


def test_a_surplus_leaves_the_fullest_host_first() -> None:
    current = [
        Assignment(pool="mail", host_id="a", template="mail", base_workers=2),
        Assignment(pool="mail", host_id="b", template="mail", base_workers=2),
    ]
    rows = place([target(3)], [host("a", cpu_cores=8.0), host("b", cpu_cores=2.0)], current)
    assert counts(rows) == {("mail", "a"): 2, ("mail", "b"): 1}


def test_a_silent_host_gets_nothing_and_its_share_goes_elsewhere() -> None:
    current = [Assignment(pool="mail", host_id="b", template="mail", base_workers=2)]
    assert counts(place([target(2)], [host("a"), host("b", is_known=False)], current)) == {("mail", "a"): 2}


def test_short_room_goes_to_the_higher_priority() -> None:
    rows = place([target(3, "low", 1), target(3, "high", 9)], [host("a")], [])
    assert counts(rows) == {("high", "a"): 3, ("low", "a"): 1}


def test_a_host_without_the_template_is_no_place() -> None:
    assert place([target(1)], [replace(host("a"), templates=())], []) == ()


def test_the_restart_generation_stays_with_the_assignment() -> None:
    current = [Assignment(pool="mail", host_id="a", template="mail", base_workers=1, restart_generation=7)]
    assert place([target(2)], [host("a")], current)[0].restart_generation == 7


def test_capacity_counts_what_other_pools_take() -> None:
    current = [Assignment(pool="other", host_id="a", template="mail", base_workers=3)]
    assert capacity_workers("mail", "mail", [host("a"), host("b")], current) == 5  # 1 + 4


def test_capacity_is_unknown_where_no_known_host_has_the_template() -> None:
    assert capacity_workers("mail", "mail", [host("a", is_known=False)], []) is None


HOSTS = st.lists(st.tuples(st.sampled_from("abcdef"), st.floats(0, 16)), unique_by=lambda pair: pair[0]).map(
    lambda pairs: [host(name, cpu_cores=cpu) for name, cpu in pairs]
)
TARGETS = st.lists(
    st.tuples(st.sampled_from(["mail", "video", "web"]), st.integers(0, 30), st.integers(0, 3)),
    unique_by=lambda t: t[0],
).map(lambda rows: [target(workers, pool, priority) for pool, workers, priority in rows])


@given(targets=TARGETS, before=TARGETS, hosts=HOSTS)
def test_placement_neither_loses_nor_invents_a_worker(
    targets: list[PoolTarget], before: list[PoolTarget], hosts: list[Host]
) -> None:
    """Law 7: each pool gets its target, or every host is too full for one more of its workers."""
    rows = place(targets, hosts, place(before, hosts, []))
    used = {h.host_id: sum(row.workers for row in rows if row.host_id == h.host_id) for h in hosts}
    assert all(used[h.host_id] <= h.capacity.cpu_cores + 1e-6 for h in hosts)
    has_room = any(used[h.host_id] + 1 <= h.capacity.cpu_cores for h in hosts)
    for wanted in targets:
        placed = sum(row.workers for row in rows if row.pool == wanted.pool)
        assert placed == wanted.workers or (placed < wanted.workers and not has_room)


@given(targets=TARGETS, hosts=HOSTS)
def test_placing_again_moves_nothing(targets: list[PoolTarget], hosts: list[Host]) -> None:
    first = place(targets, hosts, [])
    assert place(targets, hosts, first) == first
    assert place(list(reversed(targets)), list(reversed(hosts)), []) == first
