"""A worker that gets ready while the disk is full: its line has nowhere to go, and it works all the same."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from headway.agent.config.templates import Ready
from headway.agent.workers.manager import WorkerManager
from headway.scaling.model import WorkerState
from support.workers import SLEEP, Stage, look_until, start, template

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
    folder = tmp_path / "disk"
    folder.mkdir()
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
        look_until(fleet, lambda: states(fleet) == [WorkerState.RUNNING])
        assert len(fleet.take_start_ups()) == 1
        disk.free()
    stage.clear()


@pytest.mark.parametrize("before", ["the start", "the words"])
def test_a_worker_whose_words_found_no_room_is_ready_after_a_while(
    disk: Disk, tmp_path: Path, caplog: pytest.LogCaptureFixture, before: str
) -> None:
    """It was held for one that never got ready, and stopped after a minute."""
    stage, go = Stage(disk.folder / "state"), tmp_path / "go"
    code = SAYS.format(go=str(go), before=100_000) + SLEEP
    with stage.fleet(template(code, ready=Ready(pattern="Listening on", timeout_s=60.0))) as fleet:
        if before == "the start":
            disk.fill()
        fleet.act([start()])
        disk.fill()
        fleet.scan()
        go.touch()
        log = stage.folder.logs / f"{fleet.workers()[0].worker_id}.log"
        look_until(fleet, lambda: before == "the start" or log.stat().st_size >= 16 * 1024)
        fleet.scan()
        assert states(fleet) == [WorkerState.STARTING]
        disk.free()  # what was lost stays lost
        stage.clock.ahead_s += 6.0
        look_until(fleet, lambda: states(fleet) == [WorkerState.RUNNING])
        assert "taken for ready pool=mail" in caplog.text
        assert fleet.take_start_ups() == [], "nobody knows how long it took"
    stage.clear()


def test_what_was_reserved_is_given_back(disk: Disk) -> None:
    stage = Stage(disk.folder / "state")
    with stage.fleet(template("print('done', flush=True)")) as fleet:
        fleet.act([start()])
        log = stage.folder.logs / f"{fleet.workers()[0].worker_id}.log"
        look_until(fleet, lambda: states(fleet) == [WorkerState.BACKING_OFF])
        assert log.stat().st_size == len("done\n")
        assert log.stat().st_blocks * 512 <= 4096
    stage.clear()
