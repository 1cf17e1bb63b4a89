"""What `headway demo --chaos` ends by ``SIGKILL`` while jobs run, and how long each takes to be back.

due -> struck     its moment has come, and there is a process to end
struck -> back    the part shows that it works again: the leader leads under a newer epoch, the agent has reported,
                  the pipeline has written
"""

import os
import signal
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import psutil

from headway.cli.demo.process_watch import is_there
from headway.cli.demo.report_text import fault_text
from headway.cli.local.stack import Stack

ASK_EVERY_S = 0.5
CHAOS_SPARK_SURE_S = 1.0  # what was written later than this after the kill was not under way then
LEADER, AGENT, SPARK = "the leader", "the host's agent", "Spark's JVM"
MOMENTS = ((LEADER, 0.25), (AGENT, 0.45), (SPARK, 0.62))
"""What is ended, and at which part of the time in which jobs are sent: when workers are busy, apart from each other."""


@dataclass(slots=True)
class _Kill:
    """One kill, planned or done."""

    what: str
    at_s: float
    struck_at_s: float | None = None
    epoch: int = 0
    workers: Sequence[psutil.Process] = ()
    kept: int = 0
    adopted: int | None = None
    asked_s: float = 0.0
    back_after_s: float | None = None


class Chaos:
    """The kills of one run. The demo's loop calls ``tend``; all times count from ``begin``."""

    def __init__(
        self,
        machine: Stack,
        *,
        for_s: float,
        workers: Callable[[], Sequence[psutil.Process]],
        say: Callable[[str], None],
        clock: Callable[[], float],
    ) -> None:
        self._machine = machine
        self._workers = workers
        self._say = say
        self._clock = clock
        self._kills = [_Kill(what=what, at_s=part * for_s) for what, part in MOMENTS]
        self._began_s: float | None = None

    def begin(self) -> None:
        """The first job is sent now."""
        self._began_s = self._clock()

    @property
    def is_over(self) -> bool:
        """Whether everything was ended and is back."""
        return all(kill.back_after_s is not None for kill in self._kills)

    def tend(self) -> None:
        """End what is due, and see what is back."""
        if self._began_s is None:
            return
        now_s = self._clock() - self._began_s
        for kill in self._kills:
            if kill.struck_at_s is None:
                if now_s >= kill.at_s:
                    self._strike(kill, now_s)
            elif kill.back_after_s is None and now_s - kill.asked_s >= ASK_EVERY_S:
                kill.asked_s = now_s
                self._observe(kill, now_s - kill.struck_at_s)

    def faults(self) -> list[dict[str, Any]]:
        """What was ended, for the report."""
        return [self._fault(kill) for kill in self._kills if kill.struck_at_s is not None]

    def _fault(self, kill: _Kill) -> dict[str, Any]:
        goes_on = kill.what == SPARK  # without it Headway decides on: a worker that leaves meanwhile was let go
        return {
            "what": kill.what,
            "at_s": None if kill.struck_at_s is None else round(kill.struck_at_s, 1),
            "back_after_s": None if kill.back_after_s is None else round(kill.back_after_s, 1),
            "workers": None if goes_on else len(kill.workers),
            "workers_kept": None if goes_on else kill.kept,
            "workers_adopted": kill.adopted,
        }

    def _strike(self, kill: _Kill, now_s: float) -> None:
        pid = self._victim(kill.what)
        epoch = self._machine.ask("/v1/health").get("leader_epoch")
        if pid is None or epoch is None:
            return  # on its way back from something else: this is due the next time, too
        kill.epoch = int(epoch)
        # One that was already asked to leave may do so at any moment, whatever is killed.
        leaving = self._pids(lambda worker: worker["state"] == "draining")
        kill.workers = [worker for worker in self._workers() if worker.pid not in leaving]
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
            kill.struck_at_s, kill.kept = now_s, sum(map(is_there, kill.workers))
            self._say(f"chaos: killed {kill.what} (process {pid}) while {kill.kept} workers ran")

    def _victim(self, what: str) -> int | None:
        """The process to end; ``None`` where there is none now."""
        pid = self._machine.supervisor.pid({LEADER: "control", AGENT: "agent", SPARK: "pipeline"}[what])
        if pid is None or what != SPARK:
            return pid
        with suppress(psutil.Error):
            children = psutil.Process(pid).children(recursive=True)
            return next((each.pid for each in children if each.name() == "java"), None)
        return None

    def _observe(self, kill: _Kill, since_s: float) -> None:
        if not self._is_back(kill, since_s):
            # Until the part is back: what then leaves was let go, not lost.
            kill.kept = sum(map(is_there, kill.workers))
            return
        kill.back_after_s = since_s
        if kill.what == AGENT:
            kill.adopted = len({worker.pid for worker in kill.workers} & self._pids(lambda _: True))
        self._say(f"chaos: {kill.what}: {fault_text(self._fault(kill))}")

    def _pids(self, is_meant: Callable[[dict[str, Any]], bool]) -> set[int]:
        """The processes of the workers that hosts have reported, of those that are meant."""
        hosts = self._machine.ask("/v1/hosts").get("hosts", [])
        workers = [worker for host in hosts for worker in host["workers"] if worker["pid"]]
        return {int(worker["pid"]) for worker in workers if is_meant(worker)}

    def _is_back(self, kill: _Kill, since_s: float) -> bool:
        if kill.what == LEADER:
            return int(self._machine.ask("/v1/health").get("leader_epoch", 0)) > kill.epoch
        if kill.what == AGENT:
            return self._machine.has_agent(since_s)
        return self._machine.has_pipeline(since_s - CHAOS_SPARK_SURE_S)
