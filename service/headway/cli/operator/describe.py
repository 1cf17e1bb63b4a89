"""`headway describe`: all that is known of one pool, queue, host or group."""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import partial
from typing import Annotated, Any

import typer
from rich.table import Table

from headway.cli.api_client import Api, connected, path_of
from headway.cli.operator.completion import names
from headway.cli.operator.pools_table import running_of
from headway.cli.operator.queue import queues_of
from headway.cli.terminal.cells import (
    UNKNOWN,
    Columns,
    age,
    ago,
    count,
    duration,
    evidence,
    failed,
    figure,
    group_use,
    in_flight,
    listed,
    longest_wait,
    mib,
    pool_group_use,
    rate,
    table,
    waiting,
    within,
    worker_state,
)
from headway.cli.terminal.labels import IN_FLIGHT, LONGEST_WAIT, STATES, WITHIN, mode_of, paused
from headway.cli.terminal.live_behaviour import predicted
from headway.cli.terminal.printing import say_json
from headway.cli.terminal.screen import Text, output, paragraph
from headway.cli.typer_app import main_of
from headway.errors import NotFound
from headway.scaling.explanations.phrases import counted
from headway.scaling.metrics.windows import WINDOWS_S
from headway.scaling.profile_keys.queue_patterns import is_pattern

DESCRIBE_COLUMNS = 100  # sentences wider than this are hard to read

app = typer.Typer(add_completion=False)
main = main_of(app)

Body = dict[str, Any]
Part = Table | Text | str


class Kind(StrEnum):
    """What can be described."""

    POOL = "pool"
    QUEUE = "queue"
    HOST = "host"
    GROUP = "group"


@app.command("describe")
def describe(
    kind: Annotated[Kind, typer.Argument(help="Of which kind it is.")],
    name: Annotated[str, typer.Argument(metavar="NAME", help="What it is called.", autocompletion=names.of_kind)],
    *,
    as_json: Annotated[bool, typer.Option("--json", help="The API's answers as they are.")] = False,
) -> None:
    """Show all that is known of one pool, queue, host or group: windows of 1 to 60 minutes, job classes, workers."""
    with connected() as api:
        known = READERS[kind](api, name)
    if as_json:
        say_json(known)
        return
    console = output()
    for number, part in enumerate(PICTURES[kind](known)):
        if number:
            console.print()
        console.print(part, soft_wrap=isinstance(part, Text))


def _pool(api: Api, name: str) -> Body:
    profile = api.get(path_of("profiles", name))
    try:
        decision = api.get(path_of("pools", name, "explain"))
    except NotFound:
        decision = None
    return {
        "profile": profile,
        "metrics": api.get(path_of("pools", name, "metrics")),
        "queues": queues_of(api, pool=name)["queues"],
        "decision": decision,
        "behaviour": api.get(path_of("pools", name, "behaviour")),
        "pool": next(iter(api.get("/v1/pools", pool=name)["pools"]), None),
    }


def _queue(api: Api, name: str) -> Body:
    metrics = api.get(path_of("queues", name, "metrics"))
    return {"queue": _named(queues_of(api, queue=name)["queues"], "queue", name), "metrics": metrics}


def _host(api: Api, name: str) -> Body:
    return {"host": _named(api.get("/v1/hosts")["hosts"], "name", name, "host_id")}


def _group(api: Api, name: str) -> Body:
    group = api.get(path_of("groups", name))
    pools = {row["pool"]: row for row in api.get("/v1/pools")["pools"]}
    return {"group": group, "pools": [pools[pool] for pool in group["group"]["pools"] if pool in pools]}


def _named(rows: Sequence[Body], key: str, name: str, *other_keys: str) -> Body:
    for row in rows:
        if name in {row[key], *(row[each] for each in other_keys)}:
            return row
    there = ", ".join(str(row[key]) for row in rows) or "none"
    raise NotFound(f"no {key if key == 'queue' else 'host'} {name!r}; there is {there}")


def _of_pool(known: Body) -> Iterator[Part]:
    row, profile = known["profile"], known["profile"]["profile"]
    objective = profile["objective"]
    yield facts(
        ("pool", row["pool"]),
        ("objective", f"{objective['percentile']:g} % within {duration(objective['target_s'])}"),
        ("patterns", _patterns(profile["queues"], known["queues"])),
        ("workers", f"{profile['workers_min']}..{profile['workers_max']}, template {profile['template']}"),
        ("groups", "; ".join(map(pool_group_use, (known["pool"] or {}).get("groups", ())))),
        ("helps with", ", ".join(profile["helps"])),
        ("mode", mode_of(row)),
        ("paused", paused(row)),
        ("budget", _day_budget(known["decision"])),
        *_now(known["pool"]),
        ("notes", "; ".join(row["notes"])),
    )
    decision = known["decision"]
    if decision is None:
        yield Text("No decision yet: the first comes with the next tick of a leading control plane.")
    else:
        sentences = " ".join(decision["sentences"])
        yield paragraph(f"Decided {ago(decision['decided_at_s'])}: {sentences}", DESCRIBE_COLUMNS)
        yield paragraph(predicted(known["behaviour"]["prediction"]), DESCRIBE_COLUMNS)
    yield from _of_queues(known["queues"], known["metrics"])


def _patterns(written: Sequence[str], queues: Sequence[Body]) -> str:
    """Each pattern of the profile, with how many queues it has matched."""
    matched = Counter(row["pattern"] for row in queues)
    return ", ".join(f"{each} ({counted(matched[each], 'queue')})" for each in written if is_pattern(each))


def _now(pool: Body | None) -> Iterator[tuple[str, str]]:
    """How a pool is at this moment: what agents report, not what was decided on."""
    if pool is None:
        return
    yield "state", STATES.get(pool["state"], pool["state"])
    reported = age(pool["reported_age_s"], unknown=UNKNOWN)
    whose = "by the broker; Headway starts and stops none" if pool["mode"] == "recommend" else ""
    yield "running", f"{running_of(pool)} {whose}" if whose else f"{running_of(pool)}, as agents reported {reported}"
    metrics = pool["metrics"]
    pickup = f"p50 {duration(metrics['pickup_p50_s'])}, {within(metrics, pool['objective'])}"
    window = f"over {duration(pool['objective']['window_s'])}"
    yield WITHIN, f"{pickup} {window}, measured {age(pool['measured_age_s'], unknown=UNKNOWN)}"
    yield "failed", failed(pool["failures"])
    for cause in pool["causes"]:
        yield "wrong", cause


def _day_budget(stored: Body | None) -> str:
    """What is paid of the day's budget, as of the newest decision."""
    spent = (stored or {}).get("decision", {}).get("day_budget")
    if spent is None:
        return ""
    paid_h, budget_h, overrun_h = (spent[f"{name}_worker_s"] / 3600 for name in ("paid", "budget", "overrun"))
    overrun = f"; overrun {overrun_h:.2f}" if overrun_h else ""
    return f"{paid_h:.2f} of {budget_h:.2f} worker-hours of {spent['day']} paid{overrun}"


def _of_queue(known: Body) -> Iterator[Part]:
    row = known["queue"]
    counts, *others = row["collectors"] or ["-"]
    yield facts(
        ("polled by", counts),
        ("stands by", ", ".join(others)),
        *((f"{name} from", _reported_by(row["event_sources"], name)) for name in ("arrivals", "starts", "ends")),
    )
    yield from _of_queues([row], known["metrics"])


def _reported_by(sources: Sequence[Body], name: str) -> str:
    ages_s = {each["source"]: each[f"{name}_age_s"] for each in sources}
    said = [f"{source}, {duration(age_s)} ago" for source, age_s in ages_s.items() if age_s is not None]
    return "; ".join(said) or "none in the last day"


def _of_queues(queues: Sequence[Body], metrics: Body) -> Iterator[Part]:
    """How it stands in each queue, then each window and each job class."""
    columns = {**QUEUES, **PATTERN} if any(row["pattern"] for row in queues) else QUEUES
    yield listed(columns, queues, empty="none of its queues has been seen")
    windows = metrics["windows"]
    yield table(
        ("", *map(duration, WINDOWS_S)),
        ((name, *(written(window[figure]) for window in windows)) for name, (figure, written) in FIGURES.items()),
        empty="nothing has been measured",
    )
    yield Text(f"measured until {ago(metrics['until_s'])}{_slots_now(metrics)}{_part_measured(windows)}", style="dim")
    if any((window["utilization"] or 0.0) > 1 for window in windows):
        yield paragraph(
            "* above 100 %: a job counts in the window in which it ends with all the time that it ran, and slots "
            "that ran for a moment between two decisions are not counted.",
            DESCRIBE_COLUMNS,
        )
    if metrics["job_classes"]:
        yield listed(JOB_CLASSES, metrics["job_classes"], empty="")


def _slots_now(metrics: Body) -> str:
    """How many slots have a job at this moment."""
    busy = metrics.get("busy_slots")  # a control plane of an earlier version does not say
    if busy is None:
        return ""
    unknown = (
        f", and what {counted(unseen, 'worker')} {'does' if unseen == 1 else 'do'} is unknown"
        if (unseen := metrics["unknown_workers"])
        else ""
    )
    return f"; {busy:g} of {metrics['running_slots']:g} slots have a job now{unknown}"


def _part_measured(windows: Sequence[Body]) -> str:
    """How much of the longer windows was measured, where that is not all: rates are of that part."""
    longest = windows[-1]
    measured_s = longest.get("measured_s")
    if measured_s is None or measured_s >= longest["until_s"] - longest["from_s"]:
        return ""
    return f"; nothing was measured before {ago(longest['until_s'] - measured_s)}, and rates are of the time since"


def _share(value: float | None) -> str:
    """A part of a whole, in per cent; 0 only where it is none."""
    return UNKNOWN if value is None else "<0.1 %" if 0 < value < 0.001 else f"{100 * value:.1f} %"


def _utilized(value: float | None) -> str:
    """A part of the slots; more than all of them has a star, and a note below the table."""
    return _share(value) if value is None or value <= 1 else f"{_share(value)} *"


QUEUES: Columns = {
    "queue": lambda row: row["queue"],
    "waiting": waiting,
    LONGEST_WAIT: longest_wait,
    IN_FLIGHT: lambda row: in_flight(row["metrics"]),
    "delayed": lambda row: count(row["metrics"]["delayed_jobs"]),
    "read": lambda row: age(row["sample_age_s"]),
}
PATTERN: Columns = {"matched by": lambda row: row["pattern"] or "its name"}
FIGURES: Mapping[str, tuple[str, Callable[[Any], str]]] = {
    "arriving": ("arrival_rate_per_s", rate),
    "started": ("start_rate_per_s", rate),
    "done": ("completion_rate_per_s", rate),
    "failed": ("failure_share", _share),
    "tried again": ("retry_share", _share),
    "50 % within": ("pickup_p50_s", duration),
    "95 % within": ("pickup_p95_s", duration),
    "99 % within": ("pickup_p99_s", duration),
    "all within": ("pickup_max_s", duration),
    "service mean": ("service_time_s", duration),
    "service p95": ("service_p95_s", duration),
    "service p99": ("service_p99_s", duration),
    "slots in use": ("busy_slots", partial(figure, form=".1f")),
    "utilization": ("utilization", _utilized),
}
"""What is shown of a window, a column a window, the shortest first: its name, the figure and how it is written."""
JOB_CLASSES: Columns = {
    "job class": lambda row: row["job_class"],
    "arriving": lambda row: rate(row["window"]["arrival_rate_per_s"]),
    "service mean": lambda row: duration(row["window"]["service_time_s"]),
    "service p95": lambda row: duration(row["window"]["service_p95_s"]),
    "50 % within": lambda row: duration(row["window"]["pickup_p50_s"]),
    "95 % within": lambda row: duration(row["window"]["pickup_p95_s"]),
    "failed": lambda row: _share(row["window"]["failure_share"]),
}


NO_ORDERS = (
    "none: the host reports epoch {epoch}, later than the leader's. That lasts seconds after a restore; "
    "if it does not end, stop its agent, `headway host forget` it and start that again"
)


def _of_host(known: Body) -> Iterator[Part]:
    row = known["host"]
    said = row["state"] if row["is_known"] else "unreachable: its lease ended; its workers may still run"
    reason = f"{row['cordon_reason']} ({row['cordoned_by']})" if row["cordoned_at_s"] else ""
    used, capacity = row["used"], row["capacity"]
    yield facts(
        ("host", row["name"]),
        ("state", said),
        ("why", reason),
        ("reported", ago(row["reported_at_s"])),
        ("orders", "" if row["epoch_ahead"] is None else NO_ORDERS.format(epoch=row["epoch_ahead"])),
        ("agent", row["agent_version"]),
        ("labels", ", ".join(f"{key}={value}" for key, value in row["labels"].items())),
        ("refused", "; ".join(row["refused"])),
        ("cpu cores", f"{used['cpu_cores']:g} of {capacity['cpu_cores']:g}"),
        ("memory", f"{mib(used['memory_bytes'])} of {mib(capacity['memory_bytes'])}"),
        ("gpus", f"{used['gpus']} of {capacity['gpus']}" if capacity["gpus"] else ""),
        ("killed while busy", ", ".join(f"{workers} of {pool}" for pool, workers in row["forced_workers"].items())),
    )
    failing = set(row["failing_templates"])
    yield listed(
        {
            "template": lambda each: each["name"],
            "slots": lambda each: str(each["slots"]),
            "cpu cores": lambda each: f"{each['cpu_cores']:g}",
            "memory": lambda each: mib(each["memory_bytes"]),
            "start-up": lambda each: duration(each["start_up_s"]),
            "": lambda each: "fails" if each["name"] in failing else "",
        },
        row["templates"],
        empty="no templates: its host.toml names none",
    )
    yield listed(
        {
            "worker": lambda each: each["worker_id"],
            "pool": lambda each: each["pool"],
            "pid": lambda each: str(each["pid"]),
            "state": worker_state,
            "for": lambda each: _since(each["started_at_s"]),
            "busy for": _busy,
            "evidence": evidence,
            "memory": lambda each: mib(each["memory_bytes"]),
        },
        row["workers"],
        empty="it runs no worker",
    )


def _of_group(known: Body) -> Iterator[Part]:
    row = known["group"]
    yield facts(
        ("group", row["name"]),
        ("used", group_use(row)),
        ("pools", ", ".join(row["group"]["pools"])),
        ("version", str(row["version"])),
        ("changed", ago(row["updated_at_s"])),
        ("notes", "; ".join(row["notes"])),
    )
    yield listed(
        {
            "pool": lambda pool: pool["pool"],
            "workers": running_of,
            "wanted": lambda pool: count(pool["target_workers"]),
            "draining": lambda pool: count(pool["draining_workers"]),
            "bounds": lambda pool: f"{pool['workers_min']}..{pool['workers_max']}",
            "because": lambda pool: pool["binding_label"] or "-",
            "capped": lambda pool: (
                "yes" if any(each["is_binding"] for each in pool["groups"] if each["name"] == row["name"]) else "-"
            ),
        },
        known["pools"],
        empty="none of its pools has a profile",
    )


def _since(at_s: float) -> str:
    return duration(max(0.0, time.time() - at_s))


def _busy(worker: Mapping[str, Any]) -> str:
    if worker["is_busy"] is None:
        return UNKNOWN
    return _since(worker["busy_since_s"]) if worker["busy_since_s"] is not None else "yes" if worker["is_busy"] else "-"


def facts(*rows: tuple[str, str]) -> Table:
    """What is said in a word or two, line by line; what is not said is left out."""
    shown = Table(box=None, pad_edge=False, show_header=False)
    shown.add_column(style="bold")
    shown.add_column(overflow="fold")
    for name, value in rows:
        if value:
            shown.add_row(name, Text(value))
    return shown


READERS: Mapping[Kind, Callable[[Api, str], Body]] = {
    Kind.POOL: _pool,
    Kind.QUEUE: _queue,
    Kind.HOST: _host,
    Kind.GROUP: _group,
}
PICTURES: Mapping[Kind, Callable[[Body], Iterator[Part]]] = {
    Kind.POOL: _of_pool,
    Kind.QUEUE: _of_queue,
    Kind.HOST: _of_host,
    Kind.GROUP: _of_group,
}
