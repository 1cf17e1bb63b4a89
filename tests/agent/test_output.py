import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from headway.agent.config.templates import Log
from headway.agent.workers import worker_logs as output
from headway.agent.workers.worker_logs import WorkerLogs


def logs_in(folder: Path) -> WorkerLogs:
    return WorkerLogs(os.open(folder, os.O_RDONLY | os.O_DIRECTORY))


def test_a_pattern_is_seen_once_its_line_is_there_also_in_pieces(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    tail = logs_in(tmp_path).tail("a", r"^Listening on \w+")
    assert not tail.sees()  # nothing printed yet, not even a file
    log.write_text("starting\nListe")
    assert not tail.sees()
    with log.open("a") as file:
        file.write("ning on mail")
    assert tail.sees()


def test_a_pattern_is_seen_in_a_log_that_was_cut_meanwhile(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_text("x" * 100)
    tail = logs_in(tmp_path).tail("a", "^ready")
    assert not tail.sees()
    log.write_text("\nready")
    assert tail.sees()


def test_a_pattern_is_searched_in_each_line_alone(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_text("a\nb\n")
    assert not logs_in(tmp_path).tail("a", "a.*b").sees()
    assert not logs_in(tmp_path).tail("a", r"a\sb").sees()


def test_a_worker_that_prints_much_while_it_starts_is_not_read_for_long(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_bytes(b"loading a model, be patient\n" * 30_000 + b"ready\n")  # 840 KB at once
    assert logs_in(tmp_path).tail("a", "^ready").sees()


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[int]:
    """Where a worker prints to, as the agent opens it."""
    printing = logs_in(tmp_path).create("w")
    yield printing
    os.close(printing)


def kept(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir()}


def test_a_log_that_grew_too_long_is_cut_while_the_worker_goes_on_printing(tmp_path: Path, worker: int) -> None:
    os.write(worker, b"x" * 200 + b"the end\n")
    logs_in(tmp_path).bound({"w": Log(bytes_max=10)})
    os.write(worker, b"anew\n")
    assert kept(tmp_path) == {"w.log": "anew\n", "w.log.1": "xxthe end\n"}


def test_a_log_that_is_short_enough_is_left_alone(tmp_path: Path, worker: int) -> None:
    os.write(worker, b"short\n")
    logs_in(tmp_path).bound({"w": Log(bytes_max=6), "not-yet": Log()})
    assert kept(tmp_path) == {"w.log": "short\n"}


@pytest.mark.parametrize(
    ("files", "left"),
    [
        (0, {"w.log": ""}),
        (1, {"w.log": "", "w.log.1": "third"}),
        (2, {"w.log": "", "w.log.1": "third", "w.log.2": "second"}),
        (5, {"w.log": "", "w.log.1": "third", "w.log.2": "second", "w.log.3": "first"}),
    ],
)
def test_so_many_older_files_are_kept(tmp_path: Path, worker: int, files: int, left: dict[str, str]) -> None:
    for text in (b"first", b"second", b"third"):
        os.write(worker, text)
        logs_in(tmp_path).bound({"w": Log(bytes_max=4, files=files)})
    assert kept(tmp_path) == {name: text[-4:] for name, text in left.items()}


def test_fewer_files_than_before_leave_none_too_many(tmp_path: Path, worker: int) -> None:
    for name in ("w.log.1", "w.log.2", "w.log.3", "other.log.3"):
        (tmp_path / name).write_text(name)
    os.write(worker, b"long")
    logs_in(tmp_path).bound({"w": Log(bytes_max=3, files=2)})
    assert kept(tmp_path) == {"w.log": "", "w.log.1": "ong", "w.log.2": "w.log.1", "other.log.3": "other.log.3"}


def test_logs_of_the_last_workers_that_ended_are_kept_and_those_of_running_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output, "ENDED_KEPT", 2)
    logs = logs_in(tmp_path)
    for age_s, name in enumerate(["new", "newer", "old", "oldest", "running"]):
        (tmp_path / f"{name}.log").touch()
        os.utime((tmp_path / f"{name}.log"), (1_000 - age_s, 1_000 - age_s))
        (tmp_path / f"{name}.log.1").touch()
    logs.clear(frozenset({"running"}))
    assert {path.name.partition(".")[0] for path in tmp_path.iterdir()} == {"new", "newer", "running"}
    assert len(list(tmp_path.iterdir())) == 6


@pytest.mark.parametrize(
    ("printed", "words"), [("", ""), ("one\ntwo\n\n", "two"), ("x" * 10_000, "x" * 200), ("\udcff\n", "�")]
)
def test_last_words(tmp_path: Path, printed: str, words: str) -> None:
    (tmp_path / "w.log").write_bytes(printed.encode(errors="surrogateescape"))
    assert logs_in(tmp_path).last_words("w") == words
    assert logs_in(tmp_path).last_words("nobody") == ""


def test_a_file_that_is_there_is_given_to_no_new_worker(tmp_path: Path) -> None:
    """A worker is known by its file: nobody else may have had it open before."""
    output = logs_in(tmp_path)
    os.close(output.create("a"))
    with pytest.raises(FileExistsError):
        output.create("a")
