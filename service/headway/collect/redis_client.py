"""A connection to a Redis or Valkey, for reading only: to one server, or to whichever serves now."""

import ssl
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit

import redis
from redis.backoff import NoBackoff
from redis.connection import Encoder, PythonRespSerializer, parse_url  # type: ignore[attr-defined]
from redis.retry import Retry
from redis.sentinel import MasterNotFoundError

from headway.collect.broker_errors import LoginRefused, RightMissing, Untrusted
from headway.collect.redis_moving import SlotOwner, follow_sentinels, follow_slot, has_one_slot
from headway.collect.reply_bounds import bound_replies
from headway.connections import Connection, hosts
from headway.errors import Misconfigured, Unavailable

SENTINEL, CLUSTER = "+sentinel", "+cluster"
SCHEMES = ("redis", "rediss", "unix", "redis+sentinel", "rediss+sentinel", "redis+cluster", "rediss+cluster")
FORMS = (
    "redis://HOST:PORT/DB, rediss://…, unix:///PATH?db=DB, redis+sentinel://HOST:PORT,HOST:PORT/MASTER/DB or "
    "redis+cluster://HOST:PORT,HOST:PORT"
)
SENTINEL_PORT, CLUSTER_PORT = 26_379, 6_379
CONNECT_TIMEOUT_S = 2.0
PACKED_BYTES = 6_000  # what is longer is sent in pieces, as redis-py does by default
ERROR_CHARS_MAX = 300  # of what a server says; no Redis says more
ANSWER_TIMEOUT_S = 5.0  # a broker that forks to save, or swaps, still answers within this


@dataclass(frozen=True, slots=True, kw_only=True)
class _Servers:
    """Several servers, one of which serves: what a URL of Sentinel or of Cluster names."""

    nodes: tuple[tuple[str, int], ...]
    master: str
    """As sentinels call it; empty in a cluster."""
    database: int
    login: dict[str, str]


def refusals(connection: Connection) -> Iterator[str]:
    """What of a connection to a Redis cannot be done, a sentence each."""
    try:
        if _is_moving(connection):
            _servers(connection)
        else:
            parse_url(connection.url)  # type: ignore[no-untyped-call]
    except ValueError as error:
        yield f"broker URL {connection.shown_url!r}: {error}; expected {FORMS}"
    if connection.ca_file is not None and not _is_encrypted(connection):
        yield "ca_file needs a URL that begins with rediss"
    if connection.sentinel_password_file is not None and not connection.scheme.endswith(SENTINEL):
        yield "sentinel_password_file needs a URL that begins with redis+sentinel:// or rediss+sentinel://"
    if connection.scheme.endswith(CLUSTER) and not has_one_slot(connection.prefix or ""):
        yield (
            f"{connection.scheme}:// needs a prefix with a hash tag, as {{jobs}}: a queue library runs on a cluster "
            "only where one node has all its keys"
        )


def connect(connection: Connection, *, on_connect: Callable[[], object] = lambda: None) -> "redis.Redis":
    """A client of the broker. It connects at its first command, and finds out by itself which server serves now.

    ``on_connect`` is called whenever it has connected: from then on the server may be another one.

    Raises:
        Misconfigured: the URL cannot be one, or a password's file cannot be read.
    """
    refused = "; ".join(refusals(connection))
    if refused:
        raise Misconfigured(refused)
    options: dict[str, Any] = {
        "decode_responses": True,
        "encoding_errors": "surrogateescape",  # ids are read and asked for again as they are, whatever their bytes
        "socket_timeout": ANSWER_TIMEOUT_S,
        "socket_connect_timeout": CONNECT_TIMEOUT_S,
        "retry": Retry(NoBackoff(), 1),  # a connection that died while idle; longer waits are the loop's
        "client_name": "headway-collect",
        "protocol": 2,  # spoken by every version
    }

    def connected(each: Any) -> None:
        bound_replies(each)
        each.on_connect()
        on_connect()

    options["redis_connect_func"] = connected
    # That of hiredis takes no bytes that are no text, whatever ``encoding_errors`` says.
    encoder = Encoder("utf-8", "surrogateescape", decode_responses=True)  # type: ignore[no-untyped-call]
    options["command_packer"] = PythonRespSerializer(PACKED_BYTES, encoder.encode)
    certificates = {} if connection.ca_file is None else {"ssl_ca_certs": str(connection.ca_file)}
    password = connection.password()
    login = {} if password is None else {"password": password}
    if not _is_moving(connection):
        return redis.Redis.from_url(connection.url, **options, **certificates, **login)
    servers = _servers(connection)
    options |= {"db": servers.database, **servers.login, **login}
    encrypted = certificates if _is_encrypted(connection) else None
    if connection.scheme.endswith(SENTINEL):
        pool = follow_sentinels(
            servers.nodes,
            servers.master,
            password=connection.sentinel_password(),
            certificates=encrypted,
            options=options,
        )
    else:
        pool = follow_slot(SlotOwner(servers.nodes, connection.prefix or "", certificates=encrypted, options=options))
    return redis.Redis.from_pool(pool)


def log_in_anew(client: "redis.Redis", connection: Connection, error: Exception) -> None:
    """Let ``client`` take passwords from their files once more, where ``error`` is that a login was refused."""
    if not isinstance(error, redis.AuthenticationError | MasterNotFoundError):
        return
    with suppress(Misconfigured):  # while a file is being replaced
        renewed = connect(connection).connection_pool
        called = client.connection_pool.connection_kwargs["redis_connect_func"]
        renewed.connection_kwargs["redis_connect_func"] = called
        client.connection_pool.disconnect()
        client.connection_pool = renewed


def is_about_a_key(error: Exception) -> bool:
    """Whether an error is about one key, and says nothing of the others: of another type, or not to be read."""
    if isinstance(error, redis.exceptions.NoPermissionError):
        return "command" not in str(error)
    return str(error).startswith("WRONGTYPE")


def unavailable(connection: Connection, error: Exception) -> Unavailable:
    """``error`` of the broker as one sentence."""
    broker, said = f"broker {connection.shown_url}", str(error)[:ERROR_CHARS_MAX]
    if isinstance(error, redis.AuthenticationError):
        return LoginRefused(f"{broker} refuses the login ({said}): check its user and password")
    if isinstance(error.__cause__ or error.__context__, ssl.SSLCertVerificationError):
        return Untrusted(
            f"{broker} shows a certificate that is not trusted here ({said}): ca_file names those that signed it"
        )
    if isinstance(error, redis.exceptions.NoPermissionError):
        return RightMissing(f"{broker} refuses a command ({said}): see the login of the library's how-to page")
    if isinstance(error, redis.ConnectionError | redis.TimeoutError | OSError):
        return Unavailable(f"{broker} cannot be reached ({said}): check its URL and that it runs")
    return Unavailable(f"{broker} answered with an error: {said}")


def _is_moving(connection: Connection) -> bool:
    return connection.scheme.endswith((SENTINEL, CLUSTER))


def _is_encrypted(connection: Connection) -> bool:
    return connection.scheme.startswith("rediss")


def _servers(connection: Connection) -> _Servers:
    """What the URL names. Raises ``ValueError`` with what is wrong."""
    parts = urlsplit(connection.url)
    is_cluster = connection.scheme.endswith(CLUSTER)
    port = CLUSTER_PORT if is_cluster else SENTINEL_PORT
    nodes = tuple((host, given or port) for host, given in hosts(connection.url))
    if not all(host for host, _ in nodes):
        raise ValueError("a host is missing")
    if parts.query or parts.fragment:
        raise ValueError("it takes no '?' and no '#'")
    master, _, database = parts.path.strip("/").partition("/")
    if is_cluster and master:
        raise ValueError("a cluster has no databases")
    if not is_cluster and not master:
        raise ValueError("the master's name is missing")
    if database and not database.isdecimal():
        raise ValueError("the database is no number")
    login = {"username": parts.username, "password": parts.password}
    return _Servers(
        nodes=nodes,
        master=unquote(master),
        database=int(database or 0),
        login={name: unquote(value) for name, value in login.items() if value},
    )
