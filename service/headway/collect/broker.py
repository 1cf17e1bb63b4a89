"""A connection to a Redis or Valkey, for reading only."""

from urllib.parse import urlsplit, urlunsplit

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from headway.errors import Misconfigured, Unavailable

CONNECT_TIMEOUT_S = 2.0
ANSWER_TIMEOUT_S = 5.0  # a broker that forks to save, or swaps, still answers within this


def connect(url: str) -> "redis.Redis":
    """A client of the broker at ``url``: redis://, rediss:// or unix://. It connects at its first command.

    Raises:
        Misconfigured: the URL cannot be one.
    """
    try:
        return redis.Redis.from_url(
            url,
            decode_responses=True,
            encoding_errors="surrogateescape",  # ids are read and asked for again as they are, whatever their bytes
            socket_timeout=ANSWER_TIMEOUT_S,
            socket_connect_timeout=CONNECT_TIMEOUT_S,
            retry=Retry(NoBackoff(), 1),  # a connection that died while idle; longer waits are the loop's
            client_name="headway-collect",
            protocol=2,  # spoken by every version
        )
    except ValueError as error:
        raise Misconfigured(
            f"broker URL {shown(url)!r}: {error}; expected redis://HOST:PORT/DB, rediss://… or unix:///PATH?db=DB"
        ) from error


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


def unavailable(url: str, error: Exception) -> Unavailable:
    """``error`` of the broker at ``url`` as one sentence."""
    if isinstance(error, redis.AuthenticationError):
        return Unavailable(f"broker {shown(url)} refuses the login ({error}): check the user and password in its URL")
    if isinstance(error, redis.ConnectionError | redis.TimeoutError | OSError):
        return Unavailable(f"broker {shown(url)} cannot be reached ({error}): check its URL and that it runs")
    return Unavailable(f"broker {shown(url)} answered with an error: {error}")
