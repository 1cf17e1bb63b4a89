"""The alert rules that are documented: every metric they name exists, and none is true where all is well."""

import re

import httpx
import pytest

from headway.scaling.conditions.condition_table import STATES
from lab.alerts import Rule, rules, scraped
from support.seed import Seed


async def test_every_metric_and_label_that_a_rule_names_exists(client: httpx.AsyncClient) -> None:
    text = (await client.get("/metrics")).text
    named = set(re.findall(r"^# TYPE (\S+) (?:gauge|counter)$", text, re.MULTILINE)) | {"up"}
    assert {rule.metric for rule in rules()} <= named
    words = {*STATES, "silent", "missing", "backing_off", "draining", "0.95", "headway"}
    for rule in rules():
        for _, _, wanted in rule.labels:
            assert set(wanted.split("|")) <= words, rule.name


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
