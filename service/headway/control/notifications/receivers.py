"""Who is notified of which incidents: a TOML file of the control plane's machine, which no API changes."""

import base64
import binascii
import os
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from headway.errors import Invalid
from headway.local.https import is_loopback
from headway.local.ownership import why_foreign

RECEIVERS_MAX = 16  # each has a task and connections of its own
LABELS = ("rule", "severity", "pool", "host", "kind")
KEYS = frozenset({"url", "secret_file", "template", "match", "allow_plain_http"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Receiver:
    """Who is notified, and of what. The URL of Slack is a secret, too: neither is shown."""

    name: str
    url: str = field(repr=False)
    template: str
    secret: bytes = field(repr=False)
    match: Mapping[str, str]

    def takes(self, labels: Mapping[str, str]) -> bool:
        """Whether an incident with these labels is for this receiver."""
        return all(fnmatchcase(labels.get(label, ""), pattern) for label, pattern in self.match.items())


def receivers_of(receivers: Collection[Receiver], labels: Mapping[str, str]) -> Collection[str]:
    """The names of those who are notified of an incident with these labels."""
    return [each.name for each in receivers if each.takes(labels)]


def read_receivers(file: Path | None) -> tuple[Receiver, ...]:
    """The receivers of a file; none without one. Raises ``Invalid`` with the first mistake; it repeats no secret."""
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
    return tuple(_receiver(name, table, file) for name, table in tables.items())


def _receiver(name: str, table: Any, file: Path) -> Receiver:
    where = f"{file}: receiver {name!r}"
    if not isinstance(table, dict) or table.keys() - KEYS:
        raise Invalid(f"{where}: expected only the keys {', '.join(sorted(KEYS))}")
    url, template, match = table.get("url"), table.get("template", "cloudevents"), table.get("match", {})
    if template not in ("cloudevents", "slack"):
        raise Invalid(f"{where}: template is cloudevents or slack")
    if not isinstance(url, str) or not _is_safe(url, is_plain_allowed=table.get("allow_plain_http") is True):
        raise Invalid(f"{where}: url begins with https://, or names this machine, or allow_plain_http = true is set")
    if not isinstance(match, dict) or match.keys() - set(LABELS) or not all(isinstance(v, str) for v in match.values()):
        raise Invalid(f"{where}: match has patterns of {', '.join(LABELS)}")
    secret = b"" if template == "slack" else _secret(table.get("secret_file"), where)
    return Receiver(name=name, url=url, template=template, secret=secret, match=match)


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


def _secret(file: Any, where: str) -> bytes:
    try:
        text = Path(str(file or "")).read_text().strip()
        secret = base64.b64decode(text[6:], validate=True) if text.startswith("whsec_") else text.encode()
    except (OSError, UnicodeDecodeError, binascii.Error) as error:
        raise Invalid(f"{where}: secret_file cannot be read, or is no base64 after whsec_") from error
    if not secret:
        raise Invalid(f"{where}: secret_file is empty")
    return secret
