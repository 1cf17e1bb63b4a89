"""`headway backtest`: recorded jobs of many pools, played under many candidate policies at once, on Spark."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import typer
from rich.table import Table

from headway import __version__
from headway.cli.backtesting.candidate_files import read_candidates, read_grid, refuse_unfit
from headway.cli.backtesting.history_source import Asked, past_of
from headway.cli.backtesting.spark_runs import Bench, bench, check_cores, rehearsed, rows_of
from headway.cli.process.shutdown import ENDED_BY_CTRL_C
from headway.cli.rehearse import shared_options as options
from headway.cli.rehearse.behaviour_source import given_behaviour, takes_learned
from headway.cli.rehearse.figures import check_writable, write
from headway.cli.rehearse.rehearsal_table import SPREADS_SHOWN, phases_text, start_up_text
from headway.cli.rehearse.rehearsal_table import table as rehearsals_table
from headway.cli.terminal.screen import Text, errors, lined, output
from headway.cli.terminal.units import moment_s, seconds
from headway.cli.typer_app import run
from headway.scaling.explain import counted, duration
from headway.scaling.metrics.behaviour import behaviour_to_mapping
from headway.scaling.profile import Profile
from headway.simulate.report.fleet import Total, totals
from headway.simulate.report.past import TOTAL_COLUMNS, past_page, total_cells, total_extremes
from headway.simulate.report.rows import Row
from headway.simulate.studies.candidates import Candidate, with_base
from headway.simulate.studies.phases import PHASES, phased
from headway.simulate.studies.single_pool import Setting
from headway.strategies import load_strategies
from headway_spark.studies.backtest import Work

app = typer.Typer(add_completion=False)


def main(words: list[str]) -> int:
    """Run `backtest`. Returns the exit status."""
    return run(app, words)


@app.command("backtest")
def backtest(
    files: options.Files = None,
    *,
    event_log: options.EventLog = None,
    database_url: options.DatabaseUrl = None,
    trace: options.Traces = None,
    columns: options.Columns = None,
    from_: options.From = None,
    until: options.Until = None,
    pools: options.Pools = None,
    profile: options.ProfileFile = None,
    candidates: options.CandidatesFile = None,
    grid: options.Grid = None,
    master: options.Master = None,
    cores: options.Cores = None,
    slots: options.Slots = 1,
    start_up: options.StartUp = None,
    jitter: options.Jitter = 0.0,
    tick: options.Tick = "5s",
    phases: options.Phases = PHASES,
    behaviour: options.BehaviourSource = None,
    host_cores: options.HostCores = None,
    starting_max: options.StartingMax = None,
    job_cores: options.JobCores = 0.0,
    weeks: options.Weeks = True,
    seed: options.Seed = 0,
    report: options.Report = None,
    json_: options.Json = None,
) -> None:
    """Play recorded jobs of many pools under many candidate policies, in parallel on Spark."""
    asked = asked_of(
        traces=(*(trace or ()), *(files or ())),
        event_log=event_log,
        database_url=database_url,
        columns=columns,
        from_=from_,
        until=until,
        pools=pools,
        profile=profile,
        seed=seed,
    )
    setting = setting_of(
        tick=tick,
        start_up=start_up,
        jitter=jitter,
        slots=slots,
        weeks=weeks,
        seed=seed,
        behaviour=behaviour,
        host_cores=host_cores,
        starting_max=starting_max,
        job_cores=job_cores,
    )
    phased(setting, phases)
    compared = with_base((*(read_candidates(candidates) if candidates else ()), *read_grid(grid or ())))
    prepare(cores, report, json_)
    past = past_of(asked, with_behaviours=learns_of(asked, behaviour, start_up=start_up, jitter=jitter))
    known = dict(load_strategies())
    refuse_unfit(compared, past.profiles or _any_profile(), known)
    with bench(asked, past, master=master, cores=cores) as on:
        work = on.work(Work(profiles={}, candidates=compared, setting=setting, strategies=known, phases=phases))
        outcomes, is_whole = rehearsed(on, work, doing=doing(on, compared))
    rows, failures = rows_of(outcomes, work)
    skipped = {**on.skipped, **failures}
    _print(rows, skipped)
    if json_ is not None and rows:
        write(json_, json.dumps(figures(rows, skipped, work), indent=2, allow_nan=False) + "\n")
    if report is not None and rows:
        title = f"Back-test of {counted(len(rows), 'pool')} under {counted(len(compared), 'candidate')}"
        write(report, past_page(rows, skipped, title=title, facts=facts(setting)))
    end(is_whole, done=len(outcomes), asked=sum(len(work.rehearsals_of(size.pool)) for size in on.sizes))


def asked_of(
    *,
    traces: Sequence[str],
    event_log: Path | None,
    database_url: str | None,
    columns: str | None,
    from_: str | None,
    until: str | None,
    pools: str | None,
    profile: Path | None,
    seed: int,
) -> Asked:
    """Which past is meant, of the options' words."""
    return Asked(
        event_log=event_log,
        database_url=database_url,
        traces=tuple(map(Path, traces)),
        columns=columns,
        from_s=moment_s(from_, option="--from"),
        until_s=moment_s(until, option="--until"),
        pools=pools_of(pools),
        profiles_file=profile,
        seed=seed,
    )


def setting_of(
    *,
    tick: str,
    start_up: str | None,
    jitter: float,
    slots: int,
    seed: int,
    weeks: bool = True,
    behaviour: str | None = None,
    host_cores: float | None = None,
    starting_max: int | None = None,
    job_cores: float = 0.0,
) -> Setting:
    """How workers behave and how often is decided, of the options' words."""
    return Setting(
        tick_s=seconds(tick, option="--tick"),
        start_up_s=seconds(start_up or options.START_UP, option="--start-up"),
        start_up_spread=jitter,
        slots=slots,
        recalls_weeks=weeks,
        seed=seed,
        behaviour=given_behaviour(behaviour),
        host_cores=host_cores,
        starting_max=starting_max,
        job_cores=job_cores,
    )


def learns_of(asked: Asked, behaviour: str | None, *, start_up: str | None, jitter: float) -> bool:
    """Whether each pool is rehearsed as the control plane has learned that it behaves."""
    is_given = start_up is not None or bool(jitter)
    return takes_learned(behaviour, is_start_up_given=is_given, source=asked.database_url)


def pools_of(text: str | None) -> tuple[str, ...]:
    """The names that ``--pools`` or ``--queues`` lists, each once."""
    return tuple(dict.fromkeys(part.strip() for part in (text or "").split(",") if part.strip()))


def prepare(cores: int | None, *files: Path | None) -> None:
    """Refuse now what would be refused after the work."""
    check_cores(cores)
    for file in filter(None, files):
        check_writable(file)


def doing(on: Bench, compared: Sequence[Candidate]) -> str:
    """What the progress bar is of."""
    return f"{counted(len(on.sizes), 'pool')} × {counted(len(compared), 'candidate')}"


def _any_profile() -> Mapping[str, Profile]:
    return {"any": Profile(pool="any", queues=("any/queue",), template="any")}


def end(is_whole: bool, *, done: int, asked: int, what: str = "rehearsals") -> None:  # noqa: FBT001 - all it is asked
    """Say so where Ctrl-C came before all was done, with the exit status of it."""
    if not is_whole:
        errors().print(f"interrupted: {done} of {asked} {what} were done")
        raise typer.Exit(ENDED_BY_CTRL_C)


def _print(rows: Mapping[str, Sequence[Row]], skipped: Mapping[str, str]) -> None:
    console = output()
    phases_line = ""
    if len(rows) == 1:
        (of_pool,) = rows.values()
        console.print(Text(promise_of(of_pool[0]), style="dim"))
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


def print_skipped(skipped: Mapping[str, str], *, shown: int = 5) -> None:
    """Name the pools that were not rehearsed, and why, on standard error."""
    console = errors()
    for pool, why in list(skipped.items())[:shown]:
        console.print(Text(f"not rehearsed: {pool}: {why}"), soft_wrap=True)
    if len(skipped) > shown:
        console.print(Text(f"and {len(skipped) - shown} more pools; --json names them all"))


def promise_of(row: Row) -> str:
    """What a pool promises, in words."""
    return (
        f"{row.workload}: objective {row.percentile:g} % within {duration(row.result.objective_s)}; "
        f"{row.result.jobs:,} jobs"
    )


def totals_table(found: Sequence[Total]) -> Table:
    """A row a candidate, over all pools."""
    shown = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    shown.add_column("candidate", overflow="fold")
    for name in TOTAL_COLUMNS:
        shown.add_column(lined(*name.replace("-", " ").split(" ", 1)), justify="right", no_wrap=True)
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
