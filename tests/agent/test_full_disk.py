"""A disk that is full: nothing new is started on it, and a worker that gets ready meanwhile works all the same."""

import errno
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from headway.agent.config.templates import Ready
from headway.agent.workers.manager import WorkerManager
from headway.scaling.model import HostProblemKind, WorkerState
from headway.wire.v1.agent_pb2 import HOST_PROBLEM_KIND_STATE_FOLDER as STATE_FOLDER
from support.agent_host import one_host
from support.fake_control import row
from support.waiting import eventually
from support.workers import SLEEP, Stage, reconcile_until, start, template

# As a library does whose log is lost: the line does not come again.
SAYS = """
import pathlib, time
while not pathlib.Path({go!r}).exists():
    time.sleep(0.01)
try:
    print("x" * {before}, flush=True)
    print("Listening on mail", flush=True)
except OSError:
    pass
"""


class Disk:
    """A small one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def fill(self) -> None:
        with (self.folder / "filler").open("ab", buffering=0) as file:
            try:
                while file.write(b"\0" * 512):
                    continue
            except OSError:
                return

    def free(self) -> None:
        (self.folder / "filler").unlink()


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    yield from mounted(tmp_path / "disk")


@pytest.fixture
def disk_of_logs(tmp_path: Path) -> Iterator[Disk]:
    """One on which nothing but what workers print is."""
    yield from mounted(tmp_path / "state" / "workers")


@pytest.fixture
def disk_of_state(tmp_path: Path) -> Iterator[Disk]:
    """One on which nothing but the state of an agent is."""
    yield from mounted(tmp_path / "state")


def mounted(folder: Path) -> Iterator[Disk]:
    folder.mkdir(mode=0o700, parents=True)
    words = ["mount", "-t", "tmpfs", "-o", "size=1m,mode=700", "headway-test", str(folder)]
    if os.geteuid() != 0 or subprocess.run(words, capture_output=True, check=False).returncode:
        pytest.skip("only who may mount has a small disk")
    yield Disk(folder)
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def states(fleet: WorkerManager) -> list[WorkerState]:
    return [worker.state for worker in fleet.workers()]


def test_what_a_worker_says_until_it_is_ready_has_its_room_before_it_starts(disk: Disk, tmp_path: Path) -> None:
    stage, go = Stage(disk.folder / "state"), tmp_path / "go"
    code = SAYS.format(go=str(go), before=8000) + SLEEP
    with stage.fleet(template(code, ready=Ready(pattern="Listening on"))) as fleet:
        fleet.act([start()])
        disk.fill()
        go.touch()
        reconcile_until(fleet, lambda: states(fleet) == [WorkerState.RUNNING])
        assert len(fleet.start_watch.take_start_ups()) == 1
        disk.free()
    stage.clear()


@pytest.mark.parametrize("before", ["the start", "the words"])
def test_a_worker_whose_words_found_no_room_is_ready_after_a_while(
    disk_of_logs: Disk, tmp_path: Path, caplog: pytest.LogCaptureFixture, before: str
) -> None:
    """It was held for one that never got ready, and stopped after a minute."""
    stage, go = Stage(tmp_path / "state"), tmp_path / "go"
    code = SAYS.format(go=str(go), before=100_000) + SLEEP
    with stage.fleet(template(code, ready=Ready(pattern="Listening on", timeout_s=60.0))) as fleet:
        if before == "the start":
            disk_of_logs.fill()
        fleet.act([start()])
        disk_of_logs.fill()
        fleet.scan()
        go.touch()
        log = stage.folder.root / "workers" / f"{fleet.workers()[0].worker_id}.log"
        reconcile_until(fleet, lambda: before == "the start" or log.stat().st_size >= 16 * 1024)
        fleet.scan()
        assert states(fleet) == [WorkerState.STARTING]
        disk_of_logs.free()  # what was lost stays lost
        stage.clock.ahead_s += 6.0
        reconcile_until(fleet, lambda: states(fleet) == [WorkerState.RUNNING])
        assert "taken for ready pool=mail" in caplog.text
        assert fleet.start_watch.take_start_ups() == [], "nobody knows how long it took"
    stage.clear()


def test_a_disk_that_fills_up_is_seen_before_anything_is_to_be_written(disk: Disk) -> None:
    stage = Stage(disk.folder / "state")
    full = {HostProblemKind.STATE_FOLDER: errno.ENOSPC, HostProblemKind.LOG_FOLDER: errno.ENOSPC}
    with stage.fleet(template()) as fleet:
        fleet.act([start()])
        fleet.scan()
        disk.fill()
        stage.clock.ahead_s += 6.0
        assert fleet.scan(), "it is news"
        assert {each.kind: each.error_number for each in fleet.storage.problems} == full
        fleet.act([start()])
        assert len(fleet.running()) == 1, "what runs goes on, and nothing new is started"
        disk.free()
        stage.clock.ahead_s += 6.0
        assert fleet.scan()
        assert fleet.storage.problems == ()
        fleet.act([start()])
        assert len(fleet.running()) == 2
    stage.clear()


def test_where_only_logs_find_no_room_workers_are_started(disk_of_logs: Disk, tmp_path: Path) -> None:
    stage = Stage(tmp_path / "state")
    with stage.fleet(template()) as fleet:
        disk_of_logs.fill()
        stage.clock.ahead_s += 6.0
        fleet.scan()
        assert [each.kind for each in fleet.storage.problems] == [HostProblemKind.LOG_FOLDER]
        fleet.act([start()])
        assert len(fleet.running()) == 1
        disk_of_logs.free()
    stage.clear()


def test_a_folder_that_has_room_is_not_written_to(disk: Disk) -> None:
    """Every agent checks each 5 s, and a disk may sleep, or wear."""
    stage = Stage(disk.folder / "state")
    with stage.fleet() as fleet:
        before = (stage.folder.root.stat().st_mtime_ns, (stage.folder.root / "workers").stat().st_mtime_ns)
        stage.clock.ahead_s += 6.0
        fleet.scan()
        assert (stage.folder.root.stat().st_mtime_ns, (stage.folder.root / "workers").stat().st_mtime_ns) == before


def test_what_was_reserved_is_given_back(disk: Disk) -> None:
    stage = Stage(disk.folder / "state")
    with stage.fleet(template("print('done', flush=True)")) as fleet:
        fleet.act([start()])
        log = stage.folder.root / "workers" / f"{fleet.workers()[0].worker_id}.log"
        reconcile_until(fleet, lambda: states(fleet) == [WorkerState.BACKING_OFF])
        assert log.stat().st_size == len("done\n")
        assert log.stat().st_blocks * 512 <= 4096
    stage.clear()


# --- a whole agent ---------------------------------------------------------------------------------------------------


@pytest.mark.e2e
def test_an_agent_reports_that_its_disk_is_full_and_replaces_nobody_meanwhile(
    disk_of_state: Disk, tmp_path: Path
) -> None:
    """A restart of the pool would cost a worker, for which none could be started."""
    with one_host(tmp_path) as host:
        host.agent()
        host.control.assign(row(2, template="sleep"))
        before = host.control.running(2)
        disk_of_state.fill()
        eventually(lambda: {each.kind for each in host.control.reports[-1].problems} >= {STATE_FOLDER})
        host.control.assign(row(4, template="sleep", restart_generation=1))
        seen = len(host.control.reports)
        eventually(lambda: len(host.control.reports) > seen)
        assert host.control.pids() == before
        host.control.assign(row(1, template="sleep", restart_generation=1))
        left = host.control.running(1)
        assert left < before, "what is too much leaves all the same"
        disk_of_state.free()
        eventually(lambda: not host.control.reports[-1].problems)
        host.control.assign(row(3, template="sleep"))
        assert left <= host.control.running(3)
