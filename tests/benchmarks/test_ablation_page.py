"""`benchmarks/closed_loop/ablation_page.py`: what the page says of a term, and what it does not claim."""

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

NOTHING: frozenset[str] = frozenset()
BANDS = frozenset({"bands-by-use"})
WEEKLY = frozenset({"weekly-recall"})


@pytest.fixture
def ablated() -> ModuleType:
    return import_module("closed_loop.ablated")


def lines_of(ablated: ModuleType, rows: dict[frozenset[str], dict[str, float]], *, loads: Sequence[str]) -> list[str]:
    """The page of a study with start-ups of 8 s, whose ``rows`` are worker-hours by load."""
    terms, page = import_module("closed_loop.terms"), import_module("closed_loop.ablation_page")
    workloads = [each for each in ablated.load_workloads(loads) if each.is_exposed]

    def row_of(without: frozenset[str]) -> dict[Any, Any]:
        hours = rows.get(without, {})
        return {
            each: ablated.Outcome(percent=99.0, worker_hours=hours[each.name], starts=2, bad_windows=0, took_s=1.0)
            for each in workloads
            if each.name in hours
        }

    names = sorted({name for without in rows for name in without})
    study = page.Study(
        workloads=workloads, terms=[terms.TERMS[name] for name in names], row_of=row_of, traces=Path("traces")
    )
    return [*page.page(study)]


def row(lines: list[str], heading: str, first: str) -> list[str]:
    """The cells of the row of the table below ``heading`` that begins with ``first``."""
    below = lines[lines.index(f"## {heading}") :]
    return [cell.strip() for cell in next(line for line in below if line.startswith(f"| {first} |")).split("|")[1:-1]]


@pytest.mark.parametrize(("hours", "verdict"), [(1.01, "yes"), (1.02, "no")])
def test_a_term_can_go_if_it_costs_little(ablated: ModuleType, hours: float, verdict: str) -> None:
    lines = lines_of(ablated, {NOTHING: {"giants": 1.0}, BANDS: {"giants": hours}}, loads=["giants"])
    assert row(lines, "In all", "bands-by-use")[7] == verdict


def test_a_verdict_on_a_part_of_the_workloads_says_so(ablated: ModuleType) -> None:
    rows = {NOTHING: {"giants": 1.0}, BANDS: {"giants": 1.0}}
    lines = lines_of(ablated, rows, loads=["giants", "poison"])
    assert row(lines, "In all", "bands-by-use")[7] == "yes, so far"
    assert "- without nothing, bands-by-use: loads-8s/poison" in lines


def test_a_term_that_acts_in_no_workload_is_not_measured(ablated: ModuleType) -> None:
    """Its row is that of the whole strategy, which proves nothing."""
    lines = lines_of(ablated, {NOTHING: {"giants": 1.0}, WEEKLY: {"giants": 1.0}}, loads=["giants"])
    assert row(lines, "In all", "weekly-recall")[7] == "not measured"


def test_workloads_that_move_are_listed(ablated: ModuleType) -> None:
    rows = {NOTHING: {"giants": 1.0, "poison": 1.0}, BANDS: {"giants": 1.5, "poison": 1.001}}
    lines = lines_of(ablated, rows, loads=["giants", "poison"])
    assert row(lines, "Where it shows", "bands-by-use")[1:7] == ["loads-8s", "giants", "99.00", "99.00", "0", "1.500"]
    assert not [line for line in lines if line.startswith("| bands-by-use | loads-8s | poison |")]
