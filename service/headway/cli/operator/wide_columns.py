"""What `headway get -o wide` shows beside the usual columns, from the same answers of the API."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from headway.cli.terminal.cells import UNKNOWN, Columns, ago, count, duration, rate

Row = Mapping[str, Any]


def _labels(row: Row) -> str:
    return ", ".join(f"{key}={value}" for key, value in row["labels"].items()) or "-"


def _certificate(row: Row) -> str:
    left_s = row["certificate_left_s"]
    if left_s is None:
        return "none asked for"
    return f"expired {duration(-left_s)} ago" if left_s <= 0 else f"for {duration(left_s)}"


def _limits(row: Row) -> str:
    """Each limit that changed the number, and what it left."""
    return ", ".join(f"{each['label']} {each['workers']}" for each in row["explanation"]["steps"]) or "none"


POOLS: Columns = MappingProxyType(
    {
        "queues": lambda row: ", ".join(row["queues"]),
        "template": lambda row: row["template"],
        "bounds": lambda row: f"{row['workers_min']}..{row['workers_max']}",
        "mode": lambda row: row["mode"].replace("_", " "),
        "draining": lambda row: count(row["draining_workers"]),
        "predicted": lambda row: duration(row["predicted_pickup_s"]),
        "decided": lambda row: "never" if row["decided_at_s"] is None else ago(row["decided_at_s"]),
        "wrong": lambda row: "; ".join(row["causes"]) or "-",
    }
)

QUEUES: Columns = MappingProxyType(
    {
        "delayed": lambda row: count(row["metrics"]["delayed_jobs"]),
        "started": lambda row: rate(row["metrics"]["start_rate_per_s"]),
        "done": lambda row: rate(row["metrics"]["completion_rate_per_s"]),
        "p95": lambda row: duration(row["metrics"]["pickup_p95_s"]),
        "service mean": lambda row: duration(row["metrics"]["service_time_s"]),
        "polled by": lambda row: ", ".join(row["collectors"]) or "-",
    }
)

HOSTS: Columns = MappingProxyType(
    {
        "id": lambda row: row["host_id"],
        "agent": lambda row: row["agent_version"],
        "labels": _labels,
        "gpus": lambda row: f"{row['used']['gpus']} of {row['capacity']['gpus']}",
        "certificate": _certificate,
    }
)

WORKERS: Columns = MappingProxyType(
    {
        "kind": lambda row: "burst" if row["is_burst"] else "base",
        "so since": lambda row: UNKNOWN if row["state_since_s"] is None else ago(row["state_since_s"]),
        "restarts": lambda row: str(row["restart_generation"]),
    }
)

DECISIONS: Columns = MappingProxyType(
    {
        "limits": _limits,
        "epoch": lambda row: str(row["epoch"]),
        "id": lambda row: row["decision_id"],
    }
)

ALERTS: Columns = MappingProxyType(
    {
        "rule": lambda row: row["rule"] if row["kind"] is None else f"{row['rule']}, {row['kind']}",
        "id": lambda row: row["id"],
    }
)
