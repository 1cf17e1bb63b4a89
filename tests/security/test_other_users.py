"""Another user of the host wants to stop its agent, or to decide what it runs."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from headway.agent.config.folder_permissions import movers
from headway.agent.config.host_file import load
from headway.agent.state.instance_lock import as_host
from headway.agent.state.state_dir import StateFolder
from headway.cli.roles.agent_setup import warnings
from headway.errors import Misconfigured, Refused
from headway.settings import AgentSettings
from support.other_users import NOBODY, TAKES_THE_NAME

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user, too")


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that other users can enter."""
    place = Path(tempfile.mkdtemp(prefix="headway-security-"))
    place.chmod(0o711)
    yield place
    shutil.rmtree(place)


@as_root
@pytest.mark.parametrize("how", ["listens", "is silent"])
def test_a_name_that_another_user_has_taken_stops_no_agent(how: str, caplog: pytest.LogCaptureFixture) -> None:
    control = f"127.0.0.1:{os.getpid()}"
    argv = [sys.executable, "-c", TAKES_THE_NAME, control, "a", how, str(NOBODY)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as other:
        try:
            assert other.stdout is not None
            assert other.stdout.readline() == "taken\n"
            with as_host([control], "a"):
                assert "holds the name" in caplog.text
        finally:
            other.kill()


def test_a_name_that_an_agent_of_the_same_user_has_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    control = f"127.0.0.1:{os.getpid()}"
    with as_host([control], "a"):
        for _ in range(10):  # also once several have asked who has it
            with pytest.raises(Refused, match="is host 'a' of the control plane"), as_host([control], "a"):
                pass


@as_root
def test_a_state_folder_of_another_user_is_refused(place: Path) -> None:
    (place / "state").mkdir(mode=0o700)
    os.chown(place / "state", NOBODY, NOBODY)
    refused = pytest.raises(Misconfigured, match=rf"belongs to uid {NOBODY}, and this agent runs as uid 0")
    with refused, StateFolder(place / "state").only_agent():
        pass
    assert list((place / "state").iterdir()) == []


@as_root
def test_a_folder_of_logs_of_another_user_is_refused(place: Path) -> None:
    (place / "state" / "workers").mkdir(parents=True)
    os.chown(place / "state" / "workers", NOBODY, NOBODY)
    refused = pytest.raises(Misconfigured, match=r"state/workers belongs to uid")
    with refused, StateFolder(place / "state").only_agent():
        pass


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o1777])
def test_a_state_folder_that_others_may_write_is_refused(place: Path, mode: int) -> None:
    (place / "state").mkdir()
    (place / "state").chmod(mode)
    refused = pytest.raises(Misconfigured, match=rf"can be written by others \(mode {mode:04o}\): .*chmod go-w")
    with refused, StateFolder(place / "state").only_agent():
        pass
    with StateFolder(place / "state" / "below").only_agent():  # as the message says
        pass


HOST_FILE = '[templates.t]\nargv = ["true"]\n'


def test_a_host_file_that_anybody_may_write_is_refused(place: Path) -> None:
    (place / "host.toml").write_text(HOST_FILE)
    (place / "host.toml").chmod(0o666)
    with pytest.raises(Misconfigured, match=r"host.toml can be written by others \(mode 0666\).*chmod go-w"):
        load(place / "host.toml")
    (place / "host.toml").chmod(0o644)
    assert set(load(place / "host.toml").templates) == {"t"}


@as_root
def test_a_host_file_of_another_user_is_refused(place: Path) -> None:
    (place / "host.toml").write_text(HOST_FILE)
    os.chown(place / "host.toml", NOBODY, NOBODY)
    with pytest.raises(Misconfigured, match=rf"host.toml belongs to uid {NOBODY}, which is neither root nor"):
        load(place / "host.toml")


@as_root
def test_a_host_file_that_a_group_of_others_may_write_is_refused_by_an_agent_of_roots(place: Path) -> None:
    (place / "host.toml").write_text(HOST_FILE)
    os.chown(place / "host.toml", 0, NOBODY)
    (place / "host.toml").chmod(0o664)
    with pytest.raises(Misconfigured, match="can be written by others"):
        load(place / "host.toml")


@as_root
@pytest.mark.parametrize(
    ("owner", "mode", "is_theirs"),
    [
        (NOBODY, 0o755, True),  # it is their own
        (0, 0o777, True),
        (0, 0o1777, False),  # as /tmp
        (0, 0o755, False),
    ],
)
@pytest.mark.parametrize("way", ["in it", "below a folder in it", "by a link in it"])
def test_a_state_folder_that_a_templates_user_may_move_is_warned_of(
    place: Path, owner: int, mode: int, is_theirs: bool, way: str
) -> None:
    """Its jobs want that the next agent knows none of its workers, and starts others beside them."""
    app = place / "app"
    app.mkdir()
    os.chown(app, owner, owner)
    app.chmod(mode)
    state = app / "state" if way == "in it" else app / "deep" / "state"
    if way == "by a link in it":
        (place / "roots").mkdir(mode=0o700)
        (app / "deep").symlink_to(place / "roots")
    state.mkdir(mode=0o700, parents=True)
    (place / "host.toml").write_text('[templates.t]\nargv = ["true"]\nuser = "nobody"\n')
    template = load(place / "host.toml").templates["t"]
    assert movers(state, [template]) == ([("nobody", app)] if is_theirs else [])
    settings = AgentSettings.from_env({"HEADWAY_STATE_DIR": str(state)})
    said = warnings(settings, load(place / "host.toml"))
    assert [f"may change {app}: they can move it away" in each for each in said] == [True] * is_theirs
