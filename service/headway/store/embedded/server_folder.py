"""The folder of one embedded server: who may use it, what lies where in it, and its locks.

<folder>/            0700
  owners.lock        shared by every owner; the guardian gets it exclusively when the last one has gone
  start.lock         held while somebody checks, initialises and starts
  guardian.lock      held by the guardian for life
  state.json         who keeps it: written by the guardian, removed by it at the end
  server.log         of the guardian and the server
  run/               sockets, where the path is short enough; else /tmp/headway-<uid>-<hash>/
  pgdata/ valkey/    the server's own
"""

import hashlib
import json
import os
import re
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import IO

from headway.errors import Misconfigured
from headway.local.locks import try_lock
from headway.local.procfs import is_there
from headway.store.embedded.waiting import Deadline

SOCKET_PATH_BYTES_MAX = 107  # sockaddr_un, less the closing zero
SOCKET_NAME_BYTES_MAX = len(".s.PGSQL.5432")
LOG_BYTES_MAX = 10_000_000  # at a start, a longer log becomes server.log.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A server and its guardian, as the guardian wrote them down."""

    program: str
    runtime_dir: str
    guardian_pid: int
    guardian_started_ticks: int
    server_pid: int
    server_started_ticks: int

    @property
    def is_server_alive(self) -> bool:
        """Whether the server runs."""
        return is_there(self.server_pid, self.server_started_ticks)

    @property
    def is_gone(self) -> bool:
        """Whether neither the server nor the guardian runs."""
        return not self.is_server_alive and not is_there(self.guardian_pid, self.guardian_started_ticks)


@dataclass(frozen=True, slots=True)
class Folder:
    """The folder of one embedded server, private to its user."""

    root: Path

    @property
    def log(self) -> Path:
        """Where guardian and server write."""
        return self.root / "server.log"

    def owned(self, deadline: Deadline) -> int:
        """The descriptor of a shared lock on ``owners.lock``. Waits for a guardian that is stopping its server."""
        fd = self._opened("owners.lock")
        try:
            deadline.needs(
                lambda: try_lock(fd, is_shared=True), f"the embedded server in {self.root} is stopping and does not end"
            )
        except BaseException:
            os.close(fd)
            raise
        return fd

    @contextmanager
    def starting(self, deadline: Deadline) -> Iterator[None]:
        """Nobody else checks, initialises or starts meanwhile."""
        fd = self._opened("start.lock")
        try:
            deadline.needs(lambda: try_lock(fd), f"another process is still starting a server in {self.root}")
            yield
        finally:
            os.close(fd)

    def guard(self) -> int | None:
        """The descriptor of the lock that a new guardian shall inherit; None while a guardian lives."""
        fd = self._opened("guardian.lock")
        if try_lock(fd):
            return fd
        os.close(fd)
        return None

    def is_guarded(self) -> bool:
        """Whether a guardian lives."""
        fd = self.guard()
        if fd is not None:
            os.close(fd)
        return fd is None

    def kept(self) -> Kept | None:
        """What the guardian wrote; None before and after."""
        try:
            values = json.loads((self.root / "state.json").read_text())
            return Kept(**{field.name: values[field.name] for field in fields(Kept)})  # a later guardian may write more
        except FileNotFoundError:
            return None

    def appending_log(self) -> IO[bytes]:
        """The log, to be written to."""
        if self.log.exists() and self.log.stat().st_size > LOG_BYTES_MAX:
            self.log.replace(self.log.with_suffix(".log.1"))
        return os.fdopen(os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600), "ab")

    def runtime_dir(self, owner_uid: int) -> Path:
        """A private folder that sockets can be made in: inside this one if its path is short and plain enough."""
        inside = self.root / "run"
        is_short = len(os.fsencode(inside)) + 1 + SOCKET_NAME_BYTES_MAX <= SOCKET_PATH_BYTES_MAX
        # To Postgres and its clients a comma parts two paths; what else may mean something is avoided unexamined.
        if (
            is_short
            and re.fullmatch(r"[\w./+=-]+", str(inside), re.ASCII)
            and _takes_sockets(private(inside, owner_uid))
        ):
            return inside
        digest = hashlib.sha256(os.fsencode(self.root)).hexdigest()[:16]
        # Not TMPDIR, which may be as long. Anybody could have made this name: private() checks.
        return private(Path(f"/tmp/headway-{os.geteuid()}-{digest}"), owner_uid)  # noqa: S108

    def _opened(self, name: str) -> int:
        return os.open(self.root / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)


def prepared(data_dir: Path) -> Folder:
    """The folder, made when missing and closed to everybody else.

    Raises:
        Misconfigured: it holds something else, or belongs to somebody else.
    """
    root = data_dir.resolve()
    try:
        root.parent.mkdir(parents=True, exist_ok=True)
        root.mkdir(mode=0o700, exist_ok=True)
        status = root.stat()
        if status.st_uid != os.geteuid() != 0:
            raise Misconfigured(
                f"{root} belongs to user {status.st_uid} and this process runs as {os.geteuid()}: "
                "run as that user, or name another data folder"
            )
        if any(root.iterdir()) and not (root / "owners.lock").exists():
            raise Misconfigured(f"{root} holds something else than an embedded server's data: name another folder")
        root.chmod(0o700)
    except OSError as error:
        raise Misconfigured(
            f"{root} cannot hold an embedded server's data ({error.strerror}): name another folder"
        ) from error
    return Folder(root)


def private(path: Path, owner_uid: int) -> Path:
    """``path``, an empty folder that only ``owner_uid`` can enter. Only called where no server runs: stale sockets go.

    A stale ``.s.PGSQL.5432.lock`` would stop Postgres if its pid were somebody else's by now.

    Raises:
        Misconfigured: something else is there already.
    """
    try:
        path.mkdir(mode=0o700)
        if owner_uid != os.geteuid():
            os.chown(path, owner_uid, -1)
    except FileExistsError:
        status = path.lstat()
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != owner_uid or stat.S_IMODE(status.st_mode) & 0o077:
            raise Misconfigured(
                f"{path} is not a folder that only user {owner_uid} can enter: remove it, or name another data folder"
            ) from None
        for entry in path.iterdir():
            entry.unlink()
    return path


def _takes_sockets(path: Path) -> bool:
    """Some shared and network folders do not."""
    probe = path / ".probe"
    probe.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
        try:
            server.bind(str(probe))
        except OSError:
            return False
    probe.unlink()
    return True
