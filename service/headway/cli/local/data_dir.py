"""Where everything of one data folder lies."""

import os
from dataclasses import dataclass
from pathlib import Path

from headway.errors import Misconfigured


@dataclass(frozen=True, slots=True)
class DataDir:
    """The data folder of one ``headway up`` or ``headway demo``, and what is where in it."""

    root: Path

    @property
    def lock(self) -> Path:
        """Held by the one parent that runs here."""
        return self.root / "parent.lock"

    @property
    def children(self) -> Path:
        """Which processes the parent has started, for the parent after it."""
        return self.root / "children.json"

    @property
    def restoring(self) -> Path:
        """There while a backup is put in place: half of what is here is of the backup, and half of before."""
        return self.root / "restoring"

    @property
    def postgres(self) -> Path:
        """The embedded Postgres."""
        return self.root / "postgres"

    @property
    def valkey(self) -> Path:
        """The embedded Valkey."""
        return self.root / "valkey"

    @property
    def events(self) -> Path:
        """The event log."""
        return self.root / "events"

    @property
    def checkpoint(self) -> Path:
        """The stream's checkpoint."""
        return self.root / "checkpoint"

    @property
    def host_file(self) -> Path:
        """The demo's own ``host.toml``."""
        return self.root / "host.toml"

    @property
    def report_page(self) -> Path:
        """The page that the last demo ended with."""
        return self.root / "report.html"

    @property
    def ended_report(self) -> Path:
        """What the dashboard shows once a demo has ended."""
        return self.root / "ended.json"

    def state(self, role: str) -> Path:
        """The state folder of a role."""
        return self.root / role

    def log(self, name: str) -> Path:
        """What a child process printed."""
        return self.root / "logs" / f"{name}.log"

    def create(self) -> None:
        """Make the folders that are missing, readable by their owner only.

        Raises:
            Misconfigured: they cannot be made or written to.
        """
        try:
            for folder in (self.root, self.root / "logs"):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise Misconfigured(
                f"data folder {self.root} cannot be made: {error.strerror}; choose another with --data-dir"
            ) from error
        if not os.access(self.root, os.W_OK | os.X_OK):
            raise Misconfigured(f"data folder {self.root} cannot be written to; choose another with --data-dir")
