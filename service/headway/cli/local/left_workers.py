"""Workers that an agent of this machine has left running, as its own record has them."""

from typing import Any

from headway.agent.state.state_dir import WORKERS, StateFolder
from headway.cli.local.data_dir import DataDir
from headway.local import procfs


def left_workers(layout: DataDir) -> list[dict[str, Any]]:
    """The records of those that still run, and of what workers have left: ``pool``, ``pid`` and more."""
    ledger = StateFolder(layout.state("agent")).read(WORKERS) or {}
    rows = [*ledger.get("workers", ()), *ledger.get("remains", ())]
    return [row for row in rows if row["pid"] and procfs.is_there(row["pid"], row["started_ticks"])]
