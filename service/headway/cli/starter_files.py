"""The first ``profiles.yaml`` and ``host.toml``: text that its reader shall understand and change. Pure."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

import yaml

from headway.scaling.profile import NAME_LENGTH_MAX

URL_VARIABLE = "RQ_REDIS_URL"  # where RQ itself looks for it
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./@+-]*")
_PLAIN_URL = re.compile(r"[a-z]+://[A-Za-z0-9_./@?=&:%+-]*[A-Za-z0-9_/]")

PROFILES_HEAD = """\
# What Headway shall keep, pool by pool. `headway up` reads this file; `headway apply profiles.yaml` sends it to a
# control plane that runs elsewhere. A pool may begin with `preset: balanced` (or critical, high_volume, bursty,
# background, exclusive) and say only what shall differ. Schedules, budgets and the rest: docs/reference/profile.md.

"""
POOL_NOTES = {
    "queues": "connection/queue; several are served in strict order",
    "template": "how one worker is started: [templates.{template}] in host.toml",
    "objective": "the promise: so many % of the jobs start within so many seconds",
    "workers_min": "0: no jobs, no workers. 1 or more: no wait for a worker to start",
    "workers_max": "never more than this, whatever waits",
}
HOST_HEAD = """\
# What this host can run, and how one worker of each kind is started and stopped. Only this file says what is run here:
# a control plane sends names from it and numbers, never a command.
"""
TEMPLATE_NOTES = {
    "argv": "as you would type it, without a shell",
    "environment": "the URL holds a password, which would show in the list of processes",
    "burst_arguments": "added for a worker that shall end when the queue is empty",
    "working_directory": "where RQ finds your code: this file's folder",
    "ready_pattern": "printed by RQ when it begins to take jobs",
    "stop_signal": "RQ finishes the job that it has, then ends",
    "drain_timeout_s": "as long as RQ lets a job run unless it is told otherwise; then force_signal",
    "cpu_cores": "what one worker needs; the host takes no more workers than fit",
    "memory_bytes": "RQ's worker and the process of its job; add what your jobs need",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Starter:
    """What the files are written from."""

    connection: str
    url: str
    has_password: bool
    rq: str
    """The program."""
    queues: Sequence[str]


def profiles_text(starter: Starter) -> str:
    """``profiles.yaml``: the broker and one pool a queue. Without queues, an example to be uncommented."""
    url = starter.url.replace(",", "%2C")
    brokers = f"brokers:  # connection name -> URL\n  {_yaml(starter.connection)}: {_yaml(url)}\n\n"
    names = pool_names(starter.queues or ["emails"])
    pools = [_pool(starter, queue, pool, is_first=not index) for index, (queue, pool) in enumerate(names.items())]
    body = "pools:\n" + "\n".join(pools)
    return PROFILES_HEAD + brokers + (body if starter.queues else _commented(body))


def host_text(starter: Starter) -> str:
    """``host.toml``: one template a queue. Without queues, an example to be uncommented."""
    names = pool_names(starter.queues or ["emails"])
    body = "".join(
        "\n" + _template(starter, queue, pool, is_first=not index) for index, (queue, pool) in enumerate(names.items())
    )
    return HOST_HEAD + (body if starter.queues else _commented(body))


def pool_names(queues: Sequence[str]) -> dict[str, str]:
    """A pool's name for each queue: the queue's own, as far as it can be one, and each only once."""
    names: dict[str, str] = {}
    for queue in queues:
        base = queue.replace("/", "-").strip()[: NAME_LENGTH_MAX - 4] or "pool"
        name, number = base, 1
        while name in names.values():
            number += 1
            name = f"{base}-{number}"
        names[queue] = name
    return names


def _pool(starter: Starter, queue: str, pool: str, *, is_first: bool) -> str:
    values = {
        "queues": f"[{_yaml(f'{starter.connection}/{queue}')}]",
        "template": _yaml(pool),
        "objective": "{target_s: 10, percentile: 99}",
        "workers_min": "0",
        "workers_max": "20",
    }
    notes = {key: note.format(template=_toml_key(pool)) for key, note in POOL_NOTES.items()} if is_first else {}
    return "\n".join([f"  {_yaml(pool)}:", *_aligned(values, notes, separator=": ", indent=4)]) + "\n"


def _template(starter: Starter, queue: str, pool: str, *, is_first: bool) -> str:
    url = [] if starter.has_password else ["--url", starter.url]
    values = {"argv": _toml_list([starter.rq, "worker", *url, queue])}
    if starter.has_password:
        values["environment"] = f"{{{URL_VARIABLE} = {_toml(starter.url)}}}"
    values |= {
        "burst_arguments": _toml_list(["--burst"]),
        "working_directory": _toml("."),
        "ready_pattern": _toml("Listening on"),
        "ready_timeout_s": "60",
        "stop_signal": _toml("TERM"),
        "drain_timeout_s": "180",
        "force_signal": _toml("KILL"),
    }
    resources = {"cpu_cores": "0.1", "memory_bytes": _toml("128MB")}
    notes = TEMPLATE_NOTES if is_first else {}
    lines = [
        f"[templates.{_toml_key(pool)}]",
        *_aligned(values, notes, separator=" = ", indent=0),
        "",
        f"[templates.{_toml_key(pool)}.resources]",
        *_aligned(resources, notes, separator=" = ", indent=0),
    ]
    return "\n".join(lines) + "\n"


def _aligned(values: dict[str, str], notes: dict[str, str], *, separator: str, indent: int) -> list[str]:
    """A line a key; what explains it stands above the line where the line itself is long."""
    lines = []
    for key, value in values.items():
        line = " " * indent + f"{key}{separator}{value}"
        if key not in notes:
            lines.append(line)
        elif len(line) + len(notes[key]) < 110:
            lines.append(f"{line}  # {notes[key]}")
        else:
            lines += [" " * indent + f"# {notes[key]}", line]
    return lines


def _commented(text: str) -> str:
    return "".join(f"# {line}\n" if line else "\n" for line in text.splitlines())


def _yaml(text: str) -> str:
    """``text`` as YAML that reads as the same text; a name also inside a list."""
    is_plain = _PLAIN_URL.fullmatch(text) or (_PLAIN_NAME.fullmatch(text) and yaml.safe_load(text) == text)
    return text if is_plain else json.dumps(text)


def _toml(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007F")


def _toml_list(words: Sequence[str]) -> str:
    return f"[{', '.join(map(_toml, words))}]"


def _toml_key(text: str) -> str:
    return text if _BARE_KEY.fullmatch(text) else _toml(text)
