"""`headway get` for people and for programs: tables, JSON, YAML, CSV, and again and again."""

import csv
import io
import json
import re
import time
from types import SimpleNamespace

import pytest
import yaml

from headway.__main__ import main
from headway.cli.operator import get
from headway.scaling.profile import Profile
from support.seed import Seed

pytestmark = pytest.mark.usefixtures("served")


@pytest.fixture(autouse=True)
def two(seed: Seed) -> None:
    for pool in ("mail", "news"):
        seed.profile(Profile(pool=pool, queues=(f"redis/{pool}",), template="rq"))


def said(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["get", *words]) == 0
    return capsys.readouterr().out


def test_json_and_yaml_are_the_answer_of_the_api(capsys: pytest.CaptureFixture[str]) -> None:
    as_json = json.loads(said(capsys, "profiles", "-o", "json"))
    assert (
        as_json
        == json.loads(said(capsys, "profiles", "--json"))
        == yaml.safe_load(said(capsys, "profiles", "-o", "yaml"))
    )
    assert [row["pool"] for row in as_json["profiles"]] == ["mail", "news"]


def test_csv_has_the_cells_of_the_table_under_their_names(capsys: pytest.CaptureFixture[str]) -> None:
    rows = list(csv.DictReader(io.StringIO(said(capsys, "profiles", "-o", "csv"))))
    assert [(row["pool"], row["queues"], row["workers"]) for row in rows] == [
        ("mail", "redis/mail", "0..20"),
        ("news", "redis/news", "0..20"),
    ]
    assert said(capsys, "decisions", "-o", "csv") == ""


def test_pools_are_listed_with_their_state_as_top_shows_them(capsys: pytest.CaptureFixture[str]) -> None:
    rows = list(csv.DictReader(io.StringIO(said(capsys, "pools", "-o", "csv"))))
    assert {row["pool"]: row["state"] for row in rows} == {"mail": "not seen yet", "news": "not seen yet"}
    assert "news" in said(capsys, "pools", "--pool", "news")
    assert main(["get", "pools", "--pool", "nwes"]) == 2
    assert "no pool 'nwes'" in capsys.readouterr().err


def test_the_audit_log_is_listed_newest_first(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["get", "audit"]) == 0
    assert "nothing of that is in the audit log" in capsys.readouterr().out
    for pool in ("mail", "news"):
        assert main(["pause", pool, "--reason", "a sale"]) == 0
    capsys.readouterr()
    rows = list(csv.DictReader(io.StringIO(said(capsys, "audit", "-o", "csv"))))
    assert [(row["did"], row["to"]) for row in rows] == [
        ("pool paused", "profile news"),
        ("pool paused", "profile mail"),
    ]
    assert [act["subject"] for act in json.loads(said(capsys, "audit", "-o", "json"))["acts"]] == [
        row["to"] for row in rows
    ]
    assert len(yaml.safe_load(said(capsys, "audit", "-o", "yaml", "--limit", "1"))["acts"]) == 1
    assert main(["get", "audit", "--pool", "mail"]) == 2
    assert "`headway audit --subject 'profile mail'`" in capsys.readouterr().err


def test_workers_are_listed_over_all_pages(
    capsys: pytest.CaptureFixture[str], seed: Seed, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "no workers" in said(capsys, "workers")
    seed.host("web-1")
    for number, is_busy in enumerate((True, False, None)):
        seed.worker("web-1", "mail", number, is_busy=is_busy)
    seed.worker("web-1", "news", 1)
    monkeypatch.setattr(get, "PAGE_WORKERS", 2)
    rows = list(csv.DictReader(io.StringIO(said(capsys, "workers", "-o", "csv"))))
    assert [(row["pool"], row["host"], row["busy"]) for row in rows] == [
        *(("mail", "web-1", busy) for busy in ("busy", "idle", "unknown")),
        ("news", "web-1", "busy"),
    ]
    assert {(row["state"], row["memory"]) for row in rows} == {("running", "unknown")}
    answer = json.loads(said(capsys, "workers", "--pool", "mail", "-o", "json"))
    assert [worker["pid"] for worker in answer["workers"]] == [1000, 1001, 1002]
    assert answer["next"] is None
    assert main(["get", "workers", "--pool", "mial"]) == 2
    assert "no profile 'mial'" in capsys.readouterr().err


def test_the_slo_report_has_a_row_a_pool_and_calls_unknown_what_is_not_known(
    capsys: pytest.CaptureFixture[str], seed: Seed
) -> None:
    at_s = time.time() // 300 * 300 - 300
    seed.execute_with("insert into pool_attainment values ('mail', %s, 10000, 1)", at_s)
    rows = list(csv.DictReader(io.StringIO(said(capsys, "slo", "-o", "csv"))))
    (in_time,) = (name for name in rows[0] if name.startswith("in time"))
    assert [(row["pool"], row["objective"], row[in_time], row["jobs"], row["late"]) for row in rows] == [
        ("mail", "p99 10 s", "99.99 %", "10000", "1"),
        ("news", "p99 10 s", "unknown", "unknown", "unknown"),
    ]
    assert [row["budget left"] for row in rows] == ["99 %", "unknown"]
    assert {row["worker-hours"] for row in rows} == {"unknown"}
    assert "are counted" not in said(capsys, "slo")
    seed.execute_with("update rollup_progress set attained_until_s = %s", 1_800_000_000)
    assert "jobs that started by 2027-01-15 08:00:00Z are counted" in said(capsys, "slo")
    assert [pool["pool"] for pool in yaml.safe_load(said(capsys, "slo", "--pool", "news", "-o", "yaml"))["pools"]] == [
        "news"
    ]


def alert(seed: Seed, pool: str, *, since_s: float, until_s: float | None = None) -> None:
    seed.execute_with(
        "insert into alerts (rule, severity, pool, host, kind, since_s, until_s, summary, action)"
        " values ('pool_late', 'page', %s, '', '', %s, %s, 'jobs wait', 'See it.')",
        *(pool, since_s, until_s),
    )


def test_alerts_that_go_on_are_all_listed_and_ended_ones_if_asked_for(
    capsys: pytest.CaptureFixture[str], seed: Seed, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "no alert goes on" in said(capsys, "alerts")
    now_s = time.time()
    alert(seed, "mail", since_s=now_s - 60)
    alert(seed, "news", since_s=now_s - 50)
    alert(seed, "mail", since_s=now_s - 7200, until_s=now_s - 3600)
    monkeypatch.setattr(get, "PAGE_ALERTS", 1)
    rows = list(csv.DictReader(io.StringIO(said(capsys, "alerts", "-o", "csv"))))
    assert [(row["about"], row["severity"], row["what is wrong"], row["until"]) for row in rows] == [
        ("pool news", "page", "jobs wait", "goes on"),
        ("pool mail", "page", "jobs wait", "goes on"),
    ]
    known = json.loads(said(capsys, "alerts", "--all", "--pool", "mail", "-o", "json"))["alerts"]
    assert sorted(each["until_s"] is None for each in known) == [False, True]
    seed.execute_with(
        "insert into silences (name, matchers, until_s, reason, created_by) values ('s', %s, %s, 'sale', 'a')",
        *('{"pool": "mail"}', now_s + 1200),
    )
    shown = said(capsys, "alerts", "-o", "wide", "--pool", "mail")
    assert "silenced for" in shown
    assert "pool_late" in shown
    for words, refusal in (
        (["alerts", "--pool", "mial"], "no profile 'mial'"),
        (["hosts", "--all"], "leave --all out"),
    ):
        assert main(["get", *words]) == 2
        assert refusal in capsys.readouterr().err


def test_wide_shows_the_usual_columns_and_more(capsys: pytest.CaptureFixture[str], seed: Seed) -> None:
    seed.host("web-1")
    seed.worker("web-1", "mail", 1)
    for what, headings in (
        ("pools", ("state", "template", "bounds")),
        ("queues", ("waiting", "delayed", "polled")),
        ("hosts", ("memory", "agent", "certificate")),
        ("workers", ("pid", "restarts")),
        ("profiles", ("objective",)),
    ):
        shown = said(capsys, what, "-o", "wide")
        assert [name for name in headings if name not in shown] == [], shown
        assert headings[-1] in shown.replace(said(capsys, what), "") or what == "profiles"


def test_watching_ends_by_ctrl_c_and_is_for_tables(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []

    def interrupted(pause_s: float) -> None:
        waits.append(pause_s)
        if len(waits) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(get, "time", SimpleNamespace(sleep=interrupted))
    assert main(["get", "pools", "--watch"]) == 130
    monkeypatch.undo()
    assert len(waits) == 3
    assert "mail" in capsys.readouterr().out
    assert main(["get", "pools", "--watch", "-o", "json"]) == 2
    assert "--watch shows tables" in capsys.readouterr().err


def test_no_color_takes_the_colours_away(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert main(["top", "--once"]) == 0
    assert "\x1b[31m" in capsys.readouterr().out  # nobody leads, in red
    monkeypatch.setenv("NO_COLOR", "1")
    assert main(["top", "--once"]) == 0
    shown = capsys.readouterr().out
    assert "mail" in shown
    assert not re.search(r"\x1b\[[0-9;]*[349][0-7]", shown)
