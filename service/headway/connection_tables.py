"""How connections are written, in profiles.yaml and in settings. All mistakes are reported together."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from headway.connections import AUTO, ESCAPED, EVERY_S, PROCESSOR_SHARE, Connection, has_password, is_url
from headway.scaling.mapping import is_number, near

SHARE_MIN, SHARE_MAX = 0.01, 1.0
EVERY_MIN_S, EVERY_MAX_S = 0.1, 5.0  # what is read less often than a metric bucket is long looks like a broker away
EXAMPLE_URL = "redis://127.0.0.1:6379/0"
MANAGEMENT_URL = "http://HOST:PORT or https://HOST:PORT, without user and password"
KEYS = (
    "url",
    "library",
    "password_file",
    "sentinel_password_file",
    "ca_file",
    "queues",
    "exclude",
    "every_s",
    "processor_share",
    "prefix",
    "management_url",
)
_GLOB = frozenset("*?[")


def connections_from(values: Mapping[Any, Any], breaches: list[str], *, where: str) -> tuple[Connection, ...]:
    """The connections in ``values``: name -> URL, or the table with ``KEYS``. What is wrong is added to ``breaches``.

    No message repeats a value that may hold a password.
    """
    taken = [_connection(name, value, breaches, where=where) for name, value in values.items()]
    connections = tuple(each for each in taken if each is not None)
    breaches += [f"{where}: {breach}" for breach in _claimed_twice(connections)]
    return connections


def as_toml(connections: Iterable[Connection]) -> str:
    """``connections`` as HEADWAY_BROKERS takes them: TOML, a line each."""
    return "\n".join(f"{_string(each.name)} = {_table(each)}" for each in connections)


def connection_schema() -> dict[str, Any]:
    """What a connection may be, as JSON Schema."""
    text = {"type": "string", "minLength": 1}
    patterns = {"type": "array", "items": text}
    properties = {
        **dict.fromkeys(KEYS, text),
        **dict.fromkeys(("queues", "exclude"), patterns),
        "every_s": {"type": "number", "minimum": EVERY_MIN_S, "maximum": EVERY_MAX_S, "default": EVERY_S},
        "processor_share": {
            "type": "number",
            "minimum": SHARE_MIN,
            "maximum": SHARE_MAX,
            "default": PROCESSOR_SHARE,
        },
    }
    table = {"type": "object", "additionalProperties": False, "properties": properties, "required": ["url"]}
    return {"anyOf": [{"type": "string", "pattern": "://"}, table]}


def is_management_url(value: str) -> bool:
    """Whether ``value`` can be the address of a RabbitMQ's management API, which has no login in it."""
    try:
        parts = urlsplit(value)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port is not False
    except ValueError:  # of the port, or of brackets
        return False
    return is_address and not set(value) & set("@?#")


def _connection(name: Any, value: Any, breaches: list[str], *, where: str) -> Connection | None:
    if not isinstance(name, str) or not name or set(name) & set("/=,@:"):
        breaches.append(f"{where}: connection {name!r} must be a name without '/', '=', ',', '@' and ':'")
        return None
    reader = _TableReader(f"{where}: {name}", breaches)
    given = {"url": value} if isinstance(value, str) else value
    if not isinstance(given, Mapping):
        reader.refuse(f"expected a URL, as in {EXAMPLE_URL}, or a table with one")
        return None
    for key in given:
        if key not in KEYS:
            reader.refuse(f"unknown key {key!r};{near(str(key), KEYS) or ' known: ' + ', '.join(KEYS)}")
    before = len(breaches)
    connection = Connection(
        name=name,
        url=reader.url(given.get("url")),
        library=reader.text(given, "library") or AUTO,
        password_file=reader.file(given, "password_file"),
        sentinel_password_file=reader.file(given, "sentinel_password_file"),
        ca_file=reader.file(given, "ca_file"),
        queues=reader.patterns(given, "queues"),
        exclude=reader.patterns(given, "exclude"),
        every_s=reader.number(given, "every_s", "seconds", EVERY_MIN_S, EVERY_MAX_S, default=EVERY_S),
        processor_share=reader.number(
            given, "processor_share", "a part of one core", SHARE_MIN, SHARE_MAX, default=PROCESSOR_SHARE
        ),
        prefix=reader.text(given, "prefix"),
        management_url=reader.management_url(given),
    )
    if len(breaches) > before:
        return None
    reader.check_password(connection)
    return connection


def url_expected(given: str) -> str:
    """What is wrong with ``given``, which is no URL. It may be a password, and is not repeated."""
    return f"expected a URL, as in {EXAMPLE_URL}{f'; {ESCAPED}' if ':' in given else ''}"


class _TableReader:
    """Reads the values of one connection, and gathers what is wrong with them."""

    def __init__(self, where: str, breaches: list[str]) -> None:
        self._where = where
        self._breaches = breaches

    def refuse(self, breach: str) -> None:
        self._breaches.append(f"{self._where}: {breach}")

    def url(self, value: Any) -> str:
        if isinstance(value, str) and is_url(value):
            return value
        self.refuse(url_expected(str(value)) if value is not None else "url is missing")
        return ""

    def management_url(self, given: Mapping[Any, Any]) -> str | None:
        """An address without a login: the one in ``url`` serves here, too."""
        value = self.text(given, "management_url")
        if value is None:
            return None
        if not is_management_url(value):
            self.refuse(f"management_url: expected {MANAGEMENT_URL}")
            return None
        if "amqp" not in str(urlsplit(str(given.get("url"))).scheme):
            self.refuse("management_url needs a URL that begins with amqp:// or amqps://")
        return value

    def text(self, given: Mapping[Any, Any], key: str) -> str | None:
        value = given.get(key)
        if value is not None and (not isinstance(value, str) or not value):
            self.refuse(f"{key}: expected a text that is not empty")
            return None
        return value

    def file(self, given: Mapping[Any, Any], key: str) -> Path | None:
        value = self.text(given, key)
        return None if value is None else Path(value).expanduser().absolute()

    def patterns(self, given: Mapping[Any, Any], key: str) -> tuple[str, ...]:
        value = given.get(key, [])
        if not isinstance(value, list) or not all(isinstance(each, str) and each for each in value):
            self.refuse(f'{key}: expected a list of patterns, as ["mail", "test-*"], without the connection')
            return ()
        return tuple(value)

    def number(
        self, given: Mapping[Any, Any], key: str, unit: str, least: float, most: float, *, default: float
    ) -> float:
        value = given.get(key, default)
        if not is_number(value) or not least <= value <= most:
            self.refuse(f"{key}={value!r}: expected {unit} from {least:g} to {most:g}")
            return default
        return float(value)

    def check_password(self, connection: Connection) -> None:
        if connection.password_file is not None and has_password(connection.url):
            self.refuse("a password in url and a password_file exclude each other: keep the file")


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
    given: dict[str, str] = {"url": _string(connection.url)}
    if connection.library != AUTO:
        given["library"] = _string(connection.library)
    for key, file in (
        ("password_file", connection.password_file),
        ("sentinel_password_file", connection.sentinel_password_file),
        ("ca_file", connection.ca_file),
    ):
        if file is not None:
            given[key] = _string(str(file))
    for key, patterns in (("queues", connection.queues), ("exclude", connection.exclude)):
        if patterns:
            given[key] = f"[{', '.join(map(_string, patterns))}]"
    if connection.every_s != EVERY_S:
        given["every_s"] = repr(connection.every_s)
    if connection.processor_share != PROCESSOR_SHARE:
        given["processor_share"] = repr(connection.processor_share)
    if connection.prefix is not None:
        given["prefix"] = _string(connection.prefix)
    if connection.management_url is not None:
        given["management_url"] = _string(connection.management_url)
    return f"{{{', '.join(f'{key} = {value}' for key, value in given.items())}}}"


def _string(text: str) -> str:
    """``text`` as TOML writes it, which is as JSON does."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
