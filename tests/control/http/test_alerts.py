"""The alert rules that are documented: every metric they name exists, and the page says the same as the file."""

import re

import httpx
import pytest

from headway.control.http.schemas.responses import PoolState
from headway.scaling.incidents.reason_kinds import ReasonKind
from lab.alerts import Rule, rules, scraped
from support.seed import Seed
from support.tree import ROOT

PAGE = ROOT / "docs/reference/metrics.md"
ROW = re.compile(r"^\| `(.+?)` \| (?:(\d+) min )?\|", re.MULTILINE)


async def test_every_metric_and_label_that_a_rule_names_exists(client: httpx.AsyncClient) -> None:
    text = (await client.get("/metrics")).text
    named = set(re.findall(r"^# TYPE (\S+) (?:gauge|counter)$", text, re.MULTILINE)) | {"up"}
    assert {rule.metric for rule in rules()} <= named
    words = set(PoolState.__args__) | {"silent", "missing", "backing_off", "draining", "0.95", "headway"}  # type: ignore[attr-defined]
    for rule in rules():
        for _, _, wanted in rule.labels:
            assert set(wanted.split("|")) <= words, rule.name


def test_the_page_has_the_rules_of_the_file() -> None:
    _, _, section = PAGE.read_text().partition("### What to be woken for")
    named = [(expression.replace("\\|", "|"), float(minutes or 0) * 60) for expression, minutes in ROW.findall(section)]
    assert named == [(rule.expression, rule.for_s) for rule in rules()]


def test_the_kinds_of_reasons_are_documented() -> None:
    _, _, section = (ROOT / "docs/reference/http-api.md").read_text().partition("## Health")
    kinds = re.findall(r"^\| `(\w+)` \|", section.partition("\n## ")[0], re.MULTILINE)
    assert sorted(kinds) == sorted(ReasonKind.__args__)  # type: ignore[attr-defined]


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule.name)
async def test_on_an_installation_that_is_well_none_is_true(client: httpx.AsyncClient, seed: Seed, rule: Rule) -> None:
    seed.leader()
    seed.pipeline()
    samples = scraped((await client.get("/metrics")).text)
    assert rule.pending(samples, samples) == []


async def test_who_is_away_is_found_and_so_is_a_reason(client: httpx.AsyncClient) -> None:
    """Nobody has led here yet."""
    samples = scraped((await client.get("/metrics")).text)
    found = {rule.name: rule.pending(samples, samples) for rule in rules()}
    assert found["HeadwayDegraded"] == [{"reason": "leader"}, {"reason": "pipeline"}]
    assert found["HeadwayAway"] == []
    assert next(rule for rule in rules() if rule.name == "HeadwayAway").pending(scraped(None), []) == [
        {"job": "headway"}
    ]
