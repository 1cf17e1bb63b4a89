"""Workers that take no jobs leave first, and are replaced one at a time."""

from dataclasses import replace
from typing import Any

from headway.scaling.model import Assignment, Inability, Worker, WorkerState
from headway.scaling.reconcile import Drain, Start, reconcile


def worker(name: str, **values: Any) -> Worker:
    given = {"pool": "mail", "template": "py", "pid": 1, "state": WorkerState.RUNNING, "started_at_s": 0.0}
    return Worker(worker_id=name, **{**given, **values})


STOPPED = {"inability": Inability.STOPPED}


def assigned(workers: int) -> list[Assignment]:
    return [Assignment(pool="mail", host_id="h", template="py", base_workers=workers)]


def test_where_one_must_go_it_is_the_one_that_takes_no_jobs() -> None:
    there = [worker("a", is_busy=False), worker("b", is_busy=True, **STOPPED), worker("c")]
    assert reconcile(there, assigned(2)) == (Drain(worker_id="b"),)


def test_of_those_that_take_no_jobs_an_idle_one_goes_before_a_busy_one() -> None:
    busy = {"is_busy": True, "busy_since_s": 50.0, **STOPPED}
    there = [worker("a", **busy), worker("b", **STOPPED), worker("c", is_busy=False, **STOPPED)]
    gone = [reconcile(there, assigned(count))[: 3 - count] for count in (2, 1)]
    assert gone == [(Drain(worker_id="c"),), (Drain(worker_id="c"), Drain(worker_id="b"))]


def test_of_those_that_are_replaced_anyway_it_is_the_first() -> None:
    there = [worker("a", is_busy=False), worker("b", is_busy=True, **STOPPED), worker("c", restart_generation=1)]
    rows = [replace(assigned(2)[0], restart_generation=1)]
    assert reconcile(there, rows) == (Drain(worker_id="b"), Start(pool="mail", template="py", restart_generation=1))


def test_those_that_take_no_jobs_are_replaced_one_at_a_time() -> None:
    there = [worker("a", **STOPPED), worker("b", **STOPPED), worker("c")]
    assert reconcile(there, assigned(3)) == (Start(pool="mail", template="py"),)
    there.append(worker("d", state=WorkerState.STARTING))
    assert reconcile(there, assigned(3)) == ()
    there[-1] = worker("d")
    assert reconcile(there, assigned(3)) == (Drain(worker_id="a"), Start(pool="mail", template="py"))
