"""The page: calibration, targets, one table a scenario, who is never beaten, and what the risk knob buys."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from closed_loop.cells import Cell, Figures
from closed_loop.reference import FLAT, FROM_DAY_2, SCENARIOS, TRACES, Scenario, oracle_worker_hours, published

OURS = "hybrid"
PLAIN_RISK = 1.0
CALIBRATED = {"fixed": "static-peak", "jobs_per_worker": "fly-10/worker"}
POINTS_OFF_MAX = 0.5
COST_OFF_MAX = 0.03
FLAT_COST_MAX = 1.1
OTHERS = ("deadline", "deadline-calm", "deadline-season", "deadline-spare", "erlang+fc", "keda-hpa")
"""Published policies that are none of our strategies, shown beside them."""

Lookup = Callable[[Cell], Figures | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One strategy over all traces of a scenario."""

    name: str
    cells: Mapping[str, tuple[float, float]]
    """Trace -> attainment in % and worker-hours ÷ oracle's."""
    spawns: int
    rest: tuple[str, ...] = ("", "", "", "")
    """Kills, flips, bad windows, p99 of the worst trace."""

    @property
    def mean_percent(self) -> float:
        """Over the traces, each counted once."""
        return fmean(percent for percent, _ in self.cells.values())

    @property
    def worst_percent(self) -> float:
        """On the trace that it serves worst."""
        return min(percent for percent, _ in self.cells.values())

    @property
    def cost(self) -> float:
        """Geometric mean over the traces."""
        return math.exp(fmean(math.log(max(cost, 1e-9)) for _, cost in self.cells.values()))


def risk_cell(scenario: Scenario, trace: str, risk: float) -> Cell:
    """Ours with the knob at ``risk``; where it stands by default, the cell of the other tables."""
    knob = None if risk == PLAIN_RISK else risk
    return Cell(scenario=scenario.name, trace=trace, strategy=OURS, risk=knob)


def row(
    figures_of: Lookup, scenario: Scenario, strategy: str, *, risk: float | None = None, name: str | None = None
) -> Row | None:
    """The strategy's row; ``None`` while a trace is missing."""
    figures: dict[str, Figures] = {}
    for trace in TRACES:
        found = figures_of(Cell(scenario=scenario.name, trace=trace, strategy=strategy, risk=risk))
        if found is None:
            return None
        figures[trace] = found
    every = figures.values()
    return Row(
        name=name or strategy,
        cells={
            trace: (each.percent, each.worker_hours / oracle_worker_hours(trace, scenario.name))
            for trace, each in figures.items()
        },
        spawns=sum(each.spawns for each in every),
        rest=(
            f"{sum(each.kills for each in every)}",
            f"{sum(each.flips for each in every):,}",
            f"{sum(each.bad_windows for each in every)}",
            f"{max(each.p99_s or 0.0 for each in every):.1f} s",
        ),
    )


def others(scenario: Scenario) -> list[Row]:
    """The published policies."""
    rows = published(scenario.name)
    return [
        Row(
            name=f"*{name}*",
            cells={trace: (cell[0], cell[1]) for trace, cell in rows[name]["cells"].items()},
            spawns=rows[name]["spawns"],
            rest=("·", "·", "·", "·"),
        )
        for name in OTHERS
        if name in rows
    ]


# --- the parts of the page -------------------------------------------------------------------------------------


def calibration(figures_of: Lookup) -> Iterator[str]:
    """Our simulator against the published figures, for two strategies that leave nothing open."""
    yield "| scenario | trace | fixed, ours | published | jobs_per_worker, ours | published | |"
    yield "|---|---|--:|--:|--:|--:|---|"
    for scenario in SCENARIOS:
        for trace in TRACES:
            columns, off = [], []
            for strategy, policy in CALIBRATED.items():
                figures = figures_of(calibration_cell(scenario, trace, strategy))
                percent, cost = published(scenario.name)[policy]["cells"][trace]
                if figures is None:
                    columns += ["·", f"{percent:g} / {cost:.2f}"]
                    off.append(f"{strategy} not run")
                    continue
                ours = figures.worker_hours / oracle_worker_hours(trace, scenario.name)
                columns += [f"{figures.percent:.2f} / {ours:.2f}", f"{percent:g} / {cost:.2f}"]
                points_off, cost_off = figures.percent - percent, ours / cost - 1
                if abs(points_off) > POINTS_OFF_MAX or abs(cost_off) > COST_OFF_MAX:
                    off.append(f"{strategy} off by {points_off:+.2f} points, {cost_off:+.1%} cost")
            yield f"| {scenario.name} | {trace} | {' | '.join(columns)} | {'; '.join(off) or '✓'} |"


def calibration_cell(scenario: Scenario, trace: str, strategy: str) -> Cell:
    """The published reading releases idle workers at an evaluation, not by themselves."""
    options = {"burst_exit": 0.0} if strategy == "jobs_per_worker" else {}
    return Cell(scenario=scenario.name, trace=trace, strategy=strategy, options=options)


def targets(figures_of: Lookup) -> Iterator[str]:
    """Each target beside what was reached."""
    yield "| scenario | target | reached | |"
    yield "|---|---|---|---|"
    for scenario in SCENARIOS:
        for wanted, reached, is_met in _checks(figures_of, scenario):
            yield f"| {scenario.name} | {wanted} | {reached} | {'✓' if is_met else '**missed**'} |"


def _checks(figures_of: Lookup, scenario: Scenario) -> Iterator[tuple[str, str, bool]]:
    figures = {trace: figures_of(Cell(scenario=scenario.name, trace=trace, strategy=OURS)) for trace in TRACES}
    ours = row(figures_of, scenario, OURS)
    if ours is None:
        yield "all", "not run on every trace", False
        return
    known = {trace: each for trace, each in figures.items() if each is not None}
    yield from _attained(scenario, known)
    yield f"geo-mean ≤ {scenario.cost_max:.2f} × oracle", f"{ours.cost:.3f}", ours.cost <= scenario.cost_max
    if scenario.trace_cost_max is not None:
        trace, (_, cost) = max(ours.cells.items(), key=lambda item: item[1][1])
        yield f"no trace > {scenario.trace_cost_max} ×", f"{cost:.2f} ({trace})", cost <= scenario.trace_cost_max
    yield f"spawns ≤ {scenario.spawns_max:,}", f"{ours.spawns:,}", ours.spawns <= scenario.spawns_max
    kills, over = (sum(getattr(each, name) for each in known.values()) for name in ("kills", "over_ceiling"))
    yield "no job killed, no bound exceeded", f"{kills} and {over}", kills == over == 0
    if scenario.name == "sla30":
        bad = sum(each.bad_windows for each in known.values())
        yield "no 5-minute window under 95 %", f"{bad}", bad == 0
    if scenario.start_up_s < scenario.objective_s / 2:
        flat = {trace: ours.cells[trace][1] for trace in FLAT}
        found = ", ".join(f"{cost:.2f} ({trace})" for trace, cost in flat.items())
        yield f"a flat load ≤ {FLAT_COST_MAX} ×", found, max(flat.values()) <= FLAT_COST_MAX


def _attained(scenario: Scenario, known: Mapping[str, Figures]) -> Iterator[tuple[str, str, bool]]:
    is_exposed = scenario.percent_but_one_min != scenario.percent_min
    percents = {
        trace: each.later_percent if is_exposed and trace == FROM_DAY_2 else each.percent
        for trace, each in known.items()
    }
    ordered = sorted(percents.items(), key=lambda item: item[1])
    worst, next_worst = ordered[0], ordered[1]
    wanted = f"≥ {scenario.percent_min:g} % on every trace" + (" (cron: from day 2)" if is_exposed else "")
    yield wanted, f"{worst[1]:.3f} % ({worst[0]})", worst[1] >= scenario.percent_min
    if is_exposed:
        yield (
            f"≥ {scenario.percent_but_one_min:g} % on all but one",
            f"{next_worst[1]:.3f} % ({next_worst[0]})",
            next_worst[1] >= scenario.percent_but_one_min,
        )


def scenario_tables(figures_of: Lookup, scenario: Scenario, strategies: Sequence[str]) -> Iterator[str]:
    """All strategies of one scenario: their sums, then trace by trace."""
    rows = [found for strategy in strategies if (found := row(figures_of, scenario, strategy)) is not None]
    yield "| strategy | mean | worst trace | geo-mean cost | spawns | kills | flips | bad 5 min | worst p99 |"
    yield "|---|--:|--:|--:|--:|--:|--:|--:|--:|"
    for each in (*rows, *others(scenario)):
        name = f"**{each.name}**" if each.name == OURS else each.name
        yield (
            f"| {name} | {each.mean_percent:.2f} % | {each.worst_percent:.2f} % | {each.cost:.2f} | {each.spawns:,} "
            f"| {' | '.join(each.rest)} |"
        )
    yield ""
    yield f"| strategy | {' | '.join(TRACES)} |"
    yield f"|---|{'--:|' * len(TRACES)}"
    for each in (*rows, *others(scenario)):
        name = f"**{each.name}**" if each.name == OURS else each.name
        yield f"| {name} | {' | '.join(f'{percent:.2f} / {cost:.2f}' for percent, cost in each.cells.values())} |"


def dominance(figures_of: Lookup, strategies: Sequence[str]) -> Iterator[str]:
    """Whether any strategy attains no less, costs no more and starts no more than ours, one of them strictly."""
    yield "| scenario | compared | at least as good as hybrid in all three |"
    yield "|---|--:|---|"
    for scenario in SCENARIOS:
        ours = row(figures_of, scenario, OURS)
        rows = [found for name in strategies if name != OURS and (found := row(figures_of, scenario, name)) is not None]
        beaten = [each.name for each in rows if ours is not None and _dominates(each, ours)]
        yield f"| {scenario.name} | {len(rows)} | {', '.join(beaten) or 'none'} |"


def _dominates(other: Row, ours: Row) -> bool:
    theirs, mine = (other.mean_percent, -other.cost, -other.spawns), (ours.mean_percent, -ours.cost, -ours.spawns)
    return theirs != mine and all(their >= my for their, my in zip(theirs, mine, strict=True))


def frontier(figures_of: Lookup, risks: Sequence[float]) -> Iterator[str]:
    """What each position of the risk knob reaches."""
    yield "| scenario | risk | mean | worst trace | geo-mean cost | spawns |"
    yield "|---|--:|--:|--:|--:|--:|"
    for scenario in SCENARIOS:
        for risk in risks:
            found = row(figures_of, scenario, OURS, risk=None if risk == PLAIN_RISK else risk)
            if found is not None:
                yield (
                    f"| {scenario.name} | {risk:g} | {found.mean_percent:.3f} % | {found.worst_percent:.2f} % "
                    f"| {found.cost:.3f} | {found.spawns:,} |"
                )
