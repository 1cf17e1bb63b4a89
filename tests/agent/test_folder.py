import errno
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from headway.agent.model import Identity
from headway.agent.state import instance_lock
from headway.agent.state.instance_lock import as_host
from headway.agent.state.state_dir import StateFolder
from headway.errors import Misconfigured, Refused
from support.flushed import Disk


def test_one_agent_works_in_a_folder(tmp_path: Path) -> None:
    with StateFolder(tmp_path / "state").only_agent():
        refused = pytest.raises(
            Refused, match=rf"an agent \(process {os.getpid()}\) works in the state folder .*/state"
        )
        with refused, StateFolder(tmp_path / "state").only_agent():
            pass
    with StateFolder(tmp_path / "state").only_agent():
        pass


def test_nobody_else_can_read_what_is_in_it(tmp_path: Path) -> None:
    folder = StateFolder(tmp_path / "state")
    with folder.only_agent():
        folder.identity()
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (folder.root, *folder.root.iterdir())}
    assert modes == {"state": 0o700, "workers": 0o700, "agent.lock": 0o600, "identity.json": 0o600}


def test_who_an_agent_is_stays(tmp_path: Path) -> None:
    folder = StateFolder(tmp_path / "state")
    assert not folder.was_used
    with folder.only_agent():
        first = folder.identity()
        assert folder.identity() == first
        enrolled = Identity(agent_id=first.agent_id, cluster_id="c", host_id="h")
        folder.save_identity(enrolled)
        assert folder.identity() == enrolled
    assert folder.was_used
    with StateFolder(tmp_path / "other").only_agent():
        assert StateFolder(tmp_path / "other").identity().agent_id != first.agent_id


@pytest.mark.parametrize("text", ["", "{", '{"of": "another version"}'])
def test_an_identity_that_cannot_be_read_is_replaced(tmp_path: Path, text: str) -> None:
    folder = StateFolder(tmp_path)
    (tmp_path / "identity.json").write_text(text)
    assert folder.identity().host_id == ""


def test_an_identity_that_cannot_be_had_just_now_is_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As another agent it would find none of its workers, and be let in no more where a join token serves once."""
    folder = StateFolder(tmp_path)
    before = folder.identity()

    def broken(*_: object) -> str:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as patched:
        patched.setattr(StateFolder, "text", broken)
        with pytest.raises(Misconfigured, match="cannot be used: Input/output error"):
            folder.identity()
    assert folder.identity() == before


def test_on_a_disk_that_is_full_at_the_first_start_an_agent_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(StateFolder, "replace", full)
    with pytest.raises(Misconfigured, match="cannot be used: No space left on device; choose another"):
        StateFolder(tmp_path).identity()


def test_on_a_disk_that_is_full_at_a_later_start_an_agent_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("headway.agent.state.instance_lock.os.pwrite", full)
    with StateFolder(tmp_path).only_agent(), pytest.raises(Refused), StateFolder(tmp_path).only_agent():
        pass


def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    refused = pytest.raises(Misconfigured, match="cannot be used: Not a directory; choose another with --state-dir")
    with refused, StateFolder(tmp_path / "file" / "state").only_agent():
        pass


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    folder = StateFolder(tmp_path)
    folder.write("a.json", {"a": 1})
    with pytest.raises(TypeError):
        folder.write("a.json", {"a": object()})
    assert folder.read("a.json") == {"a": 1}
    folder.write("a.json", {"a": 2}, is_durable=False)
    assert folder.read("a.json") == {"a": 2}


# --- one agent -------------------------------------------------------------------------------------------------------

HOLDS = """
import sys, time
from pathlib import Path
from headway.agent.state.state_dir import StateFolder
with StateFolder(Path(sys.argv[1])).only_agent():
    print("holds", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """An agent that hangs."""
    argv = [sys.executable, "-c", HOLDS, str(tmp_path / "state")]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "holds\n"
        process.send_signal(signal.SIGSTOP)
        yield process
        process.kill()


def test_an_agent_that_hangs_can_be_taken_over_from(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    folder = StateFolder(tmp_path / "state")
    hint = pytest.raises(Refused, match=rf"process {holder.pid}\) works in .*; if it hangs, add --take-over")
    with hint, folder.only_agent():
        pass
    with folder.only_agent(takes_over=True):
        assert holder.wait(60) == -signal.SIGKILL
        assert (folder.root / "agent.lock").read_text() == f"{os.getpid()}\n"


def test_a_pid_that_is_another_process_by_now_is_not_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(instance_lock, "KILL_BOUND_S", 0.2)
    folder = StateFolder(tmp_path / "state")
    with subprocess.Popen(["sleep", "600"]) as stranger, folder.only_agent():
        (folder.root / "agent.lock").write_text(f"{stranger.pid}\n")
        refused = pytest.raises(Refused, match=r"could not be ended: end it as its user or as root")
        with refused, StateFolder(tmp_path / "state").only_agent(takes_over=True):
            pass
        assert stranger.poll() is None
        stranger.kill()


def test_taking_over_where_nobody_is_is_an_ordinary_start(tmp_path: Path) -> None:
    with StateFolder(tmp_path / "state").only_agent(takes_over=True):
        pass


def test_one_agent_of_a_machine_is_a_host_of_a_control_plane(monkeypatch: pytest.MonkeyPatch) -> None:
    control = f"127.0.0.1:{os.getpid()}"
    with as_host([control], "a"):
        with as_host([control], "b"), as_host([f"{control}0"], "a"):
            pass
        refused = pytest.raises(
            Refused, match=rf"agent \(process {os.getpid()}\) is host 'a' of the control plane {control}"
        )
        with refused, as_host([control], "a"):
            pass
        monkeypatch.setattr(instance_lock, "KILL_BOUND_S", 0.1)
        with pytest.raises(Refused), as_host([control], "a", waits=True):
            pass
    with as_host([control], "a"):
        pass


def test_agents_that_share_one_of_their_control_planes_are_not_the_same_host() -> None:
    one, two, three = (f"127.0.0.1:{os.getpid()}{last}" for last in "123")
    with as_host([one, two], "a"):
        with pytest.raises(Refused, match=f"of the control plane {two} already"), as_host([three, two], "a"):
            pass
        with as_host([three], "a"):
            pass


def test_what_must_not_be_lost_is_on_the_disk_before_it_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An identity lost with the power locks the host out; an assignment is obeyed once it is reported as received."""
    folder = StateFolder(tmp_path)
    disk = Disk(monkeypatch)
    folder.save_identity(Identity(agent_id="a"))
    kept = ["flush identity.json.new", "name identity.json", f"flush {tmp_path.name}"]
    assert [each for each in disk.take() if not each.startswith("remove")] == kept
    folder.write("workers.json", {})
    assert "flush workers.json.new" in disk.take()
    folder.write("workers.json", {}, is_durable=False)
    assert [each for each in disk.take() if each.startswith("flush")] == []
