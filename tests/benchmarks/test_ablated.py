"""`benchmarks/closed_loop/ablated.py`: where a term acts, and results that are kept."""

from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from headway.scaling.arithmetic import DAY_S, HOUR_S
from headway.scaling.model import HoldCosts
from headway.simulate.workloads.jobs import Jobs

NOTHING: frozenset[str] = frozenset()


@pytest.fixture
def ablated() -> ModuleType:
    return import_module("closed_loop.ablated")


@pytest.fixture
def terms() -> ModuleType:
    return import_module("closed_loop.terms")


def workload(ablated: ModuleType, name: str, *, start_up_s: float) -> Any:
    (found,) = (each for each in ablated.load_workloads([name]) if each.start_up_s == start_up_s)
    return found


@pytest.mark.parametrize(("start_up_s", "is_exposed"), [(2.0, False), (8.0, True)])  # 5 + 2 + 0.5 s < 10 s < 13.5 s
def test_a_workload_is_exposed_if_a_requested_worker_is_late(
    ablated: ModuleType, start_up_s: float, is_exposed: bool
) -> None:
    assert workload(ablated, "metronome", start_up_s=start_up_s).is_exposed is is_exposed


def test_every_scenario_runs_every_trace(ablated: ModuleType) -> None:
    found = [*ablated.trace_workloads(scenarios=["sla10", "sla10-boot8"], traces=["cron_flights", "flash_tweets"])]
    assert [(each.group, each.name, each.is_exposed) for each in found] == [
        ("sla10", "cron_flights", False),
        ("sla10", "flash_tweets", False),
        ("sla10-boot8", "cron_flights", True),
        ("sla10-boot8", "flash_tweets", True),
    ]


@pytest.mark.parametrize(
    ("lasts_s", "start_up_s", "acting"),
    [
        (HOUR_S, 2.0, {"hold-overdue"}),
        (HOUR_S, 8.0, {"hold-overdue", "spare"}),
        (DAY_S, 8.0, {"hold-overdue", "spare", "daily-recall"}),
        (14 * DAY_S, 8.0, {"hold-overdue", "spare", "daily-recall", "weekly-recall"}),
        (14 * DAY_S, 2.0, {"hold-overdue"}),
    ],
)
def test_a_term_that_cannot_act_in_a_workload_is_not_left_out_of_it(
    ablated: ModuleType, monkeypatch: pytest.MonkeyPatch, lasts_s: float, start_up_s: float, acting: set[str]
) -> None:
    monkeypatch.setattr(ablated, "_load_lasts_s", lambda _name: lasts_s)
    without = frozenset({"hold-overdue", "spare", "daily-recall", "weekly-recall"})
    place = workload(ablated, "metronome", start_up_s=start_up_s)
    assert ablated.acting_terms(without, place, Path()) == acting


def test_the_first_hours_of_a_trace_are_a_workload_of_their_own(
    ablated: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Their results are kept beside those of the whole trace, and they are never slow."""
    monkeypatch.setattr(ablated, "known_took_s", lambda: {"sla10-boot8/cron_flights": ablated.SLOW_S + 1})
    of = {"scenarios": ["sla10-boot8"], "traces": ["cron_flights"]}
    (whole,), (part,) = ablated.trace_workloads(**of), ablated.trace_workloads(**of, hours=12.0)
    assert (whole.label, part.label) == ("sla10-boot8", "sla10-boot8-12h")
    assert (ablated.is_slow(whole), ablated.is_slow(part)) == (True, False)
    kept = ablated.KeptOutcomes(tmp_path)
    kept.add(NOTHING, part, ablated.Outcome(percent=99.5, worker_hours=1.25, starts=3, bad_windows=1, took_s=0.5))
    assert kept.of(NOTHING, whole) is None
    assert kept.of(NOTHING, part) is not None


@pytest.mark.parametrize(("hours", "at_s"), [(None, [0.0, 3599.0, 3600.0]), (1.0, [0.0, 3599.0])])
def test_a_part_of_a_trace_has_the_jobs_that_arrive_in_it(hours: float | None, at_s: list[float]) -> None:
    jobs = Jobs(at_s=[0.0, 3599.0, 3600.0], service_s=[1.0, 2.0, 3.0])
    found = import_module("closed_loop.cells").first_hours(jobs, hours)
    assert [*found.at_s] == at_s
    assert [*found.service_s] == [1.0, 2.0, 3.0][: len(at_s)]


def test_terms_of_exposed_pools_change_nothing_elsewhere(
    ablated: ModuleType, terms: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So a reactive workload has the figures of the whole strategy in their rows."""
    jobs = Jobs(at_s=[60.0 * (number // 3) for number in range(90)], service_s=[4.0] * 90)

    def figures() -> tuple[float, float, int]:
        loads = import_module("loads")
        monkeypatch.setattr(type(loads.LOADS["metronome"]), "jobs", lambda _self: jobs)
        result = loads.rehearsal_of("metronome", 2.0, "hybrid")
        return result.attainment_percent, result.worker_hours, result.spawns

    whole = figures()
    for term in terms.TERMS.values():
        for patch in term.patches if term.is_of_exposed else ():
            monkeypatch.setattr(patch.module, patch.name, patch.value)
    assert figures() == whole


def test_one_hold_for_a_pool_is_the_one_that_costs_all_bands_together_least(terms: ModuleType) -> None:
    bands = ((10.0, 6.0, *[20.0] * 7), (1.0, 4.0, *[20.0] * 7))  # together 11, 10, 40 and so on: the second
    costs = HoldCosts(began_at_s=0.0, at_s=0.0, levels=(1, *[2] * 8), bands=bands)
    assert terms.workers_kept_by_pool(costs) == 2


def test_without_any_cost_one_hold_for_a_pool_keeps_what_is_wanted(terms: ModuleType) -> None:
    costs = HoldCosts(began_at_s=0.0, at_s=0.0, levels=(3, *[5] * 8))
    assert terms.workers_kept_by_pool(costs) == 3


def test_an_outcome_is_kept_for_the_code_that_it_came_from(
    ablated: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    place = workload(ablated, "metronome", start_up_s=2.0)
    found = ablated.Outcome(percent=99.5, worker_hours=1.25, starts=3, bad_windows=1, took_s=0.5)
    ablated.KeptOutcomes(tmp_path).add(frozenset({"spare"}), place, found)
    kept = ablated.KeptOutcomes(tmp_path)
    assert kept.of(frozenset({"spare"}), place) == found
    assert kept.of(NOTHING, place) is None
    assert (tmp_path / "spare" / "loads-2s" / "metronome.json").exists()
    monkeypatch.setattr(ablated, "code_version", lambda _strategy: "another")
    assert kept.of(frozenset({"spare"}), place) is None
