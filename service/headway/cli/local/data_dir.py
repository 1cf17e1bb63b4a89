"""Where everything of one data folder lies."""

import os
from pathlib import Path

from headway.errors import Misconfigured


class DataDir:
    """The data folder of one ``headway up`` or ``headway demo``, and what is where in it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.lock = root / "parent.lock"
        """Held by the one parent that runs here."""
        self.children = root / "children.json"
        """Which processes the parent has started, for the parent after it."""
        self.restoring = root / "restoring"
        """There while a backup is put in place: half of what is here is of the backup, and half of before."""
        self.postgres = root / "postgres"
        """The embedded Postgres."""
        self.valkey = root / "valkey"
        """The embedded Valkey."""
        self.events = root / "events"
        """The event log."""
        self.checkpoint = root / "checkpoint"
        """The stream's checkpoint."""
        self.host_file = root / "host.toml"
        """The demo's own ``host.toml``."""
        self.report_page = root / "report.html"
        """The page that the last demo ended with."""
        self.ended_report = root / "ended.json"
        """What the dashboard shows once a demo has ended."""

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
