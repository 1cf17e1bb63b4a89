"""`headway backtest`: recorded jobs of many pools, played under many candidate policies at once, on Spark."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import typer
from rich.table import Table

from headway import __version__
from headway.cli.backtesting.backtest_options import CandidateOptions, PastOptions, SparkOptions
from headway.cli.backtesting.candidate_files import refuse_unfit
from headway.cli.backtesting.history_source import past_of
from headway.cli.backtesting.spark_runs import Bench, bench, rehearsed, rows_of
from headway.cli.rehearse import shared_options as options
from headway.cli.rehearse.figures import end
from headway.cli.rehearse.rehearsal_table import SPREADS_SHOWN, phases_text, start_up_text
from headway.cli.rehearse.rehearsal_table import table as rehearsals_table
from headway.cli.terminal.cells import figures_table
from headway.cli.terminal.screen import Text, errors, output
from headway.cli.typer_app import main_of, takes_groups
from headway.scaling.explanations.phrases import counted, duration
from headway.scaling.metrics.behaviour import behaviour_to_mapping
from headway.scaling.profile import Profile
from headway.simulate.report.fleet import Total, totals
from headway.simulate.report.past import TOTAL_COLUMNS, past_page, total_cells, total_extremes
from headway.simulate.report.rows import Row
from headway.simulate.studies.candidates import Candidate, with_base
from headway.simulate.studies.phases import phased
from headway.simulate.studies.single_pool import Setting
from headway.strategies import load_strategies
from headway_spark.studies.backtest import Work

SKIPPED_NAMED = 5

app = typer.Typer(add_completion=False)
main = main_of(app)


@app.command("backtest")
@takes_groups
def backtest(
    *,
    recorded: PastOptions,
    candidates: CandidateOptions,
    spark: SparkOptions,
    workers: options.WorkerOptions,
    weeks: options.Weeks = True,
    seed: options.Seed = 0,
    written: options.OutputOptions,
) -> None:
    """Play recorded jobs of many pools under many candidate policies, in parallel on Spark."""
    asked = recorded.asked(seed=seed)
    setting = workers.setting(recalls_weeks=weeks, seed=seed)
    phased(setting, workers.phases)
    compared = with_base(candidates.read())
    spark.check()
    written.refuse_unwritable()
    past = past_of(asked, with_behaviours=workers.takes_learned(asked.database_url))
    known = dict(load_strategies())
    refuse_unfit(compared, past.profiles or {"any": Profile(pool="any", queues=("any/queue",), template="any")}, known)
    with bench(asked, past, spark) as on:
        given = Work(profiles={}, candidates=compared, setting=setting, strategies=known, phases=workers.phases)
        work = on.work(given)
        outcomes, is_whole = rehearsed(on, work, doing=doing(on, compared))
    rows, failures = rows_of(outcomes, work)
    skipped = {**on.skipped, **failures}
    _print(rows, skipped)
    if rows:
        title = f"Back-test of {counted(len(rows), 'pool')} under {counted(len(compared), 'candidate')}"
        written.write(
            lambda: figures(rows, skipped, work), lambda: past_page(rows, skipped, title=title, facts=facts(setting))
        )
    end(is_whole, done=len(outcomes), asked=sum(len(work.rehearsals_of(size.pool)) for size in on.sizes))


def doing(on: Bench, compared: Sequence[Candidate]) -> str:
    """What the progress bar is of."""
    return f"{counted(len(on.sizes), 'pool')} × {counted(len(compared), 'candidate')}"


def _print(rows: Mapping[str, Sequence[Row]], skipped: Mapping[str, str]) -> None:
    console = output()
    phases_line = ""
    if len(rows) == 1:
        (of_pool,) = rows.values()
        console.print(Text(objective_text(of_pool[0]), style="dim"))
        console.print(rehearsals_table([*of_pool]))
        phases_line = phases_text(of_pool)
    elif rows:
        found = totals(rows)
        left_out = len(rows) - found[0].pools
        console.print(Text(f"{counted(found[0].pools, 'pool')}, {found[0].jobs:,} jobs", style="dim"))
        console.print(totals_table(found))
        phases_line = phases_text([row for of_pool in rows.values() for row in of_pool[:1]], shown=len(found))
        if left_out:
            console.print(Text(f"not in these sums: {counted(left_out, 'pool')} that a candidate is missing of"))
    if phases_line:
        console.print(Text(phases_line, style="dim"))
    print_skipped(skipped)


def print_skipped(skipped: Mapping[str, str]) -> None:
    """Name the pools that were not rehearsed, and why, on standard error."""
    console = errors()
    for pool, why in list(skipped.items())[:SKIPPED_NAMED]:
        console.print(Text(f"not rehearsed: {pool}: {why}"), soft_wrap=True)
    if len(skipped) > SKIPPED_NAMED:
        console.print(Text(f"and {len(skipped) - SKIPPED_NAMED} more pools; --json names them all"))


def objective_text(row: Row) -> str:
    """A pool's objective, in words."""
    return (
        f"{row.workload}: objective {row.percentile:g} % within {duration(row.result.objective_s)}; "
        f"{row.result.jobs:,} jobs"
    )


def totals_table(found: Sequence[Total]) -> Table:
    """A row a candidate, over all pools."""
    shown = figures_table(("candidate",), TOTAL_COLUMNS)
    for total in found:
        shown.add_row(Text(total.candidate), *total_cells(total))
        for name, cells in total_extremes(total) if len(found) <= SPREADS_SHOWN else ():
            shown.add_row(f"  {name}", *cells, style="dim")
    return shown


def facts(setting: Setting) -> dict[str, str]:
    """What the page says of how it was rehearsed."""
    return {
        "start-up": start_up_text(setting),
        "tick": duration(setting.tick_s),
        "slots a worker": f"{setting.slots}",
        "seed": f"{setting.seed}",
        "made by": f"headway {__version__}",
    }


def figures(rows: Mapping[str, Sequence[Row]], skipped: Mapping[str, str], work: Work) -> dict[str, Any]:
    """Everything but the plots, by names that carry their units."""
    return {
        "headway": __version__,
        **asdict(work.setting),
        "behaviours": {pool: behaviour_to_mapping(each) for pool, each in work.behaviours.items()},
        "candidates": {each.name: dict(each.changes) for each in work.candidates},
        "pools": [
            {
                "pool": pool,
                "objective": asdict(work.profiles[pool].objective),
                "workers_max": work.profiles[pool].workers_max,
                "rehearsals": [rehearsal_figures(row) for row in of_pool],
            }
            for pool, of_pool in rows.items()
        ],
        "skipped": dict(skipped),
    }


def rehearsal_figures(row: Row) -> dict[str, Any]:
    """One rehearsal as figures."""
    values = {name: value for name, value in asdict(row.result).items() if name not in {"points", "pool"}}
    return {"candidate": row.strategy, "is_kept": row.is_kept} | values | {"work_multiple": row.result.work_multiple}
