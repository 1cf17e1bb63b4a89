"""Fleets of real, small processes."""

import errno
import json
import os
import shlex
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from headway.agent.config.templates import Ready, Stop
from headway.agent.desired_state import DesiredState
from headway.agent.workers.manager import WorkerManager
from headway.local import procfs
from headway.scaling.model import Assignment, HostProblem, HostProblemKind, Worker, WorkerState
from headway.scaling.reconcile import Drain, reconcile
from support.flushed import Disk
from support.processes import runs
from support.waiting import eventually
from support.workers import (
    BUSY,
    PRINTS_READY,
    SLEEP,
    STUBBORN,
    Stage,
    printed,
    reconcile_until,
    start,
    states,
    template,
)

# Runs on when a signal interrupts it.
STAYS = "\nwhile True: time.sleep(600)"


def drain(fleet: WorkerManager) -> None:
    fleet.act([Drain(worker_id=worker.worker_id) for worker in fleet.workers()])


def marked(name: str, value: str) -> list[int]:
    """The processes that bear this mark, once any does: in the middle of its start one has no environment."""
    return eventually(lambda: [pid for pid in procfs.pids() if procfs.environment(pid).get(name) == value])


# --- starting --------------------------------------------------------------------------------------------------------


def test_a_worker_leads_a_session_of_its_own_bears_marks_and_inherits_no_secret_of_the_agents(stage: Stage) -> None:
    with stage.fleet(template(environment={"LANG": "xx"})) as fleet:
        fleet.act([start()])
        (worker,) = fleet.workers()
        known = procfs.stat(worker.pid)
        assert (known.session, worker.state, worker.pool) == (worker.pid, WorkerState.STARTING, "mail")
        environment = eventually(lambda: "HEADWAY_POOL" in (found := procfs.environment(worker.pid)) and found)
        assert (environment["HEADWAY_WORKER_ID"], environment["HEADWAY_POOL"]) == (worker.worker_id, "mail")
        assert environment["LANG"] == "xx"
        assert not {"HEADWAY_TOKEN", "HEADWAY_DATABASE_URL"} & set(environment)
        assert "PATH" in environment


def test_a_worker_is_called_with_the_id_that_its_arguments_ask_for(stage: Stage) -> None:
    named = template(f"import sys\nprint('ready', sys.argv[1], flush=True)\n{SLEEP}", ready=PRINTS_READY)
    named = replace(named, argv=(*named.argv, "mail-$(HEADWAY_WORKER_ID)@$(HOME)"))
    with stage.fleet(named) as fleet:
        fleet.act([start()] * 2)
        reconcile_until(fleet, lambda: states(fleet) == 2 * [WorkerState.RUNNING])
        assert all(f"ready mail-{each.worker_id}@$(HOME)" in printed(stage, each.worker_id) for each in fleet.workers())


def test_a_hundred_workers_are_there_at_once(stage: Stage) -> None:
    with stage.fleet(template(ready=Ready(after_s=600.0))) as fleet:
        fleet.act([start()] * 100)
        assert [each.life.state for each in fleet.running()] == [WorkerState.STARTING] * 100, "none waits for another"
        drain(fleet)
        reconcile_until(fleet, lambda: fleet.workers() == ())


def test_a_worker_without_a_pattern_is_ready_once_it_has_lived_for_a_while(stage: Stage) -> None:
    with stage.fleet(template(ready=Ready(after_s=500.0))) as fleet:
        fleet.act([start()])
        assert not fleet.scan()
        stage.clock.ahead_s += 500.1
        assert fleet.scan()
        assert states(fleet) == [WorkerState.RUNNING]
        (start_up,) = fleet.start_watch.take_start_ups()
        assert start_up.template == "py"
        assert 500.1 <= start_up.start_up_s < 1_000.0


def test_what_a_start_takes_of_processors_is_measured(stage: Stage) -> None:
    code = "import time\nwhile time.process_time() < 0.3: pass\nprint('ready', flush=True)\n" + SLEEP
    with stage.fleet(template(code, ready=PRINTS_READY)) as fleet:
        fleet.act([start()])
        reconcile_until(fleet, lambda: states(fleet) == [WorkerState.RUNNING])
        (start_up,) = fleet.start_watch.take_start_ups()
        assert start_up.cpu_s is not None
        assert 0.25 <= start_up.cpu_s <= start_up.start_up_s + 0.1  # one thread; the kernel counts in hundredths


def test_what_a_start_and_an_end_wait_for_a_core_is_measured_apart_from_what_they_take(stage: Stage) -> None:
    """Both on one core, with a hog beside them: they have a part of it, and wait for the rest of the time."""
    compute = "while time.process_time() < before + 0.3: pass\n"
    code = (
        "import signal, sys, time\nbefore = 0\n" + compute + "def end(*_):\n before = time.process_time()\n "
        f"{compute} sys.exit()\nsignal.signal(signal.SIGTERM, end)\nprint('ready', flush=True)\n{SLEEP}"
    )
    core = str(min(os.sched_getaffinity(0)))
    hog = subprocess.Popen(["taskset", "-c", core, sys.executable, "-c", "while True: pass"])
    try:
        pinned = template(code, ready=PRINTS_READY)
        with stage.fleet(replace(pinned, argv=("taskset", "-c", core, *pinned.argv))) as fleet:
            fleet.act([start()])
            reconcile_until(fleet, lambda: states(fleet) == [WorkerState.RUNNING])
            (worker,) = fleet.workers()
            fleet.act([Drain(worker_id=worker.worker_id)], idle={worker.worker_id})
            reconcile_until(fleet, lambda: fleet.workers() == ())
            (start_up,), (ended,) = fleet.start_watch.take_start_ups(), fleet.ends.take_exits()
    finally:
        hog.kill()
        hog.wait()
    for measured, took_s in ((start_up, start_up.start_up_s), (ended, ended.exit_s)):
        assert measured.cpu_s is not None
        assert measured.waited_s is not None
        assert measured.alone_s is not None
        assert measured.cpu_s >= 0.25
        assert measured.waited_s > 0.0
        assert measured.alone_s + measured.waited_s == pytest.approx(took_s)
        assert measured.alone_s >= measured.cpu_s - 0.1  # the kernel counts a start's in hundredths


def test_a_kernel_that_does_not_say_what_waited_for_a_core_leaves_it_unknown(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(procfs, "scheduled", lambda _: None)
    with stage.fleet(template(ready=Ready(after_s=0.0))) as fleet:
        fleet.act([start()])
        reconcile_until(fleet, lambda: states(fleet) == [WorkerState.RUNNING])
        (worker,) = fleet.workers()
        fleet.act([Drain(worker_id=worker.worker_id)], idle={worker.worker_id})
        reconcile_until(fleet, lambda: fleet.workers() == ())
        (start_up,), (ended,) = fleet.start_watch.take_start_ups(), fleet.ends.take_exits()
        assert (start_up.waited_s, start_up.alone_s) == (None, None)
        assert (ended.cpu_s, ended.waited_s, ended.alone_s) == (None, None, None)


def test_what_an_idle_worker_takes_to_end_is_measured(stage: Stage) -> None:
    with stage.fleet(template(ready=Ready(after_s=0.0))) as fleet:
        fleet.act([start(), start()])
        reconcile_until(fleet, lambda: states(fleet) == [WorkerState.RUNNING] * 2)
        idle, other = fleet.workers()
        fleet.act([Drain(worker_id=each.worker_id) for each in (idle, other)], idle={idle.worker_id})
        stage.clock.ahead_s += 3.0
        reconcile_until(fleet, lambda: fleet.workers() == ())
        (ended,) = fleet.ends.take_exits()  # of the other nobody knows whether it had a job
        assert ended.template == "py"
        assert 3.0 <= ended.exit_s < 100.0
        assert fleet.ends.take_exits() == []


def test_an_end_by_force_shows_nothing_of_how_long_an_idle_worker_takes(stage: Stage) -> None:
    with stage.fleet(template(STUBBORN, ready=PRINTS_READY, stop=Stop(drain_timeout_s=500.0))) as fleet:
        fleet.act([start()])
        reconcile_until(fleet, lambda: states(fleet) == [WorkerState.RUNNING])
        (worker,) = fleet.workers()
        fleet.act([Drain(worker_id=worker.worker_id)], idle={worker.worker_id})
        stage.clock.ahead_s += 500.1
        reconcile_until(fleet, lambda: fleet.workers() == ())
        assert fleet.ends.take_exits() == []


def test_a_worker_with_a_pattern_is_ready_when_it_prints_it(stage: Stage, tmp_path: Path) -> None:
    code = f"import pathlib, time\nwhile not pathlib.Path({str(tmp_path / 'go')!r}).exists(): time.sleep(0.01)\n"
    code += "print('Listening on mail', flush=True)\n" + SLEEP
    with stage.fleet(template(code, ready=Ready(pattern=r"^Listening on \w+$"))) as fleet:
        fleet.act([start()])
        fleet.scan()
        assert states(fleet) == [WorkerState.STARTING]
        (tmp_path / "go").touch()
        reconcile_until(fleet, lambda: states(fleet) == [WorkerState.RUNNING])
        assert fleet.next_check_s() > 60.0  # nothing more to look at: its end is told by the kernel


def test_a_worker_that_is_not_ready_in_time_is_stopped_and_its_kind_backs_off(stage: Stage) -> None:
    with stage.fleet(template(ready=Ready(pattern="never", timeout_s=20.0))) as fleet:
        fleet.act([start()])
        stage.clock.ahead_s += 21.0
        fleet.scan()
        assert states(fleet) == [WorkerState.DRAINING]
        reconcile_until(fleet, lambda: states(fleet) == [WorkerState.BACKING_OFF])


# --- draining --------------------------------------------------------------------------------------------------------


def test_a_drained_worker_is_signalled_once_and_finishes_what_it_is_doing(stage: Stage, tmp_path: Path) -> None:
    with stage.fleet(template(BUSY.format(done=str(tmp_path / "done")), ready=PRINTS_READY)) as fleet:
        fleet.act([start()])
        reconcile_until(fleet, lambda: states(fleet) == [WorkerState.RUNNING])
        (worker,) = fleet.workers()
        drain(fleet)
        eventually(lambda: "told 1" in printed(stage, worker.worker_id))
        assert states(fleet) == [WorkerState.DRAINING]
        assert not fleet.scan()
        (tmp_path / "done").touch()
        reconcile_until(fleet, lambda: fleet.workers() == ())
        assert printed(stage, worker.worker_id) == "ready\ntold 1\ndone\n"
        (ended,) = fleet.ends.take()
        assert (ended.worker.worker_id, ended.worker.state, ended.exit_code) == (worker.worker_id, WorkerState.GONE, 0)


def test_the_signal_to_stop_is_the_templates_own_and_goes_to_the_main_process_alone(stage: Stage) -> None:
    """The worker signals its own children: one signalled twice, by us and by its parent, may drop its job."""
    child = "import signal, time; signal.signal(2, lambda *_: print('child told', flush=True)); time.sleep(600)"
    code = f"""
import signal, subprocess, sys, time
child = subprocess.Popen([sys.executable, '-c', {child!r}])
def told(*_):
    print('main told', flush=True); child.kill(); sys.exit(0)
signal.signal(signal.SIGINT, told)
print('ready', flush=True)
time.sleep(600)
"""
    with stage.fleet(template(code, ready=PRINTS_READY, stop=Stop(stop_signal=signal.SIGINT))) as fleet:
        fleet.act([start()])
        reconcile_until(fleet, lambda: states(fleet) == [WorkerState.RUNNING])
        (worker,) = fleet.workers()
        drain(fleet)
        reconcile_until(fleet, lambda: fleet.workers() == ())
        assert printed(stage, worker.worker_id) == "ready\nmain told\n"


@pytest.mark.parametrize("is_adopted", [False, True])
def test_a_worker_behind_a_shell_is_signalled_in_the_shells_place_and_finishes_what_it_is_doing(
    stage: Stage, tmp_path: Path, is_adopted: bool
) -> None:
    """The shell dies of the signal and passes it on to nobody: the worker took more jobs, and was killed at one."""
    code = BUSY.format(done=str(tmp_path / "done"))
    behind = replace(
        template(ready=PRINTS_READY, stop=Stop(drain_timeout_s=50.0)),
        argv=("sh", "-c", f"{shlex.join([sys.executable, '-c', code])}; echo shell went on"),
    )

    def reported() -> None:
        drain(fleet)
        eventually(lambda: "told 1" in printed(stage, worker.worker_id))
        reconcile_until(fleet, lambda: fleet.workers() == ())
        (left,) = fleet.remains.workers()
        assert runs(left.pid)
        (tmp_path / "done").touch()
        reconcile_until(fleet, lambda: fleet.remains.workers() == ())

    with stage.fleet(behind) as fleet:
        fleet.act([start()])
        reconcile_until(fleet, lambda: states(fleet) == [WorkerState.RUNNING])
        (worker,) = fleet.workers()
        if not is_adopted:
            reported()
    if is_adopted:
        with stage.fleet(behind) as fleet:
            reported()
    assert printed(stage, worker.worker_id) == "ready\ntold 1\ndone\n"


def test_only_after_the_drain_timeout_is_a_worker_ended_by_force_with_all_its_family(stage: Stage) -> None:
    """Also those that lead a session of their own, as RQ's work horses do: the group's signal does not reach them."""
    family = "import subprocess, sys; child = subprocess.Popen([sys.executable, '-c', %r], start_new_session=True);"
    code = family % STUBBORN + "print('child', child.pid, flush=True);" + STUBBORN
    with stage.fleet(template(code, ready=PRINTS_READY, stop=Stop(drain_timeout_s=400.0))) as fleet:
        fleet.act([start()])
        reconcile_until(fleet, lambda: states(fleet) == [WorkerState.RUNNING])
        (worker,) = fleet.workers()
        eventually(lambda: printed(stage, worker.worker_id).count("ready") == 2)  # the child says so, too
        child_pid = int(printed(stage, worker.worker_id).partition("child ")[2].split()[0])
        assert procfs.stat(child_pid).session == child_pid
        drain(fleet)
        stage.clock.ahead_s += 300.0
        assert not fleet.scan()
        assert runs(worker.pid)
        stage.clock.ahead_s += 100.0
        fleet.scan()
        eventually(lambda: not runs(worker.pid) and not runs(child_pid))
        reconcile_until(fleet, lambda: fleet.workers() == ())
        (ended,) = fleet.ends.take()
        assert (ended.exit_code, ended.worker.is_forced) == (-signal.SIGKILL, True)


CHILD = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {SLEEP!r}], start_new_session=True);"
UNTIL = "\nimport pathlib, time\nwhile not pathlib.Path({!r}).exists(): time.sleep(0.01)"


def test_what_a_worker_that_is_killed_leaves_may_finish_its_job_and_is_ended_after_the_drain_timeout(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    with stage.fleet(template(CHILD + SLEEP, stop=Stop(drain_timeout_s=40.0)), template(name="other")) as fleet:
        fleet.act([start(), start(template="other")])
        worker, other = fleet.workers()
        (child,) = eventually(lambda: procfs.descendants(worker.pid))
        eventually(lambda: "HEADWAY_POOL" in procfs.environment(child.pid))
        stage.clock.ahead_s += 11.0
        os.kill(worker.pid, signal.SIGKILL)
        reconcile_until(fleet, lambda: len(fleet.workers()) == 1)
        assert f"left behind pool=mail pid={child.pid} by pid={worker.pid}" in caplog.text
        stage.clock.ahead_s += 20.0  # and what this machine takes
        fleet.scan()
        assert runs(child.pid)
        stage.clock.ahead_s += 21.0
        reconcile_until(fleet, lambda: not runs(child.pid))
        assert runs(other.pid)


def test_what_a_worker_has_left_is_no_worker_of_the_next_agent_which_ends_it_in_its_time(stage: Stage) -> None:
    with stage.fleet(template(CHILD + SLEEP, stop=Stop(drain_timeout_s=40.0))) as fleet:
        fleet.act([start()])
        (worker,) = fleet.workers()
        (child,) = eventually(lambda: procfs.descendants(worker.pid))
        eventually(lambda: "HEADWAY_POOL" in procfs.environment(child.pid))
        stage.clock.ahead_s += 11.0
        os.kill(worker.pid, signal.SIGKILL)
        reconcile_until(fleet, lambda: not fleet.workers())
    with stage.fleet(template()) as fleet:
        assert fleet.workers() == ()
        stage.clock.ahead_s += 20.0  # and what this machine takes
        fleet.scan()
        assert runs(child.pid)
        stage.clock.ahead_s += 21.0
        reconcile_until(fleet, lambda: not runs(child.pid))


def test_what_a_worker_has_left_that_no_file_names_is_taken_for_no_worker(stage: Stage) -> None:
    """It would hold a worker's place for as long as it lives, and be asked to stop in the middle of a job."""
    left = CHILD.replace(", start_new_session=True", "")
    with stage.fleet(template(left + SLEEP)) as fleet:
        fleet.act([start()])
        (worker,) = fleet.workers()
        (child,) = eventually(lambda: procfs.descendants(worker.pid))
        eventually(lambda: "HEADWAY_POOL" in procfs.environment(child.pid))
    os.kill(worker.pid, signal.SIGKILL)
    os.waitpid(worker.pid, 0)
    (stage.folder.root / "workers.json").unlink()
    with stage.fleet(template()) as fleet:
        assert fleet.all_workers() == ()
        assert runs(child.pid)
    os.kill(child.pid, signal.SIGKILL)


def test_a_worker_that_cannot_be_signalled_is_logged_once_and_ends_no_agent(
    stage: Stage, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one that sudo has started: it is root's, and this agent is not."""

    def refused(*_: object) -> None:
        raise PermissionError

    with stage.fleet(template(stop=Stop(drain_timeout_s=1.0))) as fleet:
        fleet.act([start()])
        with monkeypatch.context() as patched:
            patched.setattr(subprocess.Popen, "send_signal", refused)
            patched.setattr(os, "killpg", refused)
            fleet.drain_all()
            stage.clock.ahead_s += 2.0
            fleet.scan()
        assert states(fleet) == [WorkerState.DRAINING]
        assert caplog.text.count("cannot be signalled: it runs as another user") == 1


def test_what_a_worker_leaves_that_ends_well_is_ended_by_nobody(stage: Stage, tmp_path: Path) -> None:
    may_end = tmp_path / "may end"
    with stage.fleet(template(CHILD + UNTIL.format(str(may_end)))) as fleet:
        fleet.act([start()])
        fleet.scan()
        stage.clock.ahead_s += 11.0
        may_end.touch()
        reconcile_until(fleet, lambda: fleet.workers() == ())
        (child,) = marked("HEADWAY_AGENT_ID", fleet._agent_id)
        stage.clock.ahead_s += 1_000.0
        fleet.scan()
        assert runs(child)
        os.kill(child, signal.SIGKILL)


@pytest.mark.parametrize("is_log_kept", [True, False])
def test_what_a_job_leaves_of_a_worker_that_ends_well_is_no_worker_of_the_next_agent(
    stage: Stage, is_log_kept: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a program that was sent to the background: it would hold a worker's place, and be asked to stop."""
    monkeypatch.setattr("headway.agent.workers.ends.orphan_roles.CRASH_WITHIN_S", 0.0)  # as if it had begun later
    may_end = tmp_path / "may end"
    with stage.fleet(template(CHILD + UNTIL.format(str(may_end)))) as fleet:
        fleet.act([start()])
        fleet.scan()
        (worker,) = fleet.workers()
        stage.clock.ahead_s += 11.0
        may_end.touch()
        reconcile_until(fleet, lambda: fleet.workers() == ())
    (child,) = marked("HEADWAY_WORKER_ID", worker.worker_id)
    eventually(lambda: procfs.stat(child).session == child)
    if not is_log_kept:  # it ended so long ago that nothing tells of it any more
        (stage.folder.root / "workers" / f"{worker.worker_id}.log").unlink()
        (stage.folder.root / "workers.json").write_text(
            (stage.folder.root / "workers.json").read_text().replace(worker.worker_id, "another")
        )
    with stage.fleet(template()) as fleet:
        assert fleet.all_workers() == ()
        stage.clock.ahead_s += 1_000.0
        fleet.scan()
        assert runs(child)
    os.kill(child, signal.SIGKILL)


# --- failing ---------------------------------------------------------------------------------------------------------


def test_of_workers_that_die_as_soon_as_they_are_started_one_keeps_trying(stage: Stage) -> None:
    backing_off = WorkerState.BACKING_OFF
    with stage.fleet(template("raise SystemExit('no broker')", ready=Ready(after_s=5.0))) as fleet:
        fleet.act([start(), start()])
        for _ in range(3):
            reconcile_until(fleet, lambda: states(fleet) == [backing_off] * 2)
            assert [worker.pid for worker in fleet.workers()] == [0, 0]
            stage.clock.ahead_s += 100.0  # as long as any of these pauses
            assert fleet.scan()
            fleet.act([start(), start()])
        for _ in range(3):  # while the others wait for 80 s
            reconcile_until(fleet, lambda: states(fleet) == [backing_off] * 2)
            stage.clock.ahead_s += 9.0
            assert not fleet.scan()
            stage.clock.ahead_s += 1.0
            assert fleet.scan()
            assert states(fleet) == [backing_off]
            assert not fleet.scan()
            fleet.act([start()])
            assert sorted(states(fleet)) == [backing_off, WorkerState.STARTING]
            fleet.act([start()])  # no other is tried meanwhile
            assert sorted(states(fleet)) == [backing_off, backing_off, WorkerState.STARTING]
            reconcile_until(fleet, lambda: states(fleet) == [backing_off] * 3)
            fleet.act([Drain(worker_id=fleet.workers()[0].worker_id)])


def test_a_try_that_nobody_makes_is_due_again_later_and_not_all_the_time(stage: Stage) -> None:
    """As where the disk is full: the places are free, and no worker is started in them."""
    with stage.fleet(template("raise SystemExit('no broker')", ready=Ready(after_s=5.0))) as fleet:
        fleet.act([start()] * 4)
        for _ in range(4):
            reconcile_until(fleet, lambda: states(fleet) == [WorkerState.BACKING_OFF] * 4)
            stage.clock.ahead_s += 100.0
            assert fleet.scan()
            fleet.act([start()] * 4)
        reconcile_until(fleet, lambda: states(fleet) == [WorkerState.BACKING_OFF] * 4)
        for left in (3, 2, 1):
            stage.clock.ahead_s += 10.5
            assert fleet.scan()
            assert len(fleet.workers()) == left
            assert fleet.next_check_s() > 5.0


def test_a_worker_that_stays_lets_the_others_start(stage: Stage) -> None:
    code = "import pathlib, sys, time; pathlib.Path({!r}).exists() and time.sleep(600)"
    is_well = stage.folder.root / "well"
    with stage.fleet(template(code.format(str(is_well)), ready=Ready(after_s=5.0))) as fleet:
        fleet.act([start()] * 3)
        for _ in range(3):
            reconcile_until(fleet, lambda: states(fleet) == [WorkerState.BACKING_OFF] * 3)
            stage.clock.ahead_s += 100.0
            assert fleet.scan()
            fleet.act([start()] * 3)
        reconcile_until(fleet, lambda: states(fleet) == [WorkerState.BACKING_OFF] * 3)
        is_well.touch()
        stage.clock.ahead_s += 10.0
        assert fleet.scan()
        fleet.act([start()])
        stage.clock.ahead_s += 5.0
        reconcile_until(fleet, lambda: sorted(states(fleet)) == [*[WorkerState.BACKING_OFF] * 2, WorkerState.RUNNING])
        stage.clock.ahead_s += 6.0
        assert fleet.scan()
        assert states(fleet) == [WorkerState.RUNNING], "all places are free at once"
        fleet.act([start()])
        assert sorted(states(fleet)) == [WorkerState.RUNNING, WorkerState.STARTING]


def test_a_failure_says_the_workers_last_words(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    with stage.fleet(template("raise SystemExit('no broker at redis://x')", ready=Ready(after_s=5.0))) as fleet:
        fleet.act([start()])
        reconcile_until(fleet, lambda: states(fleet) == [WorkerState.BACKING_OFF])
    assert "failed pool=mail template=py again_in_s=10" in caplog.text
    assert "exit=1" in caplog.text
    assert "said='no broker at redis://x'" in caplog.text


def test_a_failure_after_the_end_of_its_pause_is_followed_by_a_start_at_once(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    """The log said again_in_s=-87: the worker had been starting since before the pause."""
    with stage.fleet(template(ready=Ready(pattern="never", timeout_s=600.0))) as fleet:
        fleet.act([start()] * 2)
        first, second = fleet.workers()
        os.kill(first.pid, signal.SIGKILL)
        reconcile_until(fleet, lambda: WorkerState.BACKING_OFF in states(fleet))
        stage.clock.ahead_s += 97.0
        assert fleet.scan()
        assert states(fleet) == [WorkerState.STARTING]
        caplog.clear()
        os.kill(second.pid, signal.SIGKILL)
        reconcile_until(fleet, lambda: "again_in_s=" in caplog.text)
        assert "failed pool=mail template=py again_in_s=0: " in caplog.text
        assert fleet.next_check_s() == 0.0
        fleet.scan()
        assert fleet.workers() == ()
        fleet.act([start()])
        assert states(fleet) == [WorkerState.STARTING]


def test_a_worker_that_dies_after_a_while_of_use_has_its_place_free_at_once(stage: Stage) -> None:
    with stage.fleet(template()) as fleet:
        fleet.act([start()])
        fleet.scan()
        (worker,) = fleet.workers()
        stage.clock.ahead_s += 11.0
        os.kill(worker.pid, signal.SIGKILL)
        reconcile_until(fleet, lambda: fleet.workers() == ())
        assert fleet.ends.take()[0].exit_code == -signal.SIGKILL


def test_a_program_that_went_missing_backs_off_and_touches_no_other_kind(
    stage: Stage, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    gone = template(name="gone", working_directory=str(tmp_path / "removed"))
    with stage.fleet(gone, template()) as fleet:
        fleet.act([start(template="gone"), start(template="gone"), start(), start(template="unknown")])
        found = {(worker.template, worker.state) for worker in fleet.workers()}
        assert found == {
            ("gone", WorkerState.BACKING_OFF),
            ("py", WorkerState.STARTING),
            ("unknown", WorkerState.BACKING_OFF),
        }
    assert f"{gone.argv[0]!r} cannot be started: No such file or directory" in caplog.text
    assert "host.toml has no template 'unknown'" in caplog.text


def test_a_template_that_host_toml_lacks_is_never_spawned_however_often_it_is_tried(stage: Stage) -> None:
    with stage.fleet(template()) as fleet:
        orders = [Assignment(pool="mail", host_id="a", template="unknown", base_workers=2)]
        for _ in range(5):
            fleet.act(reconcile(fleet.workers(), orders))
            assert {worker.state for worker in fleet.workers()} <= {WorkerState.BACKING_OFF}
            stage.clock.ahead_s += 11.0
            fleet.scan()


def test_a_place_that_nobody_wants_any_more_is_given_up_during_its_pause(stage: Stage) -> None:
    with stage.fleet(template("raise SystemExit(1)", ready=Ready(after_s=5.0))) as fleet:
        fleet.act([start()])
        reconcile_until(fleet, lambda: states(fleet) == [WorkerState.BACKING_OFF])
        drain(fleet)
        assert fleet.workers() == ()


# --- burst -----------------------------------------------------------------------------------------------------------

ENDS_WELL = "import sys; sys.exit('--burst' not in sys.argv)"


def test_a_burst_workers_clean_end_spends_its_place_under_these_orders(stage: Stage) -> None:
    with stage.fleet(template(ENDS_WELL, burst_arguments=("--burst",), ready=Ready(after_s=5.0))) as fleet:
        fleet.obey(DesiredState(cluster_id="c", epoch=1, revision=1, assignments=()))
        fleet.act([start(is_burst=True)])
        reconcile_until(fleet, lambda: fleet.workers() == ())
        assert fleet.ends.spent == {"mail": 1}
    with stage.fleet() as fleet:
        assert fleet.ends.spent == {"mail": 1}  # also for the next agent
        fleet.obey(DesiredState(cluster_id="c", epoch=1, revision=1, assignments=()))
        assert fleet.ends.spent == {"mail": 1}
        fleet.obey(DesiredState(cluster_id="c", epoch=1, revision=2, assignments=()))
        assert fleet.ends.spent == {}


# --- taking over -----------------------------------------------------------------------------------------------------


def test_the_next_agent_takes_over_what_runs_and_starts_nothing_anew(stage: Stage) -> None:
    with stage.fleet(template()) as fleet:
        fleet.obey(DesiredState(cluster_id="c", epoch=2, revision=7, assignments=()))
        fleet.act([start(restart_generation=3), start(is_burst=True)])
        fleet.scan()
        before = fleet.workers()
    with stage.fleet(template()) as fleet:
        assert fleet.workers() == before
        assert (fleet.orders.epoch, fleet.orders.revision) == (2, 7)
        drain(fleet)
        reconcile_until(fleet, lambda: fleet.workers() == ())
        assert {ended.exit_code for ended in fleet.ends.take()} == {None}  # only a parent sees how a child ended


def test_a_worker_is_stopped_as_it_was_started_whatever_host_toml_says_by_now(stage: Stage) -> None:
    with stage.fleet(template(stop=Stop(stop_signal=signal.SIGINT, drain_timeout_s=7.0))) as fleet:
        fleet.act([start()])
    with stage.fleet() as fleet:
        (record,) = fleet.running()
        assert (record.stop.stop_signal, record.stop.drain_timeout_s) == (signal.SIGINT, 7.0)


def test_a_drain_goes_on_under_the_next_agent_without_a_second_signal(stage: Stage, tmp_path: Path) -> None:
    busy = template(BUSY.format(done=str(tmp_path / "done")), ready=PRINTS_READY, stop=Stop(drain_timeout_s=500.0))
    with stage.fleet(busy) as fleet:
        fleet.act([start()])
        reconcile_until(fleet, lambda: states(fleet) == [WorkerState.RUNNING])
        (worker,) = fleet.workers()
        drain(fleet)
        eventually(lambda: "told 1" in printed(stage, worker.worker_id))
        stage.clock.ahead_s += 300.0
    with stage.fleet() as fleet:
        assert states(fleet) == [WorkerState.DRAINING]
        stage.clock.ahead_s += 100.0
        assert not fleet.scan()
        stage.clock.ahead_s += 100.0
        fleet.scan()  # 500 s after it was told
        reconcile_until(fleet, lambda: fleet.workers() == ())
    assert printed(stage, worker.worker_id) == "ready\ntold 1\n"


def test_a_worker_that_ended_while_no_agent_was_there_is_gone(stage: Stage) -> None:
    with stage.fleet(template()) as fleet:
        fleet.act([start()])
        fleet.scan()
        (worker,) = fleet.workers()
        process = fleet._table[worker.worker_id].process
    os.kill(worker.pid, signal.SIGKILL)
    os.waitpid(process.pid, 0)
    stage.clock.ahead_s += 60.0
    with stage.fleet() as fleet:
        assert fleet.workers() == ()
        assert [ended.worker.worker_id for ended in fleet.ends.take()] == [worker.worker_id]


def test_a_zombie_is_not_taken_for_a_worker(stage: Stage) -> None:
    """In a container pid 1 may never take note of the end of what it was handed."""
    with stage.fleet(template()) as fleet:
        fleet.act([start()])
        fleet.scan()
        (worker,) = fleet.workers()
    os.kill(worker.pid, signal.SIGKILL)
    eventually(lambda: procfs.stat(worker.pid).is_over)  # this process is its parent and does not look
    stage.clock.ahead_s += 60.0
    with stage.fleet() as fleet:
        assert fleet.workers() == ()
    os.waitpid(worker.pid, 0)


def test_a_pid_that_is_another_process_by_now_is_left_alone(stage: Stage, tmp_path: Path) -> None:
    with stage.fleet(template()) as fleet:
        fleet.act([start()])
        fleet.scan()
        (worker,) = fleet.workers()
    path = stage.folder.root / "workers.json"
    path.write_text(path.read_text().replace(f'"pid":{worker.pid},', f'"pid":{os.getpid()},'))
    stage.clock.ahead_s += 60.0
    with stage.fleet() as fleet:
        assert fleet.workers() == ()
    os.kill(worker.pid, signal.SIGKILL)
    os.waitpid(worker.pid, 0)


def test_after_a_reboot_nothing_is_taken_over_but_the_orders(stage: Stage) -> None:
    with stage.fleet(template()) as fleet:
        fleet.obey(DesiredState(cluster_id="c", epoch=2, revision=7, assignments=()))
        fleet.act([start()])
        pid = fleet.workers()[0].pid
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    path = stage.folder.root / "workers.json"
    path.write_text(path.read_text().replace(procfs.boot_id(), "an-earlier-boot"))
    with stage.fleet() as fleet:
        assert (fleet.workers(), fleet.orders.revision) == ((), 7)


@pytest.mark.parametrize("is_readable", [True, False])
def test_a_worker_is_taken_over_by_an_agent_whose_boot_clock_is_another(stage: Stage, is_readable: bool) -> None:
    """The records were written in a time namespace that is 50 s ahead; without the ledger by the record of starts."""
    with stage.fleet(template()) as fleet:
        fleet.obey(DesiredState(cluster_id="c", epoch=2, revision=7, assignments=()))
        fleet.act([start()])
        (worker,) = fleet.workers()
    for path in (stage.folder.root / "workers.json", (stage.folder.root / "workers.json").with_name("starts.jsonl")):
        path.write_text("".join(f"{json.dumps(_ahead(json.loads(line)))}\n" for line in path.read_text().splitlines()))
    if not is_readable:
        (stage.folder.root / "workers.json").write_text("{")
    with stage.fleet(template()) as fleet:
        (taken,) = fleet.workers()
        assert (taken.worker_id, taken.pid, taken.state) == (worker.worker_id, worker.pid, worker.state)
        assert taken.started_at_s == pytest.approx(worker.started_at_s)
    os.kill(worker.pid, signal.SIGKILL)
    os.waitpid(worker.pid, 0)


def _ahead(body: dict[str, Any]) -> dict[str, Any]:
    """A record as an agent writes it whose boot clock is 50 s ahead."""
    workers = body["workers"] if "workers" in body else [body["worker"]]
    for worker in workers:
        worker["started_ticks"] += 50 * procfs.TICKS_PER_S
        for name in ("started_at_s", "since_s"):
            worker["life"][name] += 50.0
    boot, offset_s = procfs.boot_id()[:36], int(procfs.boot_id()[36:] or 0)  # in a namespace it has one already
    return {**body, "boot_id": boot + (f"{offset_s + 50:+d}" if offset_s + 50 else "")}


@pytest.mark.parametrize(
    ("offsets", "name"),
    [
        (None, "a"),  # a kernel without time namespaces
        ("monotonic           0         0\nboottime            0         0\n", "a"),
        ("monotonic           7         0\nboottime         1000         0\n", "a+1000"),
        ("monotonic           0         0\nboottime        -1000         0\n", "a-1000"),
    ],
)
def test_a_boot_is_another_one_where_its_clock_is(
    offsets: str | None, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A container that is put into a time namespace sees other starts of the same processes."""
    (tmp_path / "sys/kernel/random").mkdir(parents=True)
    (tmp_path / "sys/kernel/random/boot_id").write_text("a\n")
    (tmp_path / "self").mkdir()
    if offsets is not None:
        (tmp_path / "self/timens_offsets").write_text(offsets)
    monkeypatch.setattr(procfs, "_PROC", str(tmp_path))
    assert procfs.boot_id.__wrapped__() == name


LONG = Stop(stop_signal=signal.SIGINT, drain_timeout_s=600.0)
SAME = ("worker_id", "pid", "pool", "template", "template_hash", "restart_generation", "is_burst")


@pytest.mark.parametrize("written", [None, "", "{", '{"version": 99}', '{"version": 1}', "[]", "[" * 100_000])
def test_a_worker_whose_file_cannot_be_read_is_known_by_the_record_of_its_start(
    stage: Stage, written: str | None
) -> None:
    with stage.fleet(template(stop=LONG)) as fleet:
        fleet.act([start(restart_generation=4)])
        (before,) = fleet.workers()
    if written is None:
        (stage.folder.root / "workers.json").unlink()
    else:
        (stage.folder.root / "workers.json").write_text(written)
    with stage.fleet() as fleet:
        (found,) = fleet.workers()
        assert [getattr(found, name) for name in SAME] == [getattr(before, name) for name in SAME]
        assert [each.stop for each in fleet.running()] == [LONG], "or a long job would be cut short"


def test_a_start_that_the_agent_did_not_live_to_write_down_with_the_others_is_known_all_the_same(stage: Stage) -> None:
    with stage.fleet(template()) as fleet:
        fleet.save = lambda **_: type(fleet).save(fleet) if not fleet.running() else None  # dies after the spawn
        fleet.act([start(restart_generation=4)])
        (before,) = fleet.workers()
    with stage.fleet(template()) as fleet:
        (found,) = fleet.workers()
        assert (found.pid, found.template, found.restart_generation) == (before.pid, "py", 4)


def unrecorded_after(stage: Stage, before: Worker) -> None:
    """No record names the worker that is left: it is counted and shown, and nothing is done about it."""
    with stage.fleet(template(), gpus=1) as fleet:
        assert (fleet.workers(), fleet.running()) == ((), ())
        (found,) = fleet.all_workers()
        assert (found.worker_id, found.pid, found.state) == (before.worker_id, before.pid, WorkerState.UNKNOWN)
        wanted = [Assignment(pool="mail", host_id="h", template="py", base_workers=1)]
        assert reconcile(fleet.all_workers(), wanted) == (), "no second set"
        assert reconcile(fleet.all_workers(), []) == (), "and it is not let go of by its marks' word alone"
        fleet.drain_all()
        stage.clock.ahead_s += 10_000.0
        assert not fleet.scan()
        assert printed(stage, before.worker_id) == "ready\n", "it was signalled"
    with stage.fleet(template()) as fleet:  # this one knows it by what the last one wrote down
        (found,) = fleet.all_workers()
        assert (found.worker_id, found.state) == (before.worker_id, WorkerState.UNKNOWN)
        os.kill(before.pid, signal.SIGKILL)
        reconcile_until(fleet, lambda: fleet.all_workers() == ())


PRINTS_SIGNAL = (
    "import signal, time; signal.signal(15, lambda *_: print('told', flush=True)); print('ready', flush=True);"
)


@pytest.mark.parametrize("is_bare", [False, True])
def test_what_no_record_names_is_counted_and_left_alone(stage: Stage, is_bare: bool) -> None:
    """As where both files are lost. Only its output shows one that overwrote its environment."""
    bare = f"import os, sys; os.execve(sys.executable, [sys.executable, '-c', {PRINTS_SIGNAL + STAYS!r}], {{}})"
    with stage.fleet(template(bare if is_bare else PRINTS_SIGNAL + STAYS)) as fleet:
        fleet.act([start()])
        (before,) = fleet.workers()
        eventually(lambda: printed(stage, before.worker_id) == "ready\n")
    (stage.folder.root / "workers.json").unlink()
    (stage.folder.root / "starts.jsonl").unlink()
    unrecorded_after(stage, before)


def test_a_worker_is_recorded_before_it_is_started(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else an agent that is killed between the two leaves a worker in whose place the next one starts another."""

    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with stage.fleet(template()) as fleet:
        monkeypatch.setattr("headway.agent.workers.worker_process.spawn", killed)
        with pytest.raises(KeyboardInterrupt):
            fleet.act([start(pool="bills")])
        (placed,) = stage.folder.read("workers.json")["workers"]
        assert (placed["pool"], placed["pid"], placed["life"]["state"]) == ("bills", 0, "starting")
        for held in fleet._table:
            fleet._table.remove(held)


def test_a_worker_is_recorded_as_about_to_be_stopped_before_its_signal(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the next agent signals it a second time, and to many workers that means to drop the job."""
    with stage.fleet(template()) as fleet:
        fleet.act([start()])
        seen: list[bool] = []

        def reported(*_: object) -> None:
            (row,) = stage.folder.read("workers.json")["workers"]
            seen.append(row["life"]["is_being_told"])

        monkeypatch.setattr("headway.agent.workers.worker_process.Process.ask_to_end", reported)
        drain(fleet)
        assert seen == [True]
        (row,) = stage.folder.read("workers.json")["workers"]
        assert row["life"]["is_being_told"] is False


def test_of_a_workers_family_its_main_process_is_counted(stage: Stage) -> None:
    horse = f"subprocess.Popen([sys.executable, '-c', {SLEEP!r}], start_new_session=True)"
    code = f"import subprocess, sys, time; {horse}; {SLEEP}"
    with stage.fleet(template(code)) as fleet:
        fleet.act([start()])
        (before,) = fleet.workers()
        eventually(lambda: procfs.descendants(before.pid))
    (stage.folder.root / "workers.json").unlink()
    (stage.folder.root / "starts.jsonl").unlink()
    with stage.fleet() as fleet:
        assert [worker.pid for worker in fleet.all_workers()] == [before.pid]
    os.kill(before.pid, signal.SIGKILL)


def test_a_process_that_is_another_users_by_now_is_not_taken_over(stage: Stage) -> None:
    """A record says whose the worker is."""
    with stage.fleet(template()) as fleet:
        fleet.act([start()])
        (before,) = fleet.workers()
    path = stage.folder.root / "workers.json"
    assert f'"uid":{os.geteuid()}' in path.read_text()
    path.write_text(path.read_text().replace(f'"uid":{os.geteuid()}', '"uid":12345'))
    with stage.fleet() as fleet:
        assert fleet.running() == ()
        assert [each.state for each in fleet.all_workers()] == [WorkerState.UNKNOWN]
    os.kill(before.pid, signal.SIGKILL)


def test_records_that_an_earlier_version_wrote_after_forged_marks_are_left_out(stage: Stage) -> None:
    with stage.fleet(template()) as fleet:
        fleet.act([start()])
        (before,) = fleet.workers()
    body = stage.folder.read("workers.json")
    (row,) = body["workers"]
    forged = [{**row, "worker_id": "../../etc/x"}, {**row, "stop": {**row["stop"], "stop_signal": "TERM"}}]
    stage.folder.write("workers.json", {**body, "workers": [*forged, row]})
    with stage.fleet() as fleet:
        assert [each.worker_id for each in fleet.workers()] == [before.worker_id]


def test_the_record_of_starts_does_not_grow_for_ever(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headway.agent.workers.starts.start_log.START_LOG_LINES_MAX", 3)
    with stage.fleet(template()) as fleet:
        for _ in range(7):
            fleet.act([start()])
            drain(fleet)
            reconcile_until(fleet, lambda: fleet.workers() == ())
        assert (stage.folder.root / "starts.jsonl").read_text().count("\n") < 3


def test_workers_of_another_agent_on_this_machine_are_left_alone(stage: Stage, tmp_path: Path) -> None:
    other = Stage(tmp_path / "other")
    with stage.fleet(template()) as fleet:
        fleet.act([start()])
        with other.fleet() as beside:
            assert beside.workers() == ()


def test_a_pause_outlives_the_agent(stage: Stage) -> None:
    """Else an agent that is restarted often would let a broken worker loop."""
    with stage.fleet(template("raise SystemExit(1)", ready=Ready(after_s=5.0))) as fleet:
        fleet.act([start()])
        reconcile_until(fleet, lambda: states(fleet) == [WorkerState.BACKING_OFF])
    with stage.fleet() as fleet:
        assert states(fleet) == [WorkerState.BACKING_OFF]
        assert not fleet.scan()
        stage.clock.ahead_s += 11.0
        fleet.scan()
        assert fleet.workers() == ()


def test_a_full_disk_stops_no_worker(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    with stage.fleet(template()) as fleet:
        fleet.act([start()])
        (stage.folder.root / "workers.json.new").mkdir()  # in the way of every write
        fleet.save()
        fleet.scan()
        assert len(fleet.running()) == 1
        fleet.drain_all()
        assert caplog.text.count("not written") == 1
        (stage.folder.root / "workers.json.new").rmdir()


def test_no_worker_is_started_without_a_record(stage: Stage) -> None:
    """An agent after this one could neither stop nor replace it."""
    with stage.fleet(template()) as fleet:
        fleet.act([start()])
        (stage.folder.root / "workers.json.new").mkdir()  # as above
        fleet.act([start(), start()])
        assert len(fleet.all_workers()) == 1
        assert not fleet.storage.allows_starts
        assert [each.kind for each in fleet.storage.problems] == [HostProblemKind.STATE_FOLDER]
        (stage.folder.root / "workers.json.new").rmdir()
        stage.clock.ahead_s += 60.0
        assert fleet.scan(), "that it can is news"
        assert fleet.storage.problems == ()
        fleet.act([start()])
        assert len(fleet.running()) == 2


def test_a_worker_without_a_log_is_not_taken_for_one_that_crashes(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(_: str) -> int:
        raise PermissionError(errno.EACCES, "Permission denied")

    with stage.fleet(template()) as fleet:
        with monkeypatch.context() as patched:
            patched.setattr(fleet.output, "create", refused)
            fleet.act([start()])
        assert fleet.all_workers() == ()
        assert not fleet.storage.allows_starts
        problem = HostProblem(kind=HostProblemKind.LOG_FOLDER, error_number=errno.EACCES)
        assert fleet.storage.problems == (problem,)
        stage.clock.ahead_s += 60.0
        assert fleet.scan()
        assert fleet.storage.problems == ()
        fleet.act([start()])
        assert len(fleet.running()) == 1


def test_what_a_full_disk_did_not_take_is_written_once_it_does(stage: Stage) -> None:
    """Else the next agent would go by the orders from before."""
    with stage.fleet(template()) as fleet:
        fleet.act([start()])
        (stage.folder.root / "workers.json.new").mkdir()  # as above
        fleet.obey(DesiredState(cluster_id="c", epoch=1, revision=7))
        fleet.save()
        stage.clock.ahead_s += 60.0
        fleet.scan()
        (stage.folder.root / "workers.json.new").rmdir()
        stage.clock.ahead_s += 60.0
        fleet.scan()
        written = (stage.folder.root / "workers.json").read_text()
        assert fleet.running()[0].worker_id in written
        assert '"revision":7' in written


def test_orders_are_on_the_disk_before_their_record_has_its_name(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it is asked for, and where the disk has refused it before: orders may be among what was not written."""
    disk = Disk(monkeypatch)
    with stage.fleet(template()) as fleet:
        disk.take()
        fleet.save()
        assert disk.take() == ["name workers.json"], "processes do not outlive the machine"
        fleet.save(is_durable=True)
        assert disk.take() == ["flush workers.json.new", "name workers.json"]
        (stage.folder.root / "workers.json.new").mkdir()
        fleet.obey(DesiredState(cluster_id="c", epoch=1, revision=7))
        fleet.save()
        (stage.folder.root / "workers.json.new").rmdir()
        disk.take()
        stage.clock.ahead_s += 60.0
        fleet.scan()
        assert disk.take()[:2] == ["flush workers.json.new", "name workers.json"]


# --- as the first process of a container -----------------------------------------------------------------------------

FIRST_PROCESS = """
import ctypes, os, subprocess, sys, time
from headway.agent.workers import worker_process as processes
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # orphans are handed to this process, as they are to a container's first
ours = subprocess.Popen(["sleep", "600"])
subprocess.run(["sh", "-c", "sleep 0.2 & sleep 0.2 & exit 0"], check=True)
def children():
    with open(f"/proc/self/task/{os.getpid()}/children") as file:
        return set(map(int, file.read().split()))
until_s = time.monotonic() + 50
assert len(children()) == 3
while children() != {ours.pid} and time.monotonic() < until_s:
    processes.reap_orphans({ours.pid})
    time.sleep(0.01)
assert children() == {ours.pid}
ours.kill()
while os.waitid(os.P_PID, ours.pid, os.WEXITED | os.WNOWAIT) is None:
    pass
processes.reap_orphans({ours.pid})
assert ours.wait() == -9, "its end is for whoever started it"
processes.reap_orphans(set())
"""


def test_a_containers_first_process_takes_note_of_orphans_and_of_no_worker_of_its_own() -> None:
    subprocess.run([sys.executable, "-c", FIRST_PROCESS], check=True, timeout=60)


@pytest.mark.parametrize(("pid", "reaped"), [(1, 1), (7, 0)])
def test_only_a_first_process_searches_for_orphans(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, pid: int, reaped: int
) -> None:
    """Any other process has no children but those that it has started, and waits for them itself."""
    polls: list[object] = []
    monkeypatch.setattr("headway.agent.workers.worker_process.reap_orphans", polls.append)
    monkeypatch.setattr("headway.agent.workers.manager.os.getpid", lambda: pid)
    with stage.fleet() as fleet:
        fleet.scan()
    assert len(polls) == reaped
