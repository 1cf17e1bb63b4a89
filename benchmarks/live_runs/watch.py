"""Which worker processes there are, and when, seen by polling the agent's child processes."""

import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

POLL_S = 0.1
TICKS_A_S = 100.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """From when until when a worker process was there, Unix seconds; its beginning is the kernel's own word."""

    pid: int
    began_at_s: float
    ended_at_s: float


class WorkerWatch:
    """Polls in a thread of its own. An end is exact to half a poll, either way alike."""

    def __init__(self, agent_pid: int) -> None:
        self._agent = psutil.Process(agent_pid)
        self._present: dict[int, float] = {}
        self._ended: list[Life] = []
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)

    def start(self) -> None:
        """Begin to poll."""
        self._thread.start()

    @property
    def present(self) -> int:
        """How many workers there are."""
        return len(self._present)

    def close(self) -> list[Life]:
        """Stop polling. Every life; one that goes on ends now."""
        self._closing.set()
        self._thread.join()
        now_s = time.time()
        self._ended += [Life(pid=pid, began_at_s=at_s, ended_at_s=now_s) for pid, at_s in self._present.items()]
        return sorted(self._ended, key=lambda life: life.began_at_s)

    def _run(self) -> None:
        before_s = time.time()
        while not self._closing.wait(POLL_S):
            now_s = time.time()
            self._poll(before_s, now_s)
            before_s = now_s

    def _poll(self, before_s: float, now_s: float) -> None:
        there = set()
        with suppress(psutil.Error):
            there = {child.pid for child in self._agent.children() if _is_alive(child)}
        for pid in there - self._present.keys():
            began_at_s = _began_at_s(pid)
            self._present[pid] = now_s if began_at_s is None else began_at_s
        for pid in self._present.keys() - there:
            self._ended.append(Life(pid=pid, began_at_s=self._present.pop(pid), ended_at_s=(before_s + now_s) / 2))


def _is_alive(process: psutil.Process) -> bool:
    with suppress(psutil.Error):
        return process.status() != psutil.STATUS_ZOMBIE
    return False


def _began_at_s(pid: int) -> float | None:
    """When the kernel started it. By the clock since boot, which is exact: the boot time that is published is not."""
    with suppress(OSError):
        ticks = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
        return time.time() - (time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / TICKS_A_S)
    return None
