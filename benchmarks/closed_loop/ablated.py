"""What ``hybrid`` comes to without some of its terms: one workload at a time, each result kept in a file of its own."""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

from loads import LOADS, OBJECTIVE_S, START_UPS_S, rehearsal_of

from closed_loop.cells import Cell, code_version, first_hours, load, run
from closed_loop.reference import BY_NAME, SCENARIOS, TICK_S, TRACES
from closed_loop.terms import TERMS, Term
from headway.scaling.model import Objective
from headway.scaling.profile import Profile
from headway.scaling.reading.pool_times import PoolTimes, exposed_s

STRATEGY = "hybrid"
SLOW_S = 240.0  # of a cell: `--brief` leaves it out
FINISHED = Path(__file__).parent / "finished" / "cells.jsonl"
"""How long each trace takes in each scenario, as measured for the targets page."""

Without = frozenset[str]
"""The names of the terms that are left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """A recorded trace in a scenario, or a named load with a start-up time."""

    group: str
    """The scenario, or "loads" and the start-up time."""
    name: str
    """Of the trace or the load."""
    objective_s: float
    start_up_s: float
    hours: float | None = None
    """Of the trace, from its beginning; ``None``: all of it."""

    @property
    def label(self) -> str:
        """The group, and the part of the trace if it is not the whole."""
        return self.group if self.hours is None else f"{self.group}-{self.hours:g}h"

    @property
    def is_load(self) -> bool:
        """Whether the workload is drawn, and not recorded."""
        return self.group not in BY_NAME

    @property
    def is_exposed(self) -> bool:
        """Whether a worker that is requested at the next evaluation is late for arriving jobs."""
        profile = Profile(
            pool="simulated",
            queues=("simulated/jobs",),
            template="simulated",
            objective=Objective(target_s=self.objective_s, percentile=99.0),
        )
        return exposed_s(profile, PoolTimes(known_start_up_s=self.start_up_s, tick_s=TICK_S)) > 0

    def lasts_s(self, traces: Path) -> float:
        """When the last job arrives, in seconds from the beginning."""
        if self.is_load:
            return _load_lasts_s(self.name)
        return first_hours(load(traces, self.name), self.hours).at_s[-1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What one workload came to without some terms."""

    percent: float
    """Jobs that started in time."""
    worker_hours: float
    starts: int
    bad_windows: int
    took_s: float
    """Of the processor."""


def trace_workloads(
    *, scenarios: Sequence[str], traces: Sequence[str], hours: float | None = None
) -> Iterator[Workload]:
    """Every trace in every scenario, those that are named, or the first ``hours`` of each."""
    for scenario in SCENARIOS:
        if scenario.name in scenarios:
            for trace in TRACES:
                if trace in traces:
                    yield Workload(
                        group=scenario.name,
                        name=trace,
                        objective_s=scenario.objective_s,
                        start_up_s=scenario.start_up_s,
                        hours=hours,
                    )


def load_workloads(names: Sequence[str]) -> Iterator[Workload]:
    """Every named load with every start-up time."""
    for start_up_s in START_UPS_S:
        for name in LOADS:
            if name in names:
                group = f"loads-{start_up_s:g}s"
                yield Workload(group=group, name=name, objective_s=OBJECTIVE_S, start_up_s=start_up_s)


@cache
def _load_lasts_s(name: str) -> float:
    return LOADS[name].jobs().at_s[-1]


@cache
def known_took_s() -> Mapping[str, float]:
    """``scenario/trace`` -> how long the whole strategy takes for it, in seconds of the targets' run."""
    rows = (json.loads(line) for line in FINISHED.read_text().splitlines())
    suffix = f"/{STRATEGY}"
    return {row["cell"].removesuffix(suffix): row["figures"]["took_s"] for row in rows if row["cell"].endswith(suffix)}


def is_slow(workload: Workload) -> bool:
    """Whether the targets' run took more than ``SLOW_S`` for the workload. A part of a trace is never slow."""
    return workload.hours is None and known_took_s().get(f"{workload.group}/{workload.name}", 0.0) > SLOW_S


def acting_terms(without: Without, workload: Workload, traces: Path) -> Without:
    """Of ``without`` the terms that can act in ``workload``: to leave out the others changes nothing."""
    return frozenset(name for name in without if _acts(TERMS[name], workload, traces))


def _acts(term: Term, workload: Workload, traces: Path) -> bool:
    if term.is_of_exposed and not workload.is_exposed:
        return False
    return term.from_s == 0 or workload.lasts_s(traces) >= term.from_s


def outcome(without: Without, workload: Workload, traces: Path) -> Outcome:
    """Simulate ``workload`` without those terms, which stay out for as long as the process lives."""
    for name in sorted(without):
        for patch in TERMS[name].patches:
            patch.apply()
    began_s = time.process_time()
    if workload.is_load:
        result = rehearsal_of(workload.name, workload.start_up_s, STRATEGY)
        figures = (result.attainment_percent, result.worker_hours, result.spawns, result.bad_windows)
    else:
        found = run(Cell(scenario=workload.group, trace=workload.name, strategy=STRATEGY, hours=workload.hours), traces)
        figures = (found.percent, found.worker_hours, found.spawns, found.bad_windows)
    percent, worker_hours, starts, bad_windows = figures
    return Outcome(
        percent=percent,
        worker_hours=worker_hours,
        starts=starts,
        bad_windows=bad_windows,
        took_s=round(time.process_time() - began_s, 2),
    )


class KeptOutcomes:
    """Outcomes in a folder, a JSON file each, valid while the code of the strategy and the simulator is the same."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def of(self, without: Without, workload: Workload) -> Outcome | None:
        """The outcome that is kept from the present code; ``None`` if there is none."""
        file = self._file(without, workload)
        if not file.exists():
            return None
        row = json.loads(file.read_text())
        return Outcome(**row["outcome"]) if row["code"] == code_version(STRATEGY) else None

    def add(self, without: Without, workload: Workload, found: Outcome) -> None:
        """Keep what ``workload`` came to."""
        file = self._file(without, workload)
        file.parent.mkdir(parents=True, exist_ok=True)
        new = file.with_suffix(".new")
        new.write_text(json.dumps({"code": code_version(STRATEGY), "outcome": asdict(found)}) + "\n")
        new.replace(file)  # an interrupted run leaves no half a file

    def _file(self, without: Without, workload: Workload) -> Path:
        return self._folder / row_name(without) / workload.label / f"{workload.name}.json"


def row_name(without: Without) -> str:
    """Names the row of a table in which these terms are left out."""
    return "+".join(sorted(without)) or "nothing"
