"""Small programs in the place of workers, and a fleet of them in a folder of its own."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from headway.agent.config.host_file import HostFile
from headway.agent.config.templates import Ready, Stop, Template
from headway.agent.state.state_dir import StateFolder
from headway.agent.workers.lifecycle import Life
from headway.agent.workers.manager import WorkerManager
from headway.agent.workers.worker_record import Record
from headway.local import procfs
from headway.scaling.model import WorkerState
from headway.scaling.reconcile import Start
from support.waiting import eventually

SLEEP = "import time; time.sleep(600)"
STUBBORN = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('ready', flush=True); time.sleep(600)"
)
# Finishes what it is doing when told to stop, as workers do; the job ends when the file is there.
BUSY = """
import pathlib, signal, sys, time
stop = []
signal.signal(signal.SIGTERM, lambda *_: stop.append(1))
print('ready', flush=True)
while not stop:
    time.sleep(0.01)
print('told', len(stop), flush=True)
while not pathlib.Path({done!r}).exists():
    time.sleep(0.01)
print('done', flush=True)
"""


def template(code: str = SLEEP, *, name: str = "py", **values: Any) -> Template:
    """A template that runs this Python."""
    given = {"ready": Ready(after_s=0.0), "stop": Stop(), "environment": {}, "working_directory": "/"}
    return Template(name=name, argv=(sys.executable, "-c", code), **{**given, **values})


class FakeClock:
    """The host's clock, and what a test adds to it."""

    def __init__(self) -> None:
        self.ahead_s = 0.0

    def __call__(self) -> float:
        return procfs.since_boot_s() + self.ahead_s


class Stage:
    """A state folder, and the fleets that one after the other work in it."""

    def __init__(self, root: Path) -> None:
        self.folder = StateFolder(root.resolve())
        self.clock = FakeClock()
        self.environment = {**os.environ, "HEADWAY_TOKEN": "s3cret"}

    @contextmanager
    def fleet(self, *templates: Template, gpus: int = 0) -> Iterator[WorkerManager]:
        """A fleet that has taken over what is there. At its end it lets go, as an agent that is restarted does."""
        with self.folder.only_agent():
            fleet = WorkerManager(
                self.folder,
                host_file=HostFile(templates={each.name: each for each in templates}, gpus=gpus),
                agent_id=self.folder.identity().agent_id,
                environment=self.environment,
                clock=self.clock,
            )
            fleet.adopt()
            yield fleet
            fleet.close()

    def clear(self) -> None:
        """End whatever is left."""
        with self.fleet() as fleet:
            for held in fleet._table:
                if held.process is not None:
                    held.process.send_to_all(9)
            eventually(lambda: (fleet.scan(), not fleet.running())[1])


def start(pool: str = "mail", template: str = "py", **values: Any) -> Start:
    return Start(pool=pool, template=template, **values)


def reconcile_until(fleet: WorkerManager, holds: Callable[[], Any]) -> Any:
    """Reconcile the fleet until it is so."""
    return eventually(lambda: (fleet.scan(), holds())[1])


def record(worker_id: str, *, pid: int, started_ticks: int, pool: str = "mail") -> Record:
    """A worker that runs, by its record."""
    started_at_s = started_ticks / procfs.TICKS_PER_S
    return Record(
        worker_id=worker_id,
        pool=pool,
        template="",
        template_hash="",
        restart_generation=0,
        ready=Ready(),
        stop=Stop(),
        life=Life(state=WorkerState.RUNNING, started_at_s=started_at_s, since_s=started_at_s),
        pid=pid,
        started_ticks=started_ticks,
    )


PRINTS_READY = Ready(pattern="ready", timeout_s=30.0)


def states(fleet: WorkerManager) -> list[WorkerState]:
    return [worker.state for worker in fleet.workers()]


def printed(stage: Stage, worker_id: str) -> str:
    return (stage.folder.root / "workers" / f"{worker_id}.log").read_text()
