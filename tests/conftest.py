"""Real servers for every test that asks: one Postgres and one Valkey a session, a fresh database a test.

========================  ========  ==========================================================================
fixture                   lives     what it is
========================  ========  ==========================================================================
``postgres_url``          session   the server's own database ``headway``; leave it alone, take the next
``database_url``          test      an empty database
``migrated_url``          test      a database with every migration applied
``valkey_server``         session   the server
``valkey_url``            test      the same, emptied
========================  ========  ==========================================================================

Tests that use them carry the marks ``postgres`` and ``valkey`` by themselves.
"""

import itertools
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
import redis

from headway.store.embedded import Server, ensure_postgres, ensure_valkey

pytest_plugins = ["whole_run"]

FIXTURE_MARKS = {
    "postgres_url": pytest.mark.postgres,
    "valkey_server": pytest.mark.valkey,
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        for fixture, mark in FIXTURE_MARKS.items():
            if fixture in getattr(item, "fixturenames", ()):  # of the fixtures' fixtures, too
                item.add_marker(mark)


@contextmanager
def _kept_in_folder(ensure: Callable[[Path], Server]) -> Iterator[Server]:
    # Not pytest's folder, which keeps what the last runs left: this is 50 MB a run. Killed tests leave it; no process.
    folder = Path(tempfile.mkdtemp(prefix="headway-tests-"))
    server = ensure(folder / "data")
    try:
        yield server
    finally:
        assert server.wait_stopped(), f"the server of {folder} did not stop"
        shutil.rmtree(folder)


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    with _kept_in_folder(lambda folder: ensure_postgres(folder, is_durable=False)) as server:
        yield server.url


@pytest.fixture(scope="session")
def _database(postgres_url: str) -> Callable[[str], contextmanager]:
    """Makes databases: ``with _database(template) as url``."""
    numbers = itertools.count(1)

    @contextmanager
    def made(template: str) -> Iterator[str]:
        name = f"test_{next(numbers)}"
        with psycopg.connect(postgres_url, autocommit=True) as admin:
            # Nobody may be connected to a template while it is copied.
            admin.execute("select pg_terminate_backend(pid) from pg_stat_activity where datname = %s", [template])
            admin.execute(f"create database {name} template {template}")
        try:
            yield urlsplit(postgres_url)._replace(path=f"/{name}").geturl()
        finally:
            with psycopg.connect(postgres_url, autocommit=True) as admin:
                admin.execute(f"drop database {name} with (force)")

    return made


@pytest.fixture
def database_url(_database) -> Iterator[str]:
    with _database("template0") as url:
        yield url


@pytest.fixture(scope="session")
def _migrated_template(_database) -> Iterator[str]:
    from headway.store.migrate import upgrade

    with _database("template0") as url:
        upgrade(url)
        yield urlsplit(url).path.removeprefix("/")


@pytest.fixture
def migrated_url(_database, _migrated_template: str) -> Iterator[str]:
    with _database(_migrated_template) as url:
        yield url


@pytest.fixture(scope="session")
def valkey_server() -> Iterator[Server]:
    with _kept_in_folder(ensure_valkey) as server:
        yield server


@pytest.fixture
def valkey_url(valkey_server: Server) -> str:
    with redis.Redis.from_url(valkey_server.url) as client:
        client.flushall()
    return valkey_server.url
