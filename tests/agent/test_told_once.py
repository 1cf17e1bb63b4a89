"""An agent that is killed just as it signals a worker to stop: the next one does not signal it twice while it may
drain.

To many libraries the second signal means to drop the job: Celery calls it a cold shutdown, RQ and Dramatiq do the same.
"""

import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from headway.agent.config.templates import Stop, Template
from headway.scaling.model import WorkerState
from support.processes import runs
from support.waiting import eventually
from support.workers import PRINTS_READY, Stage, printed, reconcile_until, states, template

# Says each signal that it hears, and does its job all the same until the file is there.
COUNTS = """
import pathlib, signal, sys, time
told = []
def hear(*_):
    told.append(1)
    print('told', len(told), flush=True)
signal.signal(signal.SIGTERM, hear)
print({says!r}, flush=True)
while not (told and pathlib.Path({done!r}).exists()):
    time.sleep(0.01)
print('done', flush=True)
"""
# An agent's fleet that starts one worker, tells it to stop, and is killed with kill -9 before or after the signal.
KILLED = """
import os, sys, time
from pathlib import Path
from support.workers import Stage, start, template
from headway.agent.workers import worker_process as processes
from headway.agent.config.templates import Ready, Stop
from headway.scaling.model import WorkerState
from headway.scaling.reconcile import Drain

code, root, moment = sys.argv[1:]
send = processes.Process.send
def killed(process, number):
    if moment == "after":
        send(process, number)
    os.kill(os.getpid(), 9)
processes.Process.send = killed
stage = Stage(Path(root))
ready = Ready(pattern="ready", timeout_s=30.0)
with stage.fleet(template(code, ready=ready, stop=Stop(drain_timeout_s=500.0))) as fleet:
    fleet.act([start()])
    while fleet.workers()[0].state is WorkerState.STARTING:
        if any("slow" in log.read_text() for log in (stage.folder.root / "workers").glob("*.log")):
            stage.clock.ahead_s = 31.0
        fleet.scan()
        time.sleep(0.01)
    fleet.act([Drain(worker_id=worker.worker_id) for worker in fleet.workers()])
"""


def counting(done: Path, *, says: str = "ready") -> Template:
    return template(COUNTS.format(says=says, done=str(done)), ready=PRINTS_READY, stop=Stop(drain_timeout_s=500.0))


def killed_as_it_signals(stage: Stage, worker: Template, *, moment: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", KILLED, worker.argv[-1], str(stage.folder.root), moment],
        check=False,
        timeout=100,
        env={**stage.environment, "PYTHONPATH": str(Path(__file__).parents[1])},
    )
    assert ended.returncode == -signal.SIGKILL


@pytest.mark.parametrize(("says", "later_s"), [("ready", 0.0), ("slow", 31.0)])
def test_killed_after_the_signal_the_worker_gets_no_second_one_before_its_drain_deadline(
    stage: Stage, tmp_path: Path, says: str, later_s: float
) -> None:
    """Whether it was signalled because it was wanted no more, or because it did not get ready in time."""
    worker = counting(tmp_path / "done", says=says)
    killed_as_it_signals(stage, worker, moment="after")
    stage.clock.ahead_s += later_s
    with stage.fleet(worker) as fleet:
        (found,) = fleet.workers()
        assert states(fleet) == [WorkerState.DRAINING], "the word was written before the signal"
        eventually(lambda: "told 1" in printed(stage, found.worker_id))
        fleet.drain_all()
        stage.clock.ahead_s += 400.0
        assert not fleet.scan()
        (tmp_path / "done").touch()
        reconcile_until(fleet, lambda: found.pid not in [each.pid for each in fleet.running()])
    assert printed(stage, found.worker_id).splitlines()[1:] == ["told 1", "done"]


def test_killed_before_the_signal_the_worker_is_signalled_at_its_deadline_and_has_all_its_time_then(
    stage: Stage, tmp_path: Path
) -> None:
    """Nobody can know that it was not signalled; a kill would cut short a job that it has taken since."""
    worker = counting(tmp_path / "done")
    killed_as_it_signals(stage, worker, moment="before")
    with stage.fleet(worker) as fleet:
        (found,) = fleet.workers()
        stage.clock.ahead_s += 501.0
        fleet.scan()
        eventually(lambda: "told 1" in printed(stage, found.worker_id))
        stage.clock.ahead_s += 400.0
        assert not fleet.scan()
        assert runs(found.pid)
        (tmp_path / "done").touch()
        reconcile_until(fleet, lambda: fleet.workers() == ())
        assert not fleet.ends.take()[0].worker.is_forced
    assert printed(stage, found.worker_id) == "ready\ntold 1\ndone\n"


def test_signalled_at_its_deadline_a_worker_that_does_not_end_is_ended_by_force_at_the_next(
    stage: Stage, tmp_path: Path
) -> None:
    worker = counting(tmp_path / "never")
    killed_as_it_signals(stage, worker, moment="before")
    with stage.fleet(worker) as fleet:
        for _ in range(2):
            assert len(fleet.running()) == 1
            stage.clock.ahead_s += 501.0
            fleet.scan()
        reconcile_until(fleet, lambda: fleet.workers() == ())
        assert fleet.ends.take()[0].worker.is_forced


def test_a_worker_that_must_be_gone_by_its_deadline_is_given_no_more_time(stage: Stage, tmp_path: Path) -> None:
    """The control plane starts it elsewhere by then, and it may run only once."""
    worker = replace(counting(tmp_path / "never"), isolation_drain_after_s=1_000.0)
    killed_as_it_signals(stage, worker, moment="before")
    with stage.fleet(worker) as fleet:
        stage.clock.ahead_s += 501.0
        fleet.scan()
        reconcile_until(fleet, lambda: fleet.workers() == ())
        assert fleet.ends.take()[0].worker.is_forced
