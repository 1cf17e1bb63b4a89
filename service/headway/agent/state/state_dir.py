"""The agent's state folder: who this host is, what it is assigned to run, and which workers run.

    agent.lock      held by the one agent that works here
    identity.json   this agent, and how the control plane calls its host
    workers.json    the assignment in force and every worker, so that the next agent goes on where this one ended
    starts.jsonl    a line for each worker that was started, written at once
    awaited.txt     for which workers an agent waits that ends with its workers: what a parent process shows
    workers/        what each worker has printed

Files are written whole or not at all, and readable by their owner only.
"""

import json
import logging
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any
from uuid import uuid4

from headway.agent.model import Identity
from headway.agent.state.instance_lock import hold
from headway.errors import Misconfigured
from headway.local.files import closing, write_whole

IDENTITY, WORKERS, LOGS, AWAITED = "identity.json", "workers.json", "workers", "awaited.txt"
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC

log = logging.getLogger(__name__)


class StateFolder:
    """The folder of one agent, held for as long as ``only_agent`` lasts.

    Meanwhile it is open, and its files are opened by their names within it and through no link: whoever has a folder
    above it moves nothing under the agent's hands.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self._held: int | None = None

    @contextmanager
    def only_agent(self, *, takes_over: bool = False) -> Iterator[None]:
        """Hold the folder for the block; make it if it is not there. ``takes_over`` ends the agent that works there.

        Raises:
            Refused: an agent works there.
            Misconfigured: it cannot be written to.
        """
        with ExitStack() as held:
            try:
                self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
                folder = held.enter_context(closing(os.open(self.root, _FOLDER)))
                self._check(folder, self.root)
                with suppress(FileExistsError):
                    os.mkdir(LOGS, 0o700, dir_fd=folder)
                flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
                with closing(os.open(LOGS, _FOLDER | os.O_NOFOLLOW, dir_fd=folder)) as logs:
                    self._check(logs, self.root / LOGS)
                lock = held.enter_context(closing(os.open("agent.lock", flags, 0o600, dir_fd=folder)))
            except OSError as error:
                raise self._unusable(error) from error
            hold(lock, self.root / "agent.lock", takes_over=takes_over)
            # Paths from /proc have no links in them.
            self.root = self.root.resolve()
            self._held = folder
            held.callback(setattr, self, "_held", None)
            yield

    def check(self) -> None:
        """Raise ``Misconfigured`` where the folder is there and somebody else decides what is in it."""
        with suppress(FileNotFoundError, NotADirectoryError), self.opened() as folder:
            self._check(folder, self.root)

    @staticmethod
    def _check(folder: int, path: Path) -> None:
        """Raise ``Misconfigured`` where somebody else decides what is in the folder."""
        found = os.fstat(folder)
        if found.st_uid != os.geteuid():
            raise Misconfigured(
                f"state folder {path} belongs to uid {found.st_uid}, and this agent runs as uid {os.geteuid()}: "
                "who owns it decides which workers the agent goes by; name another with --state-dir, or chown it"
            )
        if found.st_mode & 0o022:
            raise Misconfigured(
                f"state folder {path} can be written by others (mode {stat.S_IMODE(found.st_mode):04o}): take that "
                "away with `chmod go-w`, or name a folder below it with --state-dir, which the agent makes"
            )

    def open_logs(self) -> int:
        """The folder of what workers have printed, open. Raises ``OSError``."""
        with self.opened() as folder:
            return os.open(LOGS, _FOLDER | os.O_NOFOLLOW, dir_fd=folder)

    # --- files -------------------------------------------------------------------------------------------------------

    def text(self, name: str) -> str:
        """What the file holds. Raises ``OSError``, and ``ValueError`` where it is no text."""
        with self.opened() as folder, os.fdopen(self._file(folder, name, os.O_RDONLY), encoding="utf-8") as file:
            return file.read()

    def append(self, name: str, text: str) -> None:
        """Add to the file. Raises ``OSError``."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        with self.opened() as folder, closing(self._file(folder, name, flags)) as file:
            os.write(file, text.encode())

    def replace(self, name: str, text: str, *, is_durable: bool = True) -> None:
        """Write the file whole or not at all; if it is to be durable, also if the power goes. Raises ``OSError``."""
        with self.opened() as folder:
            write_whole(name, text, is_durable=is_durable, folder=folder)

    def write(self, name: str, body: Mapping[str, Any], *, is_durable: bool = True) -> None:
        """Write the values as JSON, as ``replace`` does."""
        self.replace(name, json.dumps(body, separators=(",", ":")), is_durable=is_durable)

    def read(self, name: str) -> Mapping[str, Any] | None:
        """What ``write`` wrote; ``None`` where nothing is, or nothing that can be read."""
        try:
            return self._read(name)
        except (OSError, ValueError) as error:
            log.warning("unreadable file=%s: %s", self.root / name, error)
            return None

    def _read(self, name: str) -> Mapping[str, Any] | None:
        """As ``read``. Raises ``OSError``, ``ValueError``."""
        try:
            found = json.loads(self.text(name))
        except FileNotFoundError:
            return None
        except RecursionError as error:
            raise ValueError("it is nested too deep") from error
        return found if isinstance(found, dict) else None

    @contextmanager
    def opened(self) -> Iterator[int]:
        """The open folder: the one that is held, else for the block. Raises ``OSError``."""
        if self._held is not None:
            yield self._held
            return
        with closing(os.open(self.root, _FOLDER)) as folder:
            yield folder

    def _file(self, folder: int, name: str, flags: int) -> int:
        return os.open(name, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600, dir_fd=folder)

    # --- who this is -------------------------------------------------------------------------------------------------

    @property
    def was_used(self) -> bool:
        """Whether an agent has ever worked here."""
        return (self.root / IDENTITY).exists()

    def identity(self) -> Identity:
        """Who this agent is; a new identity where none is stored.

        Raises:
            Misconfigured: the stored identity cannot be read, or a new one cannot be written. To go on without would
                leave workers that nobody finds, and a host that is let in no more.
        """
        try:
            known = self._read(IDENTITY)
            return Identity(**known) if known else self._new_identity()
        except OSError as error:
            raise self._unusable(error) from error
        except (ValueError, TypeError) as error:  # also of another version
            log.warning("identity.json is replaced, the host enrols again: %s", error)
            return self._new_identity()

    def save_identity(self, identity: Identity) -> None:
        """Remember who this agent is, also if the power goes once this returns. Raises ``OSError``."""
        self.write(IDENTITY, asdict(identity))
        with self.opened() as folder:
            os.fsync(folder)

    def _new_identity(self) -> Identity:
        identity = Identity(agent_id=uuid4().hex)
        try:
            self.save_identity(identity)
        except OSError as error:
            raise self._unusable(error) from error
        return identity

    def _unusable(self, error: OSError) -> Misconfigured:
        return Misconfigured(
            f"state folder {self.root} cannot be used: {error.strerror}; choose another with --state-dir"
        )
