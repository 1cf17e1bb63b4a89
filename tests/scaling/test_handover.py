"""Which starts wait for those that leave, and which do not."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.scaling.allocation.handover import Handover, startable
from headway.scaling.model import Assignment, Host, HostState, Template, Worker, WorkerState
from support.hosts import any_host

MAIL = Template(name="mail", content_hash="1", cpu_cores=1.0, memory_bytes=0)
PLENTY = 1_000


def row(workers: int, *, host_id: str = "a", pool: str = "mail", burst: int = 0) -> Assignment:
    return Assignment(pool=pool, host_id=host_id, template="mail", base_workers=workers - burst, burst_workers=burst)


def worker(pool: str = "mail", *, state: WorkerState = WorkerState.RUNNING, is_busy: bool | None = True) -> Worker:
    return Worker(worker_id="w", pool=pool, template="mail", pid=1, state=state, started_at_s=0.0, is_busy=is_busy)


def host(*workers: Worker, host_id: str = "a", cores: float = 2.0, **values: Any) -> Host:
    return any_host(host_id, *workers, cpu_cores=cores, templates=(MAIL,), **values)


DRAINING = worker("news", state=WorkerState.DRAINING)


@pytest.mark.parametrize(
    ("workers", "before", "after", "starts"),
    [
        # a host of two cores; pool `news` leaves it, pool `mail` comes
        ((), (), (row(2),), 2),
        ((DRAINING,), (), (row(2),), 1),  # it still holds its core
        ((DRAINING, DRAINING), (), (row(2),), 0),
        ((DRAINING,), (row(1),), (row(1),), 1),  # what is there stays
        ((DRAINING, DRAINING, DRAINING), (row(1),), (row(2),), 1),  # too full already: nothing new, and nobody goes
        ((worker("news"),), (row(1, pool="news"),), (row(2),), 1),  # it is at work, and is asked to leave only now
        ((worker("news", is_busy=None),), (row(1, pool="news"),), (row(2),), 1),  # who knows
        ((worker("news", is_busy=False),), (row(1, pool="news"),), (row(2),), 2),  # gone in a moment
        ((), (row(1, pool="news"),), (row(2),), 2),  # never seen: it may never have started
        ((worker("news"),), (row(1, pool="news"),), (row(1, pool="news"), row(1)), 1),  # both fit
    ],
)
def test_a_start_waits_for_the_room_of_who_is_at_work(
    workers: tuple[Worker, ...], before: tuple[Assignment, ...], after: tuple[Assignment, ...], starts: int
) -> None:
    now = startable(after, [host(*workers)], before, free_of=lambda _: PLENTY)
    assert sum(each.workers for each in now.rows if each.pool == "mail") == starts
    wanted = sum(each.workers for each in after if each.pool == "mail")
    assert now.put_off == ({"mail": wanted - starts} if starts < wanted else {})


@pytest.mark.parametrize(
    ("before", "after", "free", "left"),
    [
        # from host a to host b
        ((row(2),), (row(2, host_id="b"),), 0, {}),  # at the ceiling: they end first
        ((row(2),), (row(2, host_id="b"),), 1, {"b": 1}),
        ((row(2),), (row(1), row(1, host_id="b")), 0, {"a": 1}),
        ((row(2),), (row(1), row(1, host_id="b")), 1, {"a": 1, "b": 1}),
        ((row(1),), (row(2, host_id="b"),), -3, {}),  # more exist than may: none of them is ours to start
        # nothing leaves: the target keeps to the ceiling by itself
        ((row(1),), (row(1), row(1, host_id="b")), 0, {"a": 1, "b": 1}),
    ],
)
def test_at_the_ceiling_one_ends_before_the_next_starts(
    before: tuple[Assignment, ...], after: tuple[Assignment, ...], free: int, left: dict[str, int]
) -> None:
    now = startable(after, [host(), host(host_id="b")], before, free_of=lambda _: free)
    assert {each.host_id: each.workers for each in now.rows} == left


def test_what_drains_counts_where_nothing_moves() -> None:
    hosts = [host(worker(state=WorkerState.DRAINING), cores=9.0)]
    assert startable((row(3),), hosts, (row(1),), free_of=lambda _: 1).rows == (row(2),)


def test_two_hosts_share_what_is_free() -> None:
    hosts = [host(worker(state=WorkerState.DRAINING), cores=9.0), host(host_id="b")]
    now = startable((row(2), row(2, host_id="b")), hosts, (), free_of=lambda _: 3)
    assert sum(each.workers for each in now.rows) == 3
    assert now.put_off == {"mail": 1}


@pytest.mark.parametrize("is_the_same", [True, False])
def test_rows_of_pools_that_are_not_placed_now_do_not_leave(is_the_same: bool) -> None:
    current = (row(1, pool="news"),)
    held = current if is_the_same else (replace(current[0]),)
    hosts = [host(worker("news", is_busy=False))]
    now = startable((row(2),), hosts, current, free_of=lambda _: PLENTY, held=held)
    assert now.rows == (row(2),), "what fits is placement's to say"
    busy = [host(DRAINING, worker("news", is_busy=False), cores=3.0)]
    assert startable((row(2),), busy, current, free_of=lambda _: PLENTY, held=held).rows == (row(1),)


def test_burst_workers_wait_first() -> None:
    assert startable((row(2, burst=1),), [host(DRAINING)], (), free_of=lambda _: PLENTY).rows == (row(1),)


@pytest.mark.parametrize("values", [{"is_known": False}, {"state": HostState.DRAINING}])
def test_what_is_on_silent_and_draining_hosts_leaves_nobody_here(values: dict[str, Any]) -> None:
    away = replace(host(host_id="b"), **values)
    before, after = (row(1, host_id="b"),), (row(1),)
    assert startable(after, [host(), away], before, free_of=lambda _: 0) == Handover(rows=after, put_off={})


ROWS = st.dictionaries(st.tuples(st.sampled_from(["mail", "news", "ads"]), st.sampled_from("ab")), st.integers(0, 3))


@given(before=ROWS, after=ROWS, is_busy=st.booleans(), free=st.integers(0, 3), is_held=st.booleans())
def test_a_row_that_is_in_place_counts_like_one_that_equals_it(
    before: dict[tuple[str, str], int], after: dict[tuple[str, str], int], is_busy: bool, free: int, is_held: bool
) -> None:
    """Rows in which nothing changed are the very ones that were given, and are not compared: that changes nothing."""
    current = [row(workers, pool=pool, host_id=host_id) for (pool, host_id), workers in before.items()]
    there = {(each.pool, each.host_id): each for each in current}
    wanted = {
        where: there[where] if before.get(where) == workers else row(workers, pool=where[0], host_id=where[1])
        for where, workers in after.items()
    }
    held = [wanted.pop(where) for where in sorted(wanted) if is_held and where[0] == "ads"]
    hosts = [
        host(
            *(
                worker(each.pool, is_busy=is_busy)
                for each in current
                if each.host_id == host_id
                for _ in range(each.workers)
            ),
            host_id=host_id,
            cores=6.0,
        )
        for host_id in "ab"
    ]

    def now(rows: list[Assignment], held: list[Assignment]) -> Handover:
        return startable(rows, hosts, current, free_of=lambda _: free, held=held)

    rows = list(wanted.values())
    assert now(rows, held) == now([replace(each) for each in rows], [replace(each) for each in held])
