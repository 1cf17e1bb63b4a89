"""Law 9. A busy worker is not killed before its drain deadline; idle workers go first.

Killing is the agent's: see tests/agent/test_states.py. Here is who is asked to leave.
"""

from hypothesis import given
from hypothesis import strategies as st

from headway.scaling.model import COUNTED, Assignment, Host, HostCapacity, Worker, WorkerState
from headway.scaling.placement.pool_parts import PoolTarget, placed_workers
from headway.scaling.reconcile import Drain, reconcile
from scaling.laws.drawn import LAW
from scaling.laws.fleets import TEMPLATE, WORKERS, begun
from support.placements import place


def is_idle(worker: Worker) -> bool:
    """Whether it is known to have no job. Unknown is treated as busy."""
    return worker.is_busy is False or worker.state is WorkerState.BACKING_OFF


CURRENT = WORKERS.map(
    lambda workers: [
        worker for worker in workers if worker.template == TEMPLATE.name and worker.restart_generation == 0
    ]
)


@given(workers=CURRENT, base=st.integers(0, 8), burst=st.integers(0, 8))
def test_no_busy_worker_leaves_while_an_idle_one_of_its_kind_stays(
    workers: list[Worker], base: int, burst: int
) -> None:
    row = Assignment(pool="mail", host_id="a", template=TEMPLATE.name, base_workers=base, burst_workers=burst)
    drained = {action.worker_id for action in reconcile(workers, [row]) if isinstance(action, Drain)}
    # What only may be a worker takes a place, and is asked nothing.
    asked = COUNTED - {WorkerState.UNKNOWN}
    counted = [worker for worker in workers if worker.state in asked and worker.pool == "mail"]
    for kind in (False, True):
        mine = [worker for worker in counted if worker.is_burst is kind]
        busy_gone = [worker for worker in mine if worker.worker_id in drained and not is_idle(worker)]
        busy_gone = [worker for worker in busy_gone if worker.state is WorkerState.RUNNING]
        idle_left = [worker for worker in mine if worker.worker_id not in drained and is_idle(worker)]
        assert not (busy_gone and idle_left)
        assert len([worker for worker in mine if worker.worker_id in drained]) == max(
            0, len(mine) - (burst if kind else base)
        )


@given(workers=CURRENT, base=st.integers(0, 8))
def test_no_more_leave_than_are_too_many(workers: list[Worker], base: int) -> None:
    """A target of busy and starting together drains none of them."""
    mine = [worker for worker in workers if worker.pool == "mail" and not worker.is_burst and worker.state in COUNTED]
    needed = [worker for worker in mine if not is_idle(worker)]
    row = Assignment(pool="mail", host_id="a", template=TEMPLATE.name, base_workers=max(base, len(needed)))
    drained = {action.worker_id for action in reconcile(mine, [row]) if isinstance(action, Drain)}
    assert all(
        is_idle(worker) or worker.state is WorkerState.STARTING for worker in mine if worker.worker_id in drained
    )


@LAW
@given(workers=CURRENT, base=st.integers(0, 8))
def test_who_drains_is_let_drain(workers: list[Worker], base: int) -> None:
    """It is asked once: nothing more is done to a worker that is on its way out."""
    row = Assignment(pool="mail", host_id="a", template=TEMPLATE.name, base_workers=base)
    after = begun(workers, reconcile(workers, [row]))
    draining = {worker.worker_id for worker in after if worker.state is WorkerState.DRAINING}
    again = {action.worker_id for action in reconcile(after, [row]) if isinstance(action, Drain)}
    assert not draining & again


@given(idle=st.lists(st.booleans(), min_size=1, max_size=8), leave=st.integers(0, 8))
def test_the_host_with_an_idle_worker_is_the_one_that_gives_up_a_place(idle: list[bool], leave: int) -> None:
    hosts = [
        Host(
            host_id=f"h{number}",
            name="",
            capacity=HostCapacity(cpu_cores=4.0, memory_bytes=1_000),
            templates=(TEMPLATE,),
            workers=(running(is_busy=not is_idle),),
        )
        for number, is_idle in enumerate(idle)
    ]
    current = [Assignment(pool="mail", host_id=host.host_id, template=TEMPLATE.name, base_workers=1) for host in hosts]
    left = max(0, len(idle) - leave)
    rows = place([PoolTarget(pool="mail", template=TEMPLATE.name, workers=left)], hosts, current)
    assert placed_workers(rows).get("mail", 0) == left
    busy_left = sum(not idle[int(row.host_id[1:])] for row in rows)
    assert busy_left == min(left, idle.count(False))


def running(*, is_busy: bool) -> Worker:
    return Worker(
        worker_id="w",
        pool="mail",
        template=TEMPLATE.name,
        pid=1,
        state=WorkerState.RUNNING,
        started_at_s=0.0,
        is_busy=is_busy,
    )
