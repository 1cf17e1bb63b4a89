"""The kills of `headway demo --chaos`, with real processes and a machine that only answers; all of it: tests/e2e."""

import subprocess
import sys
from collections.abc import Iterator
from types import SimpleNamespace

import psutil
import pytest

from headway.cli.demo.demo_chaos import AGENT, LEADER, MOMENTS, SPARK, Chaos


class Machine:
    """What the demo asks of its machine."""

    def __init__(self, pids: dict[str, int | None]) -> None:
        self.pids = pids
        self.supervisor = SimpleNamespace(pid=lambda role: self.pids.get(role))
        self.epoch: int | None = 7
        self.agent_reported = self.pipeline_wrote = False
        self.written_age_s = 0.0
        self.reported: list[int] = []
        self.draining: list[int] = []

    def ask(self, path: str) -> dict:
        if path == "/v1/hosts":
            states = [("running", self.reported), ("draining", self.draining), ("starting", [None])]
            return {"hosts": [{"workers": [{"pid": pid, "state": name} for name, pids in states for pid in pids]}]}
        return {} if self.epoch is None else {"leader_epoch": self.epoch}

    def has_agent(self, ran_s: float) -> bool:
        return self.agent_reported

    def has_pipeline(self, ran_s: float) -> bool:
        return self.pipeline_wrote and self.written_age_s < ran_s


@pytest.fixture
def process() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) as started:
        yield started
        started.kill()


class Played:
    """A chaos at a moment of a run of 100 s."""

    def __init__(self, machine: Machine, workers=()) -> None:
        self.now_s = 5000.0
        self.said: list[str] = []
        self.chaos = Chaos(machine, for_s=100, workers=lambda: workers, say=self.said.append, clock=lambda: self.now_s)
        self.chaos.begin()

    def at(self, seconds: float) -> None:
        self.now_s = 5000.0 + seconds
        self.chaos.tend()


def test_the_moments_lie_apart_within_the_run_and_leave_time_to_come_back():
    parts = [part for _, part in MOMENTS]
    assert [what for what, _ in MOMENTS] == [LEADER, AGENT, SPARK]
    assert parts == sorted(parts)
    assert 216 * (1 - parts[-1]) > 60


def test_the_leader_is_killed_at_its_moment_and_is_back_when_one_leads_under_a_newer_epoch(process):
    machine = Machine({"control": process.pid})
    played = Played(machine)
    played.at(24)
    assert process.poll() is None
    played.at(25)
    assert process.wait(10) == -9
    machine.epoch = None  # nobody answers
    played.at(26)
    machine.epoch = 7  # the old epoch is not a new leader
    played.at(27)
    assert played.chaos.faults()[0]["back_after_s"] is None
    machine.epoch = 8
    played.at(28)
    (fault,) = played.chaos.faults()
    assert (fault["what"], fault["at_s"], fault["back_after_s"]) == (LEADER, 25.0, 3.0)


def test_while_nobody_answers_or_runs_nothing_more_is_killed(process):
    machine = Machine({"control": None})
    played = Played(machine)
    played.at(25)
    machine.pids["control"], machine.epoch = process.pid, None
    played.at(26)
    assert process.poll() is None
    machine.epoch = 7
    played.at(27)
    assert process.wait(10) == -9
    assert played.chaos.faults()[0]["at_s"] == 27.0


def test_of_a_killed_agent_the_workers_that_went_on_and_those_it_adopted_are_counted(process):
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) as worker:
        machine = Machine({"agent": process.pid})
        machine.reported = [worker.pid, 1]
        played = Played(machine, workers=[psutil.Process(worker.pid)])
        played.at(45)
        played.at(46)
        machine.agent_reported = True
        played.at(47)
        worker.kill()
    (fault,) = played.chaos.faults()
    assert (fault["workers"], fault["workers_kept"], fault["workers_adopted"]) == (1, 1, 1)
    assert "1 of 1 workers went on, 1 adopted" in played.said[-1]


def test_a_worker_that_was_already_leaving_is_not_expected_to_go_on(process):
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) as worker:
        machine = Machine({"agent": process.pid})
        machine.draining = [worker.pid]
        played = Played(machine, workers=[psutil.Process(worker.pid)])
        played.at(45)
        worker.kill()
    assert played.chaos.faults()[0]["workers"] == 0


def test_a_worker_that_died_with_the_agent_is_not_counted_as_going_on(process):
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) as worker:
        machine = Machine({"agent": process.pid})
        played = Played(machine, workers=[psutil.Process(worker.pid)])
        played.at(45)
        worker.kill()
        worker.wait()
        played.at(46)
        machine.agent_reported = True
        played.at(47)
    (fault,) = played.chaos.faults()
    assert (fault["workers"], fault["workers_kept"], fault["workers_adopted"]) == (1, 0, 0)


def test_of_spark_only_the_jvm_is_killed_and_what_was_under_way_is_no_return(process):
    """This process has no JVM below it: there is nothing to kill, and the pipeline itself is left alone."""
    machine = Machine({"pipeline": process.pid})
    played = Played(machine)
    played.at(62)
    assert process.poll() is None
    assert played.chaos.faults() == []


def test_what_the_pipeline_still_wrote_as_its_jvm_died_is_no_return(process, monkeypatch):
    machine = Machine({"pipeline": process.pid})
    played = Played(machine)
    monkeypatch.setattr(played.chaos, "_victim", lambda _: process.pid)
    for seconds in (25, 45, 62):  # the first two are killed as well: they are this process, too
        played.at(seconds)
    machine.pipeline_wrote, machine.written_age_s = True, 0.5
    played.at(63)  # written 0.5 s after the kill
    assert played.chaos.faults()[-1]["back_after_s"] is None
    machine.written_age_s = 0.2
    played.at(64)
    assert played.chaos.faults()[-1]["back_after_s"] == 2.0
    assert played.chaos.faults()[0]["back_after_s"] is None, "one that is still away keeps no other from being seen"


def test_without_a_beginning_nothing_is_killed(process):
    machine = Machine({"control": process.pid})
    chaos = Chaos(machine, for_s=1, workers=list, say=print, clock=lambda: 1e9)
    chaos.tend()
    assert process.poll() is None
    assert chaos.faults() == []
