"""A job that runs on after its worker was killed is cut only if its process dies before the job ends."""

import json
import os
import signal
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from headway.agent.config.templates import Template
from headway.agent.model import NOT_KNOWN, Activity
from headway.agent.workers.manager import WorkerManager
from headway.scaling.model import ActivitySource, CutCause, WorkerState
from support.processes import runs
from support.waiting import eventually
from support.workers import PRINTS_READY, Stage, printed, reconcile_until, start, states, template

# As RQ's worker: it forks a process per job, which leads a group of its own, and finishes its job without the worker.
WORKER = """
import os, pathlib, time
if os.fork() == 0:
    os.setpgid(0, 0)
    os.write(1, b'horse %d\\n' % os.getpid())
    while not pathlib.Path({done!r}).exists():
        time.sleep(0.01)
    os._exit(0)
time.sleep(600)
"""


class Rq:
    """A worker of RQ that has one job, and what its broker shows of it."""

    def __init__(self, stage: Stage, folder: Path) -> None:
        self._stage = stage
        self.done = folder / "done"
        self._program = folder / "rq"
        self._program.write_text(WORKER.format(done=str(self.done)))
        self.ended_jobs: int | None = 4
        self.is_shown = True
        self.horse = 0

    @property
    def template(self) -> Template:
        return replace(
            template(ready=replace(PRINTS_READY, pattern="horse")), argv=(sys.executable, str(self._program), "worker")
        )

    def activity(self) -> Activity:
        known = Activity(is_busy=True, source=ActivitySource.BROKER, known_at_s=self._stage.clock())
        return replace(known if self.is_shown else NOT_KNOWN, ended_jobs=self.ended_jobs)

    def start(self, fleet: WorkerManager) -> int:
        """Start the worker. Returns its pid."""
        self.watch(fleet)
        fleet.act([start()])
        reconcile_until(fleet, lambda: states(fleet) == [WorkerState.RUNNING])
        (worker,) = fleet.workers()
        self.horse = int(printed(self._stage, worker.worker_id).split()[1])
        return worker.pid

    def watch(self, fleet: WorkerManager) -> None:
        fleet.cuts.activity = lambda _: self.activity()

    def kill_worker(self, fleet: WorkerManager) -> None:
        os.kill(self.start(fleet), signal.SIGKILL)
        reconcile_until(fleet, fleet.remains.workers)

    def end_job(self) -> None:
        """Let the job end, as RQ counts it: the process ends after that."""
        if self.ended_jobs is not None:
            self.ended_jobs += 1
        self.done.touch()
        eventually(lambda: not runs(self.horse))


@pytest.fixture
def rq(stage: Stage, tmp_path: Path) -> Rq:
    return Rq(stage, tmp_path)


def cuts(fleet: WorkerManager) -> list[tuple[CutCause, bool]]:
    return [(each.cause, each.is_certain) for each in fleet.cuts.log.unsent]


def settle(stage: Stage, fleet: WorkerManager) -> None:
    """Let the time be over in which the broker's word may come."""
    fleet.scan()
    stage.clock.ahead_s += 16.0
    fleet.scan()


def test_a_job_that_ends_after_its_worker_was_killed_is_not_cut(
    stage: Stage, rq: Rq, caplog: pytest.LogCaptureFixture
) -> None:
    with stage.fleet(rq.template) as fleet:
        rq.kill_worker(fleet)
        assert cuts(fleet) == []
        assert "cut a job" not in caplog.text
        assert f"a worker was killed pool=mail worker={fleet.remains.left[0].worker_id} cause=signal: " in caplog.text
        assert f"its job runs on in process {rq.horse}" in caplog.text
        (left,) = fleet.remains.workers()
        assert (left.pid, left.is_busy, left.activity_source) == (rq.horse, True, ActivitySource.CHILD)
        stage.clock.ahead_s += 40.0
        fleet.scan()
        rq.end_job()
        settle(stage, fleet)
        assert cuts(fleet) == []
    with stage.fleet(rq.template) as fleet:
        settle(stage, fleet)
        assert cuts(fleet) == []


def test_a_job_whose_process_dies_after_its_worker_is_cut(stage: Stage, rq: Rq) -> None:
    with stage.fleet(rq.template) as fleet:
        rq.kill_worker(fleet)
        rq.ended_jobs = 5  # its worker's job before, which the broker showed late
        fleet.scan()
        stage.clock.ahead_s += 40.0
        fleet.scan()
        os.kill(rq.horse, signal.SIGKILL)
        eventually(lambda: not runs(rq.horse))
        fleet.scan()
        assert cuts(fleet) == []
        settle(stage, fleet)
        assert cuts(fleet) == [(CutCause.SIGNAL, True)]


@pytest.mark.parametrize("ended_jobs", [None, 4])
def test_a_job_whose_end_no_broker_shows_is_perhaps_cut(stage: Stage, rq: Rq, ended_jobs: int | None) -> None:
    with stage.fleet(rq.template) as fleet:
        rq.kill_worker(fleet)
        stage.clock.ahead_s += 40.0
        rq.is_shown, rq.ended_jobs = False, ended_jobs
        fleet.scan()
        rq.done.touch()
        eventually(lambda: not runs(rq.horse))
        settle(stage, fleet)
        assert cuts(fleet) == [(CutCause.SIGNAL, False)]


def test_a_job_whose_process_is_killed_with_its_worker_is_cut(stage: Stage, rq: Rq) -> None:
    with stage.fleet(rq.template) as fleet:
        pid = rq.start(fleet)
        for each in (rq.horse, pid):
            os.kill(each, signal.SIGKILL)
        reconcile_until(fleet, lambda: fleet.running() == ())
        settle(stage, fleet)
        assert cuts(fleet) == [(CutCause.SIGNAL, True)]


def test_a_job_that_a_person_kills_after_its_worker_is_cut_once(stage: Stage, rq: Rq) -> None:
    with stage.fleet(rq.template) as fleet:
        rq.kill_worker(fleet)
        (left,) = fleet.remains.workers()
        for _ in range(2):
            fleet.kill(left.worker_id, why="anna asked for it")
        reconcile_until(fleet, lambda: not fleet.remains.workers())
        settle(stage, fleet)
        assert cuts(fleet) == [(CutCause.KILLED, True)]


@pytest.mark.parametrize(("has_ended", "found"), [(True, []), (False, [(CutCause.SIGNAL, True)])])
def test_the_next_agent_goes_on_waiting(
    stage: Stage, rq: Rq, has_ended: bool, found: list[tuple[CutCause, bool]]
) -> None:
    with stage.fleet(rq.template) as fleet:
        rq.kill_worker(fleet)
    with stage.fleet(rq.template) as fleet:
        rq.watch(fleet)
        stage.clock.ahead_s += 40.0
        fleet.scan()
        assert cuts(fleet) == []
        rq.end_job() if has_ended else os.kill(rq.horse, signal.SIGKILL)
        eventually(lambda: not runs(rq.horse))
        settle(stage, fleet)
        assert cuts(fleet) == found


def test_a_job_runs_on_whose_worker_was_killed_without_an_agent(stage: Stage, rq: Rq) -> None:
    with stage.fleet(rq.template) as fleet:
        pid = rq.start(fleet)
        fleet.cuts.keep(fleet.running())
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    with stage.fleet(rq.template) as fleet:
        assert cuts(fleet) == []
        rq.watch(fleet)
        fleet.scan()
        stage.clock.ahead_s += 40.0
        fleet.scan()
        rq.end_job()
        settle(stage, fleet)
        assert cuts(fleet) == []


def test_a_job_that_ran_on_until_the_host_booted_is_perhaps_cut(stage: Stage, rq: Rq) -> None:
    with stage.fleet(rq.template) as fleet:
        rq.kill_worker(fleet)
    path = stage.folder.root / "left_jobs.json"
    rows = json.loads(path.read_text())
    path.write_text(json.dumps({key: {**row, "boot_id": "of-the-boot-before"} for key, row in rows.items()}))
    with stage.fleet(rq.template) as fleet:
        rq.done.touch()
        settle(stage, fleet)
        assert cuts(fleet) == [(CutCause.REBOOT, False)]
        assert fleet.cuts.log.unsent[0].cut_at_s is None
    path.write_text('{"a": {"boot_id": 7, "left": {"record": 1}}, "b": 5, "c": {}}')
    with stage.fleet(rq.template) as fleet:
        settle(stage, fleet)
        assert len(fleet.cuts.log.unsent) == 1
