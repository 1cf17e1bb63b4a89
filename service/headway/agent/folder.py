"""The agent's state folder: who this host is, what it was told to run, and which workers run.

    agent.lock      held by the one agent that works here
    identity.json   this agent, and how the control plane calls its host
    workers.json    the assignment in force and every worker, so that the next agent goes on where this one ended
    workers/        what each worker has printed

Files are written whole or not at all, and readable by their owner only.
"""

import json
import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from headway.agent.tenancy import hold
from headway.errors import Misconfigured

IDENTITY = "identity.json"

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """This agent, and how the control plane calls its host: empty until it is enrolled."""

    agent_id: str
    cluster_id: str = ""
    host_id: str = ""
    credential: str = ""
    """What this host shows with each call; empty: it has none of its own."""
    former_credential: str = ""
    """The one before: after its database was restored, a control plane may know no newer one."""


class StateFolder:
    """The folder of one agent, held for as long as ``only_agent`` lasts."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @property
    def logs(self) -> Path:
        """What workers have printed."""
        return self.root / "workers"

    @property
    def workers(self) -> Path:
        """The record of ``fleet``."""
        return self.root / "workers.json"

    @contextmanager
    def only_agent(self, *, takes_over: bool = False) -> Iterator[None]:
        """Hold the folder for the block; make it if it is not there. ``takes_over`` ends the agent that works there.

        Raises:
            Refused: an agent works there.
            Misconfigured: it cannot be written to.
        """
        try:
            self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.logs.mkdir(mode=0o700, exist_ok=True)
            lock = os.open(self.root / "agent.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise self._unusable(error) from error
        try:
            hold(lock, self.root / "agent.lock", takes_over=takes_over)
            # Paths that /proc tells have no links in them.
            self.root = self.root.resolve()
            yield
        finally:
            os.close(lock)

    @property
    def was_used(self) -> bool:
        """Whether an agent has ever worked here."""
        return (self.root / IDENTITY).exists()

    def identity(self) -> Identity:
        """Who this agent is; a new one where nothing tells.

        Raises:
            Misconfigured: what tells it cannot be read, or a new one cannot be written down. To go on without would
                leave workers that nobody finds, and a host that is let in no more.
        """
        try:
            known = _read(self.root / IDENTITY)
        except OSError as error:
            raise self._unusable(error) from error
        except ValueError as error:
            log.warning("identity.json is replaced, the host enrols again: %s", error)
            return self._new_identity()
        try:
            return Identity(**known) if known else self._new_identity()
        except TypeError:
            log.warning("identity.json of another version is replaced: the host enrols again")
            return self._new_identity()

    def save_identity(self, identity: Identity) -> None:
        """Remember who this agent is, also if the power goes once this returns. Raises ``OSError``."""
        write_json(self.root / IDENTITY, asdict(identity))
        folder = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

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


def read_json(path: Path) -> Mapping[str, Any] | None:
    """What ``write_json`` wrote; ``None`` where nothing is, or nothing that can be read."""
    try:
        return _read(path)
    except (OSError, ValueError) as error:
        log.warning("unreadable file=%s: %s", path, error)
        return None


def _read(path: Path) -> Mapping[str, Any] | None:
    """What ``write_json`` wrote; ``None`` where nothing is, or something else. Raises ``OSError``, ``ValueError``."""
    try:
        found = json.loads(path.read_text())
    except FileNotFoundError:
        return None
    return found if isinstance(found, dict) else None


def write_json(path: Path, body: Mapping[str, Any], *, is_durable: bool = True) -> None:
    """Write the file whole or not at all; if it is to be durable, also if the power goes. Raises ``OSError``."""
    fresh = path.with_name(f"{path.name}.new")
    file = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(file, "w", closefd=False) as text:
            json.dump(body, text, separators=(",", ":"))
        if is_durable:
            os.fsync(file)
    finally:
        os.close(file)
    fresh.replace(path)
