"""A server lives exactly as long as somebody owns its folder."""

import fcntl
import os
import signal

import psutil
import pytest
import redis

from headway.errors import Unavailable
from headway.store.embedded import ensure_postgres, ensure_valkey
from headway.store.embedded.server_folder import prepared
from headway.store.embedded.waiting import Deadline

pytestmark = pytest.mark.e2e

ENSURE = {"postgres": ensure_postgres, "valkey": ensure_valkey}


def _processes_in(path) -> list[list[str]]:
    """Command lines of the servers and guardians of a folder, without the backends, whose titles name no folder."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        words = process.info["cmdline"] or []
        if any(str(path) in word for word in words) and words[1:2] != ["-c"]:
            found.append(words)
    return found


def _is_locked_by_guardian(path) -> bool:
    with (path / "owners.lock").open("r+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        return False


def _stops(path) -> bool:
    kept = prepared(path).kept()
    return Deadline(60).sees(lambda: (kept is None or kept.is_gone) and not prepared(path).is_guarded())


@pytest.mark.postgres
def test_two_processes_that_race_for_a_new_folder_get_one_database_and_one_server(own, folder):
    racers = [own("postgres", folder) for _ in range(2)]
    assert len({racer.pid for racer in racers}) == 1
    assert (folder / "server.log").read_text().count("starting PostgreSQL") == 1
    assert [path.name for path in folder.glob("pgdata*")] == ["pgdata"]


def test_a_running_server_is_adopted(own, kind, server_folder):
    first, second = own(kind, server_folder), own(kind, server_folder)
    assert first.said() == second.said()


def test_a_server_outlives_the_owner_that_started_it(own, kind, server_folder):
    first = own(kind, server_folder)
    pid = first.pid
    with ENSURE[kind](server_folder) as second:
        assert second.pid == pid
        first.kill()
        assert second.is_running()
        with ENSURE[kind](server_folder) as third:
            assert third.pid == pid


@pytest.mark.parametrize("end", ["kill", "end"])
def test_no_process_and_no_socket_is_left_when_the_last_owner_is_gone(own, kind, server_folder, end):
    owners = [own(kind, server_folder) for _ in range(2)]
    assert owners[0].pid == owners[1].pid
    for owner in owners:
        getattr(owner, end)()
    assert _stops(server_folder)
    assert _processes_in(server_folder) == []
    assert not (server_folder / "run").exists()
    assert not (server_folder / "state.json").exists()


def test_an_owner_that_waits_leaves_no_process_behind(kind, server_folder):
    server = ENSURE[kind](server_folder)
    assert server.wait_stopped()
    assert not server.is_running()
    assert _processes_in(server_folder) == []


def test_waiting_for_the_stop_says_no_while_somebody_else_owns_the_server(kind, server_folder):
    with ENSURE[kind](server_folder) as first:
        assert not ENSURE[kind](server_folder).wait_stopped(timeout_s=0.2)
        assert first.is_running()


def test_a_new_owner_waits_for_a_server_that_is_stopping_and_starts_afresh(own, kind, server_folder):
    first = ENSURE[kind](server_folder)
    os.kill(first.pid, signal.SIGSTOP)  # so that stopping takes as long as the test wants
    first.release()
    assert Deadline(60).sees(lambda: _is_locked_by_guardian(server_folder))
    second = own(kind, server_folder)
    with pytest.raises(Unavailable, match="is stopping and does not end"):
        ENSURE[kind](server_folder, deadline_s=0.1)
    os.kill(first.pid, signal.SIGCONT)
    assert second.pid != first.pid


def test_a_claim_holds_after_another_claim_of_the_same_process_was_released(kind, server_folder):
    first, second = ENSURE[kind](server_folder), ENSURE[kind](server_folder)
    first.release()
    first.release()
    assert not first.wait_stopped(timeout_s=0.2)
    assert second.is_running()
    assert second.wait_stopped()


def test_claims_on_a_dead_server_are_given_up_for_the_new_one(kind, server_folder):
    dead = ENSURE[kind](server_folder)
    os.kill(dead.pid, signal.SIGKILL)
    fresh = ENSURE[kind](server_folder)
    assert not dead.is_running()
    assert fresh.is_running()
    assert fresh.wait_stopped(), "the claim on the dead server still counted"


@pytest.mark.valkey
def test_valkey_forgets_or_keeps_as_configured(folder):
    for is_persistent, kept in ((True, b"1"), (False, None)):
        path = folder / str(is_persistent)
        with ensure_valkey(path, is_persistent=is_persistent) as server, redis.Redis.from_url(server.url) as client:
            client.set("thing", 1)
        assert server.wait_stopped()
        with ensure_valkey(path, is_persistent=is_persistent) as server, redis.Redis.from_url(server.url) as client:
            assert client.get("thing") == kept
        assert server.wait_stopped()
