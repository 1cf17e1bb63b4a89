"""What the API reports of the past, as tables for a terminal: how objectives were kept, alerts, and who did what."""

import json
import math
import time
from typing import Any

from rich.table import Table

from headway.cli.terminal.cells import (
    UNKNOWN,
    Listing,
    Row,
    ago,
    count,
    duration,
    figure,
    listed,
    moment,
    objective_text,
)


def slo_table(answer: Row) -> Table | str:
    """How each pool kept its objective over the range, and what its workers took beside a pool of fixed size."""
    days = (answer["until_s"] - answer["from_s"]) / 86_400
    shown = listed(
        {
            "pool": lambda row: row["pool"],
            "objective": lambda row: objective_text(row["objective"]),
            f"in time, {days:g} days": lambda row: _percent(row["attainment"]),
            "jobs": lambda row: count(row["jobs"]),
            "late": lambda row: count(row["late_jobs"]),
            "budget left": lambda row: _percent(row["budget_left"]),
            "worker-hours": lambda row: figure(row["worker_hours"], ",.1f"),
            "cost": lambda row: figure(row["cost"], ",.1f"),
            "fixed size": lambda row: figure(row["static_worker_hours"], ",.1f"),
            "its cost": lambda row: figure(row["static_cost"], ",.1f"),
        },
        answer["pools"],
        empty="no profiles: write one and run `headway apply profiles.yaml`",
    )
    until_s = answer.get("counted_until_s")  # a control plane of an earlier version does not say
    if isinstance(shown, Table) and until_s is not None:
        shown.caption, shown.caption_justify = f"jobs that started by {moment(until_s)} are counted", "left"
    return shown


def _percent(share: float | None) -> str:
    """Down to a hundredth: what is shown as 100 % must be all."""
    # A share such as 0.57 times 10,000 is 5699.99…: the rounding takes that off first.
    return UNKNOWN if share is None else f"{math.floor(round(share * 10_000, 6)) / 100:g} %"


def about(alert: Row) -> str:
    """The pool or the host that an incident is about."""
    if alert["pool"] is not None:
        return f"pool {alert['pool']}"
    return "the installation" if alert["host"] is None else f"host {alert['host']}"


def _until(row: Row) -> str:
    """When an incident ended, or that it goes on, and for how long it is to disturb nobody."""
    if row["until_s"] is not None:
        return ago(row["until_s"])
    silenced_until_s = row["silenced_until_s"]
    if silenced_until_s is None:
        return "goes on"
    return f"goes on, silenced for {duration(max(0.0, silenced_until_s - time.time()))}"


ALERTS = Listing(
    rows="alerts",
    columns={
        "since": lambda row: ago(row["since_s"]),
        "severity": lambda row: row["severity"],
        "about": about,
        "what is wrong": lambda row: row["summary"],
        "what to do": lambda row: row["action"],
        "until": _until,
    },
    wide={
        "rule": lambda row: row["rule"] if row["kind"] is None else f"{row['rule']}, {row['kind']}",
        "id": lambda row: row["id"],
    },
    empty="no alert goes on: `headway get alerts --all` lists those that have ended",
)
"""Incidents, those that began last first."""

AUDIT = Listing(
    rows="acts",
    columns={
        "when": lambda act: moment(act["at_s"]),
        "who": lambda act: act["actor"],
        "from": lambda act: act["address"] or "-",
        "did": lambda act: act["action"],
        "to": lambda act: act["subject"],
        "what changed": lambda act: change_text(act["before"], act["after"]),
    },
    empty="nothing of that is in the audit log",
)
"""Lines of the audit log, newest first."""


def change_text(before: Any, after: Any) -> str:
    """What became of it, as ``workers_max: 8 → 12``; of what was made or ended, all that is recorded of it."""
    old, new = before or {}, after or {}
    if not (isinstance(old, dict) and isinstance(new, dict)):
        return f"{json.dumps(before)} → {json.dumps(after)}"
    names = [name for name in (*old, *(name for name in new if name not in old)) if old.get(name) != new.get(name)]
    if not old or not new:
        return ", ".join(f"{name}: {json.dumps((old or new)[name])}" for name in names)
    return ", ".join(f"{name}: {json.dumps(old.get(name))} → {json.dumps(new.get(name))}" for name in names)
