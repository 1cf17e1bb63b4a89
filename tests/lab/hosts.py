"""One host of a lab: its agent, its cgroup, and the workers that really run there."""

import json
import os
import re
import sys
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from headway.scaling.model import WorkerState
from lab.cgroups import Cgroup
from lab.disks import Disk
from lab.network import Network
from lab.programs import Program
from support.credential_files import token_file

MARK, HOST = "LAB_RUN", "LAB_HOST"
BRITTLE = "brittle"
"""The pool whose workers have no jobs and may be made to die."""
TESTS = Path(__file__).parents[1]
STANDING = frozenset({WorkerState.STARTING, WorkerState.RUNNING})

HOST_FILE = """\
[host]
name = {name}
reserve_memory = "{reserve_mb}MB"
"""
NONSENSE = "[templates."
TEMPLATE = """
[templates.{pool}]
argv = {argv}
environment = {{PYTHONPATH = {path}, LAB_CLOCK = ""}}
ready_pattern = "Listening on"
ready_timeout_s = 60
drain_timeout_s = 180

[templates.{pool}.resources]
cpu_cores = 0.02
memory_bytes = "64MB"
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """A worker as its agent wrote it down."""

    worker_id: str
    pool: str
    pid: int
    state: WorkerState


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A worker as the kernel knows it."""

    worker_id: str
    pool: str
    host: str
    pid: int


class Host:
    """A host with an agent."""

    def __init__(
        self,
        name: str,
        folder: Path,
        network: Network,
        *,
        control: str,
        broker_url: str,
        pools: tuple[str, ...],
        token: str,
        run: str,
    ) -> None:
        self.name = name
        self.control = control
        self.address = network.join(name)
        self.cgroup = Cgroup(name)
        self.clock = folder / f"{name}.clock"
        self._folder = folder / name
        self._folder.mkdir()
        self.disk = Disk(self._folder / "state")
        self._host_file = self._folder / "host.toml"
        self.is_broken = False
        self.flaw = self._folder / "flaw"
        """While this file is there, the workers of the pool ``BRITTLE`` die."""
        self._pools, self._broker_url = pools, broker_url
        self.reserve_memory(0)
        self.agent = Program(
            f"agent-{name}",
            folder,
            [*self.cgroup.words(), *network.words(name), sys.executable, "-m", "headway", "agent"],
            {
                **{key: value for key, value in os.environ.items() if not key.startswith("HEADWAY_")},
                "HEADWAY_CONTROL": control,
                "HEADWAY_HOST_FILE": str(self._host_file),
                "HEADWAY_STATE_DIR": str(self._folder / "state"),
                "HEADWAY_HOST_NAME": name,
                "HEADWAY_TOKEN_FILE": token_file(self._folder, token),
                **skewed_by(self.clock),
                MARK: run,
                HOST: name,
            },
            says_when_ready="agent of host=",
        )

    def recorded(self) -> list[Recorded]:
        """The workers of its agent's state file."""
        return [
            Recorded(
                worker_id=row["worker_id"], pool=row["pool"], pid=row["pid"], state=WorkerState(row["life"]["state"])
            )
            for row in self._state().get("workers", ())
        ]

    @property
    def epoch(self) -> int:
        """Of the orders that its agent obeys."""
        return int(self._state().get("orders", {}).get("epoch", 0))

    def remove(self) -> None:
        self.agent.stop()
        self.cgroup.remove()
        self.disk.remove()

    def _state(self) -> dict[str, Any]:
        try:
            found: dict[str, Any] = json.loads((self._folder / "state" / "workers.json").read_text())
        except FileNotFoundError:
            return {}
        return found

    def reserve_memory(self, megabytes: int) -> None:
        """Let ``host.toml`` keep so much back from workers."""
        rq = str(Path(sys.executable).with_name("rq"))
        worker = ["--worker-class", "headway.workers.rq.DrainingWorker"]  # loses no job to a signal
        text = HOST_FILE.format(name=json.dumps(self.name), reserve_mb=megabytes)
        for pool in self._pools:
            argv = [rq, "worker", "--url", self._broker_url, *worker, pool]
            if pool == BRITTLE:
                argv = [sys.executable, str(TESTS / "lab" / "brittle.py"), str(self.flaw)]
            text += TEMPLATE.format(pool=pool, argv=json.dumps(argv), path=json.dumps(_path(TESTS)))
        self._host_file.write_text(text)

    def break_file(self) -> None:
        """Let ``host.toml`` make no sense, as when somebody saves it half edited."""
        self._host_file.write_text(f"{self._host_file.read_text()}\n{NONSENSE}")
        self.is_broken = True

    def mend_file(self) -> None:
        self._host_file.write_text(self._host_file.read_text().removesuffix(f"\n{NONSENSE}"))
        self.is_broken = False


def gave_up(words: str, *, broker: str) -> Counter[str]:
    """Pool -> workers that ended at once as their broker was out of reach, by what an agent said of their last words.

    That is RQ's own: its command line tries no second time to reach ``broker`` when it begins.
    """
    return Counter(re.findall(rf"failed pool=(\S+) .*connecting to {re.escape(broker)}\b", words))


def skewed_by(clock: Path) -> dict[str, str]:
    """What lets a program's wall clock go wrong by the seconds in the file ``clock``."""
    return {"PYTHONPATH": _path(TESTS / "lab" / "skew"), "LAB_CLOCK": str(clock)}


def workers_of(run: str) -> list[Seen]:
    """Every worker process of a run, found by the marks in its environment, which the processes of its jobs inherit."""
    found: dict[int, Seen] = {}
    parents: dict[int, int] = {}
    for process in psutil.process_iter():
        try:
            marks: Mapping[str, str] = process.environ()
            if marks.get(MARK) != run or "HEADWAY_WORKER_ID" not in marks or process.status() == psutil.STATUS_ZOMBIE:
                continue
            parents[process.pid] = process.ppid()
        except psutil.Error:
            continue
        found[process.pid] = Seen(
            worker_id=marks["HEADWAY_WORKER_ID"], pool=marks["HEADWAY_POOL"], host=marks[HOST], pid=process.pid
        )
    return [worker for pid, worker in found.items() if parents[pid] not in found]


def end_leftovers() -> None:
    """End what runs have left whose test is no more; a run's name begins with the pid of its test."""
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            run = process.environ().get(MARK, "")
            if run and not psutil.pid_exists(int(run.partition("-")[0])):
                process.kill()


def _path(folder: Path) -> str:
    return os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH"))))
