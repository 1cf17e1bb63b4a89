"""The child processes of ``up`` and ``demo``: started, watched, restarted, ended. Synchronous: one loop polls all.

    waiting -> starting        spawned; its ready check is asked at every poll
    starting -> ready          the check said yes
    starting -> waiting        it ended: again after a pause, at most START_ATTEMPTS times before it was ever ready
    ready -> waiting           it ended: again after a pause, for ever
    any -> waiting             its heartbeat stopped: it is killed, and again after a pause
    any -> ended               the parent ends: SIGTERM, a wait (bounded, or for jobs that the child names),
                               SIGKILL to its session; a second signal to the parent is passed on

Children have sessions of their own, so a terminal's Ctrl-C reaches the parent only, and they share a pipe with it that
closes when the parent dies, however it dies (see ``parent``).
"""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from headway.cli.local import child_log, process_orphans
from headway.cli.local.data_dir import DataDir
from headway.cli.process.credential_handover import CredentialHandover
from headway.cli.process.heartbeat import Pulse, Sign
from headway.cli.process.parent_watch import PARENT_FD
from headway.cli.process.shutdown import Stopping
from headway.errors import HeadwayError, Unavailable
from headway.local.backoff import DoublingPause
from headway.local.throttle import Throttle
from headway.store.embedded import Server

POLL_S = 0.1
PAUSE = DoublingPause(0.5, 30.0)
SUPERVISOR_RESET_S = 60.0  # a child that ran this long has shown that it can: its next pause is the shortest again
START_ATTEMPTS = 3
SUPERVISOR_GAP_S = 2.0  # between two polls: this process was stopped itself, and knows nothing of the time between
SERVER_STOP_S = 10.0
AWAITED_EVERY_S = 5.0
PRESSED_END_S = 20.0  # what a child takes to end that was asked a second time: it kills what it waited for


@dataclass(frozen=True, slots=True, kw_only=True)
class Child:
    """A process to keep running."""

    name: str
    argv: tuple[str, ...]
    env: Mapping[str, str]
    is_ready: Callable[[float], bool] = lambda _ran_s: True
    """Asked with the seconds since this start, so that what an earlier life left behind is not taken for this one's."""
    ready_after_s: float = 0.0
    """For one that nothing can be asked: how long it must live to count as ready."""
    ready_within_s: float = 60.0
    stop_within_s: float = 5.0
    """Endless for one that waits for jobs of which nobody knows how long they take."""
    awaited: Callable[[], str] | None = None
    """For one that may take long to stop: a line that says for what it waits, empty for nothing. Such a child is asked
    a second time where this process is."""
    heartbeat: Path | None = None
    """The file that it touches every second for as long as it answers. Once it does not, it is replaced."""
    needs: tuple[str, ...] = ()
    """Children that are asked to stop only when this one is gone."""


@dataclass(slots=True)
class _Retries:
    """When a thing that failed is tried again."""

    failures: int = 0
    again_at_s: float = 0.0

    def failed(self, now_s: float, *, ran_s: float = 0.0) -> float:
        """Count a failure. Returns the pause before the next try."""
        self.failures = 1 if ran_s >= SUPERVISOR_RESET_S else self.failures + 1
        pause_s = PAUSE.after_s(self.failures)
        self.again_at_s = now_s + pause_s
        return pause_s


@dataclass(slots=True)
class _Held:
    """A child and how it is doing."""

    child: Child
    process: subprocess.Popen[bytes] | None = None
    started: process_orphans.Started | None = None
    started_at_s: float = 0.0
    is_ready: bool = False
    was_ever_ready: bool = False
    log_begins: int = 0
    pulse: Pulse | None = None
    retries: _Retries = field(default_factory=_Retries)
    stop_requested_at_s: float | None = None
    awaited_lines: Throttle = field(default_factory=Throttle)
    pressed_at_s: float | None = None
    """When it was asked a second time to stop."""
    is_killed: bool = False

    @property
    def stop_late_at_s(self) -> float:
        """When it should have stopped."""
        if self.pressed_at_s is not None:
            return self.pressed_at_s + PRESSED_END_S
        return (self.stop_requested_at_s or 0.0) + self.child.stop_within_s


@dataclass(slots=True)
class _Kept:
    """An embedded server and how to bring it back."""

    ensure: Callable[[], Server]
    server: Server
    retries: _Retries = field(default_factory=_Retries)


class Supervisor:
    """Keeps children and embedded servers running until asked to stop."""

    def __init__(
        self,
        layout: DataDir,
        *,
        stopping: Stopping,
        say: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._layout = layout
        self._stopping = stopping
        self._say = say
        self._clock = clock
        self._held: dict[str, _Held] = {}
        self._kept: dict[str, _Kept] = {}
        self._pipe_reader, self._pipe_writer = os.pipe()
        self._tended_at_s: float | None = None

    def keep(self, name: str, ensure: Callable[[], Server]) -> Server:
        """Start an embedded server, and bring it back whenever it is found dead."""
        server = ensure()
        self._kept[name] = _Kept(ensure=ensure, server=server)
        return server

    def start(self, child: Child) -> None:
        """Start ``child``. It is watched from now on; ``wait_ready`` waits for it."""
        self._started(child)

    def complete(self, child: Child) -> None:
        """Run ``child`` to its end, which is not restarted.

        Raises:
            Unavailable: it failed; with its own last words and where its log is.
            Stopped: this process was asked to end.
        """
        held, process = self._started(child)
        while (status := _ended(process)) is None:
            self._stopping.wait(POLL_S)
            self._stopping.check()
        del self._held[child.name]
        if status != 0:
            log = self._layout.log(child.name)
            raise Unavailable(f"{child.name} failed: {child_log.last_words(log, held.log_begins)}; its log: {log}")

    def finish(self, child: Child) -> int | None:
        """Run ``child`` to its end within ``stop_within_s``, also when this process was asked to end.

        Returns its exit status, None of one that had to be killed.
        """
        held, process = self._started(child)
        self._note_stop(held)
        while (status := _ended(process)) is None and self._clock() < held.stop_late_at_s:
            self._await_end(held, process)
            time.sleep(POLL_S / 2)
        if status is None:
            self._say(f"{child.name} (process {process.pid}) is not done after {child.stop_within_s:g} s: killed")
            os.killpg(process.pid, signal.SIGKILL)  # safe: not reaped yet, so the id is still this child's
            process.wait()
        del self._held[child.name]
        return status

    def wait_ready(self, *names: str) -> None:
        """Return once these children have been ready.

        Raises:
            Unavailable: one failed too often, or was not ready in time; with its own last words and where its log is.
            Stopped: this process was asked to end.
        """
        while not all(self._held[name].was_ever_ready for name in names):
            self.tend()
            self._stopping.wait(POLL_S)
            self._stopping.check()

    def pid(self, name: str) -> int | None:
        """The process id of a child, None while it does not run."""
        held = self._held.get(name)
        process = held.process if held else None
        return process.pid if process else None

    def tend(self) -> None:
        """One poll of everything: what ended is started again when its pause is over.

        Raises:
            Unavailable: a child that was never ready failed too often or took too long.
        """
        now_s, before_s = self._clock(), self._tended_at_s
        self._tended_at_s = now_s
        is_late = before_s is not None and now_s - before_s > SUPERVISOR_GAP_S
        for name, kept in self._kept.items():
            self._tend_server(name, kept)
        for held in self._held.values():
            if held.process is None:
                if self._clock() >= held.retries.again_at_s:
                    self._spawn(held)
            elif (status := _ended(held.process)) is not None:
                self._lost(held, status)
            elif not self._is_hung(held, held.process, is_late=is_late) and not held.is_ready:
                self._ask_ready(held)

    def stop_children(self, *, but: str | None = None) -> None:
        """End every child, or all ``but`` one, those that need others first. The embedded servers stay."""
        ending = [held for name, held in self._held.items() if name != but]
        while any(held.process for held in ending):
            for held in reversed(ending):
                if held.process is not None:
                    self._move_to_end(held, held.process)
            time.sleep(POLL_S / 2)
        for held in ending:
            del self._held[held.child.name]

    def stop_servers(self) -> None:
        """Let the embedded servers go, and wait until they are gone."""
        for name, kept in reversed(self._kept.items()):
            kept.server.release()
            if kept.server.wait_stopped(SERVER_STOP_S) is False:
                self._say(f"{name} (process {kept.server.pid}) does not stop; see {self._layout.root}")
        self._kept.clear()
        self._layout.children.unlink(missing_ok=True)
        for end in (self._pipe_reader, self._pipe_writer):
            with suppress(OSError):
                os.close(end)

    # --- one child ---------------------------------------------------------------------------------------------------

    def _started(self, child: Child) -> tuple[_Held, subprocess.Popen[bytes]]:
        held = self._held[child.name] = _Held(child=child)
        return held, self._spawn(held)

    def _spawn(self, held: _Held) -> subprocess.Popen[bytes]:
        child = held.child
        log = self._layout.log(child.name)
        child_log.rotate(log)
        hand = CredentialHandover(child.env)
        with log.open("ab") as output, closing(hand):
            held.log_begins = output.tell()
            process = held.process = subprocess.Popen(
                child.argv,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**hand.env, PARENT_FD: str(self._pipe_reader)},
                pass_fds=(self._pipe_reader, *(() if hand.fd is None else (hand.fd,))),
                start_new_session=True,
            )
        held.started_at_s, held.is_ready = self._clock(), False
        held.pulse = None if child.heartbeat is None else Pulse(child.heartbeat)
        held.started = process_orphans.Started(
            name=child.name,
            pid=process.pid,
            created_at_s=psutil.Process(process.pid).create_time(),
            argv=child.argv,
            stop_within_s=child.stop_within_s,
        )
        running = [each.started for each in self._held.values() if each.started]
        process_orphans.record(self._layout.children, running)
        return process

    def _is_hung(self, held: _Held, process: subprocess.Popen[bytes], *, is_late: bool) -> bool:
        """Whether a child has no heartbeat any more; such a one is killed, and the next poll finds it ended."""
        sign = held.pulse.sign_at(self._clock(), is_late=is_late) if held.pulse else None
        if sign is not None:
            self._say(f"{held.child.name} (process {process.pid}) {sign.value}")
        if sign is Sign.HUNG:
            os.killpg(process.pid, signal.SIGKILL)  # safe: not reaped yet, so the id is still this child's
        return sign is Sign.HUNG

    def _ask_ready(self, held: _Held) -> None:
        child, ran_s = held.child, self._clock() - held.started_at_s
        if ran_s >= child.ready_after_s and child.is_ready(ran_s):
            if held.was_ever_ready:
                self._say(f"{child.name} is back")
            held.is_ready = held.was_ever_ready = True
        elif not held.was_ever_ready and ran_s > child.ready_within_s:
            raise Unavailable(
                f"{child.name} is not ready after {child.ready_within_s:.0f} s; its log: {self._layout.log(child.name)}"
            )

    def _lost(self, held: _Held, status: int) -> None:
        name, log = held.child.name, self._layout.log(held.child.name)
        held.process = held.started = None
        pause_s = held.retries.failed(self._clock(), ran_s=self._clock() - held.started_at_s)
        # What was killed from outside had no last words, only a last line.
        words = "" if status < 0 else f": {child_log.last_words(log, held.log_begins)}"
        if not held.was_ever_ready and held.retries.failures >= START_ATTEMPTS:
            raise Unavailable(f"{name} does not start{words or f' ({_status_text(status)})'}; its log: {log}")
        self._say(f"{name} ended ({_status_text(status)}){words}; starting it again in {pause_s:g} s")

    def _move_to_end(self, held: _Held, process: subprocess.Popen[bytes]) -> None:
        if _ended(process) is not None:
            held.process = None
            return
        name, now_s = held.child.name, self._clock()
        if held.stop_requested_at_s is None:
            if not any(other.process and name in other.child.needs for other in self._held.values()):
                self._note_stop(held)
                process.terminate()
        elif not held.is_killed and now_s > held.stop_late_at_s:
            within_s = held.child.stop_within_s if held.pressed_at_s is None else PRESSED_END_S
            self._say(f"{name} (process {process.pid}) did not stop within {within_s:g} s: killed")
            held.is_killed = True
            os.killpg(process.pid, signal.SIGKILL)  # safe: not reaped yet, so the id is still this child's
        else:
            self._await_end(held, process)

    def _note_stop(self, held: _Held) -> None:
        held.stop_requested_at_s = self._clock()
        held.awaited_lines = Throttle(AWAITED_EVERY_S, clock=self._clock)
        held.awaited_lines.restart()

    def _await_end(self, held: _Held, process: subprocess.Popen[bytes]) -> None:
        """Say now and then for what a child waits that was asked to stop; pass on that a person waits no longer."""
        if held.child.awaited is None:
            return
        if self._stopping.signals_received > 1 and held.pressed_at_s is None:
            held.pressed_at_s = self._clock()
            process.terminate()
        elif held.pressed_at_s is None and held.awaited_lines.due() is not None and (line := held.child.awaited()):
            self._say(f"{line}; Ctrl-C again kills them, and cuts their jobs")

    # --- one embedded server -----------------------------------------------------------------------------------------

    def _tend_server(self, name: str, kept: _Kept) -> None:
        if self._clock() < kept.retries.again_at_s or kept.server.is_running():
            return
        self._say(f"{name} ended; bringing it back")
        try:
            kept.server = kept.ensure()
        except HeadwayError as error:
            pause_s = kept.retries.failed(self._clock())
            self._say(f"{name} does not come back: {error}; next try in {pause_s:g} s")
        else:
            kept.retries = _Retries()


def _ended(process: subprocess.Popen[bytes]) -> int | None:
    """The exit status of a child that has ended, None of one that runs. What is left of its session ends with it."""
    if os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        return None
    # Not reaped yet, so the id cannot be anybody else's: a JVM whose Python is gone must not live on.
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    return process.wait()


def _status_text(status: int) -> str:
    return f"signal {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"
