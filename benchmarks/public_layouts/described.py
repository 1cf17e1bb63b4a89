"""What the page says of an application: its profiles as they are, and stand-ins for the programs of its host.toml."""

import json
import re
import sys
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import yaml

from public_layouts.loads import Original

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "application-layouts.md"
_TEMPLATE = """\
[templates.{name}]
argv = {argv}
slots = {slots}
ready_pattern = "Listening on|Starting worker"
drain_timeout_s = 60
resources = {{cpu_cores = 0.01, memory_bytes = "16MB"}}

"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """One application of the page."""

    original: Original
    profiles_text: str
    host_text: str

    @property
    def file(self) -> dict[str, Any]:
        """Its profiles.yaml, read."""
        read: dict[str, Any] = yaml.safe_load(self.profiles_text)
        return read

    @property
    def templates(self) -> dict[str, tuple[str, ...]]:
        """Template -> the queues that its command line names, in their order, as the broker has them."""
        tables = tomllib.loads(self.host_text)["templates"]
        return {name: tuple(map(self.queue, words_of(table["argv"]))) for name, table in tables.items()}

    def queue(self, word: str) -> str:
        """The broker's name of the queue that the application calls ``word``."""
        names = [name.partition("/")[2] for pool in self.file["pools"].values() for name in pool["queues"]]
        return next(name for name in names if name.rpartition(":")[2] == word)

    def target(self, word: str) -> tuple[float, float]:
        """The objective of the queue: seconds, and the fraction of its jobs."""
        name = self.queue(word)
        pool = next(
            pool for pool in self.file["pools"].values() if name in {q.partition("/")[2] for q in pool["queues"]}
        )
        own = next((each for q, each in pool.get("member_objectives", {}).items() if q.partition("/")[2] == name), {})
        objective = {**pool["objective"], **own}
        return float(objective["target_s"]), objective["percentile"] / 100

    def profiles(self, broker_url: str) -> str:
        """Its profiles.yaml for another broker."""
        connection = next(iter(self.file["pools"].values()))["queues"][0].partition("/")[0]
        return yaml.safe_dump({**self.file, "brokers": {connection: broker_url}}, sort_keys=False)

    def host_file(self, broker_url: str) -> str:
        """A host.toml with its templates, each of which starts workers of RQ for the same queues in the same order."""
        return "".join(
            _TEMPLATE.format(name=name, argv=json.dumps(self._argv(name, queues, broker_url)), slots=self._slots(name))
            for name, queues in self.templates.items()
        )

    def _argv(self, template: str, queues: Sequence[str], broker_url: str) -> list[str]:
        slots = self._slots(template)
        verb = ("worker-pool", "-n", str(slots)) if slots > 1 else ("worker",)
        return [sys.executable, "-m", "rq.cli", *verb, "--url", broker_url, "-w", self.original.worker_class, *queues]

    def _slots(self, template: str) -> int:
        return self.original.slots_per_worker.get(template, 1)


def described(original: Original, page: Path = PAGE) -> Described:
    """What the page says below the application's heading."""
    section = page.read_text().partition(f"\n## {original.heading}\n")[2].partition("\n## ")[0]
    blocks = dict(re.findall(r"```(yaml|toml) ?\w*\n(.*?)```", section, flags=re.DOTALL))
    return Described(original=original, profiles_text=blocks["yaml"], host_text=blocks["toml"])


def words_of(argv: Sequence[str]) -> list[str]:
    """The queues that a command line of Frappe, Sidekiq or Redash names, in their order."""
    named = [after for word, after in pairwise(argv) if word in {"-q", "--queue"}]
    words = named or argv[list(argv).index("worker") + 1 :]
    return [queue for word in words for queue in word.split(",")]
