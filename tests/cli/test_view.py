import copy
import io
import re

import pytest
from rich.console import Console

from headway.cli.local import live_view
from headway.cli.local.live_view import BARS, Progress, Terminal, picture, progress_line, reason, sparkline

METRICS = {"waiting_jobs": 7, "in_flight_jobs": 3, "oldest_age_s": 4.25, "pickup_objective_s": None}
DECISION = {"target_workers": 9, "binding": "backlog_drain", "notes": []}
DRAIN = {"name": "backlog_drain", "label": "starting all waiting jobs in time", "slots": 8.6}
EXPLANATION = {
    "binding_label": "starting all waiting jobs in time",
    "demands": [DRAIN, {"name": "steady_state", "label": "keeping up with arrivals", "slots": 4.0}],
}
OVERVIEW = {
    "at_s": 1003.0,
    "pools": [{"pool": "demo", "running_workers": 4, "starting_workers": 2, "target_workers": 9}],
    "queues": [{"queue": "demo/llm-code", "pool": "demo", "objective": None, "metrics": METRICS}],
    "decisions": [{"decided_at_s": 1000.0, "previous_workers": 4, "decision": DECISION, "explanation": EXPLANATION}],
}


def progress() -> Progress:
    shown = Progress(url="http://127.0.0.1:8460", objective="95 % start within 10 s", phase="sending jobs", left_s=65.2)
    shown.jobs_sent, shown.jobs_done, shown.jobs_waiting, shown.overview = 30, 20, 7, copy.deepcopy(OVERVIEW)
    for waiting, workers in ((0, 0), (12, 4), (7, 6)):
        shown.add(waiting=waiting, workers=workers)
    return shown


def printed(renderable, *, columns: int = 100) -> str:
    console = Console(file=io.StringIO(), width=columns)
    console.print(renderable)
    return console.file.getvalue()


def test_the_picture_shows_the_queue_the_lines_and_why():
    text = printed(picture(progress(), columns=100, bars=BARS))
    assert "sending jobs · 1:05 left" in text
    row = next(line for line in text.splitlines() if line.startswith("demo/llm-code"))
    assert row.split() == ["demo/llm-code", "7", "4.2", "s", "3", "–", "6", "9"]
    assert "3 s ago  4 → 9    starting all waiting jobs in time 8.6" in text
    assert "▁█▆" in text


def test_of_several_pools_each_decision_names_its_own_and_what_is_wanted_is_added_up():
    shown = progress()
    shown.clock = "14:05"
    shown.overview["pools"].append({"pool": "reports", "running_workers": 1, "target_workers": 2})
    shown.overview["decisions"][0]["decision"]["pool"] = "reports"
    assert "4 → 9    reports: starting all waiting jobs in time 8.6" in printed(picture(shown, columns=100, bars=BARS))
    assert "sending jobs, 14:05 of the recorded day, 65 s left:" in progress_line(shown)
    assert progress_line(shown).endswith("workers 6, 11 wanted")


def test_a_long_reason_gives_way_to_the_numbers():
    shown = progress()
    shown.overview["decisions"][0]["decision"] = {**DECISION, "notes": ["metrics are old " * 20]}
    assert "3 s ago  4 → 9    starting all waiting jobs in time 8.6; metrics" in printed(
        picture(shown, columns=80, bars=BARS), columns=80
    )


@pytest.mark.parametrize("columns", [20, 40, 60])
def test_no_line_is_wider_than_a_narrow_terminal(columns):
    text = printed(picture(progress(), columns=columns, bars=BARS), columns=columns)
    assert all(len(line) <= columns for line in text.splitlines())
    assert len(text.splitlines()) <= 24


def test_before_the_first_answer_there_is_a_picture_as_well():
    empty = Progress(url="http://127.0.0.1:8460", objective="95 % start within 10 s")
    assert "objective: 95 % start within 10 s" in printed(picture(empty, columns=80, bars=BARS))
    assert "workers 0, – wanted" in progress_line(empty)


def test_a_line_says_the_same_for_programs_and_logs():
    assert progress_line(progress()) == (
        "sending jobs, 65 s left: jobs 30 sent, 20 done, 7 waiting; workers 6, 9 wanted"
    )


@pytest.mark.parametrize(
    ("values", "columns", "bars"),
    [
        ([], 5, ""),
        ([0, 0], 5, "▁▁"),
        ([0, 1, 7], 5, "▁▂█"),
        ([0, 1, 700], 5, "▁▂█"),  # what is not nothing is not drawn as nothing
        ([9, 1, 2], 2, "▅█"),  # only the newest are shown, and they set the height
    ],
)
def test_a_sparkline_reaches_full_height_at_its_greatest_value(values, columns, bars):
    assert sparkline(values, columns=columns, bars=BARS) == bars


def test_a_limit_that_had_the_last_word_is_shown_with_the_demand_behind_it():
    stale = {"binding": "hold_down", "notes": ["metrics are stale"]}
    held = {"decision": stale, "explanation": {**EXPLANATION, "binding_label": "delay before scaling down"}}
    assert reason(held) == "delay before scaling down; starting all waiting jobs in time 8.6; metrics are stale"
    bare = {"decision": {"binding": "bounds", "notes": []}, "explanation": {"binding_label": "bounds", "demands": []}}
    assert reason(bare) == "bounds"


def test_points_are_kept_only_as_far_as_they_can_be_shown():
    shown = progress()
    for value in range(live_view.HISTORY + 10):
        shown.add(waiting=value, workers=0)
    assert len(shown.backlog) == live_view.HISTORY
    assert shown.backlog[-1] == live_view.HISTORY + 9


def test_without_a_terminal_stages_and_progress_are_plain_lines(monkeypatch):
    monkeypatch.setattr(live_view, "LINE_EVERY_S", 0.01)
    monkeypatch.setattr(live_view, "STILL_AFTER_S", 0.0)
    console = Console(file=io.StringIO(), width=40, highlight=False)
    with Terminal(console=console) as terminal:
        with terminal.stage("Java and Spark warm-up"):
            wait_for(console, " s so far\n")
        with terminal.showing(lambda: "never drawn", lambda: "30 sent"):
            wait_for(console, "  30 sent\n")
        terminal.say("a line that is longer than forty columns stays one line")
    text = console.file.getvalue()
    assert re.search(r"^  still: Java and Spark warm-up, \d+ s so far$", text, re.MULTILINE)
    assert re.search(r"Java and Spark warm-up  \d+\.\d s$", text, re.MULTILINE)
    assert "\na line that is longer than forty columns stays one line\n" in text
    assert "never drawn" not in text
    assert "\x1b" not in text


def test_a_stage_that_fails_claims_no_time():
    console = Console(file=io.StringIO())
    with Terminal(console=console) as terminal, pytest.raises(ValueError, match="no"), terminal.stage("Postgres"):
        raise ValueError("no")
    assert "Postgres" not in console.file.getvalue()


def test_in_a_terminal_the_picture_is_drawn_in_place_and_gone_at_the_end():
    console = Console(file=io.StringIO(), width=80, force_terminal=True, legacy_windows=False)
    with Terminal(console=console) as terminal:
        shown = progress()
        with terminal.showing(lambda: picture(shown, columns=80, bars=terminal.bars), lambda: "never printed"):
            wait_for(console, "demo/llm-code")
        with terminal.stage("stopping"):
            wait_for(console, "stopping")
    text = console.file.getvalue()
    assert "\x1b[2K" in text, "what was drawn is erased"
    assert "never printed" not in text


def wait_for(console: Console, text: str) -> None:
    import time

    until_s = time.monotonic() + 60
    while text not in console.file.getvalue():
        assert time.monotonic() < until_s, f"{text!r} was not printed"
        time.sleep(0.01)
