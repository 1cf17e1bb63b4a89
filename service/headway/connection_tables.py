"""How connections are written, in profiles.yaml and in settings. All mistakes are reported together."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any
from urllib.parse import urlsplit

from headway.connections import AUTO, EXAMPLE_URL, Connection, has_password, is_url, url_expected
from headway.scaling.mapping import Reading

_GLOB = frozenset("*?[")


def connections_from(values: Mapping[Any, Any], breaches: list[str], *, where: str) -> tuple[Connection, ...]:
    """The connections in ``values``: name -> URL, or the keys of a ``Connection``. Mistakes are added to ``breaches``.

    No message repeats a value that may hold a password.
    """
    taken = [_connection(name, value, breaches, where=where) for name, value in values.items()]
    connections = tuple(each for each in taken if each is not None)
    breaches += [f"{where}: {breach}" for breach in _claimed_twice(connections)]
    return connections


def as_toml(connections: Iterable[Connection]) -> str:
    """``connections`` as HEADWAY_BROKERS takes them: TOML, a line each."""
    return "\n".join(f"{_toml(each.name)} = {_table(each)}" for each in connections)


def _connection(name: Any, value: Any, breaches: list[str], *, where: str) -> Connection | None:
    if not isinstance(name, str) or not name or set(name) & set("/=,@:"):
        breaches.append(f"{where}: connection {name!r} must be a name without '/', '=', ',', '@' and ':'")
        return None
    where = f"{where}: {name}"
    given = {"url": value} if isinstance(value, str) else value
    if not isinstance(given, Mapping):
        breaches.append(f"{where}: expected a URL, as in {EXAMPLE_URL}, or a table with one")
        return None
    if isinstance(value, str) and not is_url(value):
        breaches.append(f"{where}: {url_expected(value)}")
        return None
    before = len(breaches)
    taken, _ = Reading(breaches).fields_of(Connection, given, where=where, left_out=("name",))
    if "management_url" in taken and "amqp" not in urlsplit(str(given.get("url"))).scheme:
        breaches.append(f"{where}: management_url needs a URL that begins with amqp:// or amqps://")
    if taken.get("password_file") and has_password(taken.get("url", "")):
        breaches.append(f"{where}: a password in url and a password_file exclude each other: keep the file")
    return Connection(name=name, **taken) if len(breaches) == before else None


def _claimed_twice(connections: tuple[Connection, ...]) -> list[str]:
    """A sentence for each two connections that surely read one queue: its jobs would count twice."""
    breaches = []
    for index, one in enumerate(connections):
        for other in connections[:index]:
            is_same = one.place() == other.place()
            if is_same and (one.library == other.library or AUTO in (one.library, other.library)):
                shared = _shared_queue(one, other)
                if shared is not None:
                    what = f"queue {shared!r}" if shared else "the same queues"
                    breaches.append(
                        f"{other.name!r} and {one.name!r} both read {what} of {one.shown_url}, whose jobs would count "
                        "twice: leave each queue to one of them, with queues or exclude"
                    )
    return breaches


def _shared_queue(one: Connection, other: Connection) -> str | None:
    """A queue that both read; empty where that is surely so but not of one name, ``None`` where it is not sure."""
    for pattern in (*one.queues, *other.queues):
        if not _GLOB & set(pattern) and one.reads(pattern) and other.reads(pattern):
            return pattern
    if one.queues == other.queues and one.exclude == other.exclude:
        return ""
    return "" if not one.queues and not other.queues and not (one.exclude and other.exclude) else None


def _table(connection: Connection) -> str:
    given = {item.name: (getattr(connection, item.name), item.default) for item in fields(connection)}
    del given["name"]
    return f"{{{', '.join(f'{key} = {_toml(value)}' for key, (value, default) in given.items() if value != default)}}}"


def _toml(value: Any) -> str:
    """``value`` as TOML writes it, which is as JSON does."""
    return json.dumps(value, ensure_ascii=False, default=str).replace("\x7f", "\\u007f")
