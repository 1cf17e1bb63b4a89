"""What the API reports of the past, as tables for a terminal: who did what."""

import json
from datetime import UTC, datetime
from typing import Any

from rich.table import Table

from headway.cli.terminal.cells import table


def audit_table(answer: dict[str, Any]) -> Table | str:
    """Lines of the audit log, newest first."""
    return table(
        ("when", "who", "from", "did", "to", "what changed"),
        (
            (
                _clock(act["at_s"]),
                act["actor"],
                act["address"] or "-",
                act["action"],
                act["subject"],
                _change(act["before"], act["after"]),
            )
            for act in answer["acts"]
        ),
        empty="nothing of that is in the audit log",
    )


def _clock(at_s: float) -> str:
    return datetime.fromtimestamp(at_s, tz=UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def _change(before: Any, after: Any) -> str:
    """What became of it, as ``workers_max: 8 → 12``; of what was made or ended, all that is recorded of it."""
    old, new = before or {}, after or {}
    if not (isinstance(old, dict) and isinstance(new, dict)):
        return f"{json.dumps(before)} → {json.dumps(after)}"
    names = [name for name in (*old, *(name for name in new if name not in old)) if old.get(name) != new.get(name)]
    if not old or not new:
        return ", ".join(f"{name}: {json.dumps((old or new)[name])}" for name in names)
    return ", ".join(f"{name}: {json.dumps(old.get(name))} → {json.dumps(new.get(name))}" for name in names)
