"""`headway demo` as a user runs it: a process of its own."""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from support.ports import free_port
from support.waiting import pause_s

ADDRESSES = ("--http-address", "--grpc-address")
QUICK = "-XX:TieredStopAtLevel=1"  # a demo of a test ends before Java's thorough compiler pays
READY_WITHIN_S = 400.0
END_WITHIN_S = 150.0
Found = TypeVar("Found")


class Demo:
    """A demo that runs, and what it has printed."""

    def __init__(self, data: Path, *words: str) -> None:
        self.data = data
        self.lines: list[str] = []
        argv = [sys.executable, "-m", "headway", "demo", "--data-dir", str(data), "--no-browser", *words]
        # Its own session: what the test's own Ctrl-C or the demo's signals do stays apart.
        self.process = subprocess.Popen(
            argv,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
            env={**os.environ, "JAVA_TOOL_OPTIONS": QUICK},
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line)

    @property
    def said(self) -> str:
        return "".join(self.lines)

    def until(self, found: Callable[[], Found | None], *, within_s: float = READY_WITHIN_S) -> Found:
        since_s = time.monotonic()
        while True:
            value = found()
            if value:
                return value
            assert self.process.poll() is None, f"the demo has ended:\n{self.said}"
            assert time.monotonic() < since_s + within_s, f"not within {within_s} s:\n{self.said}"
            time.sleep(pause_s(since_s))

    def url(self) -> str:
        prefix = "dashboard: "
        line = self.until(lambda: next((line for line in self.lines if line.startswith(prefix)), None))
        return line.removeprefix(prefix).strip()

    def end(self, *, within_s: float) -> int:
        status = self.process.wait(within_s)
        self._reader.join(5)
        return status

    def pid_of(self, role: str) -> int:
        rows = json.loads((self.data / "children.json").read_text())
        return int(next(row["pid"] for row in rows if row["name"] == role))


@contextmanager
def demos(data: Path) -> Iterator[Callable[..., Demo]]:
    """Starts demos in this data folder, and ends those that still run."""
    started: list[Demo] = []

    def start(*words: str, own_ports: bool = True) -> Demo:
        # Two that begin at once would both find the usual ports free.
        addresses = [word for flag in ADDRESSES for word in (flag, f"127.0.0.1:{free_port()}")] if own_ports else []
        started.append(Demo(data, *words, *addresses))
        return started[-1]

    yield start
    for each in started:
        if each.process.poll() is None:
            each.process.terminate()
            try:
                each.process.wait(END_WITHIN_S)
            except subprocess.TimeoutExpired:
                each.process.kill()
