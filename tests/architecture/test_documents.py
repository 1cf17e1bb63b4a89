"""What the documents say of names, defaults and files is so."""

import ast
import json
import re
import sys
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path

import pytest
import yaml

from architecture.roles import NEEDED, read_by
from headway import environment, settings
from headway.__main__ import COMMANDS
from headway.agent.config.host_file import HostFile, ResourcesTable, TemplateTable
from headway.agent.config.host_file import load as load_host_file
from headway.agent.config.templates import Log, Recycle
from headway.cli.backtesting.candidate_files import read_candidates
from headway.cli.profiles_file import load_profiles_file
from headway.connection_tables import connections_from
from headway.control.notifications.receivers import read_receivers
from headway.scaling.keys import key_of
from headway.scaling.metrics.windows import WindowMetrics
from headway.scaling.model import FailureLimit, Mode, Objective, QueueMetrics
from headway.scaling.policy import limits
from headway.scaling.profile import Override, Pause, Placement, Profile, profile_from_mapping
from headway.scaling.profile_keys.presets import PRESETS
from headway.scaling.profile_keys.schedule import Schedule
from headway.scaling.strategies import hybrid
from headway.scaling.view import PoolView
from support.application_hosts import with_stand_ins
from support.tree import ROOT, SERVICE, SPARK, modules

DOCS = ROOT / "docs"
PAGES = [*sorted(DOCS.rglob("*.md")), *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md"))]


def rows(page: Path, after: str = "") -> Iterator[list[str]]:
    """The cells of each row of the page's first table, or of the first one below the heading ``after``."""
    text = page.read_text()
    _, _, text = text.partition(f"\n## {after}\n") if after else ("", "", text)
    table = re.search(r"(?:^\|.*\n)+", text, flags=re.MULTILINE)
    assert table, f"{page} has no table"
    for line in table[0].splitlines()[2:]:
        yield [cell.strip() for cell in line.strip("|").split(" | ")]


def test_every_setting_is_documented_with_the_roles_that_read_it() -> None:
    documented = {name.strip("`"): set(roles.split(", ")) for name, _, roles, _ in rows(DOCS / "reference/settings.md")}
    assert documented == read_by()


def test_documented_defaults_are_the_defaults() -> None:
    documented = {name.strip("`"): default for name, default, _, _ in rows(DOCS / "reference/settings.md")}
    control = settings.ControlSettings.from_env(NEEDED)
    agent, collect = settings.AgentSettings.from_env(NEEDED), settings.CollectSettings.from_env(NEEDED)
    pipeline = settings.PipelineSettings.from_env(NEEDED)
    here = Path().absolute()
    states = [role.relative_to(here) for role in (agent.state_dir, collect.state_dir, pipeline.work_dir)]
    assert documented["HEADWAY_HTTP_ADDRESS"] == f"`{control.http}`"
    assert documented["HEADWAY_GRPC_ADDRESS"] == f"`{control.grpc}`"
    assert documented["HEADWAY_EVENT_LOG"] == f"`{control.event_log.relative_to(here)}`"
    assert control.event_log == pipeline.event_log
    assert documented["HEADWAY_CHECKPOINT"] == f"`{pipeline.checkpoint.relative_to(here)}`"
    assert documented["HEADWAY_STATE_DIR"] == ", ".join(f"`{state}`" for state in states)
    assert documented["HEADWAY_CONTROL"] == f"`{agent.control[0]}`" == f"`{collect.control[0]}`"
    assert len(agent.control) == len(collect.control) == 1
    assert documented["HEADWAY_HOST_FILE"] == f"`{agent.host_file.relative_to(here)}`"
    assert documented["HEADWAY_URL"] == f"`{environment.ClientSettings.from_env({}).url}`"


def test_every_command_is_documented_with_its_extra() -> None:
    documented = {name.strip("`"): extra.strip("`") for name, extra, _ in rows(DOCS / "reference/commands.md")}
    assert documented == {f"headway {name}": command.extra or "none" for name, command in COMMANDS.items()}


@pytest.mark.parametrize(
    ("heading", "kind", "left_out"),
    [
        ("Keys", Profile, {"pool"}),
        ("Objective", Objective, set()),
        ("Failure limit", FailureLimit, set()),
        ("Placement", Placement, set()),
        ("Schedules", Schedule, set()),
        ("Override", Override, set()),
        ("Pause", Pause, set()),
    ],
)
def test_every_key_of_a_profile_is_documented_with_its_default(heading: str, kind: type, left_out: set[str]) -> None:
    documented = {
        name.strip("`"): default.strip("`") for name, default, *_ in rows(DOCS / "reference/profile.md", heading)
    }
    keys = [item for item in fields(kind) if item.name not in left_out]
    assert list(documented) == [item.name for item in keys]
    for item in keys:
        if item.default is None or item.default == "":
            assert documented[item.name] == "none"
        elif isinstance(item.default, int | float | str):
            assert documented[item.name] == (
                f"{item.default:g}" if isinstance(item.default, float) else str(item.default)
            )


def test_every_preset_is_documented_with_its_values() -> None:
    documented = list(rows(DOCS / "reference/profile.md", "Presets"))
    assert [name.strip("`") for name, *_ in documented] == list(PRESETS)
    for name, *shown in documented:
        made = profile_from_mapping("p", {"queues": ["r/q"], "template": "t", "preset": name.strip("`")})
        bounds = f"{made.workers_min}..{made.workers_max}" + ("" if made.pinned is None else ", pinned")
        promise = f"{made.objective.percentile:g} % within {made.objective.target_s:g} s"
        hold = "none" if made.hold_down_s is None else f"{made.hold_down_s:g}"
        assert shown == [promise, f"{made.objective.window_s:g}", bounds, f"`{made.forecast}`", hold]


def test_every_mode_of_a_profile_is_documented() -> None:
    documented = [name.strip("`") for name, _ in rows(DOCS / "reference/profile.md", "Modes")]
    assert documented == [mode.value for mode in Mode]


def scaled_object(file: Path) -> bool:
    """Whether it is a ScaledObject that scales by our gauge, and does not take missing metrics for zero."""
    spec = yaml.safe_load(file.read_text())["spec"]
    (trigger,) = spec["triggers"]
    return (
        trigger["type"] == "prometheus"
        and "headway_pool_target_workers{" in trigger["metadata"]["query"]
        and trigger["metadata"]["ignoreNullValues"] == "false"
        and trigger["metricType"] == "AverageValue"  # which KEDA's fallback asks for
        and spec["minReplicaCount"] <= spec["fallback"]["replicas"] <= spec["maxReplicaCount"]
    )


def receivers(file: Path) -> object:
    """The receivers of an example, whose secret lies beside it."""
    (file.parent / "oncall.secret").write_text("a secret of a test")
    file.write_text(file.read_text().replace("/etc/headway", str(file.parent)))
    return read_receivers(file)


def applications(file: Path) -> object:
    """The templates of a host on which applications run that are not installed here."""
    file.write_text(with_stand_ins(file.read_text(), file.parent))
    return load_host_file(file).templates


READERS: dict[str, Callable[[Path], object]] = {
    "yaml keda": scaled_object,
    "yaml": lambda file: load_profiles_file(file).profiles,
    "yaml candidates": read_candidates,
    "toml": lambda file: load_host_file(file).templates,
    "toml applications": applications,
    "toml notifications": receivers,
    "toml brokers": lambda file: connections_from(tomllib.loads(file.read_text()), [], where="it"),
}


def test_examples_of_files_are_ones_that_headway_takes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent))  # where rq is
    for page in PAGES:
        for kind, example in re.findall(
            r"```(yaml(?: candidates| keda)?|toml(?: applications| brokers| notifications)?)\n(.*?)```",
            page.read_text(),
            flags=re.DOTALL,
        ):
            file = tmp_path / f"example.{kind}"
            file.write_text(example.replace("/srv/app/.venv/bin/rq", "rq").replace("/srv/app", "."))
            assert READERS[kind](file), page


def test_every_key_of_a_host_file_is_documented() -> None:
    tables = {
        "Recycling": Recycle,
        "Logs": Log,
        "Resources": ResourcesTable,
        "Templates": TemplateTable,
        "Host": HostFile,
    }
    for heading, table in tables.items():
        documented = {row[0].strip("`") for row in rows(DOCS / "reference/host-file.md", heading)}
        assert documented == {key_of(item) for item in fields(table)} - {"templates"}


def test_every_figure_of_a_queue_is_documented() -> None:
    documented = [name.strip("`") for name, *_ in rows(DOCS / "reference/metrics.md")]
    assert documented == [item.name for item in fields(QueueMetrics) if item.name != "queue"]


def test_every_figure_of_a_window_is_explained() -> None:
    documented = [name.strip("`") for name, *_ in rows(DOCS / "reference/metrics.md", after="Longer windows")]
    assert documented == [item.name for item in fields(WindowMetrics)]


def test_the_limits_are_documented_in_their_order() -> None:
    documented = [name.strip("`") for name, _ in rows(DOCS / "why/demand.md", "Limits, in their order")]
    assert documented == [limit.name for limit in limits.LIMITS]


@pytest.mark.parametrize(
    "row", list(rows(DOCS / "why/demand.md", "Draining a backlog")), ids=lambda row: f"age {row[0]} s"
)
def test_the_example_of_draining_a_backlog_is_what_the_code_answers(row: list[str]) -> None:
    """The objective, the start-up and the jobs are those of the sentence above the table."""
    queue = QueueMetrics(
        queue="redis/mail",
        sampled_at_s=0.0,
        waiting_jobs=24,
        in_flight_jobs=6,
        oldest_age_s=float(row[0]),
        service_time_s=1.0,
    )
    profile = Profile(pool="mail", queues=("redis/mail",), template="rq", objective=Objective(target_s=10.0))
    view = PoolView(profile=profile, queues=(queue,), start_up_s=1.0, running_workers=6, dispatch_overhead_s=0.0)
    found = {demand.name: demand.slots for demand in hybrid.advise(queue, view, {}, 0.0).demands}
    assert found["backlog_drain"] == float(row[-1])


def test_the_readme_names_exactly_three_recipes() -> None:
    """A fresh machine needs `make demo` and `make test`; whoever brings an app of their own, `make install`."""
    text = (ROOT / "README.md").read_text()
    assert re.findall(r"^(?:    |\$ )?(make .*)$", text, flags=re.MULTILINE) == [
        "make demo",
        "make test",
        "make install",
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    targets = [target.split("#")[0] for target in re.findall(r"\]\(([^)\s]+)\)", text)]
    local = [target for target in targets if target and "://" not in target and not target.startswith("mailto:")]
    assert [target for target in local if not (page.parent / target).exists()] == []


@pytest.mark.parametrize("page", sorted((DOCS / "decisions").glob("*.md")), ids=lambda page: page.stem)
def test_a_decision_fits_on_a_page_and_names_what_was_not_chosen(page: Path) -> None:
    text = page.read_text()
    assert sum(bool(line.strip()) for line in text.splitlines()) <= 60
    headings = re.findall(r"^## (.+)$", text, flags=re.MULTILINE)
    assert headings == ["Context", "Decision", "Cost", "Not chosen"]
    assert text.startswith(f"# {page.stem[:4]}: ")


def test_decisions_are_numbered_without_a_gap_or_a_double() -> None:
    numbers = [int(page.stem[:4]) for page in sorted((DOCS / "decisions").glob("*.md"))]
    assert numbers == list(range(1, len(numbers) + 1))


def test_pages_that_code_cites_exist() -> None:
    cited = {
        name
        for path in SERVICE.rglob("*.py")
        for name in re.findall(r"docs/[\w/.-]+?\.md|docs/decisions/\d{4}", path.read_text())
    }
    assert [name for name in sorted(cited) if not [*ROOT.glob(name if name.endswith(".md") else f"{name}-*.md")]] == []


def test_every_page_is_in_the_index() -> None:
    linked = re.findall(r"\]\(([^)#\s]+)\)", (DOCS / "README.md").read_text())
    listed = {(DOCS / target).resolve() for target in linked if "://" not in target}
    pages = {page.resolve() for page in DOCS.rglob("*.md") if page.name != "README.md" and "proofs" not in page.parts}
    assert sorted(str(page) for page in pages - listed) == []


@pytest.fixture(scope="module")
def sentences() -> str:
    """Every text in the source, with `…` for what is filled in."""
    texts = [_text(node) for root in (SERVICE, SPARK) for _, tree in modules(root) for node in ast.walk(tree)]
    return "\n".join(filter(None, texts))


def _text(node: ast.AST) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(part.value if isinstance(part, ast.Constant) else "…" for part in node.values)
    return ""


QUOTED = [
    " ".join(line.removeprefix("> ") for line in quote.splitlines())
    for quote in re.findall(r"(?:^> .*\n)+", (DOCS / "how-to/troubleshoot.md").read_text(), flags=re.MULTILINE)
]


@pytest.mark.parametrize("line", QUOTED)
def test_a_line_that_is_explained_is_one_that_headway_says(sentences: str, line: str) -> None:
    pieces = [piece.strip() for piece in re.split("…", line)]
    assert [piece for piece in pieces if piece not in sentences] == []


def test_the_bindings_that_are_explained_exist() -> None:
    explained = {name.strip("`") for name, _ in rows(DOCS / "how-to/troubleshoot.md", "Nothing scales")}
    assert explained <= {limit.name for limit in limits.LIMITS} | {"idle"}


def test_the_readme_claims_no_more_faults_than_the_ledger_has() -> None:
    ledger = [json.loads(line) for line in (ROOT / "tests/proof/results/faults.jsonl").read_text().splitlines()]
    said = re.search(
        r"More than ([\d,]+) faults in (\d+) rounds, on four hosts of one machine, with more than ([\d,]+) "
        r"jobs: no job ran "
        r"twice, and no busy worker was killed\. One job was lost: Redis gave it to a host in the moment of its "
        r"partition",
        " ".join((ROOT / "README.md").read_text().split()),
    )
    assert said is not None
    faults, rounds, jobs = (int(number.replace(",", "")) for number in said.groups())
    assert sum(row["faults"] for row in ledger) > faults
    assert len(ledger) >= rounds
    assert sum(row["jobs_in"] for row in ledger) > jobs
    assert sum(row.get("jobs_lost_by_rq", 0) for row in ledger) == 1
    for row in ledger:
        assert row["jobs_in"] - row["jobs_done"] == row.get("jobs_lost_by_rq", 0)
        assert (row["jobs_doubled"], row["busy_killed"]) == (0, 0)


def test_no_page_installs_from_an_index_on_which_headway_is_not() -> None:
    """`pip install headway` finds nothing, or somebody else's package."""
    for page in PAGES:
        for line in re.findall(r"pip install[^`\n]*", page.read_text()):
            named = re.search(r"(?<![\w./-])headway(\[|['\s]|$)", line.removeprefix("pip install"))
            assert named is None, f"{page}: {line}"
