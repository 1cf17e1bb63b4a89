"""Without a drain deadline of a person's, a worker that was asked to stop finishes its jobs, however long they take."""

import json
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from headway.agent.config.host_file import load
from headway.agent.config.library_presets import STARTERS, host_text
from headway.agent.config.templates import Stop, Template
from headway.agent.loop import stop_left
from headway.agent.state.state_dir import AWAITED, StateFolder
from headway.agent.system.wake_pipe import WakePipe
from headway.agent.workers import worker_record
from headway.agent.workers.worker_record import FORMER_DRAIN_TIMEOUT_S
from headway.errors import Invalid
from headway.scaling.model import WorkerState
from support.agent_host import Host, ended, one_host
from support.fake_control import row
from support.processes import runs
from support.waiting import eventually
from support.workers import BUSY, PRINTS_READY, Stage, printed, reconcile_until, start, states, template

WEEK_S = 7 * 86_400.0
FINISHES = """\
import pathlib, signal, sys, time
told = []
signal.signal(signal.SIGTERM, lambda *_: told.append(1))
print("ready", flush=True)
while not (told and pathlib.Path("done").exists()):
    time.sleep(0.01)
"""


def busy(tmp_path: Path, **stop: float) -> Template:
    return template(BUSY.format(done=str(tmp_path / "done")), ready=PRINTS_READY, stop=Stop(**stop))


def test_a_host_file_without_the_key_sets_no_deadline(tmp_path: Path) -> None:
    path = tmp_path / "host.toml"
    path.write_text('[templates.mail]\nargv = ["sh"]\n[templates.web]\nargv = ["sh"]\ndrain_timeout_s = 0\n')
    found = load(path).templates
    assert (found["mail"].stop.drain_timeout_s, found["web"].stop.drain_timeout_s) == (None, 0.0)
    assert found["mail"].reported().drain_timeout_s is None, "absent on the wire, which means for ever"


def test_what_is_written_for_a_library_sets_none() -> None:
    assert "drain_timeout_s" not in host_text(STARTERS)


def test_a_limit_of_isolation_needs_a_deadline(tmp_path: Path) -> None:
    """Nobody would know when such a worker has ended, and another host could start it beside."""
    path = tmp_path / "host.toml"
    path.write_text('[templates.mail]\nargv = ["sh"]\nisolation_drain_after_s = 30\n')
    with pytest.raises(Invalid) as refused:
        load(path)
    assert str(refused.value) == (
        f"{path}: template 'mail': isolation_drain_after_s needs a drain_timeout_s, after which workers that have not "
        "finished are killed: set one that is longer than the longest job, or leave isolation_drain_after_s out"
    )


def test_a_worker_that_drains_works_on_for_as_long_as_it_takes(stage: Stage, tmp_path: Path) -> None:
    worker = busy(tmp_path)
    with stage.fleet(worker) as fleet:
        fleet.act([start()])
        reconcile_until(fleet, lambda: states(fleet) == [WorkerState.RUNNING])
        (found,) = fleet.workers()
        fleet.drain_all()
        eventually(lambda: "told 1" in printed(stage, found.worker_id))
        stage.clock.ahead_s += WEEK_S
        assert not fleet.scan()
        assert fleet.drain_bound_s() == float("inf")
    with stage.fleet(worker) as fleet:  # and so for the next agent, which reads it from the record
        assert states(fleet) == [WorkerState.DRAINING]
        stage.clock.ahead_s += WEEK_S
        assert not fleet.scan()
        assert runs(found.pid)
        (tmp_path / "done").touch()
        reconcile_until(fleet, lambda: fleet.workers() == ())
    assert printed(stage, found.worker_id) == "ready\ntold 1\ndone\n"


def test_what_a_worker_has_left_works_on_for_as_long_as_it_takes(stage: Stage, tmp_path: Path) -> None:
    words = [sys.executable, "-c", BUSY.format(done=str(tmp_path / "done"))]
    shell = replace(busy(tmp_path), argv=("sh", "-c", f"{shlex.join(words)}; true"))
    with stage.fleet(shell) as fleet:
        fleet.act([start()])
        reconcile_until(fleet, lambda: states(fleet) == [WorkerState.RUNNING])
        fleet.drain_all()
        reconcile_until(fleet, lambda: fleet.remains.left)
        (left,) = fleet.remains.left
        assert left.ends_by_s is None
    with stage.fleet(shell) as fleet:
        assert list(fleet.remains.left) == [left]
        stage.clock.ahead_s += WEEK_S
        fleet.scan()
        assert runs(left.pid)
        (tmp_path / "done").touch()
        reconcile_until(fleet, lambda: not fleet.remains.left)


@pytest.mark.parametrize(("recorded_s", "read_s"), [(FORMER_DRAIN_TIMEOUT_S, None), (90.0, 90.0)])
def test_the_default_of_an_earlier_version_is_no_deadline(
    stage: Stage, tmp_path: Path, recorded_s: float, read_s: float | None
) -> None:
    """Its records have it for each worker, and nobody has set it: an upgrade would kill them a minute later."""
    worker = busy(tmp_path, drain_timeout_s=recorded_s)
    with stage.fleet(worker) as fleet:
        fleet.act([start()])
        reconcile_until(fleet, lambda: states(fleet) == [WorkerState.RUNNING])
    written = json.loads((stage.folder.root / "workers.json").read_text())
    del written[worker_record.DEADLINES]
    (stage.folder.root / "workers.json").write_text(json.dumps(written))
    with stage.fleet(template(name="other")) as fleet:
        assert [each.stop.drain_timeout_s for each in fleet.running()] == [read_s]
    with stage.fleet(template(name="other")) as fleet:
        assert [each.stop.drain_timeout_s for each in fleet.running()] == [read_s], "as this version has written it"


# --- ended by a person -----------------------------------------------------------------------------------------------


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    (tmp_path / "finishes.py").write_text(FINISHES)
    text = f'[templates.long]\nargv = ["{sys.executable}", "finishes.py"]\nready_pattern = "ready"\n'
    with one_host(tmp_path, text) as host:
        yield host


def working(host: Host, *words: str) -> tuple[subprocess.Popen[bytes], int]:
    agent = host.agent(*words)
    host.control.assign(row(1, template="long"))
    (pid,) = host.control.running(1)
    eventually(lambda: "ready" in "".join(log.read_text() for log in (host.state_dir / "workers").glob("*.log")))
    return agent, pid


@pytest.mark.e2e
def test_an_agent_that_ends_with_its_workers_names_those_it_waits_for_and_kills_them_when_asked_again(
    host: Host,
) -> None:
    agent, pid = working(host, "--stop-workers")
    agent.send_signal(signal.SIGTERM)
    line = f"waiting for 1 worker that finishes its job: mail (process {pid})"
    eventually(lambda: line in host.logged())
    assert StateFolder(host.state_dir).text(AWAITED) == line
    assert runs(pid)
    assert ended(agent) == 0
    assert not runs(pid)
    assert "asked a second time" in host.logged()
    assert StateFolder(host.state_dir).text(AWAITED) == ""


@pytest.mark.e2e
def test_an_agent_that_ends_with_its_workers_waits_for_their_jobs(host: Host, tmp_path: Path) -> None:
    agent, pid = working(host, "--stop-workers")
    agent.send_signal(signal.SIGTERM)
    eventually(lambda: "waiting for 1 worker" in host.logged())
    (tmp_path / "done").touch()
    assert agent.wait(60) == 0
    assert not runs(pid)
    assert "forcing" not in host.logged()


@pytest.mark.e2e
def test_what_a_dead_agent_left_is_killed_only_where_that_is_asked_for(host: Host) -> None:
    agent, pid = working(host)
    agent.kill()
    agent.wait()
    wakes = WakePipe()
    wakes.stop()
    assert stop_left(StateFolder(host.state_dir), wakes=wakes) == 1
    assert runs(pid)
    assert stop_left(StateFolder(host.state_dir), wakes=WakePipe(), is_forced=True) == 0
    assert not runs(pid)
