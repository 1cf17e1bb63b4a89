"""Real servers for every test that asks: one Postgres and one Valkey a session, a fresh database a test.

========================  ========  ==========================================================================
fixture                   lives     what it is
========================  ========  ==========================================================================
``postgres_url``          session   the server's own database ``headway``; leave it alone, take the next
``database_url``          test      an empty database
``migrated_url``          test      a database with every migration applied
``engine``                test      connections to that
``seed``                  test      writes rows into it, as ingest, Spark, agents and the leader do
``valkey_server``         session   the server
``valkey_url``            test      the same, emptied
========================  ========  ==========================================================================

Tests that use them carry the marks ``postgres`` and ``valkey`` by themselves. A database costs 10 ms where the
servers' folder is in memory (``/dev/shm``), and up to 200 ms on a disk that is slow at making its 300 files.
"""

import fcntl
import itertools
import os
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
import redis

from headway.__main__ import GRPC_SETTINGS
from headway.store.embedded import Server, ensure_postgres, ensure_valkey
from headway.store.engine import Engine
from support.engines import engine_to
from support.seed import Seed

# As the command does before it imports gRPC: else its C core writes lines of its own on the terminal, now and then.
os.environ.update(GRPC_SETTINGS)

pytest_plugins = ["side_by_side", "whole_run", "in_time", "gc_pauses"]

FOLDER_PREFIX = "headway-tests-"
MEMORY_BYTES_MIN = 2_000_000_000
CONNECT_TIMEOUT_S = 60

FIXTURE_MARKS = {
    "postgres_url": pytest.mark.postgres,
    "valkey_server": pytest.mark.valkey,
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        for fixture, mark in FIXTURE_MARKS.items():
            if fixture in getattr(item, "fixturenames", ()):  # of the fixtures' fixtures, too
                item.add_marker(mark)


@pytest.fixture(scope="session")
def data_folder() -> Iterator[Path]:
    """Where embedded servers keep their data: in memory if there is room. Pytest's own folder would keep it all."""
    memory = Path("/dev/shm")
    has_room = os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > MEMORY_BYTES_MIN
    base = memory if has_room else Path(tempfile.gettempdir())
    for left in base.glob(f"{FOLDER_PREFIX}*"):  # by killed runs
        _remove_unless_used(left)
    made = Path(tempfile.mkdtemp(prefix="headway-new-", dir=base))
    made.chmod(0o711)  # for root in a container, whose Postgres runs as nobody; each server's own folder is 0700
    with (made / "used.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        # Locked before it has the name that another process of the same run would clear away.
        folder = made.rename(base / made.name.replace("headway-new-", FOLDER_PREFIX))
        yield folder
        shutil.rmtree(folder)


def _remove_unless_used(folder: Path) -> None:
    try:
        with (folder / "used.lock").open("r+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder)
    except OSError:  # used, about to be used, or somebody else's
        return


@pytest.fixture(scope="session")
def postgres_url(data_folder: Path) -> Iterator[str]:
    server = ensure_postgres(data_folder / "postgres", is_durable=False)
    yield server.url
    assert server.wait_stopped()


@pytest.fixture(scope="session")
def _database(postgres_url: str) -> Iterator[Callable[[str], contextmanager]]:
    """Makes databases: ``with _database(template) as url``."""
    numbers = itertools.count(1)
    # One connection for all: two more a test would take as long as the database itself.
    with psycopg.connect(postgres_url, autocommit=True) as admin:

        @contextmanager
        def made(template: str) -> Iterator[str]:
            name = f"test_{next(numbers)}"
            # Nobody may be connected to a template while it is copied.
            admin.execute("select pg_terminate_backend(pid) from pg_stat_activity where datname = %s", [template])
            admin.execute(f"create database {name} template {template} strategy file_copy")
            try:
                server = urlsplit(postgres_url)
                # Postgres gets no processor for seconds beside a full machine, and no test is about that.
                patient = f"connect_timeout={CONNECT_TIMEOUT_S}&{server.query}"
                yield server._replace(path=f"/{name}", query=patient).geturl()
            finally:
                admin.execute(f"drop database {name} with (force)")

        yield made


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


@pytest.fixture
async def engine(migrated_url: str) -> AsyncIterator[Engine]:
    engine = engine_to(migrated_url)
    yield engine
    await engine.dispose()


@pytest.fixture
def seed(migrated_url: str) -> Iterator[Seed]:
    seed = Seed(migrated_url)
    yield seed
    seed.close()


@pytest.fixture(scope="session")
def valkey_server(data_folder: Path) -> Iterator[Server]:
    server = ensure_valkey(data_folder / "valkey")
    yield server
    assert server.wait_stopped()


@pytest.fixture
def valkey_url(valkey_server: Server) -> str:
    with redis.Redis.from_url(valkey_server.url) as client:
        # A process that an earlier test has killed may still be dying: what waits for a job there would be given one.
        client.client_kill_filter(_type="normal", skipme=True)
        client.flushall()
    if (pools := sys.modules.get("kombu.pools")) is not None:
        pools.reset()  # it knows which queues it has declared, and would not declare them again
    return valkey_server.url
