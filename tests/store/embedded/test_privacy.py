"""Nobody but its user reaches a server or reads its data; no path is too long or too odd for it."""

import os
import stat
from pathlib import Path

import psutil
import psycopg
import pytest
import redis

from headway.store.embedded import ensure_postgres, ensure_valkey
from headway.store.embedded.server_folder import prepared

pytestmark = pytest.mark.e2e

ENSURE = {"postgres": ensure_postgres, "valkey": ensure_valkey}


def _open_to_others(root) -> list[str]:
    return [
        f"{path} {stat.filemode(path.lstat().st_mode)}"
        for path in (root, *root.rglob("*"))
        if path.lstat().st_mode & 0o077 and not path.is_symlink()
    ]


@pytest.fixture
def careless_umask():
    old = os.umask(0)
    yield
    os.umask(old)


@pytest.mark.parametrize("is_existing", [False, True])
def test_no_file_or_socket_is_open_to_others_whatever_the_umask(careless_umask, kind, folder, is_existing):
    if is_existing:
        folder.mkdir()
    with ENSURE[kind](folder) as server:
        assert any(stat.S_ISSOCK(path.lstat().st_mode) for path in (folder / "run").iterdir())
        assert _open_to_others(folder) == []
    assert server.wait_stopped()
    assert _open_to_others(folder) == []


def test_nothing_listens_on_the_network(kind, server_folder):
    with ENSURE[kind](server_folder) as server:
        listening = [
            c for c in psutil.net_connections("inet") if c.pid == server.pid and c.status == psutil.CONN_LISTEN
        ]
        assert listening == []


def test_a_server_learns_nothing_from_the_environment(kind, server_folder, monkeypatch):
    for name, value in {
        "HEADWAY_TOKEN": "secret",
        "PGPORT": "1",
        "PGOPTIONS": "-c nonsense=1",
        "LC_ALL": "xx_XX",
    }.items():
        monkeypatch.setenv(name, value)
    with ENSURE[kind](server_folder) as server:
        for pid in (server.pid, prepared(server_folder).kept().guardian_pid):
            environ = psutil.Process(pid).environ()
            assert not {"HEADWAY_TOKEN", "PGPORT", "PGOPTIONS", "HEADWAY_PARENT_FD"} & environ.keys()
            assert environ.get("LC_ALL", "C") == "C"  # Valkey writes its title over all of it


@pytest.mark.parametrize("name", ["long" * 30, "a, b", 'it\'s "q" ü%20?#@'])
def test_long_and_odd_paths_serve(kind, folder, name):
    path = folder / name
    with ENSURE[kind](path) as server:
        if kind == "postgres":
            with psycopg.connect(server.url) as connection:
                assert connection.execute("select 1").fetchone() == (1,)
        else:
            with redis.Redis.from_url(server.url) as client:
                assert client.ping()
        runtime_dir = Path(prepared(path).kept().runtime_dir)
        assert runtime_dir.name.startswith(f"headway-{os.geteuid()}-")
        assert _open_to_others(runtime_dir) == []
    assert server.wait_stopped()
    assert not runtime_dir.exists()


@pytest.mark.postgres
def test_the_database_suits_a_small_machine(postgres_folder):
    expected = {
        "shared_buffers": "64MB",
        "max_connections": "100",
        "fsync": "on",
        "TimeZone": "UTC",
        "listen_addresses": "",
        "server_encoding": "UTF8",
    }
    with ensure_postgres(postgres_folder) as server, psycopg.connect(server.url) as connection:
        for name, value in expected.items():
            assert connection.execute(f"show {name}").fetchone() == (value,), name
        assert connection.execute(
            "select current_user::text, datlocale from pg_database where datname = 'headway'"
        ).fetchone() == (
            "headway",
            "C.UTF-8",
        )


@pytest.mark.valkey
def test_valkey_refuses_rather_than_forgets_when_memory_is_full(folder):
    with ensure_valkey(folder) as server, redis.Redis.from_url(server.url, decode_responses=True) as client:
        found = client.config_get("maxmemory-policy", "appendonly", "save", "port")
    assert found == {"maxmemory-policy": "noeviction", "appendonly": "no", "save": "", "port": "0"}
