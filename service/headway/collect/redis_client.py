"""A connection to a Redis or Valkey, for reading only."""

from collections.abc import Iterator
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.connection import parse_url
from redis.retry import Retry

from headway.connections import Connection
from headway.errors import Misconfigured, Unavailable

SCHEMES = ("redis", "rediss", "unix")
CONNECT_TIMEOUT_S = 2.0
ANSWER_TIMEOUT_S = 5.0  # a broker that forks to save, or swaps, still answers within this


def refusals(connection: Connection) -> Iterator[str]:
    """What of a connection to a Redis cannot be done, a sentence each."""
    try:
        parse_url(connection.url)  # type: ignore[no-untyped-call]
    except ValueError as error:
        yield (
            f"broker URL {connection.shown_url!r}: {error}; expected redis://HOST:PORT/DB, rediss://… or "
            "unix:///PATH?db=DB"
        )
    if connection.ca_file is not None and connection.scheme != "rediss":
        yield "ca_file needs a URL that begins with rediss://"


def connect(connection: Connection) -> "redis.Redis":
    """A client of the broker: redis://, rediss:// or unix://. It connects at its first command.

    Raises:
        Misconfigured: the URL cannot be one, or the password's file cannot be read.
    """
    refused = "; ".join(refusals(connection))
    if refused:
        raise Misconfigured(refused)
    more: dict[str, Any] = {}
    if connection.ca_file is not None:
        more["ssl_ca_certs"] = str(connection.ca_file)
    password = connection.password()
    if password is not None:
        more["password"] = password
    return redis.Redis.from_url(
        connection.url,
        decode_responses=True,
        encoding_errors="surrogateescape",  # ids are read and asked for again as they are, whatever their bytes
        socket_timeout=ANSWER_TIMEOUT_S,
        socket_connect_timeout=CONNECT_TIMEOUT_S,
        retry=Retry(NoBackoff(), 1),  # a connection that died while idle; longer waits are the loop's
        client_name="headway-collect",
        protocol=2,  # spoken by every version
        **more,
    )


def unavailable(connection: Connection, error: Exception) -> Unavailable:
    """``error`` of the broker as one sentence."""
    broker = f"broker {connection.shown_url}"
    if isinstance(error, redis.AuthenticationError):
        return Unavailable(f"{broker} refuses the login ({error}): check its user and password")
    if isinstance(error, redis.ConnectionError | redis.TimeoutError | OSError):
        return Unavailable(f"{broker} cannot be reached ({error}): check its URL and that it runs")
    return Unavailable(f"{broker} answered with an error: {error}")
