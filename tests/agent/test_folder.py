import os
import stat
from pathlib import Path

import pytest

from headway.agent.folder import Identity, StateFolder, read_json, write_json
from headway.errors import Misconfigured, Refused


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


def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    refused = pytest.raises(Misconfigured, match="cannot be used: Not a directory; choose another with --state-dir")
    with refused, StateFolder(tmp_path / "file" / "state").only_agent():
        pass


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    write_json(path, {"a": 1})
    with pytest.raises(TypeError):
        write_json(path, {"a": object()})
    assert read_json(path) == {"a": 1}
    write_json(path, {"a": 2}, is_durable=False)
    assert read_json(path) == {"a": 2}
