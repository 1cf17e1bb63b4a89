"""What cannot serve is refused in one sentence that says what would do."""

import importlib.util
import os
import re
import shutil
import signal
from pathlib import Path

import pytest

from headway.errors import Misconfigured, Unavailable
from headway.store.embedded import ensure_postgres, ensure_valkey
from headway.store.embedded.server_folder import prepared


@pytest.mark.postgres
def test_data_of_another_major_version_are_refused(postgres_folder):
    (postgres_folder / "pgdata" / "PG_VERSION").write_text("17\n")
    with pytest.raises(
        Misconfigured,
        match=r"written by Postgres 17 .* brings Postgres 18: `headway backup` it .* HEADWAY_DATABASE_URL",
    ):
        ensure_postgres(postgres_folder)


@pytest.mark.postgres
def test_data_without_a_version_are_refused(postgres_folder):
    (postgres_folder / "pgdata" / "PG_VERSION").unlink()
    with pytest.raises(Misconfigured, match="restore it, or remove it"):
        ensure_postgres(postgres_folder)


@pytest.mark.postgres
def test_a_server_that_does_not_start_is_reported_with_its_own_last_word(postgres_folder):
    (postgres_folder / "pgdata" / "postgresql.conf").write_text("no_such_setting = 1\n")
    with pytest.raises(Unavailable, match=r"did not become ready: .*FATAL: .* its log is .*server\.log"):
        ensure_postgres(postgres_folder)


@pytest.mark.postgres
def test_a_server_that_hangs_is_reported_after_the_deadline(own, postgres_folder):
    own("postgres", postgres_folder).said()
    kept = prepared(postgres_folder).kept()
    os.kill(kept.server_pid, signal.SIGSTOP)
    with pytest.raises(Unavailable, match="did not become ready"):
        ensure_postgres(postgres_folder, deadline_s=0.5)
    os.kill(kept.server_pid, signal.SIGCONT)


def test_a_folder_with_something_else_in_it_is_refused_and_left_alone(tmp_path):
    (tmp_path / "letter.txt").write_text("dear reader")
    tmp_path.chmod(0o755)
    with pytest.raises(Misconfigured, match=r"holds something else .* name another folder"):
        ensure_valkey(tmp_path)
    assert tmp_path.stat().st_mode & 0o777 == 0o755
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]


def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path):
    (tmp_path / "data").write_text("")
    with pytest.raises(Misconfigured, match=r"cannot hold .* \(File exists\): name another folder"):
        ensure_valkey(tmp_path / "data")


@pytest.mark.postgres
@pytest.mark.valkey
def test_the_folder_of_another_server_is_refused(folder):
    with (
        ensure_valkey(folder),
        pytest.raises(Misconfigured, match="folder of an embedded Valkey: give Postgres one of its own"),
    ):
        ensure_postgres(folder)


@pytest.mark.parametrize("ensure", [ensure_postgres, ensure_valkey])
def test_a_missing_wheel_is_named(folder, monkeypatch, ensure):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(Misconfigured, match=r"is not installed: .*pip install '\.\[all\]' in a clone; or "):
        ensure(folder)


@pytest.mark.valkey
@pytest.mark.parametrize("squat", ["link", "open folder"])
def test_a_runtime_folder_that_others_could_have_made_is_refused(folder, squat):
    """Its name in /tmp can be guessed by every user of the machine."""
    path = folder / ("long" * 30)
    with ensure_valkey(path) as server:
        runtime_dir = Path(re.fullmatch(r"unix://(.*)/valkey\.sock\?db=0", server.url)[1])
    assert server.wait_stopped()
    assert not runtime_dir.exists()
    if squat == "link":
        runtime_dir.symlink_to(folder)
    else:
        runtime_dir.mkdir(mode=0o777)
        runtime_dir.chmod(0o777)
    try:
        with pytest.raises(
            Misconfigured, match=rf"{runtime_dir} is not a folder that only user {os.geteuid()} can enter"
        ):
            ensure_valkey(path)
    finally:
        runtime_dir.unlink() if squat == "link" else shutil.rmtree(runtime_dir)
