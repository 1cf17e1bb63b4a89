"""Which worker processes there were, and when: seen by polling the agent's child processes, not from reports.

So the report's worker-seconds would show a worker that Headway has lost sight of.
"""

import threading
import time
from collections.abc import Callable
from contextlib import suppress

import psutil

from headway.cli.demo.demo_report import WorkerLife

POLL_S = 0.5


class WorkerWatch:
    """Polls the workers in a thread of its own. A life's ends are exact to half a poll, either way alike."""

    def __init__(self, agent_pid: Callable[[], int | None], *, clock: Callable[[], float] = time.time) -> None:
        self._agent_pid = agent_pid
        self._clock = clock
        self._present: dict[psutil.Process, float] = {}
        self._ended: list[WorkerLife] = []
        self._scanned_at_s: float | None = None
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="worker-watch", daemon=True)

    def start(self) -> None:
        """Begin to poll."""
        self._thread.start()

    def close(self) -> None:
        """Poll a last time and stop."""
        self._closing.set()
        if self._thread.is_alive():
            self._thread.join()
            self.scan()

    @property
    def present(self) -> int:
        """How many workers were there at the last poll."""
        return len(self._present)

    def processes(self) -> list[psutil.Process]:
        """The workers that were there at the last poll."""
        return list(dict(self._present))

    def lives(self, *, until_s: float) -> list[WorkerLife]:
        """Every life so far; that of a worker which is still there goes on until ``until_s``."""
        going_on = [
            WorkerLife(pid=process.pid, began_at_s=began_at_s, ended_at_s=max(until_s, began_at_s))
            for process, began_at_s in dict(self._present).items()
        ]
        return [*self._ended, *going_on]

    def scan(self) -> None:
        """Note the workers that came and went since the last poll."""
        now_s = self._clock()
        since_s = now_s if self._scanned_at_s is None else self._scanned_at_s
        for process in [each for each in self._present if not is_there(each)]:
            began_at_s = self._present.pop(process)
            gone_at_s = max((since_s + now_s) / 2, began_at_s)
            self._ended.append(WorkerLife(pid=process.pid, began_at_s=began_at_s, ended_at_s=gone_at_s))
        children: list[psutil.Process] = []
        if (pid := self._agent_pid()) is not None:
            with suppress(psutil.Error):
                children = psutil.Process(pid).children()
        for process in children:
            if process not in self._present and is_there(process):
                # psutil knows the boot time to the second only: its times are moved into the span it must lie in.
                self._present[process] = min(max(_created_at_s(process, now_s), since_s), now_s)
        self._scanned_at_s = now_s

    def _run(self) -> None:
        while not self._closing.wait(POLL_S):
            self.scan()


def is_there(process: psutil.Process) -> bool:
    """Whether it runs, or waits for anything but its parent."""
    with suppress(psutil.Error):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False


def _created_at_s(process: psutil.Process, otherwise: float) -> float:
    with suppress(psutil.Error):
        return float(process.create_time())
    return otherwise
