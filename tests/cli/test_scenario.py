"""`headway simulate --scenario`: many pools on hosts with names, and one clear line for each mistake of the file."""

import gzip
import json
import re
from pathlib import Path

import pytest

from headway.__main__ import main
from headway.cli.rehearse.scenario import load_scenario
from headway.cli.rehearse.trace_files import Columns
from headway.errors import Invalid, Misconfigured
from support.tree import ROOT

PROFILES = """
pools:
  small: {queues: [redis/small], template: rq, workers_max: 20}
  large: {queues: [redis/large], template: ffmpeg, workers_max: 3, objective: {target_s: 60}}
  giant: {queues: [redis/giant], template: giant, workers_min: 1, workers_max: 1}
"""
SCENARIO = """
profiles: profiles.yaml
templates:
  rq: {cpu_cores: 1, memory_bytes: 256M, slots: 2}
  ffmpeg: {cpu_cores: 4, memory_bytes: 2G, start_up: 8s}
  giant: {cpu_cores: 16}
hosts:
  web: {count: 2, cpu_cores: 4, memory_bytes: 8G, labels: {zone: a}, templates: [rq]}
  video: {cpu_cores: 8, memory_bytes: 16G, gpus: 1}
workloads:
  small: poisson:rate=3,service=1s,for=3m
  large: jobs.csv
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "profiles.yaml").write_text(PROFILES)
    (tmp_path / "jobs.csv").write_text("t_arrival,service_s\n" + "".join(f"{60 * n},30\n" for n in range(3)))
    return tmp_path


def scenario(folder: Path, text: str = SCENARIO) -> Path:
    file = folder / "scenario.yaml"
    file.write_text(text)
    return file


def test_hosts_templates_and_workloads_are_what_the_file_says(folder: Path) -> None:
    found = load_scenario(scenario(folder), Columns())
    assert [host.name for host in found.hosts] == ["web-1", "web-2", "video"]
    assert [[each.name for each in host.templates] for host in found.hosts] == [
        ["rq"],
        ["rq"],
        ["rq", "ffmpeg", "giant"],
    ]
    web, _, video = found.hosts
    assert (web.labels, web.capacity.memory_bytes, video.capacity.gpus) == ({"zone": "a"}, 8 * 1024**3, 1)
    assert (video.templates[2].cpu_cores, video.templates[2].memory_bytes) == (16.0, 128 * 1024**2)  # as a host.toml's
    assert [(load.profile.pool, load.slots, load.start_up_s, len(load.jobs)) for load in found.loads][1] == (
        "large",
        1,
        8.0,
        3,
    )
    assert found.loads[0].slots == 2


def test_recorded_jobs_keep_their_places_on_the_clock(folder: Path) -> None:
    """One trace begins a quarter of an hour after the other; drawn jobs begin with the first of them."""
    for name, at_s in (("jobs.csv", 1_800_000_900), ("early.csv", 1_800_000_000)):
        (folder / name).write_text(f"t_arrival,service_s\n{at_s},1\n{at_s + 10},1\n")
    text = SCENARIO.replace("poisson:rate=3,service=1s,for=3m", "early.csv") + "  giant: cron:jobs=1,for=5m\n"
    found = load_scenario(scenario(folder, text), Columns())
    assert found.begins_at_s == 1_800_000_000
    assert [load.jobs.at_s[0] for load in found.loads[:2]] == [0.0, 900.0]
    assert found.loads[2].jobs.at_s[0] < 300


def test_each_pool_has_its_row_and_what_had_no_place_its_reason(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = SCENARIO + "  giant: cron:jobs=1,every=1m,for=2m\n"
    files = [str(folder / name) for name in ("out.json", "out.html")]
    words = ["simulate", "--scenario", str(scenario(folder, text)), "--phases", "2", "--strategy", "hybrid,fixed"]
    assert main([*words, "--json", files[0], "--report", files[1]]) == 0
    said = capsys.readouterr().out
    assert said.startswith("Rehearsal of 3 pools on 3 hosts.")
    assert [line.split()[0] for line in said.splitlines() if " % " in line and "hybrid" in line] == [
        "small",
        "large",
        "giant",
    ]
    assert "giant (hybrid): no place for 1 worker over" in said
    reason = "workers_min 1: 0 placed; one takes 16 cores, and no host is that large (largest: 8 cores on host video)"
    assert reason in said
    figures = json.loads(Path(files[0]).read_text())
    assert figures["hosts"] == ["web-1", "web-2", "video"]
    assert [row["objective_s"] for row in figures["rehearsals"]] == [10, 10, 60, 60, 10, 10]
    assert figures["rehearsals"][4]["unplaced"]["workers_max"] == 1
    assert reason in Path(files[1]).read_text()


def test_where_all_have_their_place_it_says_so(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "--scenario", str(scenario(folder)), "--phases", "1"]) == 0
    assert "Every pool had a place for each worker that it wanted." in capsys.readouterr().out


def test_a_host_that_is_gone_for_a_while_is_named_by_its_place(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["simulate", "--scenario", str(scenario(folder)), "--phases", "1", "--fault"]
    assert main([*words, "host:number=3,from=0s,until=100s"]) == 0
    assert "large (hybrid): no place for" in capsys.readouterr().out
    assert main([*words, "host:number=4,from=0s,until=100s"]) == 2


@pytest.mark.parametrize(
    "words", [["--trace", "x.csv"], ["--synthetic", "flash"], ["--hosts", "3x8"], ["--floor", "0"], ["--risk", "1"]]
)
def test_what_the_files_say_no_option_says(words: list[str], folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "--scenario", str(scenario(folder)), *words]) == 2
    assert f"--scenario: its files say what {words[0]} would: leave it out" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("profiles: profiles.yaml", "", "profiles: expected the file of the policies, as profiles.yaml"),
        ("workloads:", "workload:", "unknown key 'workload'; did you mean 'workloads'?"),
        ("workloads:", "workload:", "workloads: name at least one"),
        ("slots: 2", "slots: 0", "templates: rq: slots=0 must be 1 or more"),
        ("slots: 2", "slots: 1.5", "templates: rq: slots=1.5 is no whole number"),
        (
            "start_up: 8s",
            "start_up: soon",
            "templates: ffmpeg: start_up='soon' is no duration, as in 200ms",
        ),
        ("start_up: 8s", "start_up: 8", "templates: ffmpeg: start_up='8' has no unit: 8s, 8m or 8h"),
        ("gpus: 1", "gpu: 1", "hosts: video: unknown key 'gpu'; did you mean 'gpus'?"),
        ("cpu_cores: 8", "cpu_cores: -8", "hosts: video: cpu_cores=-8 must not be negative"),
        ("cpu_cores: 8, ", "", "hosts: video: say cpu_cores and memory_bytes, as in {cpu_cores: 8, memory_bytes: 16G}"),
        ("templates: [rq]", "templates: [rk]", "hosts: web: no template 'rk' under templates"),
        ("video: {", "web-1: {", "hosts: 2 are called 'web-1'"),
        ("cpu_cores: 8", "cpu_cores: .inf", "hosts: video: cpu_cores='inf' is no number, as in 250000"),
        ("memory_bytes: 16G", "memory_bytes: .nan", "hosts: video: memory_bytes='nan' is no amount of memory"),
        ("labels: {zone: a}", "labels: a", "hosts: web: labels='a' must be names and values, as in {zone: a}"),
        ("count: 2", "count: 0", "hosts: web: count=0 must be 1 or more"),
        ("small: poisson", "tiny: poisson", "workloads: no pool 'tiny' in profiles; it has small, large, giant"),
        ("jobs.csv", "nowhere.csv", "workloads: large: --synthetic='nowhere.csv': no kind 'nowhere.csv'"),
        ("rq: {cpu", "rk: {cpu", "pool 'small': its template 'rq' is not under templates"),
        ("large: jobs.csv", "large: 7", "workloads: large: expected a trace's file or a drawn workload"),
    ],
)
def test_each_mistake_is_reported_with_its_place(before: str, after: str, message: str, folder: Path) -> None:
    assert before in SCENARIO
    file = scenario(folder, SCENARIO.replace(before, after))
    with pytest.raises(Invalid) as caught:
        load_scenario(file, Columns())
    assert any(breach.startswith(f"{file}: {message}") for breach in caught.value.breaches), caught.value.breaches


def test_a_file_that_is_not_there_is_said_with_where_to_find_an_example(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match=r"docs/how-to/rehearse.md has an example"):
        load_scenario(tmp_path / "none.yaml", Columns())


def test_the_example_of_the_guide_is_a_scenario(tmp_path: Path) -> None:
    page = (ROOT / "docs/how-to/rehearse.md").read_text()
    (shown,) = re.findall(r"```yaml scenario\n(.*?)```", page, flags=re.DOTALL)
    (tmp_path / "profiles.yaml").write_text(
        "pools:\n"
        "  emails: {queues: [redis/emails], template: rq}\n"
        "  videos: {queues: [redis/videos], template: ffmpeg}\n"
    )
    (tmp_path / "videos.csv.gz").write_bytes(gzip.compress(b"t_arrival,service_s\n0,30\n"))
    found = load_scenario(scenario(tmp_path, shown), Columns())
    assert [host.name for host in found.hosts] == ["web-1", "web-2", "web-3", "video"]
    assert [load.profile.pool for load in found.loads] == ["emails", "videos"]
