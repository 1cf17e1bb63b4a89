"""What a worker leaves that is killed counts as one that drains: where no two may run, no other starts meanwhile."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

from headway.agent.config.templates import Stop
from headway.agent.workers.manager import WorkerManager
from headway.local import procfs
from headway.scaling.model import Assignment, WorkerState
from headway.scaling.reconcile import Start, reconcile
from support.processes import runs
from support.waiting import eventually
from support.workers import SLEEP, Stage, reconcile_until, start, template

# As RQ's worker and its work horse, or Celery's and its pool.
CHILD = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {SLEEP!r}], start_new_session=True);"
IGNORES = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN);" + SLEEP
LONG = Stop(drain_timeout_s=40.0)


@contextmanager
def killed(
    stage: Stage, *, child: str = CHILD, gpus: int = 0, is_bare: bool = False
) -> Iterator[tuple[WorkerManager, int]]:
    """A fleet whose one worker was killed after a while of use, and the process that it has left."""
    with stage.fleet(template(child + SLEEP, stop=LONG, gpus=gpus), gpus=gpus) as fleet:
        fleet.act([start()])
        (worker,) = fleet.workers()
        (left,) = eventually(lambda: procfs.descendants(worker.pid))
        eventually(lambda: procfs.stat(left.pid).session == left.pid)
        eventually(lambda: is_bare == (procfs.environment(left.pid) == {}))
        stage.clock.ahead_s += 11.0
        os.kill(worker.pid, signal.SIGKILL)
        reconcile_until(fleet, lambda: fleet.workers() == ())
        yield fleet, left.pid


def due(fleet: WorkerManager, *, is_exclusive: bool) -> tuple[object, ...]:
    """What the agent would do for one worker of the pool."""
    wanted = Assignment(pool="mail", host_id="h", template="py", base_workers=1, is_exclusive=is_exclusive)
    return reconcile((*fleet.workers(), *fleet.remains.workers()), [wanted])


def test_an_exclusive_pool_gets_no_worker_until_what_the_last_one_left_has_ended(stage: Stage) -> None:
    with killed(stage) as (fleet, pid):
        (left,) = fleet.remains.workers()
        assert (left.pool, left.template, left.pid, left.state) == ("mail", "py", pid, WorkerState.DRAINING)
        assert due(fleet, is_exclusive=True) == ()
        assert due(fleet, is_exclusive=False) == (Start(pool="mail", template="py"),)
    with stage.fleet(template(stop=LONG)) as fleet:  # the next agent knows of it, too
        assert due(fleet, is_exclusive=True) == ()
        os.kill(pid, signal.SIGKILL)
        eventually(lambda: not runs(pid))
        assert fleet.scan(), "its end is news, or nobody would start the worker that is wanted"
        assert fleet.remains.workers() == ()
        assert due(fleet, is_exclusive=True) == (Start(pool="mail", template="py"),)


def test_what_was_left_is_found_also_where_it_overwrote_its_environment(stage: Stage) -> None:
    """As a work horse does that sets its title: it would run on for ever, beside another of its pool."""
    bare = f"import os, sys; os.execve(sys.executable, [sys.executable, '-c', {SLEEP!r}], {{}})"
    with killed(stage, child=CHILD.replace(repr(SLEEP), repr(bare)), is_bare=True) as (fleet, pid):
        assert [each.pid for each in fleet.remains.workers()] == [pid]
        stage.clock.ahead_s += 41.0
        reconcile_until(fleet, lambda: not runs(pid))


def test_the_gpus_of_a_killed_worker_are_free_once_what_it_left_has_ended(stage: Stage) -> None:
    with killed(stage, gpus=1) as (fleet, pid):
        assert fleet.free_gpus() == ()
        os.kill(pid, signal.SIGKILL)
        reconcile_until(fleet, lambda: fleet.free_gpus() == (0,))


def test_what_a_draining_worker_leaves_has_no_longer_than_that_worker_had(stage: Stage) -> None:
    """Cut off, a host has ended such workers by a time that the control plane knows, and starts them elsewhere then."""
    with stage.fleet(template(CHILD + IGNORES, stop=LONG)) as fleet:
        fleet.act([start()])
        (worker,) = fleet.workers()
        (left,) = eventually(lambda: procfs.descendants(worker.pid))
        eventually(lambda: procfs.stat(left.pid).session == left.pid)  # else it goes with its worker's group
        eventually(lambda: not procfs.would_die_of(worker.pid, signal.SIGTERM))
        stage.clock.ahead_s += 11.0
        fleet.drain_all()
        stage.clock.ahead_s += 20.0
        os.kill(worker.pid, signal.SIGKILL)
        reconcile_until(fleet, lambda: fleet.workers() == ())
        assert [each.pid for each in fleet.remains.workers()] == [left.pid]
        stage.clock.ahead_s += 20.0
        reconcile_until(fleet, lambda: not runs(left.pid))
