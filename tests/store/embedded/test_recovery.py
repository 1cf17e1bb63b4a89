"""Whatever was killed, the next owner finds a folder it can start from, and what was committed is there."""

import json
import os
import select
import shutil
import signal
import subprocess
import threading
from contextlib import suppress

import psycopg
import pytest
import redis

from headway.store.embedded import ensure_postgres, ensure_valkey, foreign_processes
from headway.store.embedded.run_as import Identity
from headway.store.embedded.server_folder import prepared
from headway.store.embedded.waiting import Deadline

pytestmark = pytest.mark.e2e

ENSURE = {"postgres": ensure_postgres, "valkey": ensure_valkey}


def _kill(*pids: int) -> None:
    """And see them dead: until then they may still serve, and an owner may rightly adopt them."""
    for pid in pids:
        fd = os.pidfd_open(pid)
        os.kill(pid, signal.SIGKILL)
        assert select.select([fd], [], [], 10)[0]
        os.close(fd)


@pytest.fixture
def postgres(postgres_folder):
    with ensure_postgres(postgres_folder) as server:
        with psycopg.connect(server.url) as connection:
            connection.execute("create table things as select 1 as id")
        yield server


def _things(url: str) -> list[tuple]:
    with psycopg.connect(url) as connection:
        return connection.execute("select id from things").fetchall()


@pytest.mark.postgres
@pytest.mark.parametrize("victims", ["server", "guardian", "both"])
def test_postgres_is_recovered_with_its_rows_at_the_same_address(postgres, postgres_folder, victims):
    kept = prepared(postgres_folder).kept()
    _kill(
        *{"server": [kept.server_pid], "guardian": [kept.guardian_pid]}.get(victims, [kept.guardian_pid, postgres.pid])
    )
    with ensure_postgres(postgres_folder) as again:
        assert again.pid != postgres.pid
        assert again.url == postgres.url
        assert _things(again.url) == [(1,)]
        assert prepared(postgres_folder).is_guarded()


@pytest.mark.valkey
@pytest.mark.parametrize("victims", ["server", "guardian", "both"])
def test_valkey_is_recovered_at_the_same_address(folder, victims):
    with ensure_valkey(folder) as first:
        kept = prepared(folder).kept()
        _kill(*{"server": [first.pid], "guardian": [kept.guardian_pid]}.get(victims, [kept.guardian_pid, first.pid]))
        with ensure_valkey(folder) as again, redis.Redis.from_url(again.url) as client:
            assert again.pid != first.pid
            assert again.url == first.url
            assert client.ping()
            assert prepared(folder).is_guarded()


def test_a_server_never_outlives_its_guardian(own, kind, server_folder):
    """Or else, with the last owner, nobody would be left to stop it."""
    owner = own(kind, server_folder)
    assert owner.pid
    kept = prepared(server_folder).kept()
    _kill(kept.guardian_pid)
    assert Deadline(60).sees(lambda: kept.is_gone)


def test_a_guardian_that_is_asked_to_end_stops_its_server_first(own, kind, server_folder):
    own(kind, server_folder).said()
    kept = prepared(server_folder).kept()
    os.kill(kept.guardian_pid, signal.SIGTERM)
    assert Deadline(60).sees(lambda: kept.is_gone)
    assert not (server_folder / "state.json").exists()


def test_a_signal_that_meets_a_server_while_it_is_launched_is_not_lost():
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        command = Identity(mode="direct", uid=os.geteuid()).command(signal.SIGKILL, shutil.which("sleep"), "60")
        launched = subprocess.Popen(command)
        launched.send_signal(signal.SIGINT)  # long before it has become `sleep`
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
    assert launched.wait(timeout=50) == -signal.SIGINT


@pytest.mark.postgres
def test_backends_that_outlive_their_postmaster_are_waited_for_and_ended(postgres, postgres_folder, monkeypatch):
    monkeypatch.setattr(foreign_processes, "FOREIGN_GRACE_S", 0.3)

    def compute() -> None:  # without a look at anything, the end of the postmaster included
        with suppress(psycopg.OperationalError), psycopg.connect(postgres.url) as connection:
            pids.append(connection.info.backend_pid)
            connection.execute("select count(*) from generate_series(1, 10_000_000_000)")

    pids: list[int] = []
    thread = threading.Thread(target=compute)
    thread.start()
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        running = "select count(*) from pg_stat_activity where state = 'active' and query like '%generate_series(1%'"
        assert Deadline(60).sees(lambda: pids and connection.execute(running).fetchone() == (2,))
    _kill(postgres.pid)
    with ensure_postgres(postgres_folder) as again:
        assert _things(again.url) == [(1,)]
        assert pids[0] not in foreign_processes.working_in(postgres_folder / "pgdata")
    thread.join()


@pytest.mark.postgres
def test_a_pid_that_is_somebody_elses_by_now_is_not_taken_for_the_server(postgres_folder):
    with ensure_postgres(postgres_folder) as server:
        state = json.loads((postgres_folder / "state.json").read_text())
        left = (postgres_folder / "pgdata" / "postmaster.pid").read_text().splitlines()
        lock = (postgres_folder / "run" / ".s.PGSQL.5432.lock").read_text().splitlines()
    assert server.wait_stopped()
    # As after a power cut: everything names a pid that runs again, and is this test's.
    (postgres_folder / "state.json").write_text(json.dumps({**state, "server_pid": os.getpid()}))
    (postgres_folder / "pgdata" / "postmaster.pid").write_text("\n".join([str(os.getpid()), *left[1:], ""]))
    (postgres_folder / "run").mkdir(mode=0o700)
    (postgres_folder / "run" / ".s.PGSQL.5432.lock").write_text("\n".join([str(os.getpid()), *lock[1:], ""]))
    with ensure_postgres(postgres_folder) as again:
        assert again.pid != os.getpid()
        assert again.is_running()


@pytest.mark.postgres
def test_a_database_whose_making_was_killed_is_made_again(own, folder):
    first = own("postgres", folder)
    assert Deadline(60).sees(lambda: any(folder.glob("pgdata.new-*/base/1")))
    first.kill()
    assert not (folder / "pgdata").exists()
    said: list[str] = []
    with ensure_postgres(folder, on_progress=said.append) as server, psycopg.connect(server.url) as connection:
        assert connection.execute("select current_database()::text").fetchone() == ("headway",)
    assert [path.name for path in folder.glob("pgdata*")] == ["pgdata"]
    assert said == ["creating the database (first time)…"]


def test_an_owner_killed_while_it_starts_a_server_leaves_nothing_that_stops_the_next(own, kind, server_folder):
    first = own(kind, server_folder)
    assert Deadline(60).sees(lambda: (server_folder / "guardian.lock").exists())
    first.kill()
    with ENSURE[kind](server_folder) as server:
        assert server.is_running()
