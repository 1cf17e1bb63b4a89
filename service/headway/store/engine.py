"""How this program reaches Postgres: the pool, the first check of a server, and the listener for notifications.

A URL is read by libpq's own rules, so that whatever ``psql`` takes works here too. No message ever contains the
password.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import psycopg
import sqlalchemy.exc
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from headway.errors import HeadwayError, Misconfigured, Unavailable

log = logging.getLogger(__name__)

# Outside the store nobody imports SQLAlchemy; these are the names others hand around.
Engine = AsyncEngine
Connection = AsyncConnection


SETTING = "HEADWAY_DATABASE_URL"
POSTGRES_MAJOR_MIN = 16
ENCODING = "UTF8"
POOL_CONNECTIONS = 10  # the tick, ingest and a handful of requests at once; Postgres allows 100 by default
POOL_WAIT_S = 5.0  # longer than any request should wait for a connection, shorter than its caller's patience
CONNECT_TIMEOUT_S = 5
STATEMENT_TIMEOUT_S = 30  # far above the slowest statement (a full tick takes 0.2 s), so that none runs for ever
LOCK_TIMEOUT_S = 10
IDLE_TRANSACTION_TIMEOUT_S = 60  # a transaction left open by a hung process must not hold its locks
# Nor that of a control plane for much longer than a leader may be silent: the next leader writes the same rows.
CONTROL_IDLE_TRANSACTION_TIMEOUT_S = 10
# How Postgres notices that a client has vanished without a word; its own defaults take two hours.
VANISHED = "-c tcp_keepalives_idle=5 -c tcp_keepalives_interval=2 -c tcp_keepalives_count=3 -c tcp_user_timeout=10000"
# Nobody sends anything on the connection that listens, and what Postgres sends to a dead one is lost: polls are held
# on. A leader whose session is dead leads no longer.
KEEPALIVES = {"keepalives_idle": 2, "keepalives_interval": 1, "keepalives_count": 3, "tcp_user_timeout": 5_000}
LISTEN_RETRY_MIN_S = 0.1
LISTEN_RETRY_MAX_S = 5.0

_READ_ONE_MOMENT = text("set transaction isolation level repeatable read, read only")
_LISTEN = sql.SQL("listen {channel}")
_NOTIFY_VIEWERS = text("select pg_notify('headway_decisions', '')")

WAKE = ""
"""The payload that means "anything may have changed": ``listen`` yields it whenever it begins to listen."""


def connect_parameters(database_url: str, *, idle_transaction_s: int = IDLE_TRANSACTION_TIMEOUT_S) -> dict[str, Any]:
    """What psycopg's ``connect`` takes to reach ``database_url``, with this program's timeouts where it names none.

    Raises:
        Misconfigured: the URL cannot be read.
    """
    if not database_url.startswith(("postgresql://", "postgres://")):
        raise Misconfigured(f"{SETTING} must begin with postgresql://, as in postgresql://user@host:5432/database")
    try:
        given: dict[str, Any] = dict(conninfo_to_dict(database_url))
    except psycopg.Error:
        # libpq's message quotes the piece it could not read, which may be the password; it is neither shown nor kept.
        raise Misconfigured(
            f"{SETTING} is not a URL that Postgres's library can read: expected "
            "postgresql://user:password@host:port/database, with special characters of the password as %XX"
        ) from None
    options = (
        f"-c statement_timeout={STATEMENT_TIMEOUT_S}s -c lock_timeout={LOCK_TIMEOUT_S}s "
        f"-c idle_in_transaction_session_timeout={idle_transaction_s}s -c timezone=UTC {VANISHED}"
    )
    ours = {
        "application_name": "headway",
        "connect_timeout": CONNECT_TIMEOUT_S,
        # A peer that vanished without a word is noticed in half a minute instead of two hours.
        "keepalives_idle": 10,
        "keepalives_interval": 5,
        "keepalives_count": 3,
        "tcp_user_timeout": 20_000,
    }
    return ours | given | {"options": f"{options} {given.get('options', '')}".strip()}


def listen_parameters(database_url: str) -> dict[str, Any]:
    """As ``connect_parameters``, for a connection on which a silent peer must be noticed within seconds."""
    parameters = connect_parameters(database_url)
    return parameters | {name: min(int(parameters[name]), most) for name, most in KEEPALIVES.items()}


def create_engine(database_url: str, *, idle_transaction_s: int = IDLE_TRANSACTION_TIMEOUT_S) -> AsyncEngine:
    """A pool of connections to ``database_url``, whose transactions may idle for so long. Opens none yet.

    Raises:
        Misconfigured: the URL cannot be read.
    """
    return create_async_engine(
        "postgresql+psycopg://",
        connect_args=connect_parameters(database_url, idle_transaction_s=idle_transaction_s),
        pool_size=POOL_CONNECTIONS,
        max_overflow=0,
        pool_timeout=POOL_WAIT_S,
        pool_pre_ping=True,  # after a restart of Postgres no caller meets a connection that has died
        hide_parameters=True,
    )


@asynccontextmanager
async def transaction(engine: AsyncEngine) -> AsyncIterator[AsyncConnection]:
    """One transaction: committed at the end, rolled back by an exception.

    Raises:
        Unavailable: Postgres cannot be reached, or gave up on a statement (a timeout, a deadlock, a shutdown). When
            the connection broke during the commit itself, it may have been committed all the same.
    """
    try:
        async with engine.begin() as connection:
            yield connection
    except (sqlalchemy.exc.OperationalError, sqlalchemy.exc.InterfaceError, sqlalchemy.exc.TimeoutError) as error:
        raise Unavailable(f"Postgres did not do its part, try again: {first_line(error)}") from error
    except sqlalchemy.exc.DBAPIError as error:
        if not error.connection_invalidated:
            raise
        raise Unavailable(f"the connection to Postgres broke, try again: {first_line(error)}") from error


@asynccontextmanager
async def snapshot(engine: AsyncEngine) -> AsyncIterator[AsyncConnection]:
    """One transaction that only reads, and whose statements all see the same moment. Raises as ``transaction``.

    Without it each statement sees its own: a host that begins to report in between would be known, and run nothing.
    """
    async with transaction(engine) as connection:
        await connection.execute(_READ_ONE_MOMENT)
        yield connection


def refuse_unusable(info: psycopg.ConnectionInfo, parameters: dict[str, Any]) -> None:
    """Raise ``Misconfigured`` where what ``parameters`` lead to can never hold Headway's tables."""
    refuse_old(info.server_version)
    encoding = info.parameter_status("server_encoding")
    if encoding != ENCODING:
        raise Misconfigured(
            f"database {info.dbname!r} at {_server(parameters)} has the encoding {encoding}; Headway needs {ENCODING}, "
            f"as names may be of any script: make another with `createdb --template=template0 --encoding={ENCODING} "
            f"--locale=C.UTF-8 NAME`, and name it in {SETTING}"
        )


def refuse_old(server_version: int) -> None:
    """Raise ``Misconfigured`` where ``server_version`` (160004 is 16.4) is one whose SQL is not enough."""
    major = server_version // 10_000
    if major < POSTGRES_MAJOR_MIN:
        raise Misconfigured(
            f"{SETTING} leads to Postgres {major}; Headway needs {POSTGRES_MAJOR_MIN} or later: upgrade that server, "
            "or leave the setting out and use the embedded one"
        )


def unreachable(error: BaseException, parameters: dict[str, Any]) -> HeadwayError:
    """The one sentence for a connection that could not be made with ``parameters``."""
    where = _server(parameters)
    user, database = parameters.get("user") or "(this system's user)", parameters.get("dbname") or "(the user's name)"
    said = first_line(error)
    # Before a session exists the driver passes no SQLSTATE on, only the text.
    if "password" in said or "authentication" in said or "pg_hba.conf" in said:
        return Misconfigured(f"Postgres at {where} does not let user {user!r} in: correct the password in {SETTING}")
    if "role" in said and "does not exist" in said:
        return Misconfigured(f"Postgres at {where} has no user {user!r}: create it, or correct {SETTING}")
    if "database" in said and "does not exist" in said:
        return Misconfigured(f"Postgres at {where} has no database {database!r}: create it, or correct {SETTING}")
    return Unavailable(f"no Postgres answers at {where}: start it, or correct {SETTING} ({said})")


async def listen(database_url: str, channels: Sequence[str]) -> AsyncIterator[tuple[str, str]]:
    """The notifications on ``channels`` as (channel, payload), for ever, over a connection of their own.

    Notifications sent while the connection is down are lost, so each channel yields ``(channel, WAKE)`` whenever it
    begins to be received, the first time included: read everything then, and nothing is missed.

    Raises:
        Misconfigured: the URL cannot be read. An absent server is waited for instead.
    """
    parameters = listen_parameters(database_url)
    pause_s, is_interrupted = LISTEN_RETRY_MIN_S, False
    while True:
        try:
            async with await psycopg.AsyncConnection.connect(**parameters, autocommit=True) as connection:
                for channel in channels:
                    await connection.execute(_LISTEN.format(channel=sql.Identifier(channel)))
                if is_interrupted:
                    log.info("listening again channels=%s", ",".join(channels))
                pause_s, is_interrupted = LISTEN_RETRY_MIN_S, False
                for channel in channels:
                    yield channel, WAKE
                async for notice in connection.notifies():
                    yield notice.channel, notice.payload
        except psycopg.OperationalError as error:
            if not is_interrupted:
                log.warning("listening interrupted channels=%s, tried until it works: %s", ",".join(channels), error)
            is_interrupted = True
        await asyncio.sleep(pause_s)
        pause_s = min(2 * pause_s, LISTEN_RETRY_MAX_S)


async def notify_viewers(connection: AsyncConnection) -> None:
    """Notify, when this commits, whoever watches decisions, pools and hosts."""
    await connection.execute(_NOTIFY_VIEWERS)


def first_line(error: BaseException) -> str:
    """The first line that the driver itself said, without the statement and its parameters."""
    said = error.orig if isinstance(error, sqlalchemy.exc.DBAPIError) and error.orig else error
    return (str(said).splitlines() or [type(said).__name__])[0]


def named(database_url: str) -> str:
    """Which database it is, without its password, as ``headway at db.example:5432``."""
    parameters = connect_parameters(database_url)
    return f"{parameters.get('dbname') or '(of the user)'} at {_server(parameters)}"


def _server(parameters: dict[str, Any]) -> str:
    host = parameters.get("host") or parameters.get("hostaddr") or "the local socket"
    port = parameters.get("port") or "5432"
    return f"{host} (port {port})" if host.startswith("/") else f"{host}:{port}"
