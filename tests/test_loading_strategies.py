"""Strategies are found by name through entry points, and the how-to's example is one."""

import re
import runpy
import sys
from importlib.metadata import EntryPoint, distribution, entry_points
from pathlib import Path

import pytest

from headway.__main__ import main
from headway.errors import Invalid, Misconfigured
from headway.scaling.policy.limit import limit_of
from headway.scaling.profile import Profile
from headway.scaling.strategies import BUILT_IN
from headway.scaling.strategies.fixed import FIXED
from headway.strategies import GROUP, load_strategies, refuse_unknown
from support.installed import INSTALLED
from support.tree import ROOT

HOW_TO = (ROOT / "docs" / "how-to" / "write-a-strategy.md").read_text()


def announced(name: str, value: str) -> EntryPoint:
    return EntryPoint(name=name, value=value, group=GROUP)


@pytest.fixture
def acme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The how-to's package, installed: its module, its metadata and its test."""
    module, test = re.findall(r"```python\n(.*?)```", HOW_TO, flags=re.DOTALL)
    (points,) = re.findall(r"```ini\n\[project\.entry-points\.\"(.*?)\"\]\n(.*?)```", HOW_TO, flags=re.DOTALL)
    (tmp_path / "acme_headway.py").write_text(module)
    (tmp_path / "example.py").write_text(test)
    info = tmp_path / "acme_headway-1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-headway\nVersion: 1.2\n")
    (info / "entry_points.txt").write_text(f"[{points[0]}]\n{points[1]}".replace('"', ""))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "acme_headway", raising=False)
    return tmp_path


def test_every_strategy_that_comes_with_headway_is_an_entry_point() -> None:
    found = {entry.name: entry.load() for entry in distribution("headway").entry_points if entry.group == GROUP}
    assert BUILT_IN.items() <= found.items()
    assert found == INSTALLED
    assert {entry.name for entry in entry_points(group=GROUP)} >= found.keys()


def test_the_example_of_the_how_to_is_found_by_name(acme: Path) -> None:
    assert "afterglow" in load_strategies()


def test_the_example_of_the_how_to_passes_its_own_test(acme: Path) -> None:
    runpy.run_path(str(acme / "example.py"))["test_a_peak_fades_by_half"]()


def test_a_strategy_that_cannot_be_imported_ends_the_start_by_name_and_package(acme: Path) -> None:
    (acme / "acme_headway.py").write_text("import something_that_is_not_there\n")
    with pytest.raises(Misconfigured) as caught:
        load_strategies()
    assert str(caught.value) == (
        "strategy 'afterglow' of package acme-headway 1.2 cannot be loaded: "
        "ModuleNotFoundError: No module named 'something_that_is_not_there'"
    )


def test_a_strategy_that_leaves_the_interpreter_does_not_end_it_in_silence(acme: Path) -> None:
    (acme / "acme_headway.py").write_text("1 / 0\n")
    with pytest.raises(Misconfigured, match=r"'afterglow' of package acme-headway 1\.2.*ZeroDivisionError"):
        load_strategies()


def test_a_control_plane_does_not_start_without_a_strategy_that_is_announced(
    acme: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (acme / "acme_headway.py").write_text("AFTERGLOW = None\n")
    monkeypatch.setenv("HEADWAY_DATABASE_URL", "postgresql://127.0.0.1:1/nowhere")
    assert main(["control"]) == 2
    assert capsys.readouterr().err == (
        "headway: strategy 'afterglow' of package acme-headway 1.2 cannot be loaded: "
        "expected a headway.scaling.strategy.Strategy, got None\n"
    )


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        (announced("x", "headway.scaling.strategies.fixed:nothing"), "AttributeError"),
        (announced("x", "headway.scaling.strategies.fixed:advise"), "expected a headway.scaling.strategy.Strategy"),
        (announced("x", "headway.scaling.strategies.fixed:FIXED"), "it calls itself 'fixed'"),
    ],
)
def test_what_is_no_strategy_of_that_name_is_refused(entry: EntryPoint, says: str) -> None:
    with pytest.raises(Misconfigured, match=says):
        load_strategies([entry])


def test_a_taken_name_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "other_fixed.py").write_text(
        "from dataclasses import replace\n"
        "from headway.scaling.strategies.fixed import FIXED\n"
        "MINE = replace(FIXED, options={'x': 1.0})\n"
        "ODD = replace(FIXED, name='odd', options={'x': 'y'})\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(Misconfigured, match=r"'fixed'.*the name is taken"):
        load_strategies([announced("fixed", "other_fixed:MINE")])
    with pytest.raises(Misconfigured, match="options must be finite numbers; x is none"):
        load_strategies([announced("odd", "other_fixed:ODD")])


def test_the_same_strategy_announced_twice_is_one() -> None:
    twice = [announced("fixed", "headway.scaling.strategies.fixed:FIXED")] * 2
    assert load_strategies(twice)["fixed"] is FIXED


def test_a_profile_may_name_a_known_strategy_and_its_numbers_only() -> None:
    plain = {"pool": "mail", "queues": ("redis/mail",), "template": "mail"}
    refuse_unknown(Profile(**plain, strategy="hybrid_v3", strategy_options={"cooldown_s": 30.0}), INSTALLED)
    with pytest.raises(Invalid, match=r"'mail': strategy 'hybird' is not known; did you mean 'hybrid'\?"):
        refuse_unknown(Profile(**plain, strategy="hybird"), BUILT_IN)
    with pytest.raises(Invalid) as caught:
        refuse_unknown(Profile(**plain, strategy="fixed", strategy_options={"y": 1.0, "x": 1.0}), BUILT_IN)
    assert len(caught.value.breaches) == 2
    assert caught.value.breaches[0] == (
        "profile 'mail': strategy_options.x is no number of strategy 'fixed'; known: none"
    )


def table(heading: str) -> list[list[str]]:
    """The rows of the table under ``heading`` of the reference page, without its head."""
    text = (ROOT / "docs" / "reference" / "strategies.md").read_text().split(f"## {heading}\n")[1].split("\n## ")[0]
    return [
        [cell.strip().strip("`") for cell in line.strip("|").split("|")] for line in text.splitlines() if "|" in line
    ][2:]


def test_every_strategy_is_documented_with_how_it_comes_down() -> None:
    documented = {name: come_down for name, _, come_down in table("Names")}
    assert documented == {name: limit_of(strategy.come_down).name for name, strategy in INSTALLED.items()}


def test_every_number_of_a_strategy_is_documented_with_its_default() -> None:
    documented = {(name, number): float(default) for name, number, default, _ in table("Numbers")}
    known = {
        (name, number): value for name, strategy in INSTALLED.items() for number, value in strategy.options.items()
    }
    assert documented == known
