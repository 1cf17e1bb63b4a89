"""Owning an embedded server: adopt the one that runs, or start it with its guardian."""

import os
import subprocess
import threading
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from headway.errors import Misconfigured, Unavailable
from headway.store.embedded import guardian
from headway.store.embedded.foreign_processes import end_leftovers
from headway.store.embedded.run_as import PYTHON, Identity, environment
from headway.store.embedded.server_folder import Folder, Kept, prepared
from headway.store.embedded.waiting import Deadline

OWNED_SERVER_ATTEMPTS_MAX = 5  # a server or guardian that is killed while it starts is started again
GUARDIAN = (*PYTHON, guardian.__file__)
OWNED_SERVER_STOPPED_S = 40.0  # the guardian's patience with a server, and a little


class Program(Protocol):
    """What differs between Postgres and Valkey."""

    @property
    def name(self) -> str: ...
    @property
    def home(self) -> str: ...
    @property
    def stop_signal(self) -> int: ...

    def identity(self, root: Path) -> Identity: ...
    def prepare(self, folder: Folder, identity: Identity, deadline: Deadline) -> None: ...
    def argv(self, folder: Folder, identity: Identity, runtime_dir: Path) -> list[str]: ...
    def is_ready(self, folder: Folder, runtime_dir: Path, pid: int) -> bool: ...
    def url(self, runtime_dir: Path) -> str: ...


class Server:
    """One claim on a running server. The server lives as long as anybody, in any process, holds a claim on it.

    A claim ends with ``release`` or with the process, never by being forgotten.
    """

    def __init__(self, url: str, kept: Kept, folder: Folder, lock_fd: int) -> None:
        self.url = url
        self.pid = kept.server_pid
        self._kept = kept
        self._folder = folder
        self._lock_fd: int | None = lock_fd

    def is_running(self) -> bool:
        """Whether the server's process lives. When it does not, ``ensure_*`` again gives a fresh one."""
        _reap()
        return self._kept.is_server_alive

    def release(self) -> None:
        """Give the claim up: after the last one, the guardian stops the server. Doing it twice is harmless."""
        with _guard:
            fd, self._lock_fd = self._lock_fd, None
            if fd is not None:
                os.close(fd)
                _claims.remove(self)

    def wait_stopped(self, timeout_s: float = OWNED_SERVER_STOPPED_S) -> bool:
        """Release, then wait until server and guardian are gone; False when they are not, as while others own them."""
        self.release()
        return Deadline(timeout_s).sees(self._is_gone)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.release()

    def _is_gone(self) -> bool:
        _reap()
        return self._kept.is_gone

    def _replaces(self, other: "Server") -> bool:
        return other is not self and other._folder == self._folder and not other._kept.is_server_alive  # noqa: SLF001


_guard = threading.RLock()
_claims: list[Server] = []
_guardians: list[subprocess.Popen[bytes]] = []


def ensure(program: Program, data_dir: Path, *, deadline_s: float) -> Server:
    """A claim on the server that runs on ``data_dir``, which is started when it does not run.

    Claims of this process on a server that has died meanwhile are given up for the new one.
    """
    deadline = Deadline(deadline_s)
    folder = prepared(data_dir)
    lock_fd = folder.owned(deadline)
    try:
        with folder.starting(deadline):
            kept = _running(program, folder, deadline)
    except BaseException:
        os.close(lock_fd)
        raise
    server = Server(program.url(Path(kept.runtime_dir)), kept, folder, lock_fd)
    with _guard:
        _claims.append(server)
        for dead in [claim for claim in _claims if server._replaces(claim)]:  # noqa: SLF001
            dead.release()
    return server


def _running(program: Program, folder: Folder, deadline: Deadline) -> Kept:
    log_bytes = folder.log.stat().st_size if folder.log.exists() else 0
    status: int | None = None
    for _ in range(OWNED_SERVER_ATTEMPTS_MAX):
        guard_fd = folder.guard()
        if guard_fd is None:
            # Until it is ready, or its guardian has ended.
            found = deadline.sees(lambda: _serving(program, folder) or not folder.is_guarded())
        else:
            keeper = _start(program, folder, deadline, guard_fd)
            found = deadline.sees(lambda: _serving(program, folder) or keeper.poll() is not None)  # noqa: B023 - asked here
            status = keeper.poll()
        if isinstance(found, Kept):
            return found
        if status == guardian.GUARDIAN_FAILED or not deadline.left_s:
            break
    last_word = _last_word(folder, log_bytes)
    raise Unavailable(
        f"the embedded {program.name} in {folder.root} did not become ready{last_word}; its log is {folder.log}"
    )


def _start(program: Program, folder: Folder, deadline: Deadline, guard_fd: int) -> subprocess.Popen[bytes]:
    """A new guardian, to which the lock goes over without a gap. Nothing else touches the folder meanwhile."""
    try:
        end_leftovers(folder.root / program.home, program.stop_signal, deadline)
        identity = program.identity(folder.root)
        program.prepare(folder, identity, deadline)
        runtime_dir = folder.runtime_dir(identity.uid)
        argv = [str(int(program.stop_signal)), identity.mode, *program.argv(folder, identity, runtime_dir)]
        with folder.appending_log() as log:
            keeper = subprocess.Popen(
                [*GUARDIAN, str(folder.root), str(runtime_dir), program.name, *argv],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                env=environment(),
                umask=0o077,
                start_new_session=True,  # Ctrl-C must not reach it
                pass_fds=(guard_fd,),
            )
    finally:
        os.close(guard_fd)
    with _guard:
        _guardians.append(keeper)
    return keeper


def _serving(program: Program, folder: Folder) -> Kept | None:
    """The server that is ready; None when there is none."""
    kept = folder.kept()
    if kept is None or not kept.is_server_alive:  # a dead guardian's state counts for nothing
        return None
    if kept.program != program.name:
        raise Misconfigured(
            f"{folder.root} is the folder of an embedded {kept.program}: give {program.name} one of its own"
        )
    return kept if program.is_ready(folder, Path(kept.runtime_dir), kept.server_pid) else None


def _last_word(folder: Folder, since_bytes: int) -> str:
    """Why the server ended, in its own words, if the log has any since then."""
    written = folder.log.read_bytes()[since_bytes:].decode(errors="replace") if folder.log.exists() else ""
    lines = [line.strip() for line in written.splitlines() if line.strip()]
    reasons = [line for line in lines if "FATAL:" in line] or lines
    return f": {reasons[-1]}" if reasons else ""


def _reap() -> None:
    """Take the exit status of guardians that have ended, so that none stays behind as a zombie."""
    with _guard:
        _guardians[:] = [keeper for keeper in _guardians if keeper.poll() is None]
