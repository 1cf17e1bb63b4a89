"""A folder that one process owns, and files in it that are whole at any moment."""

import fcntl
import json
import os
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from headway.errors import Misconfigured

LOCK = "lock"
BEGIN_ANEW = "delete it to begin anew: jobs of the last minutes may then count twice or not at all"


class StateFolder:
    """Where a process keeps what it must remember across restarts. Owned from entering to leaving its block."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock: int | None = None

    def __enter__(self) -> Self:
        """Take the folder, made if it is missing.

        Raises:
            Misconfigured: another process has it, or it cannot be made or written to.
        """
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = os.open(self.path / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise Misconfigured(
                f"state folder {self.path} cannot be used: {error.strerror}; choose another with HEADWAY_STATE_DIR"
            ) from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            owner = os.read(lock, 20).decode(errors="replace").strip()
            os.close(lock)
            raise Misconfigured(
                f"state folder {self.path} is in use by process {owner or '(unknown)'}: end that one, "
                "or give this one a folder of its own with HEADWAY_STATE_DIR"
            ) from error
        os.truncate(lock, 0)
        os.write(lock, f"{os.getpid()}\n".encode())
        self._lock = lock
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let the folder go."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def read_json(file: Path) -> dict[str, Any] | None:
    """What ``file`` holds, None where there is none.

    Raises:
        Misconfigured: it cannot be read, or does not hold what ``write_json`` wrote.
    """
    try:
        held = json.loads(file.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise Misconfigured(f"state file {file} cannot be read: {error}; {BEGIN_ANEW}") from error
    if not isinstance(held, dict):
        raise Misconfigured(f"state file {file} does not hold a state; {BEGIN_ANEW}")
    return held


def write_json(file: Path, value: dict[str, Any]) -> None:
    """Replace ``file`` in one step that survives a loss of power. Its owner only may read it. Raises ``OSError``."""
    text = json.dumps(value, separators=(",", ":")).encode()
    new = file.with_suffix(".new")
    handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(handle, "wb") as written:
        written.write(text)
        written.flush()
        os.fsync(written.fileno())
    new.replace(file)
    folder = os.open(file.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
