"""Which code a row of a ledger is of."""

import subprocess
from pathlib import Path


def code_revision() -> str:
    """The commit that is checked out, with ``+`` where what runs differs from it."""
    git = ["git", "-C", str(Path(__file__).parent)]
    commit = subprocess.run([*git, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True).stdout
    changed = subprocess.run([*git, "status", "--porcelain", "service", "sparkjobs"], capture_output=True, text=True)
    return commit.strip() + ("+" if changed.stdout.strip() else "")
