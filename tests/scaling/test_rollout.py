"""A restart goes from host to host, and never on from where new workers do not come up."""

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from headway.scaling.allocation.rollout import ROLLOUT_HOSTS_FRACTION, Progress, progress_of, rolled
from headway.scaling.model import Assignment, Host, HostState, Worker, WorkerState
from headway.scaling.reconcile import Drain, Start, reconcile
from support.hosts import any_host as host

WANTED = {"mail": 1}


def worker(number: int, generation: int = 0, state: WorkerState = WorkerState.RUNNING) -> Worker:
    return Worker(
        worker_id=f"w{number}",
        pool="mail",
        template="mail",
        pid=number,
        state=state,
        started_at_s=0.0,
        restart_generation=generation,
    )


def row(name: str, workers: int = 1, generation: int = 0) -> Assignment:
    return Assignment(pool="mail", host_id=name, template="mail", base_workers=workers, restart_generation=generation)


def assigned(rows: Sequence[Assignment]) -> list[str]:
    return [each.host_id for each in rows if each.restart_generation == 1]


def test_the_first_host_goes_alone() -> None:
    hosts = [host(name, worker(number)) for number, name in enumerate("abc")]
    assert assigned(rolled([row(name) for name in "abc"], hosts, WANTED)) == ["a"]


def test_the_next_host_waits_until_the_last_old_worker_of_the_one_before_has_gone() -> None:
    b = host("b", worker(9))
    rows = [row("a", generation=1), row("b")]
    assert assigned(rolled(rows, [host("a", worker(1), worker(2, 1)), b], WANTED)) == ["a"]
    assert assigned(rolled(rows, [host("a", worker(2, 1)), b], WANTED)) == ["a", "b"]


def test_new_workers_that_do_not_come_up_stop_the_restart() -> None:
    stuck = host("a", worker(1), worker(2, 1, WorkerState.BACKING_OFF))
    rows = [row("a", generation=1), row("b")]
    assert assigned(rolled(rows, [stuck, host("b", worker(9))], WANTED)) == ["a"]


def test_of_an_exclusive_pool_one_host_goes_at_a_time_and_the_next_once_the_replacement_runs() -> None:
    names = [f"h{number:02d}" for number in range(40)]
    rows = [replace(row(name, generation=int(name == "h00")), is_exclusive=True) for name in names]
    others = [host(name, worker(number)) for number, name in enumerate(names) if number]
    draining, starting = worker(0, 0, WorkerState.DRAINING), worker(99, 1, WorkerState.STARTING)
    for there in ((draining,), (), (starting,)):
        assert assigned(rolled(rows, [host("h00", *there), *others], WANTED)) == ["h00"]
    assert assigned(rolled(rows, [host("h00", worker(99, 1)), *others], WANTED)) == ["h00", "h01"]


def test_once_the_first_is_through_a_tenth_go_at_a_time() -> None:
    names = [f"h{number:02d}" for number in range(40)]
    hosts = [host("h00", worker(0, 1)), *(host(name, worker(number)) for number, name in enumerate(names) if number)]
    rows = [row("h00", generation=1), *(row(name) for name in names[1:])]
    assert assigned(rolled(rows, hosts, WANTED)) == names[: 1 + round(40 * ROLLOUT_HOSTS_FRACTION)]


def test_a_host_without_old_workers_starts_new_ones_at_once() -> None:
    hosts = [host("a", worker(1)), host("b")]
    assert assigned(rolled([row("a"), row("b")], hosts, WANTED)) == ["a", "b"]


def test_hosts_that_are_silent_or_drain_are_left_alone_and_hold_nobody_up() -> None:
    hosts = [
        host("a", worker(1), is_known=False),
        host("b", worker(2), state=HostState.DRAINING),
        host("c", worker(3)),
    ]
    assert assigned(rolled([row(name) for name in "abc"], hosts, WANTED)) == ["c"]


def test_what_was_never_restarted_is_as_it_was() -> None:
    rows = (row("a"), row("b"))
    assert rolled(rows, [host("a", worker(1))], {}) == rows
    assert rolled(rows, [host("a", worker(1))], {"news": 3}) == rows


def test_progress_counts_what_runs_anew_and_what_is_to_go() -> None:
    there = host("a", worker(1), worker(2, 1), worker(3, 1, WorkerState.STARTING), worker(4, 0, WorkerState.DRAINING))
    lost = host("b", worker(5), is_known=False)
    rows = [row("a", 9), row("b", 9)]
    known = Progress(renewed_workers=1, outdated_workers=1)
    assert progress_of([there], rows, "mail", 1) == known
    assert progress_of([there, lost], rows, "mail", 1) == replace(known, silent_workers=1)


def test_of_an_exclusive_pool_a_place_whose_old_worker_has_ended_is_still_to_be_filled() -> None:
    rows = [replace(row("a", 2), is_exclusive=True), replace(row("b", 5), is_exclusive=True)]
    lost = host("b", is_known=False)
    draining, starting = worker(0, 0, WorkerState.DRAINING), worker(9, 1, WorkerState.STARTING)
    for there in ((draining,), (), (starting,)):
        found = progress_of([host("a", worker(1, 1), *there), lost], rows, "mail", 1)
        assert found == Progress(renewed_workers=1, awaited_workers=1)
    assert progress_of([host("a", worker(1, 1), worker(9))], rows, "mail", 1).awaited_workers == 0


@given(sizes=st.lists(st.integers(1, 4), min_size=1, max_size=5))
def test_a_restart_renews_every_worker_and_takes_none_before_its_replacement_runs(sizes: list[int]) -> None:
    """Hosts as reconcile has them, a turn at a time."""
    names = [f"h{number}" for number in range(len(sizes))]
    hosts = [host(name, *(worker(100 * n + m) for m in range(sizes[n]))) for n, name in enumerate(names)]
    rows: Sequence[Assignment] = [row(name, size) for name, size in zip(names, sizes, strict=True)]
    for turn in range(200):
        rows = rolled(rows, hosts, WANTED)
        hosts = [replace(each, workers=tuple(_acted(each, rows, turn))) for each in hosts]
        running = sum(each.state is WorkerState.RUNNING for one in hosts for each in one.workers)
        assert running >= sum(sizes)
        if progress_of(hosts, rows, "mail", 1) == Progress(renewed_workers=sum(sizes)):
            return
    raise AssertionError("the restart did not end")


def _acted(one: Host, rows: Sequence[Assignment], turn: int) -> list[Worker]:
    there = [
        replace(each, state=WorkerState.RUNNING) if each.state is WorkerState.STARTING else each for each in one.workers
    ]
    actions = reconcile(there, [each for each in rows if each.host_id == one.host_id])
    gone = {each.worker_id for each in actions if isinstance(each, Drain)}
    new = [
        replace(worker(0, each.restart_generation, WorkerState.STARTING), worker_id=f"{one.host_id}-{turn}-{number}")
        for number, each in enumerate(actions)
        if isinstance(each, Start)
    ]
    return [*(each for each in there if each.worker_id not in gone), *new]
