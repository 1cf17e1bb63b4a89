"""`benchmarks/closed_loop/elimination.py`: what a row loses, and which terms go together."""

from collections.abc import Mapping
from importlib import import_module
from types import ModuleType
from typing import Any

import pytest

PLACES = ("first", "second")
Figures = Mapping[str, tuple[float, float]]  # name -> attainment in %, worker-hours


@pytest.fixture
def elimination() -> ModuleType:
    return import_module("closed_loop.elimination")


def row_of(figures: Figures) -> dict[Any, Any]:
    ablated = import_module("closed_loop.ablated")
    return {
        ablated.Workload(group="loads-2s", name=name, objective_s=10.0, start_up_s=2.0): ablated.Outcome(
            percent=percent, worker_hours=hours, starts=1, bad_windows=0, took_s=1.0
        )
        for name, (percent, hours) in figures.items()
    }


@pytest.fixture
def whole() -> dict[Any, Any]:
    """The row of the whole strategy."""
    return row_of({"first": (100.0, 10.0), "second": (99.0, 1.0)})


def test_a_change_is_the_mean_of_attainment_and_the_geometric_mean_of_cost(
    elimination: ModuleType, whole: dict[Any, Any]
) -> None:
    found = elimination.change(row_of({"first": (99.9, 20.0), "second": (99.0, 0.5)}), whole)
    assert found.workloads == 2
    assert found.percent == pytest.approx(99.45)
    assert found.fall_points == pytest.approx(0.05)  # 99.5 − 99.45
    assert found.cost == pytest.approx(1.0)  # √(2 × 0.5)


def test_a_change_is_of_what_both_were_run_on(elimination: ModuleType, whole: dict[Any, Any]) -> None:
    found = elimination.change(row_of({"second": (98.0, 1.0)}), whole)
    assert (found.workloads, found.fall_points, found.cost) == (1, 1.0, 1.0)
    assert elimination.change({}, whole) is None


@pytest.mark.parametrize(
    ("second", "is_affordable"),
    [
        ((98.9, 1.0), True),  # 0.05 points of the mean
        ((98.89, 1.0), False),
        ((99.0, 1.0201), True),  # √1.0201 = 1.01
        ((99.0, 1.021), False),
        ((100.0, 0.5), True),
    ],
)
def test_a_term_may_go_for_little(
    elimination: ModuleType, whole: dict[Any, Any], second: tuple[float, float], is_affordable: bool
) -> None:
    row = row_of({"first": (100.0, 10.0), "second": second})
    assert elimination.change(row, whole).is_affordable is is_affordable


def test_the_term_that_loses_least_goes_first_and_one_that_costs_too_much_stays(elimination: ModuleType) -> None:
    lost_points = {"a": 0.06, "b": 0.02, "c": 0.04}  # of one workload in two: a half of it in all
    asked = []

    def row(without: frozenset[str]) -> dict[Any, Any]:
        asked.append(without)
        fall = sum(lost_points[term] for term in without)
        return row_of({"first": (100.0 - fall, 10.0), "second": (99.0, 1.0)})

    steps = [*elimination.elimination_steps(["a", "b", "c"], row)]
    assert [(step.term, step.change.is_affordable) for step in steps] == [("b", True), ("c", True), ("a", False)]
    assert steps[-1].without == {"a", "b", "c"}  # 0.06 points in all
    assert frozenset() in asked


def test_a_term_after_one_that_stays_is_tried_without_it(elimination: ModuleType) -> None:
    cost = {frozenset(): 1.0, frozenset("a"): 1.001, frozenset("b"): 1.002, frozenset("c"): 1.003}
    cost |= {frozenset("ab"): 2.0, frozenset("ac"): 1.004}

    def row(without: frozenset[str]) -> dict[Any, Any]:
        return row_of({"first": (100.0, 10.0 * cost[without])})

    steps = [*elimination.elimination_steps(["c", "b", "a"], row)]
    assert [(*sorted(step.without), step.change.is_affordable) for step in steps] == [
        ("a", True),
        ("a", "b", False),
        ("a", "c", True),
    ]


def test_elimination_ends_where_a_row_was_not_run(elimination: ModuleType, whole: dict[Any, Any]) -> None:
    rows = {frozenset(): whole, frozenset("a"): whole, frozenset("b"): whole}
    steps = [*elimination.elimination_steps(["a", "b"], lambda without: rows.get(without, {}))]
    assert [step.term for step in steps] == ["a"]
