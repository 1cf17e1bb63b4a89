"""Which brokers are read: one connection each. Values only."""

from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import parse_qs, urlsplit

from headway.errors import Misconfigured
from headway.scaling.keys import Form, Range, Text, is_text, text

AUTO = "auto"
ESCAPED = "in a password, # is written as %23, / as %2F, ? as %3F, @ as %40 and [ as %5B"
NAME_CHARS_MAX = 500  # ingest takes no longer ones
COLLECTOR = "collect-"  # what the producer of a collector begins with, also of one of an earlier version
AGENT = "agent-"  # and that of a host's agent, which reports the jobs of its workers; the host's id follows
PROCESSOR_SHARE = 0.15
TEXT_SCHEMA = {"type": "string", "minLength": 1}
EVERY_MIN_S, EVERY_MAX_S = 0.1, 5.0  # what is read less often than a metric bucket is long looks like a broker away
EXAMPLE_URL = "redis://127.0.0.1:6379/0"
MANAGEMENT_URL = "http://HOST:PORT or https://HOST:PORT, without user and password"
EVERY_S = 0.5  # a queue that wakes from nothing is seen within this; a poll costs the broker well under a millisecond


def url_expected(given: str) -> str:
    """What is wrong with ``given``, which is no URL. It may be a password, and is not repeated."""
    return f"expected a URL, as in {EXAMPLE_URL}{f'; {ESCAPED}' if ':' in given else ''}"


def is_management_url(value: str) -> bool:
    """Whether ``value`` can be the address of a RabbitMQ's management API, which has no login in it."""
    try:
        parts = urlsplit(value)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port is not False
    except ValueError:  # of the port, or of brackets
        return False
    return is_address and not set(value) & set("@?#")


def _url(value: Any) -> str:
    if not isinstance(value, str) or not is_url(value):
        raise ValueError(url_expected(str(value)))
    return value


def _management_url(value: Any) -> str:
    if not is_management_url(text(value)):
        raise ValueError(f"expected {MANAGEMENT_URL}")
    return str(value)


def _patterns(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(is_text(each) and each for each in value):
        raise TypeError('expected a list of patterns, as ["mail", "test-*"], without the connection')
    return tuple(value)


File = Annotated[
    Path, Form(read=lambda given: Path(text(given)).expanduser().absolute(), schema=TEXT_SCHEMA, is_secret=True)
]
"""Somebody may write the password where its file belongs."""
Patterns = Annotated[tuple[str, ...], Form(read=_patterns, schema={"type": "array", "items": TEXT_SCHEMA})]


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """A broker that is read. Its queues are named ``connection/queue``."""

    name: str
    url: Annotated[str, Form(read=_url, schema=TEXT_SCHEMA, is_secret=True)] = field(repr=False)
    """It may hold a password: messages and logs use ``shown_url``."""
    library: Annotated[str, Form(read=lambda given: AUTO if given is None else text(given), schema=TEXT_SCHEMA)] = AUTO
    """The collector that reads it, by its entry point's name; ``auto``: the one that its URL's scheme belongs to."""
    password_file: File | None = None
    """Holds the password, which then is not in the URL."""
    sentinel_password_file: File | None = None
    """Holds the password of a Redis' sentinels, which may differ; ``None``: they want none."""
    ca_file: File | None = None
    """The certificates of whom the broker's own is signed by; ``None``: those that this machine trusts."""
    queues: Patterns = ()
    """Patterns of the queues that are read; none: all."""
    exclude: Patterns = ()
    """Patterns of those that are not."""
    every_s: Annotated[float, Range(EVERY_MIN_S, EVERY_MAX_S, unit="seconds")] = EVERY_S
    """From one poll to the next."""
    processor_share: Annotated[float, Range(0.01, 1.0, why="the part of one core")] = PROCESSOR_SHARE
    """The part of one core that polls may take; where they would take more, they come less often."""
    prefix: Text | None = None
    """What the library's keys begin with; ``None``: what they begin with by default."""
    management_url: Annotated[str, Form(read=_management_url, schema=TEXT_SCHEMA, is_secret=True)] | None = None
    """Of RabbitMQ, its management API; ``None``: on the host of ``url``, at the port that it has by default."""

    @property
    def scheme(self) -> str:
        """What the URL begins with, as ``redis``."""
        return urlsplit(self.url).scheme

    @property
    def shown_url(self) -> str:
        """The URL without its password."""
        return shown(self.url)

    @property
    def named_queues(self) -> tuple[str, ...]:
        """Those of ``queues`` that are names."""
        return tuple(each for each in self.queues if not set(each) & set("*?["))

    def queue(self, name: str) -> str:
        """The queue ``name`` of this broker as samples and events name it."""
        return as_text(f"{self.name}/{name}")

    def reads(self, name: str) -> bool:
        """Whether the queue ``name`` is read at all."""
        is_named = not self.queues or any(fnmatchcase(name, pattern) for pattern in self.queues)
        return is_named and not any(fnmatchcase(name, pattern) for pattern in self.exclude)

    def password(self) -> str | None:
        """The password in its file, read now, so that a changed one serves the next time; ``None``: there is no file.

        Raises:
            Misconfigured: the file cannot be read, or is empty. Its content is in no message.
        """
        return _password("password_file", self.password_file)

    def sentinel_password(self) -> str | None:
        """As ``password``, of its sentinels."""
        return _password("sentinel_password_file", self.sentinel_password_file)

    def file_breaches(self) -> list[str]:
        """A sentence for each of its files that cannot be read here."""
        breaches = []
        for password in (self.password, self.sentinel_password):
            try:
                password()
            except Misconfigured as error:
                breaches.append(str(error))
        if self.ca_file is not None and not self.ca_file.is_file():
            breaches.append(f"ca_file {self.ca_file} is not there")
        return breaches

    def place(self) -> tuple[Any, ...]:
        """What is the same of two connections to one broker, database and prefix, whoever logs in."""
        parts = urlsplit(self.url)
        query = parse_qs(parts.query)
        named = parts.path.strip("/") if parts.netloc else ""
        # Behind sentinels databases follow the master's name.
        database = query.get("db", [""])[0] or (named.removesuffix("/0") if "+" in parts.scheme else named)
        path = "" if parts.hostname else parts.path
        return (frozenset(hosts(self.url)), path, database or "0", self.prefix)


def _password(key: str, file: Path | None) -> str | None:
    if file is None:
        return None
    try:
        password = file.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text"
        raise Misconfigured(f"{key} {file} cannot be read: {why}") from None
    if not password:
        raise Misconfigured(f"{key} {file} is empty")
    return password


def hosts(url: str) -> tuple[tuple[str, int | None], ...]:
    """Host and port of each server that ``url`` names, several with commas between them.

    Raises:
        ValueError: a port is none. The message may repeat what stands there.
    """
    places = urlsplit(url).netloc.rpartition("@")[2].split(",")
    parts = [urlsplit(f"//{place}") for place in places]
    return tuple((each.hostname or "", each.port) for each in parts)


def as_text(name: str) -> str:
    """``name`` of a queue, job or host as ingest takes it: not empty, not too long, and nothing that is no text."""
    return name.encode(errors="replace").decode().replace("\0", "?")[:NAME_CHARS_MAX] or "?"


def is_url(url: str) -> bool:
    """Whether the parts of ``url`` begin where its writer meant: in a password, a ``#`` or ``/`` ends the host."""
    scheme, separator, _ = url.partition("://")
    try:
        parts = urlsplit(url)
        first, *_ = hosts(url)
    except ValueError:
        return False
    behind = (parts.path, parts.fragment, *(each for each in parts.query.split("&") if "=" not in each))
    is_host_meant = not parts.netloc or (("@" in parts.netloc or first[0]) and "@" not in "".join(behind))
    return bool(scheme and separator and is_host_meant)


def shown(url: str) -> str:
    """``url`` without its password."""
    if not has_password(url):
        return url
    if not is_url(url):
        scheme, _, rest = url.partition("://")
        return f"{scheme}://***{'@' if '@' in rest else ''}{rest.rpartition('@')[2] if '@' in rest else ''}"
    parts = urlsplit(url)
    login, _, place = parts.netloc.rpartition("@")
    query = "&".join(
        f"{each.partition('=')[0]}=***" if _is_of_password(each) else each for each in parts.query.split("&")
    )
    user = login.partition(":")[0]
    netloc = f"{user}:***@{place}" if parts.password else parts.netloc
    # Not urlunsplit, which takes the slashes from a scheme that it does not know.
    return f"{parts.scheme}://{netloc}{parts.path}{f'?{query}' if query else ''}"


def has_password(url: str) -> bool:
    """Whether ``url`` holds a secret, or may hold one because it is none that anybody meant."""
    if "://" not in url:
        return False
    return not is_url(url) or bool(urlsplit(url).password) or any(map(_is_of_password, urlsplit(url).query.split("&")))


def _is_of_password(parameter: str) -> bool:
    return parameter.partition("=")[0].lower().endswith("password")
