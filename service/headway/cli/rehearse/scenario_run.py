"""Rehearsals of a scenario: its pools beside each other under each strategy, and what had no place on its hosts."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from headway import __version__
from headway.cli.rehearse.figures import figures_of
from headway.cli.rehearse.rehearsal import label_of, strategies_of
from headway.cli.rehearse.rehearsal_table import print_table
from headway.cli.rehearse.scenario import Scenario
from headway.cli.rehearse.shared_options import OutputOptions
from headway.cli.terminal.screen import Text, output
from headway.errors import Invalid
from headway.scaling.explanations.phrases import counted, duration
from headway.scaling.profile import Profile
from headway.scaling.strategy import Strategy
from headway.simulate.engine.faults import HostOutage
from headway.simulate.report.page import page
from headway.simulate.report.rows import Row, offered_load
from headway.simulate.studies.pool_group import rehearse_beside
from headway.simulate.studies.single_pool import Setting

REASONS_SHOWN = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioRehearsal:
    """One rehearsal of all pools of a scenario: each under the strategy that its profile names."""

    scenario: Scenario

    @property
    def pools(self) -> int:
        """How many there are."""
        return len(self.scenario.loads)

    @property
    def jobs(self) -> int:
        """Of all pools."""
        return sum(len(load.jobs) for load in self.scenario.loads)

    @property
    def length_s(self) -> float:
        """From the start to the last arrival."""
        return max(load.jobs.at_s[-1] for load in self.scenario.loads)

    def rows(
        self, setting: Setting, *, strategies: Mapping[str, Strategy], on_tick: Callable[[float], None] | None = None
    ) -> tuple[Row, ...]:
        """A row for each pool. ``on_tick`` receives the time that has passed."""
        scenario = self.scenario
        results = rehearse_beside(
            scenario.loads,
            scenario.hosts,
            setting,
            groups=scenario.groups,
            begins_at_s=scenario.begins_at_s,
            strategies=strategies,
            on_tick=on_tick,
        )
        return tuple(
            Row(
                workload=load.profile.pool,
                strategy=label_of(load.profile, strategies),
                result=result,
                percentile=load.profile.objective.percentile,
            )
            for load, result in zip(scenario.loads, results, strict=True)
        )


def refuse_beside_scenario(given: Mapping[str, object]) -> None:
    """Return if no option was given that a scenario says itself. Raises ``Invalid`` with those that were."""
    if said := [option for option, value in given.items() if value]:
        them = "it" if len(said) == 1 else "them"
        raise Invalid(f"--scenario: its files say what {', '.join(said)} would: leave {them} out")


def beside_cases(scenario: Scenario, text: str | None, known: Mapping[str, Strategy]) -> list[ScenarioRehearsal]:
    """A rehearsal for each strategy of ``text``, which all pools take; without a text each pool keeps its own."""
    of_pools = [strategies_of(text, load.profile, known) for load in scenario.loads]
    return [ScenarioRehearsal(scenario=_under(scenario, profiles)) for profiles in zip(*of_pools, strict=True)]


def _under(scenario: Scenario, profiles: Sequence[Profile]) -> Scenario:
    pairs = zip(scenario.loads, profiles, strict=True)
    return replace(scenario, loads=tuple(replace(load, profile=profile) for load, profile in pairs))


def on_hosts(outages: Sequence[HostOutage], scenario: Scenario) -> tuple[HostOutage, ...]:
    """``outages`` of hosts by number, as ``--fault host:number=2`` has them, as those of the scenario's hosts."""
    names = {f"host-{number}": host.host_id for number, host in enumerate(scenario.hosts, start=1)}
    return tuple(replace(outage, host_id=names[outage.host_id]) for outage in outages)


def by_pool(found: Sequence[tuple[Row, ...]]) -> list[Row]:
    """The rows of all rehearsals, pool by pool in the scenario's order."""
    return [row for of_pool in zip(*found, strict=True) for row in of_pool]


def title_of(scenario: Scenario) -> str:
    """How many pools are beside each other, and on how many hosts."""
    return f"Rehearsal of {counted(len(scenario.loads), 'pool')} on {counted(len(scenario.hosts), 'host')}"


def unplaced_text(row: Row) -> tuple[str, ...]:
    """What had no place, first how much and then why; nothing where every worker had its place."""
    found = row.result.unplaced
    if found is None:
        return ()
    many = f"up to {found.workers_max} workers" if found.workers_max > 1 else "1 worker"
    first = (
        f"{row.workload} ({row.label}): no place for {many} over {duration(found.for_s)}, "
        f"{found.worker_hours:,.2f} worker-hours in all"
    )
    return (first, *(f"  {duration(each.for_s)}: {each.text}" for each in found.reasons[:REASONS_SHOWN]))


def print_rehearsals(rows: Sequence[Row], scenario: Scenario, setting: Setting, written: OutputOptions) -> None:
    """Print what came of each pool and what had no place, and write it to the files that were asked for."""
    console = output()
    console.print(Text(f"{title_of(scenario)}.", style="dim"))
    print_table(console, rows, setting, what="pool")
    missing = [line for row in rows for line in unplaced_text(row)]
    for line in missing or ["Every pool had a place for each worker that it wanted."]:
        console.print(Text(line), soft_wrap=True)
    written.write(lambda: figures_beside(rows, scenario, setting), lambda: _page(rows, scenario, setting))


def _page(rows: Sequence[Row], scenario: Scenario, setting: Setting) -> str:
    objectives = {load.profile.pool: load.profile.objective for load in scenario.loads}
    facts = {pool: f"{each.percentile:g} % within {duration(each.target_s)}" for pool, each in objectives.items()}
    facts |= {"tick": duration(setting.tick_s), "seed": f"{setting.seed}"}
    notes: dict[str, list[str]] = {row.workload: [] for row in rows}
    for row in rows:
        notes[row.workload] += unplaced_text(row)
    offered = [offered_load(load.profile.pool, load.jobs, slots=load.slots) for load in scenario.loads]
    return page(rows, offered, title=title_of(scenario), settings=facts, notes=notes)


def figures_beside(rows: Sequence[Row], scenario: Scenario, setting: Setting) -> dict[str, Any]:
    """Everything but the plots of pools beside each other, by names that carry their units."""
    return {
        "headway": __version__,
        "objectives": {load.profile.pool: asdict(load.profile.objective) for load in scenario.loads},
        **asdict(setting),
        "hosts": [host.name for host in scenario.hosts],
        "rehearsals": [figures_of(row) for row in rows],
    }
