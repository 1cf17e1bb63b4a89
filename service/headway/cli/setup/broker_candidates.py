"""Where a broker may be: the URLs that somebody wrote down, and the usual ports of this machine."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from headway.cli.setup.dotenv_file import Dotenv
from headway.connections import MANAGEMENT_URL, Connection, hosts, is_management_url
from headway.errors import Invalid

URL_VARIABLES = ("REDIS_URL", "RQ_REDIS_URL", "CELERY_BROKER_URL", "RABBITMQ_URL")
VARIABLES_OF: Mapping[str, tuple[str, ...]] = {
    "celery": ("CELERY_BROKER_URL", "RABBITMQ_URL", "REDIS_URL"),
    "rq": ("RQ_REDIS_URL", "REDIS_URL"),
}
"""Library -> where its programs are given their broker, the one that counts most, first."""
LOOPBACK_URLS = ("redis://127.0.0.1:6379/0", "amqp://guest:guest@127.0.0.1:5672/")  # as the servers come
_PORTS = {"redis": 6379, "rediss": 6379, "amqp": 5672, "amqps": 5671}
_KINDS = {"rediss": "redis", "unix": "redis", "amqps": "amqp"}  # of servers
_SPELLINGS = {"valkey": "redis", "valkeys": "rediss", "pyamqp": "amqp", "redis+socket": "unix", "redis+unix": "unix"}
_CERTIFICATES = {"CERT_NONE": "none", "CERT_OPTIONAL": "optional", "CERT_REQUIRED": "required"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A URL at which there may be a broker."""

    url: str = field(repr=False)
    """As collectors take it."""
    given: str = field(repr=False)
    """As it was written."""
    source: str
    """Where it was written, as a person says it."""
    variable: str | None = None
    """The variable that held it."""
    is_guess: bool = False
    """Whether nobody wrote it: then nobody misses it."""
    management_url: str | None = None
    """Of a RabbitMQ, its management API, where that is not at its usual port."""

    @property
    def place(self) -> tuple[Any, ...]:
        """The same of two URLs of one broker and database."""
        return place_of(self.url)


def candidate(given: str, *, source: str, variable: str | None = None, is_guess: bool = False) -> Candidate:
    """``given``, as its library writes it, as a candidate."""
    return Candidate(url=as_read(given), given=given, source=source, variable=variable, is_guess=is_guess)


def written(env: Mapping[str, str], dotenv: Dotenv) -> Iterator[Candidate]:
    """Those in the environment, then those in ``.env``, which an environment overrides."""
    for name in URL_VARIABLES:
        if env.get(name):
            yield candidate(env[name], source=name, variable=name)
        elif dotenv.variables.get(name):
            yield candidate(dotenv.variables[name], source=f"{name} in .env", variable=name)


def each_once(candidates: Iterable[Candidate]) -> list[Candidate]:
    """The first of each place, with the other variables that hold the same."""
    firsts: dict[tuple[Any, ...], Candidate] = {}
    for each in candidates:
        first = firsts.setdefault(each.place, each)
        if first is not each and each.variable is not None:
            firsts[each.place] = replace(first, source=f"{first.source}, {each.source}")
    return list(firsts.values())


def as_read(given: str) -> str:
    """The URL ``given`` as collectors write it: libraries have spellings of their own."""
    try:
        parts = urlsplit(given)
    except ValueError:
        return given
    scheme = _SPELLINGS.get(parts.scheme, parts.scheme)
    query = parts.query
    if "ssl_cert_reqs=" in query or "virtual_host=" in query:
        query = urlencode(list(_parameters(scheme, query)))
    if (scheme, query) == (parts.scheme, parts.query):
        return given
    # Not urlunsplit, which takes the slashes from a scheme that it does not know.
    return f"{scheme}://{parts.netloc}{parts.path}{f'?{query}' if query else ''}"


def place_of(url: str) -> tuple[Any, ...]:
    """The same of two URLs of one broker and database, however they name this machine and the usual port."""
    try:
        kind = _kind(url)
        _, *rest = Connection(name="", url=url).place()
        return (kind, frozenset(addresses_of(url)), *rest)
    except ValueError:
        return (url,)


def addresses_of(url: str) -> list[tuple[str, int | None]]:
    """Host and port of each server that the URL names; none of a socket in the file system, and of what is no URL."""
    try:
        usual = _PORTS.get(urlsplit(url).scheme)
        named = hosts(url)
    except ValueError:
        return []
    return [("127.0.0.1" if host in {"localhost", "::1"} else host, port or usual) for host, port in named if host]


def plain_address(address: str) -> str:
    """The number of a host, the same of this machine and of IPv4 however it is written."""
    return "127.0.0.1" if address == "::1" else address.removeprefix("::ffff:")


def managed_at(management_url: str, candidates: Sequence[Candidate]) -> list[Candidate]:
    """``candidates``, of which those that are a RabbitMQ have their management API there.

    Raises:
        Invalid: the URL is none, no candidate is a RabbitMQ, or those that somebody named are on several hosts.
    """
    if not is_management_url(management_url):
        raise Invalid(f"--management-url: expected {MANAGEMENT_URL}")
    rabbits = [each for each in candidates if _kind(each.url) == "amqp"]
    meant = [each for each in rabbits if not each.is_guess] or rabbits
    if not meant:
        raise Invalid("--management-url is of a RabbitMQ, and no --broker is one: add --broker amqp://USER@HOST/VHOST")
    places = {tuple(addresses_of(each.url)) for each in meant}
    if len(places) > 1:
        raise Invalid(
            f"--management-url could be of {len(places)} brokers: write one file for each, with --broker URL and --dir"
        )
    return [replace(each, management_url=management_url) if each in meant else each for each in candidates]


def in_database(found: Candidate, database: int) -> Candidate:
    """The same server's database of that number."""
    url = urlunsplit(urlsplit(found.url)._replace(path=f"/{database}"))
    return replace(found, url=url, given=url)


def _kind(url: str) -> str:
    try:
        scheme = urlsplit(url).scheme
    except ValueError:
        return ""
    return _KINDS.get(scheme, scheme)


def _parameters(scheme: str, query: str) -> Iterator[tuple[str, str]]:
    for name, value in parse_qsl(query, keep_blank_values=True):
        if name == "ssl_cert_reqs":
            yield name, _CERTIFICATES.get(value, value)
        else:
            yield ("db" if name == "virtual_host" and scheme == "unix" else name), value
