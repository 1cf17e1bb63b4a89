import os
from pathlib import Path

import pytest

from headway.agent.config.host_file_watcher import WatchedFile
from headway.errors import Misconfigured

ONE = "[templates.a]\nargv = ['sh']\n"
TWO = "[templates.a]\nargv = ['sh', '-x']\n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "host.toml"
    path.write_text(ONE)
    return path


def argv(watched: WatchedFile) -> tuple[str, ...]:
    return watched.now.templates["a"].argv


def test_a_change_is_read_once_it_has_settled(path: Path) -> None:
    watched = WatchedFile(path)
    assert not watched.is_changed()
    path.write_text("")  # as an editor leaves it for a moment
    assert not watched.is_changed()
    path.write_text(TWO)
    assert not watched.is_changed()
    assert argv(watched) == ("sh",)
    assert watched.is_changed()
    assert argv(watched) == ("sh", "-x")
    assert not watched.is_changed()


def test_asked_to_it_reads_at_once_also_an_unchanged_file(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    watched = WatchedFile(path)
    path.write_text(TWO)
    assert watched.is_changed(is_asked=True)
    assert argv(watched) == ("sh", "-x")
    assert not watched.is_changed(is_asked=True)
    assert "nothing is new" in caplog.messages[-1]


@pytest.mark.parametrize("broken", ["[templates.a]\nargv = ['rqq']\n", "[", None])
def test_a_broken_file_keeps_the_old_one_and_says_so_once(
    path: Path, broken: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    watched = WatchedFile(path)
    if broken is None:
        path.unlink()
    else:
        path.write_text(broken)
    assert [watched.is_changed() for _ in range(4)] == [False] * 4
    assert argv(watched) == ("sh",)
    assert watched.has_mistakes
    (reported,) = caplog.messages
    assert reported.startswith(f"the host file is kept as it was: {path}")
    path.write_text(TWO)
    assert [watched.is_changed() for _ in range(2)] == [False, True]


def test_what_was_only_touched_is_no_change(path: Path) -> None:
    watched = WatchedFile(path)
    os.utime(path, (1, 1))
    assert [watched.is_changed() for _ in range(3)] == [False] * 3


def test_at_the_start_there_is_nothing_to_keep(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured):
        WatchedFile(tmp_path / "host.toml")


def test_a_file_that_is_as_it_was_again_has_no_mistakes(path: Path) -> None:
    watched = WatchedFile(path)
    path.write_text("[")
    assert not watched.is_changed(is_asked=True)
    assert watched.has_mistakes
    path.write_text(ONE)
    assert not watched.is_changed(is_asked=True)
    assert not watched.has_mistakes
