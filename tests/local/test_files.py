"""Files that are whole at any moment."""

import os
import stat
from pathlib import Path

import pytest

from headway.local.files import sync_folder, write_whole


def test_a_file_is_replaced_and_only_its_owner_may_read_it(tmp_path: Path) -> None:
    file = tmp_path / "state.json"
    file.write_text("old")
    write_whole(file, "new")
    assert file.read_text() == "new"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [each.name for each in tmp_path.iterdir()] == ["state.json"]


def test_who_has_the_old_file_open_reads_all_of_it(tmp_path: Path) -> None:
    file = tmp_path / "state.json"
    write_whole(file, b"old")
    with file.open() as reading:
        write_whole(file, b"something that is longer", is_durable=False)
        assert reading.read() == "old"


def test_what_a_killed_writer_left_is_in_nobodys_way_and_a_link_is_not_followed(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text("not ours")
    (tmp_path / "state.json.new").symlink_to(other)
    write_whole(tmp_path / "state.json", "new")
    assert (other.read_text(), (tmp_path / "state.json").read_text()) == ("not ours", "new")


def test_a_file_is_written_into_an_open_folder_wherever_that_has_been_moved(tmp_path: Path) -> None:
    (tmp_path / "before").mkdir()
    folder = os.open(tmp_path / "before", os.O_RDONLY | os.O_DIRECTORY)
    try:
        (tmp_path / "before").rename(tmp_path / "after")
        write_whole("state.json", "new", folder=folder)
    finally:
        os.close(folder)
    assert (tmp_path / "after" / "state.json").read_text() == "new"


def test_a_folder_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        sync_folder(tmp_path / "gone")
