"""The API's answers as tables for a terminal. What is not known is called unknown and is never 0."""

import time
from collections.abc import Iterable
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
    events_from,
    evidence,
    failed,
    in_flight,
    longest_wait,
    mib,
    rate,
    table,
    waiting,
    within,
    worker_state,
)
from headway.cli.terminal.labels import IN_FLIGHT, LONGEST_WAIT, WITHIN
from headway.cli.terminal.mode_labels import mode_of, paused, until

CERTIFICATE_WARNING_S = 7 * 86_400.0  # before it ends: time enough for whoever reads the list once a week


def profiles(answer: dict[str, Any]) -> Table | str:
    """Profiles, by pool."""
    return table(
        ("pool", "queues", "objective", "workers", "mode", "template", "version", "notes"),
        (
            (
                row["pool"],
                ", ".join(row["profile"]["queues"]),
                _objective(row["profile"]["objective"]),
                f"{row['profile']['workers_min']}..{row['profile']['workers_max']}",
                mode_of(row),
                row["profile"]["template"],
                str(row["version"]),
                "; ".join([*_by_hand(row), *row["notes"]]),
            )
            for row in answer["profiles"]
        ),
        empty="no profiles: write one and run `headway apply profiles.yaml`",
    )


def _by_hand(row: dict[str, Any]) -> Iterable[str]:
    """What was set beside the profile."""
    override = row["override"]
    if override:
        left_s = max(0.0, override["until_s"] - time.time())
        yield f"override of {override['workers']} workers for {duration(left_s)} more: {override['reason']}"
    if text := paused(row):
        yield text


def queues(answer: dict[str, Any], wide: Columns = NOTHING_BESIDE) -> Table | str:
    """Queues, by name."""
    return table(
        (
            "queue",
            "pool",
            "waiting",
            LONGEST_WAIT,
            IN_FLIGHT,
            "arriving",
            "p50",
            WITHIN,
            "failed",
            "events from",
            "read",
            "measured",
            *wide,
        ),
        (
            (
                row["queue"],
                row["pool"] or "unserved",
                waiting(row),
                longest_wait(row),
                in_flight(row["metrics"]),
                rate(row["metrics"]["arrival_rate_per_s"]),
                duration(row["metrics"]["pickup_p50_s"]),
                within(row["metrics"], row["objective"]),
                failed(row["failures"]),
                events_from(row["event_sources"]),
                _read(row),
                "never" if row["measured_age_s"] is None else f"{duration(row['measured_age_s'])} ago",
                *beside(wide, row),
            )
            for row in answer["queues"]
        ),
        empty="no queues: start `headway collect`, or send telemetry",
    )


def _read(row: dict[str, Any]) -> str:
    """How long ago a queue was read, and how often it is."""
    if row["sample_age_s"] is None:
        return "never"
    every_s = row.get("poll_interval_s")  # a control plane of an earlier version does not say
    return f"{duration(row['sample_age_s'])} ago" + ("" if every_s is None else f", each {duration(every_s)}")


def hosts(answer: dict[str, Any], wide: Columns = NOTHING_BESIDE) -> Table | str:
    """Hosts, by name."""
    return table(
        ("host", "state", "zone", "workers", "cpu cores", "memory", "pressure", "templates", "reported", "why", *wide),
        (
            (
                row["name"],
                _state(row),
                row["labels"].get("zone", "-"),
                str(len(row["workers"])) if row["is_known"] else f"{UNKNOWN} (was {len(row['workers'])})",
                f"{row['used']['cpu_cores']:g} of {row['capacity']['cpu_cores']:g}",
                f"{mib(row['used']['memory_bytes'])} of {mib(row['capacity']['memory_bytes'])}",
                _pressure(row["capacity"]),
                ", ".join(_template(row, template["name"]) for template in row["templates"]) or "none",
                "never" if row["reported_at_s"] is None else ago(row["reported_at_s"]),
                _why(row),
                *beside(wide, row),
            )
            for row in answer["hosts"]
        ),
        empty="no hosts: run `headway agent` where workers should run",
    )


def workers(answer: dict[str, Any], wide: Columns = NOTHING_BESIDE) -> Table | str:
    """Worker processes, by id. One whose host does not report may be gone."""
    return table(
        (
            "worker",
            "pool",
            "host",
            "template",
            "pid",
            "state",
            "busy",
            "evidence",
            "jobs",
            "memory",
            "started",
            "reported",
            *wide,
        ),
        (
            (
                row["worker_id"],
                row["pool"],
                row["host"],
                row["template"],
                str(row["pid"]),
                worker_state(row) if row["is_reachable"] else f"{UNKNOWN} (was {row['state']})",
                _busy(row),
                evidence(row),
                count(row["running_jobs"]),
                UNKNOWN if row["memory_bytes"] is None else mib(row["memory_bytes"]),
                ago(row["started_s"]),
                "never" if row["seen_age_s"] is None else f"{duration(row['seen_age_s'])} ago",
                *beside(wide, row),
            )
            for row in answer["workers"]
        ),
        empty="no workers: `headway explain POOL` says why a pool has none",
    )


def _busy(row: dict[str, Any]) -> str:
    """Whether a worker has a job, and for how long."""
    if row["is_busy"] is None:
        return UNKNOWN
    if not row["is_busy"]:
        return "idle"
    since_s = row["busy_since_s"]
    return "busy" if since_s is None else f"for {duration(max(0.0, time.time() - since_s))}"


def wanted(answer: dict[str, Any]) -> Table | str:
    """Hosts that are missing."""
    return table(
        ("hosts", "for", "templates", "why"),
        (
            (
                f"{count(row['hosts'])} missing",
                duration(max(0.0, answer["at_s"] - row["since_s"])),
                ", ".join(row["templates"]),
                row["why"],
            )
            for row in answer["wanted"]
        ),
        empty="hosts are as many as it takes",
    )


def _state(row: dict[str, Any]) -> str:
    if not row["is_known"]:
        return _beside("silent", row)
    if row["hung_up_s"] is not None:
        return _beside("connection lost", row)
    if not row["can_write"]:
        return _beside("cannot write", row)
    return "drained" if row["state"] == "draining" and not row["workers"] else str(row["state"])


def _beside(word: str, row: dict[str, Any]) -> str:
    return word if row["state"] == "serving" else f"{word}, {row['state']}"


def _pressure(capacity: dict[str, Any]) -> str:
    """In which part of the last seconds some task waited for a processor, and for memory."""
    text = [(name, capacity[f"{name}_pressure"]) for name in ("cpu", "memory")]
    return ", ".join(f"{name} {share:.0%}" for name, share in text if share is not None) or UNKNOWN


def _template(row: dict[str, Any], name: str) -> str:
    return f"{name} (fails)" if name in row["failing_templates"] else name


def _why(row: dict[str, Any]) -> str:
    why = []
    if row["cordoned_at_s"]:
        end = "" if row.get("cordoned_until_s") is None else f", {until(row['cordoned_until_s'])}"
        why.append(f"{row['cordon_reason']} ({row['cordoned_by']}, {ago(row['cordoned_at_s'])}{end})")
    left_s = row["certificate_left_s"]
    if left_s is not None and left_s < CERTIFICATE_WARNING_S:
        why.append(
            f"its certificate expired {duration(round(-left_s))} ago"
            if left_s <= 0
            else f"its certificate expires in {duration(round(left_s))}"
        )
    why += row["problems"]
    if row["refused"]:
        why.append(f"refused: {'; '.join(row['refused'])}")
    return "; ".join(why)


def decisions(answer: dict[str, Any], wide: Columns = NOTHING_BESIDE) -> Table | str:
    """Decisions, newest first."""
    return table(
        ("decided", "pool", "workers", "because", "reasons to have workers, in slots", "notes", *wide),
        (
            (
                ago(row["decided_at_s"]),
                row["decision"]["pool"],
                _change(row["previous_workers"], row["decision"]["target_workers"]),
                row["explanation"]["binding_label"],
                _demands(row["explanation"]["demands"]),
                "; ".join(row["decision"]["notes"]),
                *beside(wide, row),
            )
            for row in answer["decisions"]
        ),
        empty="no decisions yet: they begin with the first profile",
    )


def _demands(demands: Iterable[dict[str, Any]]) -> str:
    """What asks for workers, the greatest first."""
    return ", ".join(f"{each['label']} {each['slots']:.1f}" for each in demands if each["slots"] > 0) or "none"


def health(answer: dict[str, Any]) -> Table | str:
    """How the installation is, and how long events take from ingest to metrics, stage by stage."""
    telemetry = answer["telemetry"] or {}
    lags = [
        ("received → durable", duration(telemetry.get("flush_s"))),
        ("durable → read", _unread(telemetry)),
    ]
    for row in answer["pipelines"]:
        said = row["stage"].replace("_", " ")
        answered_s = row["written_age_s"] if row["beat_age_s"] is None else row["beat_age_s"]
        lags.append((f"pipeline {row['pipeline']}", f"{said}, answered {duration(answered_s)} ago"))
        lags.append(("received → metrics", duration(row["rows_lag_s"])))
    leader = "none" if answer["leader_age_s"] is None else answer["leader"]
    rows = [("status", answer["status"]), *(("", reason) for reason in answer["reasons"]), ("leader", leader), *lags]
    return table(("what", "how it is"), rows, empty="nothing is known")


def _unread(telemetry: dict[str, Any]) -> str:
    """How long the oldest file has been waiting for the pipeline."""
    if not telemetry.get("unread_files"):
        return "nothing waits" if telemetry else UNKNOWN
    files, size_bytes = telemetry["unread_files"], telemetry["unread_bytes"]
    return f"{duration(telemetry['oldest_unread_s'])}: {files} files, {mib(size_bytes)}"


def _change(previous: int | None, target: int) -> str:
    return str(target) if previous in {None, target} else f"{previous} → {target}"


def _objective(objective: dict[str, Any]) -> str:
    return f"{objective['percentile']:g} % within {duration(objective['target_s'])}"
