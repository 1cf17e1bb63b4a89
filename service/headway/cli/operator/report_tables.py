"""What the API reports of the past, as tables for a terminal: how objectives were kept, alerts, and who did what."""

import json
import math
import time
from datetime import UTC, datetime
from typing import Any

from rich.table import Table

from headway.cli.terminal.cells import (
    NOTHING_BESIDE,
    UNKNOWN,
    Columns,
    ago,
    beside,
    count,
    duration,
    objective_text,
    table,
)


def slo_table(answer: dict[str, Any]) -> Table | str:
    """How each pool kept its objective over the range, and what its workers took beside a pool of fixed size."""
    days = (answer["until_s"] - answer["from_s"]) / 86_400
    return table(
        (
            "pool",
            "objective",
            f"in time, {days:g} days",
            "jobs",
            "late",
            "budget left",
            "worker-hours",
            "cost",
            "fixed size",
            "its cost",
        ),
        (
            (
                row["pool"],
                objective_text(row["objective"]),
                _percent(row["attainment"]),
                count(row["jobs"]),
                count(row["late_jobs"]),
                _percent(row["budget_left"]),
                _amount(row["worker_hours"]),
                _amount(row["cost"]),
                _amount(row["static_worker_hours"]),
                _amount(row["static_cost"]),
            )
            for row in answer["pools"]
        ),
        empty="no profiles: write one and run `headway apply profiles.yaml`",
    )


def _percent(share: float | None) -> str:
    """Down to a hundredth: what is shown as 100 % must be all."""
    # A share such as 0.57 times 10,000 is 5699.99…: the rounding takes that off first.
    return UNKNOWN if share is None else f"{math.floor(round(share * 10_000, 6)) / 100:g} %"


def _amount(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:,.1f}"


def alerts_table(answer: dict[str, Any], wide: Columns = NOTHING_BESIDE) -> Table | str:
    """Incidents, those that began last first."""
    return table(
        ("since", "severity", "about", "what is wrong", "what to do", "until", *wide),
        (
            (
                ago(row["since_s"]),
                row["severity"],
                _about(row),
                row["summary"],
                row["action"],
                _until(row),
                *beside(wide, row),
            )
            for row in answer["alerts"]
        ),
        empty="no alert goes on: `headway get alerts --all` lists those that have ended",
    )


def _about(row: dict[str, Any]) -> str:
    """The pool or the host that an incident is about."""
    if row["pool"] is not None:
        return f"pool {row['pool']}"
    return "the installation" if row["host"] is None else f"host {row['host']}"


def _until(row: dict[str, Any]) -> str:
    """When an incident ended, or that it goes on, and for how long it is to disturb nobody."""
    if row["until_s"] is not None:
        return ago(row["until_s"])
    silenced_until_s = row["silenced_until_s"]
    if silenced_until_s is None:
        return "goes on"
    return f"goes on, silenced for {duration(max(0.0, silenced_until_s - time.time()))}"


def audit_table(answer: dict[str, Any]) -> Table | str:
    """Lines of the audit log, newest first."""
    return table(
        ("when", "who", "from", "did", "to", "what changed"),
        (
            (
                datetime.fromtimestamp(act["at_s"], tz=UTC).strftime("%Y-%m-%d %H:%M:%SZ"),
                act["actor"],
                act["address"] or "-",
                act["action"],
                act["subject"],
                change_text(act["before"], act["after"]),
            )
            for act in answer["acts"]
        ),
        empty="nothing of that is in the audit log",
    )


def change_text(before: Any, after: Any) -> str:
    """What became of it, as ``workers_max: 8 → 12``; of what was made or ended, all that is recorded of it."""
    old, new = before or {}, after or {}
    if not (isinstance(old, dict) and isinstance(new, dict)):
        return f"{json.dumps(before)} → {json.dumps(after)}"
    names = [name for name in (*old, *(name for name in new if name not in old)) if old.get(name) != new.get(name)]
    if not old or not new:
        return ", ".join(f"{name}: {json.dumps((old or new)[name])}" for name in names)
    return ", ".join(f"{name}: {json.dumps(old.get(name))} → {json.dumps(new.get(name))}" for name in names)
