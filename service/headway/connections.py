"""Which brokers are read: one connection each, with its URL and what of it concerns Headway. Values only."""

from dataclasses import dataclass, field
from urllib.parse import urlsplit, urlunsplit

AUTO = "auto"
NAME_CHARS_MAX = 500  # ingest takes no longer ones


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """A broker that is read. Its queues are named ``connection/queue``."""

    name: str
    url: str = field(repr=False)
    """It may hold a password: messages and logs use ``shown_url``."""
    library: str = AUTO
    """The collector that reads it, by its entry point's name; ``auto``: the one that its URL's scheme belongs to."""

    @property
    def scheme(self) -> str:
        """What the URL begins with, as ``redis``."""
        return urlsplit(self.url).scheme

    @property
    def shown_url(self) -> str:
        """The URL without its password."""
        return shown(self.url)

    def queue(self, name: str) -> str:
        """The queue ``name`` of this broker as samples and events name it."""
        return as_text(f"{self.name}/{name}")


def as_text(name: str) -> str:
    """``name`` of a queue, job or host as ingest takes it: not empty, not too long, and nothing that is no text."""
    return name.encode(errors="replace").decode().replace("\0", "?")[:NAME_CHARS_MAX] or "?"


def shown(url: str) -> str:
    """``url`` without its password."""
    parts = urlsplit(url)
    if not has_password(url):
        return url
    login, _, place = parts.netloc.rpartition("@")
    query = "&".join("password=***" if each.startswith("password=") else each for each in parts.query.split("&"))
    user = login.partition(":")[0]
    netloc = f"{user}:***@{place}" if parts.password else parts.netloc
    return urlunsplit(parts._replace(netloc=netloc, query=query))


def has_password(url: str) -> bool:
    """Whether ``url`` holds a secret."""
    parts = urlsplit(url)
    return bool(parts.password) or any(each.startswith("password=") for each in parts.query.split("&"))
