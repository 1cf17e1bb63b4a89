"""The first ``profiles.yaml`` and ``host.toml``: text that its reader shall understand and change. Pure."""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import yaml

from headway.agent.config import library_presets
from headway.connections import AUTO, Connection, has_password
from headway.scaling.profile import NAME_LENGTH_MAX

_PLAIN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./@+-]*")
_PLAIN_URL = re.compile(r"[a-z]+://[A-Za-z0-9_./@?=&:%+-]*[A-Za-z0-9_/]")

PROFILES_HEAD = """\
# The objective and bounds of each pool. `headway up` reads this file; `headway apply profiles.yaml` sends it to a
# control plane that runs elsewhere. A pool may begin with `preset: balanced` (or critical, high_volume, bursty,
# background, exclusive) and say only what shall differ. Schedules, budgets and the rest: docs/reference/profile.md.

"""
POOL_NOTES = {
    "queues": "connection/queue; of several, the library of the workers sets the order: docs/reference/profile.md",
    "template": "how one worker is started: [templates.{template}] in host.toml",
    "objective": "the SLO: this % of the jobs start within this many seconds",
    "workers_min": "0: no jobs, no workers. 1 or more: no wait for a worker to start",
    "workers_max": "the most workers, whatever the backlog",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolDraft:
    """A pool and the template of its workers, which has its name."""

    connection: str
    queues: Sequence[str]
    template: library_presets.LibraryPreset = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """What the files are written from."""

    connections: Sequence[Connection]
    """``auto`` is the library of one whose URL alone means it."""
    pools: Sequence[PoolDraft]
    is_example: bool = False
    """Whether the pools are only an example, which is to be uncommented."""

    @property
    def has_password(self) -> bool:
        """Whether any of the files holds one."""
        variables = (value for pool in self.pools for value in pool.template.environment.values())
        return any(map(has_password, (*(each.url for each in self.connections), *variables)))


def profiles_text(draft: Draft) -> str:
    """``profiles.yaml``: the connections and the pools."""
    brokers = "brokers:  # connection name -> URL\n" + "".join(map(_connection, draft.connections)) + "\n"
    names = pool_names(pool.queues[0] for pool in draft.pools)
    pools = [
        _pool(each, name, is_first=not index) for index, (name, each) in enumerate(zip(names, draft.pools, strict=True))
    ]
    body = "pools:\n" + "\n".join(pools)
    return PROFILES_HEAD + brokers + (_commented(body) if draft.is_example else body)


def host_text(draft: Draft) -> str:
    """``host.toml``: one template a pool."""
    names = pool_names(pool.queues[0] for pool in draft.pools)
    text = library_presets.host_text({name: pool.template for name, pool in zip(names, draft.pools, strict=True)})
    if not draft.is_example:
        return text
    return library_presets.HOST_HEAD + _commented(text.removeprefix(library_presets.HOST_HEAD))


def pool_names(queues: Iterable[str]) -> list[str]:
    """A pool's name for each queue: the queue's own, as far as it can be one, and each only once."""
    names: list[str] = []
    for queue in queues:
        base = queue.replace("/", "-").strip()[: NAME_LENGTH_MAX - 4] or "pool"
        name, number = base, 1
        while name in names:
            number += 1
            name = f"{base}-{number}"
        names.append(name)
    return names


def _connection(connection: Connection) -> str:
    has_hosts = "," in urlsplit(connection.url).netloc.rpartition("@")[2]  # of Sentinel, of Cluster
    url = _yaml(connection.url if has_hosts else connection.url.replace(",", "%2C"))
    more = "" if connection.library == AUTO else f", library: {_yaml(connection.library)}"
    if connection.management_url is not None:
        more += f", management_url: {_quoted(_yaml(connection.management_url))}"
    if not more and not has_hosts:
        return f"  {_yaml(connection.name)}: {url}\n"
    return f"  {_yaml(connection.name)}: {{url: {_quoted(url)}{more}}}\n"


def _pool(pool: PoolDraft, name: str, *, is_first: bool) -> str:
    values = {
        "queues": f"[{', '.join(_yaml(f'{pool.connection}/{queue}') for queue in pool.queues)}]",
        "template": _yaml(name),
        "objective": "{target_s: 10, percentile: 99}",
        "workers_min": "0",
        "workers_max": "20",
    }
    notes = (
        {key: note.format(template=library_presets.toml_key(name)) for key, note in POOL_NOTES.items()}
        if is_first
        else {}
    )
    return "\n".join([f"  {_yaml(name)}:", *library_presets.aligned(values, notes, separator=": ", indent=4)]) + "\n"


def _commented(text: str) -> str:
    return "".join(f"# {line}\n" if line else "\n" for line in text.splitlines())


def _yaml(text: str) -> str:
    """``text`` as YAML that reads as the same text; a name also inside a list."""
    is_plain = _PLAIN_URL.fullmatch(text) or (_PLAIN_NAME.fullmatch(text) and yaml.safe_load(text) == text)
    return text if is_plain else json.dumps(text)


def _quoted(text: str) -> str:
    """``text``, which may be plain YAML, as it may stand inside braces, too."""
    return text if text.startswith('"') else json.dumps(text)
