"""Who is notified of which incidents: a TOML file of the control plane's machine, which no API changes."""

import base64
import binascii
import os
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

from headway.errors import Invalid
from headway.local.https import is_loopback
from headway.local.ownership import why_foreign
from headway.scaling.keys import Form, text
from headway.scaling.mapping import Reading
from headway.scaling.model import PoolEventKind

RECEIVERS_MAX = 16  # each has a task and connections of its own
LABELS = ("rule", "severity", "pool", "host", "kind")


def _match(value: Any) -> Mapping[str, str]:
    is_table = isinstance(value, dict) and all(isinstance(pattern, str) for pattern in value.values())
    if not is_table or value.keys() - set(LABELS):
        raise TypeError(f"expected patterns of {', '.join(LABELS)}")
    return dict(value)


def _events(value: Any) -> frozenset[PoolEventKind]:
    words = [str(kind) for kind in PoolEventKind]
    if not isinstance(value, list) or not set(map(str, value)) <= set(words):
        raise TypeError(f"expected a list of {', '.join(words)}")
    return frozenset(map(PoolEventKind, value))


SecretText = Annotated[str, Form(read=text, is_secret=True)]


class Layout(StrEnum):
    """What a notification looks like."""

    CLOUDEVENTS = "cloudevents"
    SLACK = "slack"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiverTable:
    """The keys of ``[receivers.NAME]``."""

    url: SecretText = ""
    secret_file: SecretText = ""
    template: Layout = Layout.CLOUDEVENTS
    match: Annotated[Mapping[str, str], Form(read=_match)] = field(default_factory=dict)
    allow_plain_http: bool = False
    incidents: bool = True
    events: Annotated[frozenset[PoolEventKind], Form(read=_events)] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Receiver:
    """Who is notified, and of what. The URL of Slack is a secret, too: neither is shown."""

    name: str
    url: str = field(repr=False)
    template: str
    secret: bytes = field(repr=False)
    match: Mapping[str, str]
    incidents: bool = True
    """Whether it takes incidents."""
    events: frozenset[PoolEventKind] = frozenset()
    """The events of pools that it subscribes to."""

    def takes(self, labels: Mapping[str, str]) -> bool:
        """Whether an incident with these labels is for this receiver."""
        return self.incidents and all(
            fnmatchcase(labels.get(label, ""), pattern) for label, pattern in self.match.items()
        )

    def is_subscribers_of(self, kind: PoolEventKind, pool: str) -> bool:
        """Whether it gets such an event of this pool. Labels other than the pool's are of incidents only."""
        return kind in self.events and fnmatchcase(pool, self.match.get("pool", "*"))


def receivers_of(receivers: Collection[Receiver], labels: Mapping[str, str]) -> Collection[str]:
    """The names of those who are notified of an incident with these labels."""
    return [each.name for each in receivers if each.takes(labels)]


def subscribers_of(receivers: Collection[Receiver], kind: PoolEventKind, pool: str) -> Collection[str]:
    """The names of the receivers that subscribe to such an event of this pool."""
    return [each.name for each in receivers if each.is_subscribers_of(kind, pool)]


def read_receivers(file: Path | None) -> tuple[Receiver, ...]:
    """The receivers of a file; none without one. Raises ``Invalid`` with every mistake; none repeats a secret."""
    if file is None:
        return ()
    try:
        with file.open("rb") as opened:
            why = why_foreign(os.fstat(opened.fileno()))
            tables = tomllib.load(opened).get("receivers", {})
    except (OSError, ValueError, RecursionError) as error:
        raise Invalid(f"HEADWAY_NOTIFICATIONS={file} cannot be read as TOML") from error
    if why is not None:
        raise Invalid(f"HEADWAY_NOTIFICATIONS={file} {why}; who writes it decides whom this control plane posts to")
    if not isinstance(tables, dict) or not 0 < len(tables) <= RECEIVERS_MAX:
        raise Invalid(f"{file}: expected 1 to {RECEIVERS_MAX} tables [receivers.NAME]")
    reading = Reading()
    receivers = tuple(
        _receiver(name, table, reading, where=f"{file}: receiver {name!r}") for name, table in tables.items()
    )
    if reading.breaches:
        raise Invalid(*reading.breaches)
    return receivers


def _receiver(name: str, given: Any, reading: Reading, *, where: str) -> Receiver:
    taken, wrong = reading.fields_of(ReceiverTable, given, where=where)
    table = ReceiverTable(**taken)
    if "url" not in wrong and not _is_safe(table.url, is_plain_allowed=table.allow_plain_http):
        rule = "url begins with https://, or names this machine, or allow_plain_http = true is set"
        reading.breaches.append(f"{where}: {rule}")
    if not (table.incidents or table.events):
        reading.breaches.append(f"{where}: incidents = false needs events: it would receive nothing")
    secret = b""
    if table.template is Layout.CLOUDEVENTS:
        try:
            secret = _secret(table.secret_file)
        except ValueError as error:
            reading.breaches.append(f"{where}: secret_file {error}")
    return Receiver(
        name=name,
        url=table.url,
        template=table.template,
        secret=secret,
        match=table.match,
        incidents=table.incidents,
        events=table.events,
    )


def _is_safe(url: str, *, is_plain_allowed: bool) -> bool:
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        _ = parts.port
    except ValueError:
        return False
    if not host or parts.scheme not in ("http", "https"):
        return False
    return parts.scheme == "https" or is_plain_allowed or is_loopback(host)


def _secret(file: str) -> bytes:
    try:
        written = Path(file).read_text().strip()
        secret = base64.b64decode(written[6:], validate=True) if written.startswith("whsec_") else written.encode()
    except (OSError, UnicodeDecodeError, binascii.Error) as error:
        raise ValueError("cannot be read, or is no base64 after whsec_") from error
    if not secret:
        raise ValueError("is empty")
    return secret
