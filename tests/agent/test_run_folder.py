"""The folder through which workers find the reporter and reach their agent: who can change what in it."""

import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import run

import pytest

from headway.agent.reporting import run_folder
from headway.agent.reporting.run_folder import REPORTER, REPORTER_FILE, RunFolder
from headway.agent.state.state_dir import StateFolder

AGENT_ID = "5ec4e7" * 5


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the folder is made."""
    place = tmp_path / "run"
    place.mkdir()
    monkeypatch.setattr(run_folder, "_roots", lambda _: iter([place]))
    monkeypatch.setattr(run_folder, "reporter_source", lambda: b"SAID = 1\n")
    return place


@contextmanager
def folder_of(tmp_path: Path) -> Iterator[RunFolder]:
    state = StateFolder(tmp_path / "state")
    with state.only_agent():
        yield RunFolder(state, agent_id=AGENT_ID, environment={})


def mode(path: Path) -> str:
    return oct(stat.S_IMODE(path.stat().st_mode))


def test_all_can_read_it_and_only_the_agent_can_change_it(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        with folder_of(tmp_path) as folder:
            path = folder.make()
    finally:
        os.umask(before)
    assert (mode(path), mode(path / "pipes"), mode(path / "module")) == ("0o755", "0o755", "0o555")
    assert mode(path / "module" / REPORTER_FILE) == "0o644"
    assert [each.name for each in (path / "module").iterdir()] == [REPORTER_FILE]


def test_nobody_learns_the_agents_secret_from_where_it_is(tmp_path: Path) -> None:
    with folder_of(tmp_path) as folder:
        assert AGENT_ID not in str(folder.make())


def test_a_worker_imports_the_reporter_from_it(tmp_path: Path) -> None:
    with folder_of(tmp_path) as folder:
        folder.make()
        found = run(
            [sys.executable, "-c", f"import {REPORTER}; print({REPORTER}.SAID)"],
            env={"PYTHONPATH": str(folder.module)},
            capture_output=True,
            check=True,
        )
    assert found.stdout == b"1\n"


def test_another_version_of_the_agent_brings_its_own_reporter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with folder_of(tmp_path) as folder:
        reporter = folder.make() / "module" / REPORTER_FILE
        written = reporter.stat().st_ino
        folder.make()
        assert reporter.stat().st_ino == written
        monkeypatch.setattr(run_folder, "reporter_source", lambda: b"SAID = 2\n")
        folder.make()
        assert reporter.read_text() == "SAID = 2\n"


def test_the_next_agent_finds_it_also_where_it_would_make_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with folder_of(tmp_path) as folder:
        path = folder.make()
    monkeypatch.setattr(run_folder, "_roots", lambda _: iter([tmp_path]))
    with folder_of(tmp_path) as folder:
        folder.find()
        assert folder.path == path
        assert folder.make() == path


def test_one_that_was_emptied_is_made_again(tmp_path: Path) -> None:
    with folder_of(tmp_path) as folder:
        path = folder.make()
        run(["rm", "-rf", path], check=True)
        assert folder.make() == path
        assert (path / "module" / REPORTER_FILE).exists()


def squat_link(path: Path) -> None:
    target = path.parent / "target"
    target.mkdir()
    path.symlink_to(target)


def squat_file(path: Path) -> None:
    path.write_text("")


def squat_open_folder(path: Path) -> None:
    path.mkdir()
    path.chmod(0o777)


def squat_as_another_user(path: Path) -> None:
    path.mkdir()
    os.chown(path, 65534, 65534)


@pytest.mark.parametrize(
    "squat",
    [
        squat_link,
        squat_file,
        squat_open_folder,
        pytest.param(
            squat_as_another_user, marks=pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
        ),
    ],
)
def test_who_has_taken_its_name_is_passed_by(tmp_path: Path, place: Path, squat: object) -> None:
    with folder_of(tmp_path) as folder:
        name = folder.make().name
        run(["rm", "-rf", place / name], check=True)
        squat(place / name)
        path = folder.make()
        assert path.name != name
        assert path.name.startswith(name)
        assert mode(path) == "0o755"
    with folder_of(tmp_path) as folder:
        folder.find()
        assert folder.path == path, "the next agent goes by what this one has noted"


def test_a_folder_in_which_others_may_move_it_is_not_used(tmp_path: Path, place: Path) -> None:
    place.chmod(0o777)
    with folder_of(tmp_path) as folder, pytest.raises(PermissionError):
        folder.make()
    place.chmod(0o1777)  # as /tmp
    with folder_of(tmp_path) as folder:
        folder.make()


def test_it_goes_with_its_last_pipe(tmp_path: Path) -> None:
    with folder_of(tmp_path) as folder:
        path = folder.make()
        os.mkfifo(path / "pipes" / "w")
        folder.clear()
        assert path.exists()
        (path / "pipes" / "w").unlink()
        folder.clear()
        assert not path.exists()


def test_where_there_is_none_nothing_is_found(tmp_path: Path) -> None:
    with folder_of(tmp_path) as folder:
        folder.find()
        assert folder.path is None
        with pytest.raises(FileNotFoundError):
            folder.opened_pipes()
