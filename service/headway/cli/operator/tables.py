"""The API's answers as tables for a terminal. What is not known is called unknown and is never 0."""

import time
from collections.abc import Iterable

from rich.table import Table

from headway.cli.terminal.cells import (
    UNKNOWN,
    Listing,
    Row,
    age,
    ago,
    count,
    duration,
    events_from,
    evidence,
    failed,
    group_use,
    in_flight,
    listed,
    longest_wait,
    mib,
    rate,
    table,
    waiting,
    within,
    worker_state,
)
from headway.cli.terminal.labels import IN_FLIGHT, LONGEST_WAIT, WITHIN, mode_of, paused, until

CERTIFICATE_WARNING_S = 7 * 86_400.0  # before it ends: time enough for whoever reads the list once a week


def _objective(row: Row) -> str:
    objective = row["profile"]["objective"]
    return f"{objective['percentile']:g} % within {duration(objective['target_s'])}"


def _by_hand(row: Row) -> Iterable[str]:
    """What was set beside the profile."""
    override = row["override"]
    if override:
        left_s = max(0.0, override["until_s"] - time.time())
        yield f"override of {override['workers']} workers for {duration(left_s)} more: {override['reason']}"
    if text := paused(row):
        yield text


PROFILES = Listing(
    rows="profiles",
    columns={
        "pool": lambda row: row["pool"],
        "queues": lambda row: ", ".join(row["profile"]["queues"]),
        "objective": _objective,
        "workers": lambda row: f"{row['profile']['workers_min']}..{row['profile']['workers_max']}",
        "mode": mode_of,
        "template": lambda row: row["profile"]["template"],
        "version": lambda row: str(row["version"]),
        "notes": lambda row: "; ".join([*_by_hand(row), *row["notes"]]),
    },
    empty="no profiles: write one and run `headway apply profiles.yaml`",
)


GROUPS = Listing(
    rows="groups",
    columns={
        "group": lambda row: row["name"],
        "used": group_use,
        "pools": lambda row: ", ".join(row["group"]["pools"]),
        "version": lambda row: str(row["version"]),
        "notes": lambda row: "; ".join(row["notes"]),
    },
    empty="no groups: write `groups` into profiles.yaml and run `headway apply profiles.yaml`",
)


def _read(row: Row) -> str:
    """How long ago a queue was read, and how often it is."""
    every_s = row.get("poll_interval_s")  # a control plane of an earlier version does not say
    is_said = every_s is not None and row["sample_age_s"] is not None
    return age(row["sample_age_s"]) + (f", each {duration(every_s)}" if is_said else "")


QUEUES = Listing(
    rows="queues",
    columns={
        "queue": lambda row: row["queue"],
        "pool": lambda row: row["pool"] or "unserved",
        "waiting": waiting,
        LONGEST_WAIT: longest_wait,
        IN_FLIGHT: lambda row: in_flight(row["metrics"]),
        "arriving": lambda row: rate(row["metrics"]["arrival_rate_per_s"]),
        "p50": lambda row: duration(row["metrics"]["pickup_p50_s"]),
        WITHIN: lambda row: within(row["metrics"], row["objective"]),
        "failed": lambda row: failed(row["failures"]),
        "events from": lambda row: events_from(row["event_sources"]),
        "read": _read,
        "measured": lambda row: age(row["measured_age_s"]),
    },
    wide={
        "delayed": lambda row: count(row["metrics"]["delayed_jobs"]),
        "started": lambda row: rate(row["metrics"]["start_rate_per_s"]),
        "done": lambda row: rate(row["metrics"]["completion_rate_per_s"]),
        "p95": lambda row: duration(row["metrics"]["pickup_p95_s"]),
        "service mean": lambda row: duration(row["metrics"]["service_time_s"]),
        "polled by": lambda row: ", ".join(row["collectors"]) or "-",
    },
    empty="no queues: start `headway collect`, or send telemetry",
)


def _host_state(row: Row) -> str:
    """The host's state, or what is worse, beside it."""
    status, state = row["status"], str(row["state"])
    if status["name"] in {"unreachable", "connection_lost", "cannot_write"}:
        return status["word"] if state == "serving" else f"{status['word']}, {state}"
    return status["word"] if state == "draining" else state


def _pressure(capacity: Row) -> str:
    """In which part of the last seconds some task waited for a processor, and for memory."""
    text = [(name, capacity[f"{name}_pressure"]) for name in ("cpu", "memory")]
    return ", ".join(f"{name} {share:.0%}" for name, share in text if share is not None) or UNKNOWN


def _templates(row: Row) -> str:
    names = (template["name"] for template in row["templates"])
    return ", ".join(f"{name} (fails)" if name in row["failing_templates"] else name for name in names) or "none"


def _why(row: Row) -> str:
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


def _certificate(row: Row) -> str:
    left_s = row["certificate_left_s"]
    if left_s is None:
        return "none asked for"
    return f"expired {duration(-left_s)} ago" if left_s <= 0 else f"for {duration(left_s)}"


HOSTS = Listing(
    rows="hosts",
    columns={
        "host": lambda row: row["name"],
        "state": _host_state,
        "zone": lambda row: row["labels"].get("zone", "-"),
        "workers": lambda row: (
            f"{len(row['workers'])}" if row["is_known"] else f"{UNKNOWN} (was {len(row['workers'])})"
        ),
        "cpu cores": lambda row: f"{row['used']['cpu_cores']:g} of {row['capacity']['cpu_cores']:g}",
        "memory": lambda row: f"{mib(row['used']['memory_bytes'])} of {mib(row['capacity']['memory_bytes'])}",
        "pressure": lambda row: _pressure(row["capacity"]),
        "templates": _templates,
        "reported": lambda row: ago(row["reported_at_s"]),
        "why": _why,
    },
    wide={
        "id": lambda row: row["host_id"],
        "agent": lambda row: row["agent_version"],
        "labels": lambda row: ", ".join(f"{key}={value}" for key, value in row["labels"].items()) or "-",
        "gpus": lambda row: f"{row['used']['gpus']} of {row['capacity']['gpus']}",
        "certificate": _certificate,
    },
    empty="no hosts: run `headway agent` where workers should run",
)


def _busy(row: Row) -> str:
    """Whether a worker has a job, and for how long."""
    if row["is_busy"] is None:
        return UNKNOWN
    if not row["is_busy"]:
        return "idle"
    since_s = row["busy_since_s"]
    return "busy" if since_s is None else f"for {duration(max(0.0, time.time() - since_s))}"


WORKERS = Listing(
    rows="workers",
    columns={
        "worker": lambda row: row["worker_id"],
        "pool": lambda row: row["pool"],
        "host": lambda row: row["host"],
        "template": lambda row: row["template"],
        "pid": lambda row: str(row["pid"]),
        "state": lambda row: worker_state(row) if row["is_reachable"] else f"unknown (was {row['state']})",
        "busy": _busy,
        "evidence": evidence,
        "jobs": lambda row: count(row["running_jobs"]),
        "memory": lambda row: mib(row["memory_bytes"]),
        "started": lambda row: ago(row["started_s"]),
        "reported": lambda row: age(row["seen_age_s"]),
    },
    wide={
        "kind": lambda row: "burst" if row["is_burst"] else "base",
        "so since": lambda row: UNKNOWN if row["state_since_s"] is None else ago(row["state_since_s"]),
        "restarts": lambda row: str(row["restart_generation"]),
    },
    empty="no workers: `headway explain POOL` says why a pool has none",
)
"""Worker processes, by id. One whose host does not report may be gone."""


def wanted(answer: Row) -> Table | str:
    """Hosts that are missing."""
    return listed(
        {
            "hosts": lambda row: f"{count(row['hosts'])} missing",
            "for": lambda row: duration(max(0.0, answer["at_s"] - row["since_s"])),
            "templates": lambda row: ", ".join(row["templates"]),
            "why": lambda row: row["why"],
        },
        answer["wanted"],
        empty="hosts are as many as it takes",
    )


def _change(row: Row) -> str:
    previous, target = row["previous_workers"], row["decision"]["target_workers"]
    return str(target) if previous in {None, target} else f"{previous} → {target}"


def _demands(row: Row) -> str:
    """What asks for workers, the greatest first."""
    demands = row["explanation"]["demands"]
    return ", ".join(f"{each['label']} {each['slots']:.1f}" for each in demands if each["slots"] > 0) or "none"


def _limits(row: Row) -> str:
    """Each limit that changed the number, and what it left."""
    return ", ".join(f"{each['label']} {each['workers']}" for each in row["explanation"]["steps"]) or "none"


DECISIONS = Listing(
    rows="decisions",
    columns={
        "decided": lambda row: ago(row["decided_at_s"]),
        "pool": lambda row: row["decision"]["pool"],
        "workers": _change,
        "because": lambda row: row["explanation"]["binding_label"],
        "reasons to have workers, in slots": _demands,
        "notes": lambda row: "; ".join(row["decision"]["notes"]),
    },
    wide={
        "limits": _limits,
        "epoch": lambda row: str(row["epoch"]),
        "id": lambda row: row["decision_id"],
    },
    empty="no decisions yet: they begin with the first profile",
)


def health(answer: Row) -> Table | str:
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


def _unread(telemetry: Row) -> str:
    """How long the oldest file has been waiting for the pipeline."""
    if not telemetry.get("unread_files"):
        return "nothing waits" if telemetry else UNKNOWN
    files, size_bytes = telemetry["unread_files"], telemetry["unread_bytes"]
    return f"{duration(telemetry['oldest_unread_s'])}: {files} files, {mib(size_bytes)}"
