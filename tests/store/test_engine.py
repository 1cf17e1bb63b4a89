"""The message about a database that cannot be used, and what a listener receives."""

import asyncio
from contextlib import aclosing, suppress

import psycopg
import pytest
import sqlalchemy.exc
from sqlalchemy import text

from headway.errors import HeadwayError, Misconfigured, Unavailable
from headway.store import migrate
from headway.store.engine import (
    WAKE,
    connect_parameters,
    create_engine,
    listen,
    listen_parameters,
    refuse_old,
    transaction,
    unreachable,
)

BOUND_S = 30.0


@pytest.fixture
def database(_database):
    """Makes a database, for a block."""
    return _database


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("", "must begin with postgresql://"),
        ("mysql://u:s3cret@h/d", "must begin with postgresql://"),
        ("host=h password=s3cret", "must begin with postgresql://"),
        ("postgresql://u:s3cr%zzet@h/d", "not a URL that Postgres's library can read"),
        ("postgresql://u:s3cret@h/d?nonsense=1", "not a URL that Postgres's library can read"),
        ("postgresql://u:s3cret@[::1/d", "not a URL that Postgres's library can read"),
    ],
)
def test_a_url_that_cannot_be_read_is_named_without_its_password(url: str, says: str) -> None:
    with pytest.raises(Misconfigured, match=says) as raised:
        connect_parameters(url)
    assert "HEADWAY_DATABASE_URL" in str(raised.value)
    assert not {"s3cret", "s3cr"} & set(str(raised.value).replace(":", " ").split())
    assert "s3c" not in "".join(str(cause) for cause in (raised.value.__cause__, raised.value))


def test_a_url_may_name_a_unix_socket_and_options_of_its_own() -> None:
    read = connect_parameters("postgresql://headway@/headway?host=/tmp/x&options=-c%20jit%3Doff&connect_timeout=3")
    assert (read["user"], read["dbname"], read["host"], read["connect_timeout"]) == (
        "headway",
        "headway",
        "/tmp/x",
        "3",
    )
    assert read["options"].endswith("-c jit=off")
    assert read["application_name"] == "headway"


@pytest.mark.parametrize(
    ("said", "kind", "says"),
    [
        ('FATAL:  password authentication failed for user "u"', Misconfigured, "does not let user 'u' in"),
        ("fe_sendauth: no password supplied", Misconfigured, "does not let user 'u' in"),
        ('FATAL:  no pg_hba.conf entry for host "::1", user "u"', Misconfigured, "does not let user 'u' in"),
        ('FATAL:  role "u" does not exist', Misconfigured, "has no user 'u'"),
        ('FATAL:  database "d" does not exist', Misconfigured, "has no database 'd'"),
        ("FATAL:  the database system is starting up", Unavailable, "no Postgres answers at h:5432"),
        ("FATAL:  sorry, too many clients already", Unavailable, "no Postgres answers at h:5432"),
        ("connection refused", Unavailable, "no Postgres answers at h:5432"),
    ],
)
def test_a_refused_connection_is_one_sentence_with_the_cure(said: str, kind: type[HeadwayError], says: str) -> None:
    error = unreachable(
        psycopg.OperationalError(f"{said}\nand more lines"), connect_parameters("postgresql://u:s3cret@h/d")
    )
    assert type(error) is kind
    assert says in str(error)
    assert "s3cret" not in str(error)
    assert "\n" not in str(error)


def test_who_listens_notices_within_seconds_that_nobody_speaks() -> None:
    found = listen_parameters("postgresql://u@h/d?keepalives_idle=1&keepalives_interval=9")
    assert (found["keepalives_idle"], found["keepalives_interval"]) == (1, 1)
    assert found["tcp_user_timeout"] == 5_000


def test_an_absent_server_is_worth_another_try() -> None:
    with pytest.raises(Unavailable, match=r"no Postgres answers at 127\.0\.0\.1:1: start it"):
        migrate.check("postgresql://headway@127.0.0.1:1/headway")


def test_a_missing_database_and_a_missing_user_are_named(postgres_url: str) -> None:
    with pytest.raises(Misconfigured, match="has no database 'elsewhere'"):
        migrate.check(postgres_url.replace("/headway?", "/elsewhere?"))
    with pytest.raises(Misconfigured, match="has no user 'nobody'"):
        migrate.check(postgres_url.replace("//headway", "//nobody", 1))


@pytest.mark.parametrize(
    ("version", "is_refused"), [(150_018, True), (159_999, True), (160_000, False), (180_006, False)]
)
def test_postgres_before_16_is_refused(version: int, is_refused: bool) -> None:
    if is_refused:
        with pytest.raises(Misconfigured, match="leads to Postgres 15; Headway needs 16 or later"):
            refuse_old(version)
    else:
        refuse_old(version)


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1"])
def test_a_database_that_cannot_hold_every_name_is_refused_in_a_sentence(database, encoding: str) -> None:
    """With SQL_ASCII text comes as bytes: `headway migrate` ended with a trace of SQLAlchemy's."""
    with database(f"template0 encoding '{encoding}' locale_provider libc locale 'C'") as url:
        says = (
            rf"has the encoding {encoding}; Headway needs UTF8, .* make another with `createdb .* HEADWAY_DATABASE_URL"
        )
        with pytest.raises(Misconfigured, match=says):
            migrate.upgrade(url)
        with pytest.raises(Misconfigured, match=says):
            migrate.check(url)


async def test_a_transaction_commits_at_its_end_and_not_after_an_exception(database_url: str) -> None:
    engine = create_engine(database_url)
    async with transaction(engine) as connection:
        await connection.execute(text("create table seen (n int primary key)"))
        await connection.execute(text("insert into seen values (1)"))
    with suppress(ZeroDivisionError):
        async with transaction(engine) as connection:
            await connection.execute(text("insert into seen values (2)"))
            raise ZeroDivisionError
    with pytest.raises(sqlalchemy.exc.IntegrityError):  # a broken rule is no outage
        async with transaction(engine) as connection:
            await connection.execute(text("insert into seen values (1)"))
    async with transaction(engine) as connection:
        assert (await connection.execute(text("select array_agg(n) from seen"))).scalar_one() == [1]
    await engine.dispose()


async def test_a_lost_connection_is_unavailable_and_the_next_transaction_has_a_new_one(postgres_url: str) -> None:
    engine = create_engine(postgres_url)
    end = text("select pg_terminate_backend(pg_backend_pid())")
    with pytest.raises(Unavailable, match="Postgres"):
        async with transaction(engine) as connection:
            await connection.execute(end)
    async with transaction(engine) as connection:
        pid = (await connection.execute(text("select pg_backend_pid()"))).scalar_one()
    with psycopg.connect(postgres_url) as admin:  # the pooled one dies between two transactions: nobody notices
        admin.execute("select pg_terminate_backend(%s)", [pid])
    async with transaction(engine) as connection:
        await connection.execute(text("select 1"))
    await engine.dispose()


async def test_no_statement_and_no_lock_is_waited_for_without_end(postgres_url: str) -> None:
    engine = create_engine(postgres_url)
    async with transaction(engine) as connection:
        for name in ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout"):
            assert (await connection.execute(text(f"show {name}"))).scalar_one() != "0"
        await connection.execute(text("set local statement_timeout = '1ms'"))
        with pytest.raises(sqlalchemy.exc.OperationalError):
            await connection.execute(text("select pg_sleep(1)"))
    await engine.dispose()


async def test_a_listener_is_woken_when_it_begins_to_listen_and_after_each_interruption(
    postgres_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", logger="headway.store.engine")
    with psycopg.connect(postgres_url, autocommit=True) as other:
        async with asyncio.timeout(BOUND_S), aclosing(listen(postgres_url, ["one", "two"])) as received:
            assert [await anext(received), await anext(received)] == [("one", WAKE), ("two", WAKE)]
            other.execute("notify two, '17'")
            assert await anext(received) == ("two", "17")
            other.execute(
                "select pg_terminate_backend(pid) from pg_stat_activity where query like 'listen%' "
                "and datname = current_database()"
            )
            assert [await anext(received), await anext(received)] == [("one", WAKE), ("two", WAKE)]
            assert caplog.records[-1].getMessage() == "listening again channels=one,two"
            other.execute("notify one")
            assert await anext(received) == ("one", "")


async def test_a_listener_waits_for_a_server_that_is_not_there_yet(tmp_path, monkeypatch, caplog) -> None:
    """It must neither end nor spin: each further try comes later than the one before. One line says all."""
    pauses: list[float] = []

    async def paused(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 8:
            raise asyncio.CancelledError

    monkeypatch.setattr("headway.store.engine.asyncio.sleep", paused)
    url = f"postgresql://headway@/headway?host={tmp_path}"
    with pytest.raises(asyncio.CancelledError):
        await anext(listen(url, ["one"]))
    assert pauses == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]
    assert [line.getMessage()[:36] for line in caplog.records] == ["listening interrupted channels=one, "]
