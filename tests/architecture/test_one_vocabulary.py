"""The dashboard and the command line have words for the same reasons."""

import re

import pytest

from headway.cli.terminal import labels
from headway.scaling import explain
from headway.scaling.policy.limits import LIMITS
from headway.scaling.strategies import BUILT_IN
from support.pools import NOW_S, queue, view
from support.tree import SERVICE

SENTENCES = (SERVICE / "control" / "web" / "sentences.js").read_text()


def explained_in_browser(table: str) -> set[str]:
    """The keys of an object literal of sentences.js."""
    found = re.search(rf"^const {table} = {{\n(.*?)^}};", SENTENCES, flags=re.DOTALL | re.MULTILINE)
    assert found is not None
    return set(re.findall(r"^  (\w+): \(", found[1], flags=re.MULTILINE))


def test_every_demand_that_is_explained_on_the_command_line_is_explained_in_the_browser() -> None:
    assert explained_in_browser("DEMANDS") == set(explain.DEMANDS)


def test_every_limit_that_is_explained_on_the_command_line_is_explained_in_the_browser() -> None:
    assert explained_in_browser("LIMITS") == set(explain.LIMITS)


def test_tables_of_the_command_line_call_demands_and_limits_as_the_dashboard_does() -> None:
    found = re.search(r"^const NAMES = {\n(.*?)^};", SENTENCES, flags=re.DOTALL | re.MULTILINE)
    assert found is not None
    assert dict(re.findall(r'^  (\w+): "([^"]+)",$', found[1], flags=re.MULTILINE)) == labels.NAMES


@pytest.mark.parametrize("column", [labels.LONGEST_WAIT, labels.IN_FLIGHT, labels.WITHIN])
def test_tables_of_the_command_line_have_columns_of_the_dashboard(column: str) -> None:
    page = (SERVICE / "control" / "web" / "index.html").read_text()
    headings = re.findall(r"<th .*?</th>", page, flags=re.DOTALL)
    assert column in [re.sub(r"<.*?>", "", heading).strip().lower() for heading in headings]


def test_every_limit_is_explained() -> None:
    assert {limit.name for limit in LIMITS} <= set(explain.LIMITS)


@pytest.mark.parametrize("start_up_s", [1.0, 60.0])
def test_every_demand_of_the_default_strategy_is_explained(start_up_s: float) -> None:
    pool = view(queue(waiting_jobs=3, in_flight_jobs=1, oldest_age_s=60.0), start_up_s=start_up_s)
    advice = BUILT_IN["hybrid"].advise(pool.queues[0], pool, {}, NOW_S)
    assert {demand.name for demand in advice.demands} <= set(explain.DEMANDS)
