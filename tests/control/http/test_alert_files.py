"""The files made from the alert rules: fresh and valid; each rule fires where it should, and none where all is well."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from alert_files import FILES, PANELS
from headway.scaling.conditions.condition_table import CONDITIONS
from support.debian import unpacked
from support.npm import node_modules
from support.tree import ROOT

# `__inputs` is of an exported board: what is asked for when somebody imports it.
BOARD_TYPE = """\
import type { Dashboard, Panel } from "@grafana/schema";
type Input = { name: string; label: string; type: "datasource"; pluginId: string };
type Board = Omit<Dashboard, "panels"> & { panels: Panel[]; __inputs: Input[] };"""
BOARD_MISTAKES: list[Callable[[dict[str, Any]], object]] = [
    lambda board: board["panels"][0].pop("type"),
    lambda board: board["panels"][1].update(titel="Workers"),
    lambda board: board["panels"][2]["gridPos"].update(w="12"),
    lambda board: board["panels"][3]["fieldConfig"].pop("defaults"),
    lambda board: board["templating"]["list"][1].update(refresh=7),
    lambda board: board["time"].pop("to"),
    lambda board: board.update(schemaVersion="39"),
    lambda board: board.update(colour="green"),
]

FOLDER = ROOT / "docs/reference"
POOL = 'instance="a",job="headway",pool="mail"'
WELL = {
    'up{instance="a",job="headway"}': "1x70",
    'headway_healthy{instance="a",job="headway"}': "1x70",
    'headway_leader_silent_seconds{instance="a",job="headway"}': "1x70",
    'headway_pipeline_beat_age_seconds{instance="a",job="headway",pipeline="main"}': "1x70",
    f"headway_pool_decided_age_seconds{{{POOL}}}": "200x70",
    f'headway_pool_state{{{POOL},state="on_time"}}': "1x70",
    f"headway_pool_lost_jobs{{{POOL}}}": "0x70",
    f"headway_pool_measured_age_seconds{{{POOL}}}": "3x70",
    f'headway_pool_workers{{{POOL},state="backing_off"}}': "0x70",
    f'headway_pool_workers{{{POOL},state="draining"}}': "0x70",
    'headway_hosts{instance="a",job="headway",state="silent"}': "0x70",
    'headway_refused_names_total{instance="a",job="headway",kind="queues"}': "3x70",
    'headway_host_forced_workers_total{instance="a",job="headway",host="h",pool="mail"}': "2x70",
    f'headway_pool_evaluation_delay_seconds{{{POOL},quantile="0.95"}}': "0.1x70",
    f"headway_pool_target_workers{{{POOL}}}": "3 4 5 4 3x66",
    f"headway_pool_ceiling_workers{{{POOL}}}": "10x70",
    f"headway_pool_error_budget_ratio{{{POOL}}}": "0.01x70",
    f"headway_pool_day_paid_worker_seconds{{{POOL}}}": "10x70",
    f"headway_pool_day_budget_worker_seconds{{{POOL}}}": "100x70",
    'headway_host_certificate_left_seconds{instance="a",job="headway",host="h"}': "6000000x70",
    f'headway_queue_measured_jobs_total{{{POOL},queue="q",objective_seconds="10.0"}}': "0+100x70",
    f'headway_queue_late_jobs_total{{{POOL},queue="q",objective_seconds="10.0"}}': "0+0.5x70",
}
LATE = f'headway_queue_late_jobs_total{{{POOL},queue="q",objective_seconds="10.0"}}'
BREACHING = {f'headway_pool_state{{{POOL},state="breaching"}}': "1x70"}
PLANTED: dict[str, tuple[dict[str, str], set[str]]] = {
    "HeadwayAway": ({'up{instance="a",job="headway"}': "0x70"}, set()),
    "HeadwayDegraded": ({'headway_health_reason{instance="a",job="headway",reason="leader"}': "1x70"}, set()),
    "HeadwayNoLeader": ({'headway_leader_silent_seconds{instance="a",job="headway"}': "11+60x70"}, set()),
    "HeadwayPoolUndecided": ({f"headway_pool_decided_age_seconds{{{POOL}}}": "601+60x70"}, set()),
    "HeadwayPoolLate": (BREACHING, set()),
    "HeadwayPoolBroken": (
        {
            f'headway_pool_state{{{POOL},state="crash_loop"}}': "1x70",
            'headway_health_reason{instance="a",job="headway",reason="crash_loop"}': "1x70",
        },
        set(),
    ),
    # Health names the suspension as well, which is no page.
    "HeadwayPoolSuspended": (
        {
            f'headway_pool_state{{{POOL},state="suspended"}}': "1x70",
            'headway_health_reason{instance="a",job="headway",reason="suspended"}': "1x70",
        },
        set(),
    ),
    "HeadwayPoolBottleneck": (
        {
            f'headway_pool_state{{{POOL},state="bottleneck"}}': "1x70",
            'headway_health_reason{instance="a",job="headway",reason="bottleneck"}': "1x70",
        },
        set(),
    ),
    "HeadwayPoolUnknown": ({f'headway_pool_state{{{POOL},state="stale"}}': "1x70"}, set()),
    "HeadwayJobsLost": (
        {
            f"headway_pool_lost_jobs{{{POOL}}}": "12x70",
            'headway_health_reason{instance="a",job="headway",reason="lost_jobs"}': "1x70",
        },
        set(),
    ),
    "HeadwayJobsPerhapsLost": (
        {
            f"headway_pool_perhaps_lost_jobs{{{POOL}}}": "12x70",
            'headway_health_reason{instance="a",job="headway",reason="perhaps_lost_jobs"}': "1x70",
        },
        set(),
    ),
    "HeadwayJobsCut": (
        {
            f"headway_pool_cut_jobs{{{POOL}}}": "1x70",
            'headway_health_reason{instance="a",job="headway",reason="cut_jobs"}': "1x70",
        },
        set(),
    ),
    "HeadwayJobsPerhapsCut": (
        {
            f"headway_pool_perhaps_cut_jobs{{{POOL}}}": "1x70",
            'headway_health_reason{instance="a",job="headway",reason="perhaps_cut_jobs"}': "1x70",
        },
        set(),
    ),
    "HeadwayPoisonJob": (
        {
            f"headway_pool_poison_jobs{{{POOL}}}": "1x70",
            'headway_health_reason{instance="a",job="headway",reason="poison_jobs"}': "1x70",
        },
        set(),
    ),
    "HeadwayWorkerUnable": (
        {
            f"headway_pool_unable_workers{{{POOL}}}": "1x70",
            'headway_health_reason{instance="a",job="headway",reason="unable_workers"}': "1x70",
        },
        set(),
    ),
    "HeadwayJobsUnheld": (
        {
            f"headway_pool_unheld_jobs{{{POOL}}}": "3x70",
            'headway_health_reason{instance="a",job="headway",reason="unheld_jobs"}': "1x70",
        },
        set(),
    ),
    "HeadwayPipelineSilent": (
        {'headway_pipeline_beat_age_seconds{instance="a",job="headway",pipeline="main"}': "11+60x70"},
        set(),
    ),
    "HeadwayUnmeasured": ({f"headway_pool_measured_age_seconds{{{POOL}}}": "61+60x70"}, set()),
    "HeadwayWorkersEnd": ({f'headway_pool_workers{{{POOL},state="backing_off"}}': "1x70"}, set()),
    "HeadwayHostSilent": ({'headway_hosts{instance="a",job="headway",state="silent"}': "1x70"}, set()),
    "HeadwayNamesRefused": (
        {'headway_refused_names_total{instance="a",job="headway",kind="queues"}': "0+1x70"},
        set(),
    ),
    "HeadwayHostsMissing": (
        {'headway_hosts_wanted{instance="a",job="headway",templates="rq",labels=""}': "2x70"},
        set(),
    ),
    "HeadwayEvaluationLate": (
        {f'headway_pool_evaluation_delay_seconds{{{POOL},quantile="0.95"}}': "6x70"},
        set(),
    ),
    "HeadwayDrainOverdue": ({f"headway_pool_overdue_workers{{{POOL}}}": "1x70"}, set()),
    "HeadwayWorkersForced": (
        {'headway_host_forced_workers_total{instance="a",job="headway",host="h",pool="mail"}': "0+1x70"},
        set(),
    ),
    "HeadwayBudgetBurnsFast": ({LATE: "0+20x70"}, {"HeadwayBudgetBurnsSlow"}),  # 20 % late, 20 times 1 %
    "HeadwayBudgetBurnsSlow": ({LATE: "0+8x70"}, set()),
    "HeadwayAtCeiling": (
        {**BREACHING, f"headway_pool_target_workers{{{POOL}}}": "10x70"},
        {"HeadwayPoolLate"},
    ),
    "HeadwayFlapping": ({f"headway_pool_target_workers{{{POOL}}}": " ".join(["3", "5"] * 35)}, set()),
    "HeadwayErrorBudgetSpent": (
        {f"headway_pool_day_late_jobs{{{POOL}}}": "12x70", f"headway_pool_day_late_jobs_allowed{{{POOL}}}": "10x70"},
        set(),
    ),
    "HeadwayBudgetReached": ({f"headway_pool_day_paid_worker_seconds{{{POOL}}}": "100x70"}, set()),
    "HeadwayCertificateEnds": (
        {'headway_host_certificate_left_seconds{instance="a",job="headway",host="h"}': "90000x70"},
        set(),
    ),
}

EVERY_FOUR_MINUTES = {f"headway_pool_target_workers{{{POOL}}}": " ".join(["2", "0", "0", "0"] * 18)}


@pytest.fixture(scope="module")
def promtool() -> Path:
    return unpacked("bookworm", "prometheus") / "usr/bin/promtool"


def test_the_committed_files_are_what_the_definition_gives() -> None:
    for name, made in FILES.items():
        assert (FOLDER / name).read_text() == made(), "run: .venv/bin/python tools/alert_files.py docs/reference"


@pytest.mark.e2e
def test_each_rule_fires_when_it_should_and_none_where_all_is_well(promtool: Path, tmp_path: Path) -> None:
    assert PLANTED.keys() == {each.alert.name for each in CONDITIONS.values() if each.alert is not None}
    cases = [_case("well", {}, set()), _case("jobs every four minutes", EVERY_FOUR_MINUTES, set())]
    cases += [_case(name, series, {name, *more}) for name, (series, more) in PLANTED.items()]
    rules = tmp_path / "alerts.yml"
    rules.write_text((FOLDER / "alerts.yml").read_text())
    test = tmp_path / "test.yml"
    test.write_text(yaml.safe_dump({"rule_files": ["alerts.yml"], "evaluation_interval": "1m", "tests": cases}))
    for words in (["check", "rules", rules], ["test", "rules", test]):
        answer = subprocess.run([promtool, *words], capture_output=True, text=True, timeout=60, cwd=tmp_path)
        assert answer.returncode == 0, answer.stdout + answer.stderr


def _case(name: str, series: dict[str, str], firing: set[str]) -> dict[str, Any]:
    """A test of promtool: where ``series`` take the place of those of an installation that is well, these fire."""
    return {
        "name": name,
        "interval": "1m",
        "input_series": [{"series": each, "values": values} for each, values in {**WELL, **series}.items()],
        "promql_expr_test": [
            {
                "expr": 'count by (alertname) (ALERTS{alertstate="firing"})',
                "eval_time": eval_time,
                "exp_samples": [{"labels": f'{{alertname="{each}"}}', "value": 1} for each in sorted(firing)],
            }
            for eval_time in ("70m",)  # the longest `for` is an hour
        ],
    }


async def test_every_metric_that_a_file_names_exists(client: httpx.AsyncClient) -> None:
    text = (await client.get("/metrics")).text
    exposed = {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")}
    exposed |= {rule["record"] for rule in _rules() if "record" in rule} | {"up"}
    expressions = [rule["expr"] for rule in _rules()] + [expression for _, expression, _, _ in PANELS]
    named = {
        word
        for expression in expressions
        for word in expression.replace("(", " ").replace("{", " ").replace("[", " ").replace(")", " ").split()
        if word.startswith("headway") and "=" not in word and '"' not in word
    }
    assert {word for word in named if word not in exposed} == set()


def test_the_board_is_one_that_grafana_imports() -> None:
    board = json.loads((FOLDER / "grafana.json").read_text())
    assert {"title", "schemaVersion", "panels", "templating", "time", "uid"} <= board.keys()
    places = [panel["gridPos"] for panel in board["panels"]]
    assert all(place["x"] + place["w"] <= 24 for place in places)
    assert len({(place["x"], place["y"]) for place in places}) == len(places)
    assert len({panel["id"] for panel in board["panels"]}) == len(places)
    variables = {each["name"] for each in board["templating"]["list"]}
    for panel in board["panels"]:
        assert panel["targets"][0]["datasource"]["uid"] == "${source}"
        assert all(name in variables for name in ("source", "pool"))


@pytest.mark.e2e
def test_the_board_is_one_by_grafanas_own_schema(tmp_path: Path) -> None:
    """Compiled against the types that Grafana generates of its schema, beside boards that they must refuse."""
    board = json.loads((FOLDER / "grafana.json").read_text())
    lines = [BOARD_TYPE, f"const board: Board = {json.dumps(board)};"]
    for number, mistake in enumerate(BOARD_MISTAKES):
        wrong = json.loads(json.dumps(board))
        mistake(wrong)
        lines += ["// @ts-expect-error a mistake", f"const wrong{number}: Board = {json.dumps(wrong)};"]
    (tmp_path / "board.ts").write_text("\n".join(lines))
    (tmp_path / "node_modules").symlink_to(node_modules(ROOT / "tests/client/typescript"))
    words = ["npx", "tsc", "--noEmit", "--strict", "--skipLibCheck", "--module", "nodenext", "board.ts"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr


def _rules() -> list[dict[str, Any]]:
    groups = yaml.safe_load((FOLDER / "alerts.yml").read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]
