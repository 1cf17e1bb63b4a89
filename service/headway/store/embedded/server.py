"""Owning an embedded server: adopt the one that runs, or start it with its guardian."""

import os
import subprocess
import sys
import threading
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from headway.errors import Misconfigured, Unavailable
from headway.store.embedded import guardian
from headway.store.embedded.folder import Folder, Kept, prepared
from headway.store.embedded.identity import Identity, environment
from headway.store.embedded.processes import end_leftovers
from headway.store.embedded.waiting import Deadline

STOPPED_S = 40.0  # the guardian's patience with a server, and a little


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

    def wait_stopped(self, timeout_s: float = STOPPED_S) -> bool:
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
    while deadline.left_s:
        kept = _adopted(program, folder, deadline) if folder.is_guarded() else _started(program, folder, deadline)
        if kept is not None:
            return kept
    raise Unavailable(f"{_not_ready(program, folder)} within {deadline.seconds:g} s")


def _adopted(program: Program, folder: Folder, deadline: Deadline) -> Kept | None:
    """The server of the living guardian, once it is ready; None when that guardian ends instead."""
    deadline.sees(lambda: not folder.is_guarded() or _is_serving(program, folder))
    return folder.kept() if folder.is_guarded() and _is_serving(program, folder) else None


def _started(program: Program, folder: Folder, deadline: Deadline) -> Kept | None:
    """A new server with a new guardian; None when another guardian was faster."""
    end_leftovers(folder.root / program.home, program.stop_signal, deadline)
    identity = program.identity(folder.root)
    program.prepare(folder, identity, deadline)
    runtime_dir = folder.runtime_dir(identity.uid)
    keeper = _start_guardian(program, folder, identity, runtime_dir)
    deadline.sees(lambda: keeper.poll() is not None or _is_serving(program, folder))
    if keeper.poll() in (None, guardian.BUSY):
        return folder.kept() if _is_serving(program, folder) else None
    raise Unavailable(_not_ready(program, folder))


def _start_guardian(program: Program, folder: Folder, identity: Identity, runtime_dir: Path) -> subprocess.Popen[bytes]:
    log_fd = folder.opened_log()
    script = [sys.executable, "-I", "-S", guardian.__file__, str(folder.root), str(runtime_dir), program.name]
    try:
        keeper = subprocess.Popen(
            [*script, str(int(program.stop_signal)), identity.mode, *program.argv(folder, identity, runtime_dir)],
            stdin=subprocess.DEVNULL,
            stdout=log_fd,
            stderr=log_fd,
            cwd="/",
            env=environment(),
            umask=0o077,
            start_new_session=True,  # Ctrl-C must not reach it
        )
    finally:
        os.close(log_fd)
    with _guard:
        _guardians.append(keeper)
    return keeper


def _is_serving(program: Program, folder: Folder) -> bool:
    kept = folder.kept()
    if kept is None or not kept.is_server_alive:  # a dead guardian's state counts for nothing
        return False
    if kept.program != program.name:
        raise Misconfigured(
            f"{folder.root} is the folder of an embedded {kept.program}: give {program.name} one of its own"
        )
    return program.is_ready(folder, Path(kept.runtime_dir), kept.server_pid)


def _not_ready(program: Program, folder: Folder) -> str:
    lines = folder.log.read_text(errors="replace").splitlines() if folder.log.exists() else []
    last = next((line for line in reversed(lines) if "FATAL" in line or "cannot run" in line), "")
    said = f": {last.strip()}" if last else ""
    return f"the embedded {program.name} in {folder.root} did not become ready{said}; its log is {folder.log}"


def _reap() -> None:
    """Take the exit status of guardians that have ended, so that none stays behind as a zombie."""
    with _guard:
        _guardians[:] = [keeper for keeper in _guardians if keeper.poll() is None]
