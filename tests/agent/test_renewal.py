"""What a fleet does when its host file changes, and what else a host file gives a worker: GPUs and a user."""

import os
import pwd
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from headway.agent.config.host_file import HostFile
from headway.agent.config.templates import Ready, Stop, Template
from headway.agent.system import gpus
from headway.agent.workers.manager import WorkerManager
from headway.local import procfs
from headway.scaling.model import WorkerState
from support.waiting import eventually
from support.workers import Stage, reconcile_until, start, template

CRASHES = "raise SystemExit('no broker')"


def use(fleet: WorkerManager, *templates: Template) -> None:
    fleet.use(HostFile(templates={each.name: each for each in templates}))


def test_workers_name_the_template_that_they_were_started_from(stage: Stage) -> None:
    before, after = template(), template(niceness=1)
    with stage.fleet(before) as fleet:
        fleet.act([start()])
        use(fleet, after)
        fleet.act([start()])
        assert [each.template_hash for each in fleet.workers()] == [before.content_hash, after.content_hash]
        assert before.content_hash != after.content_hash


def test_how_a_worker_is_stopped_changes_for_those_that_run_unless_they_were_started_otherwise(stage: Stage) -> None:
    with stage.fleet(template()) as fleet:
        fleet.act([start()])
        use(fleet, template(stop=Stop(drain_timeout_s=7.0)))
        assert [each.stop.drain_timeout_s for each in fleet.running()] == [7.0]
        use(fleet, template(niceness=1, stop=Stop(stop_signal=signal.SIGINT)))
        assert [each.stop.stop_signal for each in fleet.running()] == [signal.SIGTERM]


def test_a_mended_template_is_tried_at_once_and_any_other_change_waits_for_the_pause(stage: Stage) -> None:
    broken = template(CRASHES, ready=Ready(after_s=5.0))
    with stage.fleet(broken) as fleet:
        fleet.act([start()])
        reconcile_until(fleet, lambda: [each.state for each in fleet.workers()] == [WorkerState.BACKING_OFF])
        use(fleet, template(CRASHES, ready=Ready(after_s=4.0)))
        assert not fleet.scan()
        use(fleet, template())
        assert fleet.scan()
        assert fleet.workers() == ()
        fleet.act([start()])
        assert [each.state for each in fleet.workers()] == [WorkerState.STARTING]


# --- GPUs ------------------------------------------------------------------------------------------------------------


def numbers_of(pid: int) -> str:
    found = eventually(lambda: "HEADWAY_POOL" in (seen := procfs.environment(pid)) and seen)
    return found.get("CUDA_VISIBLE_DEVICES", "")


def test_each_worker_has_gpus_of_its_own_and_only_if_it_asks(stage: Stage) -> None:
    stage.environment["CUDA_VISIBLE_DEVICES"] = "7"  # the agent's own says nothing of its workers that ask
    with stage.fleet(template(name="torch", gpus=2), template(), gpus=4) as fleet:
        fleet.act([start(template="torch"), start(template="torch"), start()])
        assert [numbers_of(each.pid) for each in fleet.workers()] == ["0,1", "2,3", "7"]
        assert fleet.free_gpus() == ()


def test_the_numbers_of_one_that_ended_are_free_again(stage: Stage) -> None:
    with stage.fleet(template(name="torch", gpus=1), gpus=2) as fleet:
        fleet.act([start(template="torch"), start(template="torch")])
        first, second = fleet.workers()
        os.kill(first.pid, signal.SIGKILL)
        reconcile_until(fleet, lambda: len(fleet.running()) == 1)
        assert fleet.free_gpus() == (0,)
        stage.clock.ahead_s += 11.0
        fleet.scan()
        fleet.act([start(template="torch")])
        assert {each.gpus for each in fleet.running()} == {(0,), (1,)}
        assert [each.gpus for each in fleet.running() if each.pid == second.pid] == [(1,)]


@pytest.mark.parametrize("has_record", [True, False])
def test_the_next_agent_knows_whose_gpus_are_taken(stage: Stage, has_record: bool) -> None:
    with stage.fleet(template(name="torch", gpus=2), gpus=4) as fleet:
        fleet.act([start(template="torch")])
        numbers_of(fleet.workers()[0].pid)
    if not has_record:
        (stage.folder.root / "workers.json").unlink()
    with stage.fleet(template(name="torch", gpus=2), gpus=4) as fleet:
        assert [each.gpus for each in fleet.running()] == [(0, 1)]
        assert fleet.free_gpus() == (2, 3)


@pytest.mark.parametrize("text", ["", "all", "0,", "GPU-8f2,1", "-1"])
def test_what_names_no_numbers_takes_none(text: str) -> None:
    assert gpus.numbers(text) == ()


# --- users -----------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can run programs as another user")
def test_a_worker_runs_as_the_user_that_its_template_names_with_its_groups_and_home(
    stage: Stage, tmp_path: Path
) -> None:
    script = "echo $(id -u) $(id -g) $(id -G) $HOME $USER; exec sleep 600"
    nobody = pwd.getpwnam("nobody")
    stage.environment["HOME"] = str(tmp_path)
    with stage.fleet(replace(template(user="nobody"), argv=("/bin/sh", "-c", script))) as fleet:
        fleet.act([start()])
        (worker,) = fleet.workers()
        printed = eventually(lambda: (stage.folder.root / "workers" / f"{worker.worker_id}.log").read_text())
        groups = " ".join(map(str, os.getgrouplist("nobody", nobody.pw_gid)))
        assert printed == f"{nobody.pw_uid} {nobody.pw_gid} {groups} {nobody.pw_dir} nobody\n"
        assert (stage.folder.root / "workers").stat().st_uid == 0, "what it prints stays the agent's"
        os.kill(worker.pid, signal.SIGKILL)
        reconcile_until(fleet, lambda: not fleet.running())


def test_a_user_that_went_missing_backs_off(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    with stage.fleet(template(user="nobody-of-this-name")) as fleet:
        fleet.act([start()])
        assert [each.state for each in fleet.workers()] == [WorkerState.BACKING_OFF]
    assert "user 'nobody-of-this-name' is not known on this machine" in caplog.text
