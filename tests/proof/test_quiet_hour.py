"""An hour in which all is well wakes nobody: no alert of Prometheus fires, and no incident is opened."""

import math
import re
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import httpx
import pytest
import redis
import yaml
from rq import Queue

from e2e.conftest import broker as broker
from e2e.running_up import RunningUp, running_up
from headway.scaling.profile import Profile
from proof.conftest import Proof
from support.debian import unpacked
from support.seed import Seed
from support.served import TOKEN, Served
from support.served import served as served
from support.tree import ROOT
from support.waiting import eventually

RULES = ROOT / "docs/reference/alerts.yml"
SCRAPE_S = 15.0
QUIET_S = 3600.0
STARTS_WITHIN_S = 300.0
WAVE_S = 900.0  # a rhythm, so that targets change
SAMPLE = re.compile(r"^(headway_\w+)(?:\{(.*)\})? (\S+)$")
MISSING = "_"
GONE = "stale"  # as Prometheus marks a series at the first scrape that lacks it: no rule sees its last value any more


class Scrapes:
    """The series that the rules read, a value each scrape, as a Prometheus beside it would have them."""

    def __init__(self, url: str, *, token: str = "") -> None:
        self.count = 0
        self._named = set(re.findall(r"headway_\w+", RULES.read_text()))
        self._series: dict[str, list[str]] = defaultdict(list)
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._client = httpx.Client(base_url=url, headers=headers, timeout=SCRAPE_S, trust_env=False)

    def take(self) -> None:
        try:
            answer = self._client.get("/metrics")
            lines = answer.text.splitlines() if answer.is_success else []
        except httpx.HTTPError:
            lines = []
        self._put('up{job="headway",instance="up"}', "1" if lines else "0")
        for found in filter(None, map(SAMPLE.match, lines)):
            if found[1] in self._named:
                labels = ",".join(filter(None, (found[2], 'job="headway",instance="up"')))
                self._put(f"{found[1]}{{{labels}}}", found[3])
        self.count += 1

    def firing(self, promtool: Path, folder: Path) -> str:
        """What promtool says where any alert was firing at any time; empty where none was."""
        ends = f"{int(self.count * SCRAPE_S)}s"
        query = f'count by (alertname) (max_over_time(ALERTS{{alertstate="firing"}}[{ends}]))'
        for values in self._series.values():
            self._fill(values)
        case: dict[str, Any] = {
            "interval": f"{int(SCRAPE_S)}s",
            "input_series": [{"series": each, "values": " ".join(values)} for each, values in self._series.items()],
            "promql_expr_test": [{"expr": query, "eval_time": ends, "exp_samples": []}],
        }
        test = {"rule_files": [str(RULES)], "evaluation_interval": f"{int(SCRAPE_S)}s", "tests": [case]}
        (folder / "test.yml").write_text(yaml.safe_dump(test))
        words = [promtool, "test", "rules", folder / "test.yml"]
        answer = subprocess.run(words, capture_output=True, text=True, timeout=600, check=False)
        return "" if answer.returncode == 0 else answer.stdout + answer.stderr

    def __len__(self) -> int:
        return len(self._series)

    def _put(self, series: str, value: str) -> None:
        values = self._series[series]
        self._fill(values)
        values.append(value)

    def _fill(self, values: list[str]) -> None:
        """The scrapes up to now that had no value."""
        missed = [MISSING] * (self.count - len(values))
        if missed and values and values[-1] not in {MISSING, GONE}:
            missed[0] = GONE
        values += missed


def test_what_fires_is_found_and_an_installation_that_is_away_too(served: Served, seed: Seed, tmp_path: Path) -> None:
    promtool = unpacked("bookworm", "prometheus") / "usr/bin/promtool"
    seed.profile(Profile(pool="mail", queues=("redis/mail",), template="rq"))
    scrapes = Scrapes(served.url, token=TOKEN)
    for _ in range(20):  # with a value each 15 s, five minutes
        scrapes.take()
    said = scrapes.firing(promtool, tmp_path)
    assert "HeadwayDegraded" in said  # nobody leads
    assert "HeadwayAway" not in said
    assert "HeadwayPoolUnknown" in said
    once = Scrapes(served.url, token=TOKEN)
    once.take()
    seed.execute("delete from profiles")
    for _ in range(20):
        once.take()
    assert "HeadwayPoolUnknown" not in once.firing(promtool, tmp_path), "gone with the next scrape"
    refused = Scrapes(served.url, token="another")
    for _ in range(20):
        refused.take()
    assert "HeadwayAway" in refused.firing(promtool, tmp_path)


@pytest.mark.proof
@pytest.mark.timeout(0)
def test_quiet_hour(proof: Proof, tmp_path: Path, broker: str) -> None:
    promtool = unpacked("bookworm", "prometheus") / "usr/bin/promtool"
    seed = next(proof.seeds())
    with redis.Redis.from_url(broker) as client:
        mail = Queue("mail", connection=client)
        mail.enqueue("time.sleep", 0.5)
        words = [sys.executable, "-m", "headway", "init", "--broker", broker]
        subprocess.run(words, cwd=tmp_path, check=True, capture_output=True, timeout=120)
        with running_up(tmp_path, {}) as up:
            eventually(lambda: _is_well(up), within_s=STARTS_WITHIN_S)
            before = _incidents(up)
            scrapes = Scrapes(up.url)
            targets, jobs = _an_hour(up, mail, scrapes)
            assert _incidents(up) == before
    assert (said := scrapes.firing(promtool, tmp_path)) == "", said
    assert len(targets) > 1, "nothing was decided that could have woken anybody"
    proof.record(
        seed, minutes=QUIET_S / 60, scrapes=scrapes.count, series=len(scrapes), jobs=jobs, targets=len(targets)
    )


def _is_well(up: RunningUp) -> bool:
    return up.ask("/v1/health")["status"] == "ok" and not up.ask("/v1/alerts")["alerts"]


def _incidents(up: RunningUp) -> list[str]:
    return [f"{each['id']} {each['summary']}" for each in up.ask("/v1/alerts", state="all")["alerts"]]


def _an_hour(up: RunningUp, mail: Queue, scrapes: Scrapes) -> tuple[set[int], int]:
    """The pool's targets and how many jobs there were."""
    targets, jobs, began_s = set(), 0, time.monotonic()
    while True:
        at_s = time.monotonic() - began_s
        if at_s >= QUIET_S:
            return targets, jobs
        if at_s >= scrapes.count * SCRAPE_S:
            scrapes.take()
            targets.add(up.ask("/v1/pools", pool="mail")["pools"][0]["target_workers"])
        mail.enqueue("time.sleep", 1.0, result_ttl=0)
        jobs += 1
        rate_per_s = 0.6 + 0.5 * math.sin(2 * math.pi * at_s / WAVE_S)
        time.sleep(max(0.0, began_s + at_s + 1 / rate_per_s - time.monotonic()))
