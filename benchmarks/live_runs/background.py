"""What an installation takes of processors beside its workers: the control plane, its stores, and who measures."""

import time
from collections.abc import Iterator
from contextlib import suppress

import psutil


class Background:
    """Counts from its beginning. Every process is a descendant of this one, the workers are the agent's children."""

    def __init__(self, agent_pid: int) -> None:
        self._agent_pid = agent_pid
        self._began_s, self._before_s = time.monotonic(), self._cpu_s()

    def cores(self) -> float:
        """The cores that were busy so far, at the mean."""
        return max(0.0, self._cpu_s() - self._before_s) / (time.monotonic() - self._began_s)

    def _cpu_s(self) -> float:
        return sum(self._each_cpu_s(psutil.Process()))

    def _each_cpu_s(self, process: psutil.Process) -> Iterator[float]:
        with suppress(psutil.Error):
            times = process.cpu_times()
            yield times.user + times.system
            if process.pid == self._agent_pid:
                return
            yield times.children_user + times.children_system  # of those that have ended
            for child in process.children():
                yield from self._each_cpu_s(child)
