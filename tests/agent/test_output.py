import os
from pathlib import Path

import pytest

from headway.agent import output
from headway.agent.output import Output, Tail


def test_a_pattern_is_seen_once_its_line_is_there_also_in_pieces(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    tail = Tail(log, r"^Listening on \w+")
    assert not tail.sees()  # nothing printed yet, not even a file
    log.write_text("starting\nListe")
    assert not tail.sees()
    with log.open("a") as file:
        file.write("ning on mail")
    assert tail.sees()


def test_a_pattern_is_looked_for_in_each_line_alone(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_text("a\nb\n")
    assert not Tail(log, "a.*b").sees()
    assert not Tail(log, r"a\sb").sees()


def test_a_log_that_grew_too_long_is_cut_while_the_worker_goes_on_printing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output, "BYTES_MAX", 100)
    monkeypatch.setattr(output, "BYTES_KEPT", 10)
    logs = Output(tmp_path)
    worker = os.open(logs.log("w"), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(worker, b"x" * 200 + b"the end\n")
    logs.bound({"w"})
    os.write(worker, b"anew\n")
    os.close(worker)
    assert logs.log("w").read_text() == "anew\n"
    assert (tmp_path / "w.log.1").read_text() == "xxthe end\n"


def test_logs_of_the_last_workers_that_ended_are_kept_and_those_of_running_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output, "ENDED_KEPT", 2)
    logs = Output(tmp_path)
    for age_s, name in enumerate(["new", "newer", "old", "oldest", "running"]):
        logs.log(name).touch()
        os.utime(logs.log(name), (1_000 - age_s, 1_000 - age_s))
    logs.bound({"running"})
    assert {path.stem for path in tmp_path.iterdir()} == {"new", "newer", "running"}


@pytest.mark.parametrize(
    ("printed", "words"), [("", ""), ("one\ntwo\n\n", "two"), ("x" * 10_000, "x" * 200), ("\udcff\n", "�")]
)
def test_last_words(tmp_path: Path, printed: str, words: str) -> None:
    Output(tmp_path).log("w").write_bytes(printed.encode(errors="surrogateescape"))
    assert Output(tmp_path).last_words("w") == words
    assert Output(tmp_path).last_words("nobody") == ""
