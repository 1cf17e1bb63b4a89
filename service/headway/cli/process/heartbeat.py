"""A process shows that it answers: the time of a file, which its parent polls, and a row, which people are shown."""

import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from enum import Enum
from pathlib import Path

EVERY_S = 1.0
END_S = 1.0
FILE = "heartbeat"
SILENT_S = 5.0
HEARTBEAT_HUNG_S = 20.0  # a machine that is short of processor time keeps nobody from beating for so long

log = logging.getLogger(__name__)


class Heartbeat:
    """Beats every second from a thread of its own, for as long as what it asks answers.

    Nothing that hangs can beat: a process that is stopped runs no thread, and a JVM that is stopped gives no answer.
    The row is written by a second thread, so that a database that hangs does not make this process seem hung.
    """

    def __init__(self, file: Path, *, write_row: Callable[[], object], every_s: float = EVERY_S) -> None:
        self._file = file
        self._write_row = write_row
        self._every_s = every_s
        self._ask: Callable[[], object] = lambda: None
        self._ended = threading.Event()
        self._beaten = threading.Event()
        self._threads = [
            threading.Thread(target=run, name=name, daemon=True)
            for run, name in ((self._beat, "heartbeat"), (self._report, "heartbeat report"))
        ]

    def start(self) -> None:
        """Begin to beat."""
        for thread in self._threads:
            thread.start()

    def asks(self, ask: Callable[[], object]) -> None:
        """From now on a beat needs an answer to ``ask``: where it raises or does not return, there is none."""
        self._ask = ask

    def end(self) -> None:
        """Beat no more."""
        self._ended.set()
        self._beaten.set()
        for thread in self._threads:
            thread.join(END_S)

    def _beat(self) -> None:
        while not self._ended.is_set():
            try:
                self._ask()
            except Exception:  # whoever does not answer, for whatever reason, has no heartbeat
                log.debug("no heartbeat", exc_info=True)
            else:
                with suppress(OSError):  # a full disk is no reason to be replaced by one that meets the same disk
                    self._file.touch()
                self._beaten.set()
            self._ended.wait(self._every_s)

    def _report(self) -> None:
        while not self._ended.is_set():
            self._beaten.wait()
            self._beaten.clear()
            if not self._ended.is_set():
                self._write_row()


class Sign(Enum):
    """What has changed about a heartbeat."""

    SILENT = f"is not responding: no heartbeat for {SILENT_S:g} s; after {HEARTBEAT_HUNG_S:g} s it is replaced"
    BACK = "responds again"
    HUNG = f"has had no heartbeat for {HEARTBEAT_HUNG_S:g} s: killed"


class Pulse:
    """The heartbeat of one process as its parent sees it. The file's time says that it changed, not when."""

    def __init__(self, file: Path) -> None:
        """Of a process that has just been started: what an earlier life left behind is no beat."""
        self._file = file
        self._touched_ns = self._read()
        self._beaten_at_s: float | None = None
        self._is_silent = False

    def sign_at(self, now_s: float, *, is_late: bool) -> Sign | None:
        """What is new at ``now_s``; nothing of a process that has yet to beat for the first time.

        Args:
            now_s: By a clock that only goes forward.
            is_late: The caller itself stood still since its last poll, and so perhaps did the process.
        """
        touched_ns = self._read()
        has_beaten = touched_ns != self._touched_ns
        if has_beaten or (is_late and self._beaten_at_s is not None):
            self._touched_ns, self._beaten_at_s = touched_ns, now_s
            is_back, self._is_silent = has_beaten and self._is_silent, self._is_silent and not has_beaten
            return Sign.BACK if is_back else None
        if self._beaten_at_s is None:
            return None
        silent_s = now_s - self._beaten_at_s
        if silent_s > HEARTBEAT_HUNG_S:
            self._beaten_at_s = None  # reported once
            return Sign.HUNG
        if silent_s > SILENT_S and not self._is_silent:
            self._is_silent = True
            return Sign.SILENT
        return None

    def _read(self) -> int | None:
        try:
            return self._file.stat().st_mtime_ns
        except FileNotFoundError:
            return None
