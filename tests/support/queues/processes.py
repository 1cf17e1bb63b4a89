"""The processes of a scene: a hand in a library's environment, workers, a collector. All end with it."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from support.queues.kills import Kill
from support.waiting import eventually

HERE = Path(__file__).parent
WITHIN_S = 60.0


class Hand:
    """A program that does with a library what it is asked to: ``support/queues/hand.py``."""

    def __init__(self, python: Path, app: str, env: Mapping[str, str]) -> None:
        words = [str(python), "-c", f"import {app}; {app}.main()"]
        self.asked: list[tuple[float, str, dict[str, Any], Any]] = []
        """When, what, and what came back: the story, for whoever has to find out."""
        self._process = subprocess.Popen(words, env=dict(env), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def wait_ready(self) -> None:
        """Return once it listens."""
        assert self._process.stdout is not None
        assert json.loads(self._process.stdout.readline()) == "ready"

    def ask(self, act: str, /, **given: Any) -> tuple[float, float, Any]:
        """When it began, when it was done, and what it answers."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([act, given]) + "\n")
        self._process.stdin.flush()
        began_s, done_s, answer = json.loads(self._process.stdout.readline())
        self.asked.append((began_s, act, given, answer))
        return began_s, done_s, answer

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()


class Worker:
    """A worker and the processes that it began."""

    def __init__(self, words: Sequence[str], env: Mapping[str, str], folder: Path) -> None:
        with (folder / "workers.log").open("ab") as log:
            self._process = subprocess.Popen(
                list(words), env=dict(env), cwd=folder, stdout=log, stderr=log, start_new_session=True
            )
        self.pid = self._process.pid

    def children(self) -> list[int]:
        """The processes that it began, and theirs."""
        with suppress(psutil.NoSuchProcess):
            return [each.pid for each in psutil.Process(self.pid).children(recursive=True)]
        return []

    def kill(self, *, with_children: bool) -> Kill:
        """``kill -9``."""
        pids = [self.pid, *self.children()]
        began_s = time.time()
        for pid in pids if with_children else pids[:1]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.wait(WITHIN_S)
        return Kill(self.pid, began_s, time.time(), frozenset(pids), with_children)

    def ask_to_stop(self) -> None:
        self._process.send_signal(signal.SIGTERM)

    def wait_stopped(self) -> None:
        self._process.wait(WITHIN_S)

    def end(self) -> None:
        """See it off, and what it began."""
        if self._process.poll() is None:
            self.kill(with_children=True)


COLLECTING = """
import os, sys, time
from headway.__main__ import main
from headway.collect.rq.rq_source import RqSource
polls = os.open(os.environ["POLLS"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
poll = RqSource.poll
whole = []
def logged(self, at_s):
    while whole:  # of the poll before: what it found has been stored, or there would be no other
        os.write(polls, whole.pop())
    reading = poll(self, at_s)
    whole.append(f"{at_s} {time.time()} {int(reading.has_more)}\\n".encode())
    return reading
RqSource.poll = logged
sys.exit(main(["collect"]))
"""


class Collector:
    """``headway collect`` of one state folder, again and again, and when it polled."""

    def __init__(self, python: Path, folder: Path, *, control: str, brokers: Path) -> None:
        self._python = python
        self._folder = folder
        self._polls = folder / "polls"
        plain = {name: value for name, value in os.environ.items() if not name.startswith("HEADWAY_")}
        self._env = {
            **plain,
            "HEADWAY_STATE_DIR": str(folder / "state"),
            "HEADWAY_CONTROL": control,
            "HEADWAY_BROKERS_FILE": str(brokers),
            "POLLS": str(self._polls),
        }
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with (self._folder / "collector.log").open("ab") as log:
            self._process = subprocess.Popen(
                [str(self._python), "-c", COLLECTING], env=self._env, stdout=log, stderr=log
            )

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def polls(self) -> list[tuple[float, float, bool]]:
        """When each poll began and ended, and whether more was known to be new."""
        lines = self._polls.read_text().splitlines() if self._polls.exists() else []
        return [(float(began), float(ended), more == "1") for began, ended, more in (line.split() for line in lines)]

    def wait_polled(self, since_s: float, times: int = 1) -> None:
        """Return once it has read everything, so many times since ``since_s``."""
        eventually(lambda: sum(began > since_s and not more for began, _, more in self.polls()) >= times)
