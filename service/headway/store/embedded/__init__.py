"""Embedded servers: a Postgres and a Valkey from wheels, for one machine, without a user made or a port opened.

A server is found by its data folder. Whoever asks for it owns it until he lets go or dies; then it stops.
"""

from collections.abc import Callable
from pathlib import Path

from headway.store.embedded.owned_server import Server, ensure
from headway.store.embedded.postgres import Postgres
from headway.store.embedded.valkey import Valkey

__all__ = ["Server", "ensure_postgres", "ensure_valkey"]

DEADLINE_S = 60.0  # initdb on a slow disk; usually it is one second, and 0.1 s when the data are there


def ensure_postgres(
    data_dir: Path,
    *,
    deadline_s: float = DEADLINE_S,
    is_durable: bool = True,
    on_progress: Callable[[str], None] = lambda _: None,
) -> Server:
    """A claim on the Postgres that keeps its data in ``data_dir``: the running one, or a new one.

    Args:
        data_dir: a folder of its own, made when missing.
        deadline_s: after this, ``Unavailable``.
        is_durable: False only for tests: faster, and a crash of the machine may ruin the data.
        on_progress: called, with words for a person, with what takes longer than a moment.

    Raises:
        Misconfigured: the folder or this machine cannot serve; the sentence says what would do.
        Unavailable: it did not start in time.
    """
    return ensure(Postgres(is_durable=is_durable, on_progress=on_progress), data_dir, deadline_s=deadline_s)


def ensure_valkey(data_dir: Path, *, deadline_s: float = DEADLINE_S, is_persistent: bool = False) -> Server:
    """A claim on the Valkey of ``data_dir``: the running one, or a new one.

    Args:
        data_dir: a folder of its own, made when missing.
        deadline_s: after this, ``Unavailable``.
        is_persistent: keep what it holds across a stop (an append-only file); else it starts empty.

    Raises:
        Misconfigured: the folder or this machine cannot serve; the sentence says what would do.
        Unavailable: it did not start in time.
    """
    return ensure(Valkey(is_persistent=is_persistent), data_dir, deadline_s=deadline_s)
