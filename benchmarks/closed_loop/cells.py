"""One cell of the table: a strategy on a trace in a scenario. Finished cells are kept, each under the code it ran."""

import ast
import hashlib
import importlib.util
import json
import time
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from closed_loop.reference import BEGINS_AT_S, BY_NAME, TICK_S, Scenario, workers_max
from headway.cli.rehearse.trace_files import Columns, read_trace
from headway.scaling.arithmetic import DAY_S, HOUR_S
from headway.scaling.model import Decision, Objective
from headway.scaling.profile import Profile
from headway.simulate.controller import Controller, Observation
from headway.simulate.engine.results import Result
from headway.simulate.engine.simulated_pool import PoolPlan
from headway.simulate.engine.simulation import Rehearsal, simulate
from headway.simulate.replay import RecordedJob
from headway.simulate.studies.fixed_pool import smallest_fixed_pool
from headway.simulate.workloads.jobs import Jobs
from headway.strategies import load_strategies

STRATEGIES = load_strategies()
HINDSIGHT_FRACTION = 0.99
NOT_COUNTED = frozenset(
    {
        "headway.scaling.strategies",  # the table of strategies: one more of them changes no other
        "headway.scaling.profile_keys.presets",  # no cell names a preset, a schedule or a mapping
        "headway.scaling.profile_keys.schedule",
        "headway.scaling.mapping",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """What is to be run. ``risk`` and ``options`` are a profile's keys; ``None`` and empty: the defaults."""

    scenario: str
    trace: str
    strategy: str
    risk: float | None = None
    options: Mapping[str, float] = field(default_factory=dict)
    hours: float | None = None
    """Of the trace, from its beginning; ``None``: all of it. ``fixed`` is chosen with the whole trace known."""

    @property
    def name(self) -> str:
        """Names the cell among all others."""
        own = [f"{key}={value:g}" for key, value in sorted(self.options.items())]
        own += [f"hours={self.hours:g}"] if self.hours else []
        return "/".join(
            (self.scenario, self.trace, self.strategy, *([f"risk={self.risk:g}"] if self.risk else []), *own)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What a cell came to."""

    percent: float
    later_percent: float
    """From the second day on."""
    p50_s: float | None
    p95_s: float | None
    p99_s: float | None
    pickup_max_s: float | None
    worker_hours: float
    spawns: int
    kills: int
    flips: int
    bad_windows: int
    over_ceiling: int
    """Decisions above the ceiling."""
    jobs: int
    ticks: int
    took_s: float
    """Of the processor: what else runs on the machine makes no cell slow."""


class Watched(Controller):
    """A controller that is asked whether it keeps its bounds. A decision that stands is asked once."""

    over_ceiling = 0

    def step(self, observation: Observation, /) -> Decision:
        decision = super().step(observation)
        self.over_ceiling += decision.target_workers > self.profile.workers_max
        return decision


def run(cell: Cell, folder: Path) -> Figures:
    """Simulate ``cell`` with the traces of ``folder``."""
    scenario, jobs = BY_NAME[cell.scenario], first_hours(load(folder, cell.trace), cell.hours)
    warm = constant_pool(folder, cell.trace, scenario.objective_s) if cell.strategy == "fixed" else 0
    controller = _controller(cell, scenario, workers_min=warm)
    plan = PoolPlan(jobs=jobs, start_up_s=scenario.start_up_s, workers_max=workers_max(cell.trace), warm_workers=warm)
    began_s = time.process_time()
    (result,) = simulate(
        [plan],
        [controller],
        rehearsal=Rehearsal(tick_s=TICK_S, begins_at_s=BEGINS_AT_S, objective_s=scenario.objective_s),
    )
    return Figures(
        percent=result.attainment_percent,
        later_percent=later_percent(result, jobs),
        p50_s=result.pickup_p50_s,
        p95_s=result.pickup_p95_s,
        p99_s=result.pickup_p99_s,
        pickup_max_s=result.pickup_max_s,
        worker_hours=result.worker_hours,
        spawns=result.spawns,
        kills=result.kills,
        flips=result.flips,
        bad_windows=result.bad_windows,
        over_ceiling=controller.over_ceiling,
        jobs=result.jobs,
        ticks=result.ticks,
        took_s=round(time.process_time() - began_s, 2),
    )


def _controller(cell: Cell, scenario: Scenario, *, workers_min: int) -> Watched:
    profile = Profile(
        pool="simulated",
        queues=("simulated/jobs",),
        template="simulated",
        objective=Objective(target_s=scenario.objective_s, percentile=99.0),
        workers_min=workers_min,
        workers_max=workers_max(cell.trace),
        strategy=cell.strategy,
    )
    if cell.risk is not None:
        profile = replace(profile, risk=cell.risk)
    return Watched(
        profile=profile,
        strategies=STRATEGIES,
        start_up_s=scenario.start_up_s,
        tick_s=TICK_S,
        options=cell.options,
    )


@cache
def load(folder: Path, trace: str) -> Jobs:
    """The jobs of a trace."""
    return read_trace(folder / f"{trace}.csv.gz", Columns()).jobs


def first_hours(jobs: Jobs, hours: float | None) -> Jobs:
    """The jobs of the first ``hours``; all of them if it is ``None``."""
    return jobs if hours is None else jobs.part(0, bisect_left(jobs.at_s, hours * HOUR_S), from_s=0.0)


@cache
def constant_pool(folder: Path, trace: str, objective_s: float) -> int:
    """The smallest constant pool that starts 99 % of the jobs in time, chosen with the whole trace known."""
    jobs = load(folder, trace)
    served = [RecordedJob(at_s=at_s, service_s=s) for at_s, s in zip(jobs.at_s, jobs.service_s, strict=True)]
    return smallest_fixed_pool(
        served, objective_s=objective_s, fraction=HINDSIGHT_FRACTION, workers_max=workers_max(trace)
    ).workers


def later_percent(result: Result, jobs: Jobs) -> float:
    """Attainment of the jobs that came on the second day or later; of all where the trace is shorter."""
    days = result.attainment_by_day_percent
    edges = [bisect_left(jobs.at_s, day * DAY_S) for day in range(len(days) + 1)]
    counted = [(end - first, percent) for first, end, percent in zip(edges, edges[1:], days, strict=False)][1:]
    total = sum(count for count, _ in counted)
    return sum(count * (percent or 0.0) for count, percent in counted) / total if total else result.attainment_percent


# --- what has been run ---------------------------------------------------------------------------------------


class Kept:
    """Finished cells in a folder, a JSON line each: run again only when the code they ran is another."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._file = folder / "cells.jsonl"
        self._rows: dict[str, dict[str, Any]] = {}
        if self._file.exists():
            for line in self._file.read_text().splitlines():
                row = json.loads(line)
                self._rows[row["cell"]] = row

    def of(self, cell: Cell, *, any_code: bool = False) -> Figures | None:
        """The figures of ``cell``, if it ran the present code (or any)."""
        row = self._rows.get(cell.name)
        if row is None or not (any_code or row["code"] == code_version(cell.strategy)):
            return None
        return Figures(**row["figures"])

    def add(self, cell: Cell, figures: Figures, code: str) -> None:
        """Keep the figures that ``cell`` came to with the code of that version."""
        row = {"cell": cell.name, "code": code, "figures": asdict(figures)}
        self._rows[cell.name] = row
        with self._file.open("a") as file:
            file.write(json.dumps(row) + "\n")

    def outdated(self, cells: Iterable[Cell]) -> int:
        """How many of ``cells`` are kept from other code."""
        rows = [(cell, self._rows[cell.name]) for cell in cells if cell.name in self._rows]
        return sum(row["code"] != code_version(cell.strategy) for cell, row in rows)


@cache
def code_version(strategy: str) -> str:
    """A hash of all code that decides what a cell of ``strategy`` comes to, without comments and docstrings."""
    roots = ["headway.simulate.engine.simulation", "headway.simulate.controller", _module_of(strategy)]
    digest = hashlib.sha256()
    for name, source in sorted(_reached(roots).items()):
        digest.update(f"{name}\n{source}\n".encode())
    return digest.hexdigest()[:16]


def _module_of(strategy: str) -> str:
    return STRATEGIES[strategy].advise.__module__


def _reached(roots: Iterable[str]) -> dict[str, str]:
    """Module -> its code, of the roots and what they import of Headway; not through the table of all strategies."""
    found: dict[str, str] = {}
    to_do = list(roots)
    while to_do:
        name = to_do.pop()
        if name in found or name in NOT_COUNTED or (path := _source(name)) is None:
            continue
        tree = ast.parse(path.read_text())
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module:
                to_do += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        found[name] = ast.dump(_without_docstrings(tree))
    return found


def _source(module: str) -> Path | None:
    """Where a module of Headway is; ``None`` of what is none."""
    if not module.startswith("headway."):
        return None
    try:
        spec = importlib.util.find_spec(module)
    except ModuleNotFoundError:  # the name of something inside a module
        return None
    return Path(spec.origin) if spec is not None and spec.origin else None


def _without_docstrings(tree: ast.Module) -> ast.Module:
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [  # type: ignore[attr-defined]
                each
                for each in body
                if not (
                    isinstance(each, ast.Expr)
                    and isinstance(each.value, ast.Constant)
                    and isinstance(each.value.value, str)
                )
            ]
    return tree
