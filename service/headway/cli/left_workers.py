"""Workers that an agent of this machine has left running, as its own record has them."""

from typing import Any

from headway.agent import procfs
from headway.agent.folder import read_json
from headway.cli.layout import Layout


def left_workers(layout: Layout) -> list[dict[str, Any]]:
    """The records of those that still run: ``pool``, ``pid`` and more."""
    rows = (read_json(layout.state("agent") / "workers.json") or {}).get("workers", [])
    return [row for row in rows if row["pid"] and _runs(row["pid"], row["started_ticks"])]


def _runs(pid: int, started_ticks: int) -> bool:
    found = procfs.stat(pid)
    return found is not None and found.started_ticks == started_ticks and not found.is_over
