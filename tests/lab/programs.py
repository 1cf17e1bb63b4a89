"""One program of a lab: a process that is started, paused, killed and started again, and what it said."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from headway.cli.process.parent_watch import PARENT_FD
from support.waiting import pause_s

READY_WITHIN_S = 180.0
STOP_WITHIN_S = 60.0
WORDS_SHOWN = 4000


def sees(condition: Callable[[], object], *, within_s: float) -> bool:
    """Whether ``condition`` came true in time."""
    since_s = time.monotonic()
    while not condition():
        if time.monotonic() > since_s + within_s:
            return False
        time.sleep(pause_s(since_s))
    return True


class Program:
    """Ends with this process, also where that is killed: the pipe that both hold closes."""

    def __init__(
        self, name: str, folder: Path, argv: Sequence[str], env: Mapping[str, str], *, says_when_ready: str
    ) -> None:
        self.log = folder / f"{name}.log"
        self.under: list[str] = []
        """What is written before the command line from the next start on."""
        self._argv = list(argv)
        self._ours, self._theirs = os.pipe()
        self._env = {**env, PARENT_FD: str(self._ours)}
        self._says_when_ready = says_when_ready
        self._began = 0
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        self._began = self.log.stat().st_size if self.log.exists() else 0
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [*self.under, *self._argv],
                env=self._env,
                pass_fds=(self._ours,),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def await_ready(self, *, within_s: float = READY_WITHIN_S) -> None:
        """Return once this life of it has said that it is."""
        assert self.has_come_up(within_s=within_s) is not None, self.last_words()
        assert self.is_running, self.last_words()

    def has_come_up(self, *, within_s: float = READY_WITHIN_S) -> bool | None:
        """Whether it says that it is ready before it ends; ``None`` if it does neither in time."""
        is_clear = sees(lambda: self.says(self._says_when_ready) or not self.is_running, within_s=within_s)
        return self.is_running if is_clear else None

    def pause(self) -> None:
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def kill(self) -> None:
        """``kill -9`` and wait for its end."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        """Ask it to end and see it off."""
        if self._process is None:
            return
        with suppress(ProcessLookupError):
            self.resume()
        self._process.terminate()
        try:
            self._process.wait(STOP_WITHIN_S)
        except subprocess.TimeoutExpired:
            self.kill()
        self._process = None

    def said(self, words: str) -> int:
        """How often it has said ``words``, in all its lives."""
        return self.all_words().count(words)

    def all_words(self) -> str:
        """What it has said in all its lives."""
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def last_words(self) -> str:
        return self.all_words()[-WORDS_SHOWN:]

    def says(self, words: str) -> bool:
        """Whether it has said ``words`` in this life of it."""
        with self.log.open("rb") as log:
            log.seek(self._began)
            return words.encode() in log.read()
