"""`headway simulate`: a table, a report, figures, and one clear line for each mistake."""

import json
import os
import re
from dataclasses import fields
from pathlib import Path

import pytest
from rich.console import Console

from headway.__main__ import main
from headway.cli.rehearse import simulate as command
from headway.cli.rehearse import tick_phases
from headway.cli.rehearse.fault_options import KINDS as FAULTS
from headway.cli.rehearse.fault_options import wrongs_of
from headway.cli.rehearse.rehearsal import SWEEP, Case, base_profile, cases, risks_of, strategies_of
from headway.cli.rehearse.trace_files import Columns, read_trace
from headway.errors import Invalid
from headway.scaling.metrics.behaviour import behaviour_from_mapping
from headway.scaling.model import Mode
from headway.simulate.studies.single_pool import Setting
from support.installed import INSTALLED

TRACE = "t_arrival,service_s\n" + "".join(f"{number},1.5\n" for number in range(60))


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "mail.csv"
    path.write_text(TRACE)
    return path


def profiles(folder: Path, text: str) -> str:
    (folder / "profiles.yaml").write_text(text)
    return str(folder / "profiles.yaml")


def test_strategies_may_be_named_one_by_one(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["simulate", str(trace), "--phases", "1", "--floor", "3", "--strategy", "hybrid", "--strategy", "fixed"]
    assert main(words) == 0
    printed = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in printed if line.split()[:1] in (["hybrid"], ["fixed"])] == ["hybrid", "fixed"]


def test_each_strategy_has_its_row(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "--trace", str(trace), "--strategy", "hybrid,fixed", "--floor", "3", "--phases", "1"]) == 0
    promised, _, head, *rows = capsys.readouterr().out.splitlines()
    assert promised == "Objective: 99 % of the jobs start within 10 s; up to 1000 workers."
    assert head.split()[:3] == ["strategy", "time", "p50"]
    assert [row.split()[0] for row in rows] == ["hybrid", "fixed"]
    assert all(row.split()[1] == "100.00" for row in rows)


def test_several_workloads_are_rehearsed_apart_under_their_names(
    trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["simulate", str(trace), str(trace), "--synthetic", "cron:jobs=2,for=2m,every=60s", "--phases", "1"]
    assert main(words) == 0
    rows = capsys.readouterr().out.splitlines()[3:]
    assert [" ".join(row.split()[:2]) for row in rows] == ["mail hybrid", "mail (2)", "cron hybrid"]


def test_the_least_and_the_most_of_all_tick_phases_stand_below_each_row(
    trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, report = tmp_path / "out.json", tmp_path / "out.html"
    words = ["simulate", str(trace), "--strategy", "hybrid,hybrid_v3", "--phases", "5"]
    assert main([*words, "--json", str(file), "--report", str(report)]) == 0
    *_, first, least, most, _, _, _, note = capsys.readouterr().out.splitlines()
    assert [row.split()[0] for row in (first, least, most)] == ["hybrid", "least", "most"]
    assert note == "Medians of 5 rehearsals that differ in when their ticks are."
    hours = [float(row.split()[9]) for row in (least, first, most)]
    assert hours == sorted(hours)
    (hybrid, _) = json.loads(file.read_text())["rehearsals"]
    assert [phase["tick_phase_s"] for phase in hybrid["phases"]] == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert sorted(phase["spawns"] for phase in hybrid["phases"])[2] == hybrid["spawns"]
    assert "most of all tick phases" in report.read_text()


def test_one_phase_is_the_rehearsal_that_it_was(trace: Path, tmp_path: Path) -> None:
    file = tmp_path / "out.json"
    assert main(["simulate", str(trace), "--phases", "1", "--json", str(file)]) == 0
    (row,) = json.loads(file.read_text())["rehearsals"]
    assert row["phases"] == []


def test_processes_beside_each_other_give_the_same_figures(
    trace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for number, beside_from_s in enumerate((0.0, 1e9)):
        monkeypatch.setattr(tick_phases, "BESIDE_FROM_S", beside_from_s)
        monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2}, raising=False)
        file = tmp_path / f"{number}.json"
        words = ["simulate", str(trace), str(trace), "--strategy", "hybrid,hybrid_v3", "--jitter", "0.4"]
        assert main([*words, "--json", str(file)]) == 0
        found.append(json.loads(file.read_text()))
    assert found[0] == found[1]


def test_eighty_columns_are_enough_for_every_figure(
    trace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "output", lambda: Console(width=80, highlight=False))
    assert main(["simulate", str(trace), "--strategy", "hybrid,jobs_per_worker", "--risk", "0.25,1"]) == 0
    said = capsys.readouterr().out
    assert "…" not in said
    assert max(map(len, said.splitlines())) <= 80


def test_figures_for_a_program_name_everything_that_they_depend_on(trace: Path, tmp_path: Path) -> None:
    file = tmp_path / "out.json"
    assert (
        main(["simulate", str(trace), "--target", "30s", "--start-up", "8s", "--seed", "3", "--json", str(file)]) == 0
    )
    figures = json.loads(file.read_text())
    assert (figures["objective"]["target_s"], figures["start_up_s"], figures["seed"]) == (30.0, 8.0, 3)
    (row,) = figures["rehearsals"]
    assert (row["workload"], row["strategy"], row["jobs"]) == ("mail", "hybrid", 60)
    assert row["worker_hours"] >= row["work_hours"] == pytest.approx(60 * 1.5 / 3600)
    assert "points" not in row


def test_the_same_call_gives_the_same_figures(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = []
    for _ in range(2):
        assert main(["simulate", str(trace), "--jitter", "0.5"]) == 0
        said.append(capsys.readouterr().out)
    assert said[0] == said[1]


def test_the_report_is_one_file_with_every_rehearsal(trace: Path, tmp_path: Path) -> None:
    file = tmp_path / "out.html"
    assert main(["simulate", str(trace), "--strategy", "hybrid,hybrid_v3", "--report", str(file)]) == 0
    text = file.read_text()
    for part in ("Rehearsal of mail", "hybrid_v3: over time", "99 % within 10 s", "<svg"):
        assert part in text


def test_ctrl_c_keeps_what_was_done_and_says_so(
    trace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = Case.rows

    def interrupted(case, *rest, **options):
        if case.profile.strategy == "hybrid_v3":
            raise KeyboardInterrupt
        return rows(case, *rest, **options)

    monkeypatch.setattr(Case, "rows", interrupted)
    file = tmp_path / "out.json"
    assert main(["simulate", str(trace), "--strategy", "hybrid,hybrid_v3", "--json", str(file)]) == 130
    said = capsys.readouterr()
    assert "interrupted: 1 of 2 rehearsals were done" in said.err
    assert "hybrid  " in said.out
    assert len(json.loads(file.read_text())["rehearsals"]) == 1


def test_a_profile_of_a_file_is_rehearsed_as_if_it_were_let_act(tmp_path: Path) -> None:
    text = (
        "pools:\n  mail: {queues: [q/mail], template: rq, workers_max: 7, mode: pause}\n"
        "  news: {queues: [q/news], template: rq, objective: {target_s: 30}}\n"
    )
    file = profiles(tmp_path, text)
    profile = base_profile(f"{file}:mail")
    assert (profile.pool, profile.workers_max, profile.mode) == ("mail", 7, Mode.ACT)
    assert base_profile(f"{file}:news", percentile=95.0, cap_workers=4).objective.target_s == 30
    with pytest.raises(Invalid, match="has no pool 'post'; it has mail, news"):
        base_profile(f"{file}:post")
    with pytest.raises(Invalid, match=r"has 2 pools: say which, as in --profile .*profiles\.yaml:mail"):
        base_profile(file)


def test_a_strategy_may_be_given_its_own_numbers() -> None:
    profile = base_profile(None)
    key, number = next(iter(INSTALLED["jobs_per_worker"].options.items()))
    plain, tuned = strategies_of(f"jobs_per_worker, jobs_per_worker:{key}={number + 1}", profile, INSTALLED)
    assert plain.strategy_options == {}
    assert tuned.strategy_options == {key: number + 1}
    assert [each.strategy for each in strategies_of(None, profile, INSTALLED)] == ["hybrid"]


def test_hosts_bound_the_workers_there_are(trace: Path, tmp_path: Path) -> None:
    hours = []
    for room in ("1x1", "2x4"):
        assert main(["simulate", str(trace), "--hosts", room, "--json", str(tmp_path / "out.json")]) == 0
        (row,) = json.loads((tmp_path / "out.json").read_text())["rehearsals"]
        hours.append((row["attainment_percent"], row["spawns"]))
    assert hours[0][0] < 60  # 60 jobs of 1.5 s, one a second: one worker falls ever further behind
    assert hours[1][0] == 100


@pytest.mark.parametrize(
    "text",
    [
        "jobs:fail=50%,attempts=3,retry=3s",
        "workers:live=10s,redeliver=5s",
        "crash-loop:from=0,until=30s",
        "lag:by=4s",
        "loss:from=0,until=30s",
        "host:number=1,from=10s,until=40s",
        "control:from=0,until=30s",
    ],
)
def test_what_may_go_wrong_changes_what_comes_of_it(text: str, trace: Path, tmp_path: Path) -> None:
    words = ["simulate", str(trace), "--hosts", "2x4", "--json"]
    assert main([*words, str(tmp_path / "well.json")]) == 0
    assert main([*words, str(tmp_path / "ill.json"), "--fault", text]) == 0
    (well,), (ill,) = (json.loads((tmp_path / name).read_text())["rehearsals"] for name in ("well.json", "ill.json"))
    assert well != ill


def test_every_kind_of_fault_has_an_example_that_is_understood() -> None:
    page = (Path(__file__).parents[2] / "docs/how-to/rehearse.md").read_text()
    for name, kind in FAULTS.items():
        assert wrongs_of([kind.example], hosts=1) != wrongs_of([], hosts=1)
        assert f"| `{name}` | `{kind.example}` |" in page


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("rain", "no kind 'rain'; known: jobs, workers, crash-loop, lag, loss, host, control"),
        ("lag:of=3s", "no key 'of'; known: by"),
        ("lag", "by must be given, as in lag:by=4s"),
        ("loss:from=5m,until=1m", "a stretch from 300.0 s until 60.0 s is empty"),
        ("jobs:fail=120%", "job_failure_fraction=1.2 is not a part of 1"),
        ("jobs:fail=often", "fail='often' is no share, as in 95% or 0.95"),
        ("host:number=3,from=0,until=1m", "there is no host-3: --hosts says how many there are"),
    ],
)
def test_a_wrong_fault_is_reported(text: str, said: str) -> None:
    with pytest.raises(Invalid) as refused:
        wrongs_of([text], hosts=2)
    assert said in str(refused.value)


def test_the_risk_knob_is_swept_where_it_moves_something(trace: Path) -> None:
    profile = base_profile(None)
    wanted = cases(
        [read_trace(trace, Columns())], strategies_of("hybrid,fixed", profile, INSTALLED), risks_of("0.5,2", profile)
    )
    assert [(case.profile.strategy, case.risk, case.is_drawn) for case in wanted] == [
        ("hybrid", 0.5, False),
        ("hybrid", 1.0, True),  # the profile's own is always among them
        ("hybrid", 2.0, False),
        ("fixed", None, True),
    ]
    assert risks_of("sweep", profile) == sorted(SWEEP)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "nothing to rehearse: name a trace, a workload with --synthetic"),
        (["gone.csv"], "trace gone.csv cannot be read: No such file or directory"),
        (["TRACE", "--strategy", "hybird"], "--strategy: strategy 'hybird' is not known; did you mean 'hybrid'?"),
        (["TRACE", "--strategy", "hybrid:nothing=1"], "strategy_options.nothing is no number of strategy 'hybrid'"),
        (["TRACE", "--strategy", "hybrid:x=y"], "--strategy: 'x=y' is no number with a name"),
        (["TRACE", "--strategy", ","], "--strategy: it names none"),
        (["TRACE", "--profile", "gone.yaml"], "gone.yaml cannot be read"),
        (["TRACE", "--target", "soon"], "--target='soon' is no duration"),
        (["TRACE", "--target", "0s"], "objective.target_s=0.0 must lie above 0"),
        (["TRACE", "--cap", "-1"], "workers_max=-1"),
        (["TRACE", "--tick", "0s"], "--tick: 0 s must lie above 0"),
        (["TRACE", "--slots", "0"], "--slots=0 must be 1 or more"),
        (["TRACE", "--phases", "0"], "--phases=0 must lie in 1..64"),
        (["TRACE", "--behaviour", "nowhere.json"], "--behaviour=nowhere.json cannot be read"),
        (["TRACE", "--host-cores", "0"], "--host-cores=0 must be above 0"),
        (["TRACE", "--jitter", "-1"], "--jitter=-1 must lie in 0..3"),
        (["TRACE", "--risk", "much"], "--risk='much': expected numbers"),
        (["TRACE", "--hosts", "3"], "--hosts='3' must be hosts and the workers that fit on each, as in 3x8"),
        (["TRACE", "--begins-at", "tomorrow"], "--begins-at='tomorrow' is no moment"),
        (["TRACE", "--columns", "a,b"], "has no column a; it has t_arrival, service_s"),
        (["TRACE", "--report", "no/such/folder/out.html"], "cannot be written: name a file in a folder that exists"),
        (["--synthetic", "flood"], "no kind 'flood'; known: poisson"),
    ],
)
def test_a_mistake_is_one_clear_line(
    trace: Path, words: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["simulate", *(str(trace) if word == "TRACE" else word for word in words)]) == 2
    said = capsys.readouterr().err
    assert says in said
    assert said.startswith("headway: ")
    assert said.count("\n") == 1


def test_what_cannot_be_set_is_reported_at_once() -> None:
    with pytest.raises(Invalid) as refusal:
        Setting(tick_s=0.0, slots=0)
    assert len(refusal.value.breaches) == 2


def test_a_measured_behaviour_takes_the_place_of_the_start_up(
    trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same start-up, exits that take a second: more is paid, and the figures say what was measured."""
    file, measured = tmp_path / "out.json", tmp_path / "behaviour.json"
    measured.write_text('{"start_up": {"p50_s": 2.0, "p95_s": 2.0}, "exit": {"p50_s": 1.0, "p95_s": 1.0}}')
    assert main(["simulate", str(trace), "--start-up", "9s", "--behaviour", str(measured), "--json", str(file)]) == 0
    live = json.loads(file.read_text())
    assert live["behaviour"]["exit"]["p50_s"] == 1.0
    assert main(["simulate", str(trace), "--start-up", "2s", "--json", str(file)]) == 0
    plain = json.loads(file.read_text())
    assert plain["behaviour"] is None
    assert live["rehearsals"][0]["pickup_max_s"] < 9


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[1]", "expected an object"),
        ("{", "is no JSON"),
        ('{"exit": 3}', "behaviour"),
        ('{"exit": {"p50_s": 2, "p95_s": 1}}', "needs 0 <= p50_s <= p95_s"),
    ],
)
def test_a_file_that_holds_no_behaviour_is_refused_by_name(
    trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, message: str
) -> None:
    file = tmp_path / "behaviour.json"
    file.write_text(text)
    assert main(["simulate", str(trace), "--behaviour", str(file)]) == 2
    said = capsys.readouterr().err
    assert "--behaviour" in said
    assert message in said


def test_the_guide_shows_every_key_of_a_behaviour() -> None:
    page = (Path(__file__).parents[2] / "docs/how-to/rehearse.md").read_text()
    (shown,) = re.findall(r"```json behaviour\n(.*?)```", page, flags=re.DOTALL)
    behaviour = behaviour_from_mapping(json.loads(shown))
    assert None not in {getattr(behaviour, each.name) for each in fields(behaviour)}
