"""The fixtures that every test of the store stands on."""

import psycopg
import pytest
import redis
import sqlalchemy


def _tables(url: str) -> list[str]:
    with psycopg.connect(url) as connection:
        return [name for (name,) in connection.execute("select tablename from pg_tables where schemaname = 'public'")]


@pytest.mark.parametrize("_turn", [1, 2])
def test_each_test_gets_an_empty_database_of_its_own(database_url, _turn):
    assert _tables(database_url) == []
    with psycopg.connect(database_url) as connection:
        connection.execute("create table things (id int)")


@pytest.mark.parametrize("_turn", [1, 2])
def test_each_test_gets_an_empty_valkey(valkey_url, _turn):
    with redis.Redis.from_url(valkey_url) as client:
        assert client.dbsize() == 0
        client.set("thing", 1)


def test_the_database_can_be_reached_through_sqlalchemy(database_url):
    engine = sqlalchemy.create_engine(database_url.replace("postgresql://", "postgresql+psycopg://"))
    with engine.connect() as connection:
        assert connection.execute(sqlalchemy.text("select current_setting('TimeZone')")).scalar() == "UTC"
    engine.dispose()


def test_tests_that_use_the_servers_carry_their_marks(request, database_url, valkey_url):
    assert {mark.name for mark in request.node.iter_markers()} >= {"postgres", "valkey"}


def test_a_migrated_database_has_the_tables_of_the_newest_migration(migrated_url):
    assert "alembic_version" in _tables(migrated_url)
    assert len(_tables(migrated_url)) > 1
