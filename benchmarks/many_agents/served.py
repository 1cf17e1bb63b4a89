"""The control plane that is measured, a process beside its Postgres, and what the two have used."""

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import psutil


class Control:
    """`headway control` as a process."""

    def __init__(self, folder: Path, database_url: str) -> None:
        (pid_file,) = (folder / "postgres").rglob("postmaster.pid")
        self.postmaster = psutil.Process(int(pid_file.read_text().split()[0]))
        self.address, http = (f"127.0.0.1:{port}" for port in _free_ports(2))
        self._log = folder / "control.log"
        self._environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("HEADWAY_")},
            "HEADWAY_DATABASE_URL": database_url,
            "HEADWAY_EVENT_LOG": str(folder / "events"),
            "HEADWAY_GRPC_ADDRESS": self.address,
            "HEADWAY_HTTP_ADDRESS": http,
        }

    async def start(self) -> None:
        """Start it, and return when its port is open."""
        self._spawn()
        host, port = self.address.split(":")
        for _ in range(3000):
            with contextlib.suppress(OSError):
                _, writer = await asyncio.open_connection(host, int(port))
                writer.close()
                return
            if self.process.poll() is not None:
                raise SystemExit(self._log.read_text())
            await asyncio.sleep(0.01)
        raise SystemExit("the control plane did not start")

    def _spawn(self) -> None:
        with self._log.open("ab") as log:
            argv = [sys.executable, "-m", "headway", "control"]
            self.process = subprocess.Popen(argv, env=self._environment, stdout=log, stderr=log)
        self.watched = psutil.Process(self.process.pid)

    def end(self, number: int = signal.SIGTERM) -> None:
        """End it, and return when it is gone."""
        self.process.send_signal(number)
        self.process.wait(30)

    @property
    def cpu_s(self) -> float:
        """Seconds of processor that it has used."""
        return sum(self.watched.cpu_times()[:2])

    def memory_mb(self) -> dict[str, float]:
        """Resident memory, and what of it is this process's own: libraries on disk count in the former."""
        memory = self.watched.memory_full_info()
        return {"resident": round(memory.rss / 1e6, 1), "own": round(memory.uss / 1e6, 1)}

    def log_lines(self) -> list[str]:
        """What it has logged."""
        return self._log.read_text().splitlines()


@dataclass(frozen=True)
class Used:
    """Seconds of processor that were used until a moment."""

    at_s: float
    control_s: float
    postgres_s: float

    @classmethod
    def until_now(cls, control: Control) -> "Used":
        """What was used so far."""
        seconds = 0.0
        for process in [control.postmaster, *control.postmaster.children()]:
            with contextlib.suppress(psutil.Error):
                seconds += sum(process.cpu_times()[:2])
        return cls(time.monotonic(), control.cpu_s, seconds)

    def cores_since(self, before: "Used") -> dict[str, float]:
        """Cores that were busy since then."""
        span_s = self.at_s - before.at_s
        return {
            "control_cores": round((self.control_s - before.control_s) / span_s, 4),
            "postgres_cores": round((self.postgres_s - before.postgres_s) / span_s, 4),
            "span_s": round(span_s, 1),
        }


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [int(each.getsockname()[1]) for each in sockets]
