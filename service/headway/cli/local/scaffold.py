"""The first ``profiles.yaml`` and ``host.toml``: text that its reader shall understand and change. Pure."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import yaml

from headway.agent.config import library_presets
from headway.scaling.profile import NAME_LENGTH_MAX

SCAFFOLD_URL_VARIABLE = "RQ_REDIS_URL"  # where RQ itself reads it
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./@+-]*")
_PLAIN_URL = re.compile(r"[a-z]+://[A-Za-z0-9_./@?=&:%+-]*[A-Za-z0-9_/]")

PROFILES_HEAD = """\
# The objective and bounds of each pool. `headway up` reads this file; `headway apply profiles.yaml` sends it to a
# control plane that runs elsewhere. A pool may begin with `preset: balanced` (or critical, high_volume, bursty,
# background, exclusive) and say only what shall differ. Schedules, budgets and the rest: docs/reference/profile.md.

"""
POOL_NOTES = {
    "queues": "connection/queue; several are served in strict order",
    "template": "how one worker is started: [templates.{template}] in host.toml",
    "objective": "the SLO: this % of the jobs start within this many seconds",
    "workers_min": "0: no jobs, no workers. 1 or more: no wait for a worker to start",
    "workers_max": "the most workers, whatever the backlog",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Broker:
    """What the files are written from."""

    connection: str
    url: str
    has_password: bool
    rq: str
    """The program."""
    rq_has_headway: bool
    """Whether it finds Headway's worker class: it is installed beside this program."""
    queues: Sequence[str]


def profiles_text(broker: Broker) -> str:
    """``profiles.yaml``: the broker and one pool a queue. Without queues, an example to be uncommented."""
    url = broker.url.replace(",", "%2C")
    brokers = f"brokers:  # connection name -> URL\n  {_yaml(broker.connection)}: {_yaml(url)}\n\n"
    names = pool_names(broker.queues or ["emails"])
    pools = [_pool(broker, queue, pool, is_first=not index) for index, (queue, pool) in enumerate(names.items())]
    body = "pools:\n" + "\n".join(pools)
    return PROFILES_HEAD + brokers + (body if broker.queues else _commented(body))


def host_text(broker: Broker) -> str:
    """``host.toml``: one template a queue. Without queues, an example to be uncommented."""
    names = pool_names(broker.queues or ["emails"])
    text = library_presets.host_text({pool: _starter(broker, queue) for queue, pool in names.items()})
    if broker.queues:
        return text
    return library_presets.HOST_HEAD + _commented(text.removeprefix(library_presets.HOST_HEAD))


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


def _pool(broker: Broker, queue: str, pool: str, *, is_first: bool) -> str:
    values = {
        "queues": f"[{_yaml(f'{broker.connection}/{queue}')}]",
        "template": _yaml(pool),
        "objective": "{target_s: 10, percentile: 99}",
        "workers_min": "0",
        "workers_max": "20",
    }
    notes = (
        {key: note.format(template=library_presets.toml_key(pool)) for key, note in POOL_NOTES.items()}
        if is_first
        else {}
    )
    return "\n".join([f"  {_yaml(pool)}:", *library_presets.aligned(values, notes, separator=": ", indent=4)]) + "\n"


def _starter(broker: Broker, queue: str) -> library_presets.LibraryPreset:
    url = [] if broker.has_password else ["--url", broker.url]
    safe = library_presets.RQ_SAFE if broker.rq_has_headway else ()
    plain = {} if safe else {"argv": library_presets.NOTES["argv"]}
    secret = {"environment": "the URL holds a password, which would show in the list of processes"}
    return replace(
        library_presets.RQ,
        argv=(broker.rq, "worker", *safe, *url, queue),
        environment={SCAFFOLD_URL_VARIABLE: broker.url} if broker.has_password else {},
        notes={**library_presets.RQ.notes, **plain, **secret},
    )


def _commented(text: str) -> str:
    return "".join(f"# {line}\n" if line else "\n" for line in text.splitlines())


def _yaml(text: str) -> str:
    """``text`` as YAML that reads as the same text; a name also inside a list."""
    is_plain = _PLAIN_URL.fullmatch(text) or (_PLAIN_NAME.fullmatch(text) and yaml.safe_load(text) == text)
    return text if is_plain else json.dumps(text)
