"""No name moves a cursor or forges a line, wherever a person reads it: a property over every sink's own function."""

import logging

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.__main__ import main
from headway.cli.api import Api
from headway.cli.logs import OneLine
from headway.errors import printable

NAMES = st.text(st.characters(codec="utf-8"), max_size=60)
CONTROL = ["a\nb", "\x1b[2J", "\x9b31m", "\u202egnp", "\u2028", "\r", "\x00", "\x7f"]


@given(NAMES)
def test_a_printed_name_is_one_line_and_a_plain_one_is_itself(name: str) -> None:
    assert printable(name).isprintable()
    assert printable(name) == name or not name.isprintable()
    assert printable(printable(name)) == printable(name)


@given(NAMES, NAMES)
def test_a_log_line_stays_one_whatever_it_names(name: str, reason: str) -> None:
    record = logging.LogRecord("headway", logging.INFO, "f", 1, "refused caller=%s: %s", (name, reason), None)
    assert OneLine("%(message)s").format(record).isprintable()


@pytest.mark.parametrize("name", CONTROL)
def test_a_trace_keeps_its_lines_and_nothing_else(name: str) -> None:
    error = ValueError(name)
    record = logging.LogRecord("headway", logging.ERROR, "f", 1, "failed", (), (ValueError, error, None))
    assert all(line.isprintable() for line in OneLine("%(message)s").format(record).split("\n"))


@pytest.mark.parametrize("name", CONTROL)
def test_what_the_api_answers_is_shown_without_control_characters(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def answered(_: httpx.Request) -> httpx.Response:
        return httpx.Response(200, json={"queues": [{name: [name, 1, None]}]})

    client = httpx.Client(transport=httpx.MockTransport(answered), base_url="http://h")
    with Api("http://h", None) as api:
        monkeypatch.setattr(api, "_client", client)
        ((key, (value, number, none)),) = api.get("/v1/queues")["queues"][0].items()
    assert key.isprintable()
    assert value.isprintable()
    assert (number, none) == (1, None)


@pytest.mark.parametrize("name", [each for each in CONTROL if "\0" not in each])
def test_a_refusal_is_one_line(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([name]) == 2
    assert capsys.readouterr().err.removesuffix("\n").isprintable()
