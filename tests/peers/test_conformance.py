"""Our formulas answer what other autoscalers' code was recorded to answer, and the command says so."""

import json
from pathlib import Path
from typing import Any

import pytest

from headway.__main__ import main
from headway.peers.conformance import differences
from headway.peers.replays import REPLAYS

VECTORS = Path(__file__).parent / "vectors"


def conformance(*paths: Path) -> int:
    return main(["conformance", *map(str, paths)])


def written(path: Path, **changes: Any) -> Path:
    case = {"id": "littles_law-1", "calculator": "littles_law", "tags": [], "expected": 6.0}
    case["inputs"] = {"arrival_rate": 2.0, "avg_processing_time": 3.0}
    path.write_text(json.dumps(case | changes) + "\n")
    return path


def test_every_claimed_calculator_answers_as_it_was_recorded(capsys: pytest.CaptureFixture[str]) -> None:
    assert conformance(*sorted(VECTORS.glob("*.jsonl"))) == 0, capsys.readouterr().out
    last = capsys.readouterr().out.splitlines()[-1]
    counted = [
        case
        for path in VECTORS.glob("*.jsonl")
        for case in map(json.loads, path.read_text().splitlines())
        if case["calculator"] in REPLAYS and "peer_defect" not in case.get("tags", [])
    ]
    assert last == f"{len(counted)} passed, 0 failed"


def test_every_claimed_calculator_has_recordings_here() -> None:
    recorded = {path.stem for path in VECTORS.glob("*.jsonl")}
    assert REPLAYS.keys() - recorded == set()


def test_a_calculator_of_no_strategy_is_listed_and_not_counted(capsys: pytest.CaptureFixture[str]) -> None:
    assert conformance(VECTORS / "queue_health_score.jsonl") == 0
    assert capsys.readouterr().out.splitlines() == [
        "queue_health_score.jsonl: 2 unclaimed: no strategy uses queue_health_score",
        "0 passed, 0 failed",
    ]


def test_a_known_defect_of_theirs_is_shown_and_not_counted(capsys: pytest.CaptureFixture[str]) -> None:
    assert conformance(VECTORS / "linear_regression_epoch.jsonl") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "linear_regression_epoch.jsonl: 6 not counted (peer_defect)"
    assert lines[1].startswith("  peer_defect, ours differs: linear_regression_epoch-")
    assert lines[-1] == "0 passed, 0 failed"


def test_a_difference_fails_and_names_the_case(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert conformance(written(tmp_path / "a.jsonl", expected=7.0)) == 1
    assert capsys.readouterr().out.splitlines() == [
        "a.jsonl: 0 passed, 1 failed",
        "  differs: littles_law-1: recorded 7.0, got 6.0",
        "0 passed, 1 failed",
    ]


def test_a_case_that_the_formula_cannot_take_fails_instead_of_ending_the_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = written(tmp_path / "a.jsonl", inputs={})
    assert conformance(bad, written(tmp_path / "b.jsonl")) == 1
    assert "littles_law-1: raised KeyError: 'arrival_rate'" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "a.jsonl:1: not JSON"),
        ("[]", "a.jsonl:1: expected an object, got list"),
        ("{}", "a.jsonl:1: not a case: id, calculator, inputs, expected missing"),
        ('{"id":1,"calculator":"x","inputs":[],"expected":1}', "inputs must be an object"),
    ],
)
def test_a_file_that_is_no_recording_is_one_line(
    text: str, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(text)
    assert conformance(path) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert says in printed.err
    assert printed.err.count("\n") == 1


def test_a_file_that_is_not_there_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert conformance(tmp_path / "none.jsonl") == 2
    assert capsys.readouterr().err == f"headway: cannot read {tmp_path / 'none.jsonl'}: No such file or directory\n"


@pytest.mark.parametrize(
    ("expected", "answer", "agrees"),
    [
        (1.0, 1.0 + 5e-10, True),
        (1.0, 1.0 + 5e-9, False),
        (0.0, 5e-10, True),
        (1, 1.0000000001, False),  # whole numbers exactly
        (True, 1, False),
        (None, 0, False),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        ([1, 2], [1], False),
    ],
)
def test_floats_may_differ_by_a_billionth_and_nothing_else_may(expected: Any, answer: Any, agrees: bool) -> None:
    assert (next(differences(expected, answer, tolerance=1e-9), None) is None) is agrees
