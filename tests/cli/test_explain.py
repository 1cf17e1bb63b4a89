"""`headway explain` on decisions in files: no control plane is needed."""

import io
import json
from dataclasses import asdict
from pathlib import Path

import pytest

from headway.__main__ import main
from headway.scaling.model import Decision, Demand, QueueMetrics, Step

DECISION = asdict(
    Decision(
        pool="mail[1]",
        at_s=1_800_000_000.0,
        target_workers=4,
        binding="workers_max",
        demands=(Demand(name="steady_state", slots=8.0),),
        steps=(Step(name="wanted", workers=8), Step(name="workers_max", workers=4)),
        metrics=(QueueMetrics(queue="redis/mail", sampled_at_s=1.0, waiting_jobs=1),),
    )
)


@pytest.mark.parametrize(
    "body",
    [DECISION, {"decision": DECISION}, {"decisions": [{"decision": DECISION}, {"decision": {}}]}],
    ids=["bare", "row", "list"],
)
def test_a_decision_in_a_file_is_explained(tmp_path: Path, capsys: pytest.CaptureFixture[str], body: object) -> None:
    (tmp_path / "decision.json").write_text(json.dumps(body))
    assert main(["explain", "--file", str(tmp_path / "decision.json")]) == 0
    printed = capsys.readouterr().out
    assert "Pool mail[1] should have 4 workers." in printed  # square brackets are no markup
    assert "The profile allows at most 4, so 8 become 4." in printed
    assert max(map(len, printed.splitlines())) <= 100


def test_a_decision_can_be_piped_in(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps(DECISION)))
    assert main(["explain", "--file", "-"]) == 0
    assert "mail[1]" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (None, "cannot be read: No such file or directory"),
        ("{", "line 1: is no JSON"),
        ("[]", "holds no decision: expected one as `headway get decisions --json` gives it"),
        ("{}", "holds no decision that this version can read"),
        ('{"decision": 7}', "holds no decision that this version can read"),
        ('{"pool": "a", "at_s": 1, "target_workers": "many", "binding": "idle"}', "holds no decision"),
    ],
)
def test_a_file_that_holds_no_decision_is_one_clear_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str | None, says: str
) -> None:
    if text is not None:
        (tmp_path / "decision.json").write_text(text)
    assert main(["explain", "--file", str(tmp_path / "decision.json")]) == 2
    said = capsys.readouterr().err
    assert says in said
    assert said.count("\n") == 1


def test_a_pool_or_a_file_is_needed_and_not_both(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["explain"], ["explain", "mail", "--file", "x"]):
        assert main(words) == 2
        assert "name a pool, or a decision with --file PATH" in capsys.readouterr().err


def test_the_terms_of_each_demand_are_shown_if_they_are_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    terms = {"busy_slots": 2, "coming_slots": 0, "begun_jobs": 0, "serving_slots": 1, "cycle_s": 1.2853283738471848}
    body = {
        **DECISION,
        "demands": [{"name": "wake", "slots": 0.0}, {"name": "work_in_progress", "slots": 2.0, "terms": terms}],
    }
    file = tmp_path / "decision.json"
    file.write_text(json.dumps(body))
    assert main(["explain", "--file", str(file), "--terms"]) == 0
    out = capsys.readouterr().out
    shown = "busy_slots 2, coming_slots 0, begun_jobs 0, serving_slots 1, cycle_s 1.285328374"
    assert " ".join(out.split()).find(f"work_in_progress 2: {shown} wake 0: no terms") > 0
    assert main(["explain", "--file", str(file)]) == 0
    assert "busy_slots" not in capsys.readouterr().out
