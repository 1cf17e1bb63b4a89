"""Demands and limits are worded once, in Python: the dashboard and the command line show what the API gives."""

import re
from pathlib import Path

import pytest

from headway.cli.terminal import labels
from headway.scaling.explanations.own_wording import OWN
from headway.scaling.policy.limits import LIMITS
from headway.scaling.strategies import BUILT_IN
from support.installed import INSTALLED
from support.pools import NOW_S, queue, view
from support.tree import SERVICE

WEB = SERVICE / "control" / "web"
MODULES = sorted([*WEB.glob("*.js"), *WEB.glob("pages/*.js")])
WORDED = {
    name for each in (OWN, *(each.wording for each in INSTALLED.values())) for name in (*each.demands, *each.limits)
}

EXPRESSION = re.compile(r"(?:[(=,:\[]|return) *(/(?![/*])(?:\\.|\[(?:\\.|[^]\n])+\]|[^/\\[\n])+/)")
NO_PROSE = {
    "address.js": [r"/\/$/"],  # the end of an address
    "dom.js": [r"/[^\P{C}\n\t]|[\u2028\u2029]/"],  # characters that are not printed
    "router.js": [r"/\{(\w+)(:path)?\}/"],  # the places of an address
    "series.js": ["/_per_s$/", "/_s$/"],  # names of columns
    "today.js": [r"/\.?0+$/"],  # the end of a number
}
"""The regular expressions of the dashboard, by module."""

READ_PROSE = re.compile(
    r"\b(?:cause|kind|note|reason|sentence|summary|text|why)s?\.(?:\w*With|includes|match|replace|search)\("
)
WORDS = re.compile(r"""["']?\b(\w+)["']?: *(?:["'`][^"'`\n]* |\([^()\n]*\) *=>|\w+ *=>)""")


@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.name)
def test_the_dashboard_reads_no_prose(module: Path) -> None:
    source = module.read_text()
    assert EXPRESSION.findall(source) == NO_PROSE.get(module.name, [])
    assert READ_PROSE.findall(source) == []
    assert ("RegExp(" in source) == (module.name == "router.js")


@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.name)
def test_the_dashboard_has_no_words_for_demands_and_limits(module: Path) -> None:
    assert WORDED & set(WORDS.findall(module.read_text())) == set()


@pytest.mark.parametrize(
    "code",
    [
        '  hold_stale: "stale or inexact metrics",',
        "  wake: (value, seen) => `${waiting(seen)}, and no worker runs`,",
        '  "workers_min": `The profile keeps at least`,',
    ],
)
def test_a_table_of_words_is_found(code: str) -> None:
    assert WORDED & set(WORDS.findall(code))


@pytest.mark.parametrize(
    "code",
    ["return note.replace(/^keep (\\d+) workers? warm$/, plain);", "const is = (x) => x.match(/late/i);"],
)
def test_an_expression_is_found(code: str) -> None:
    assert EXPRESSION.findall(code)


@pytest.mark.parametrize("column", [labels.LONGEST_WAIT, labels.IN_FLIGHT, labels.WITHIN])
def test_tables_of_the_command_line_have_columns_of_the_dashboard(column: str) -> None:
    page = (SERVICE / "control" / "web" / "index.html").read_text()
    headings = re.findall(r"<th .*?</th>", page, flags=re.DOTALL)
    assert column in [re.sub(r"<.*?>", "", heading).strip().lower() for heading in headings]


def test_every_limit_is_explained() -> None:
    assert {limit.name for limit in LIMITS} <= set(OWN.limits)


@pytest.mark.parametrize("start_up_s", [1.0, 60.0])
def test_every_demand_of_the_default_strategy_is_explained(start_up_s: float) -> None:
    pool = view(queue(waiting_jobs=3, in_flight_jobs=1, oldest_age_s=60.0), start_up_s=start_up_s)
    advice = BUILT_IN["hybrid"].advise(pool.queues[0], pool, {}, NOW_S)
    assert {demand.name for demand in advice.demands} <= set(OWN.demands)
