"""Names that a shell completes, as the control plane knows them; none where it does not answer at once."""

import re
from collections.abc import Callable
from queue import Empty, SimpleQueue
from threading import Thread

import typer

from headway.cli.api_client import Api, connected
from headway.errors import HeadwayError

COMPLETION_ANSWERS_WITHIN_S = 0.3  # a key that was pressed; later, nothing is better

# zsh evaluates what it is given, and names come from outside: none that a shell would read as more than a word.
_PLAIN = re.compile(r"[\w./:@%+-]+", flags=re.ASCII)


def _names(path: str, rows: str, key: str, **query: int) -> Callable[[str], list[str]]:
    """What completes the names under ``key`` in the ``rows`` of the answer at ``path``."""

    def named(incomplete: str) -> list[str]:
        return _named(incomplete, lambda api: [row[key] for row in api.get(path, **query)[rows]])

    return named


pools = _names("/v1/profiles", "profiles", "pool")
"""Pools that a profile names and that begin so."""
groups = _names("/v1/groups", "groups", "name")
queues = _names("/v1/queues", "queues", "queue", limit=2_000)
hosts = _names("/v1/hosts", "hosts", "name")
workers = _names("/v1/workers", "workers", "worker_id", limit=2_000)


def of_kind(ctx: typer.Context, incomplete: str) -> list[str]:
    """Names of the kind that stands before, as in `describe host we`."""
    kind = ctx.params.get("kind")
    found = {"pool": pools, "queue": queues, "host": hosts, "group": groups}.get(str(kind))
    return found(incomplete) if found else []


def _named(incomplete: str, read: Callable[[Api], list[str]]) -> list[str]:
    answers: SimpleQueue[list[str]] = SimpleQueue()

    def ask() -> None:
        try:
            with connected(timeout_s=COMPLETION_ANSWERS_WITHIN_S) as api:
                answers.put(read(api))
        except (HeadwayError, OSError):
            answers.put([])

    # The time is for all of it: an answer that comes byte by byte keeps to any timeout of a connection.
    Thread(target=ask, daemon=True).start()
    try:
        names = answers.get(timeout=COMPLETION_ANSWERS_WITHIN_S)
    except Empty:
        return []
    return sorted(name for name in names if name.startswith(incomplete) and _PLAIN.fullmatch(name))
