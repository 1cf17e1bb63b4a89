"""`headway simulate`: workloads rehearsed under strategies, as a table, a report and figures for a program."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from headway import __version__
from headway.cli.api_client import connected
from headway.cli.rehearse import shared_options as options
from headway.cli.rehearse.behaviour_source import learned_behaviour
from headway.cli.rehearse.fault_options import KINDS as FAULTS
from headway.cli.rehearse.fault_options import wrongs_of
from headway.cli.rehearse.figures import end, figures_of
from headway.cli.rehearse.recorded_history import RECORDED_MINUTES_MAX, read_history
from headway.cli.rehearse.rehearsal import base_profile, cases, hosts_of, risks_of, strategies_of
from headway.cli.rehearse.rehearsal_table import print_table, start_up_text
from headway.cli.rehearse.scenario import load_scenario
from headway.cli.rehearse.scenario_run import (
    beside_cases,
    by_pool,
    on_hosts,
    print_rehearsals,
    refuse_beside_scenario,
)
from headway.cli.rehearse.tick_phases import AnyCase, bench
from headway.cli.rehearse.trace_files import Workload, columns_of, read_trace
from headway.cli.rehearse.workload_options import drawn
from headway.cli.terminal.screen import Text, errors, output
from headway.cli.terminal.units import moment_s, seconds
from headway.cli.typer_app import main_of, takes_groups
from headway.errors import Invalid
from headway.scaling.explanations.phrases import counted, duration
from headway.scaling.profile import Profile
from headway.scaling.strategy import Strategy
from headway.simulate.report.page import page
from headway.simulate.report.rows import Row, offered_load
from headway.simulate.studies.phases import phased
from headway.simulate.studies.single_pool import Setting
from headway.simulate.workloads.loads import LOADS
from headway.simulate.workloads.synthetic import KINDS
from headway.strategies import load_strategies

app = typer.Typer(add_completion=False)
main = main_of(app)


@app.command("simulate")
@takes_groups
def simulate(
    files: Annotated[list[str] | None, typer.Argument(metavar="FILE", help="More traces.")] = None,
    *,
    trace: Annotated[
        list[str] | None, typer.Option(metavar="FILE", help="Recorded jobs: CSV, plain or gzip, or Parquet.")
    ] = None,
    columns: Annotated[
        str | None, typer.Option(metavar="ARRIVAL,SERVICE", help="The trace's columns, if not t_arrival,service_s.")
    ] = None,
    synthetic: Annotated[
        list[str] | None,
        typer.Option(metavar="KIND:KEY=VALUE,…", help=f"Drawn jobs: {', '.join([*KINDS, *LOADS])}."),
    ] = None,
    history: Annotated[
        str | None, typer.Option(metavar="POOL", help="What the control plane recorded of a pool, under its profile.")
    ] = None,
    minutes: Annotated[int, typer.Option(help="So far back does the history go, up to 120.")] = RECORDED_MINUTES_MAX,
    profile: Annotated[str | None, typer.Option(metavar="FILE[:POOL]", help="The policy, of a profiles.yaml.")] = None,
    strategy: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME[:KEY=NUMBER],…", help="The strategies to compare; may be given several times."),
    ] = None,
    target: Annotated[str | None, typer.Option(metavar="DURATION", help="In place of the profile's target_s.")] = None,
    percentile: Annotated[float | None, typer.Option(metavar="PERCENT", help="In place of the profile's.")] = None,
    floor: Annotated[int | None, typer.Option(metavar="WORKERS", help="In place of the profile's workers_min.")] = None,
    cap: Annotated[int | None, typer.Option(metavar="WORKERS", help="In place of the profile's workers_max.")] = None,
    workers: options.WorkerOptions,
    hosts: Annotated[
        str | None,
        typer.Option(metavar="HOSTSxWORKERS", help="Room for workers, as in 3x8; without it there is room for all."),
    ] = None,
    scenario: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Many pools beside each other on hosts with names, in YAML.")
    ] = None,
    fault: Annotated[
        list[str] | None, typer.Option(metavar="KIND:KEY=VALUE,…", help=f"What goes wrong: {', '.join(FAULTS)}.")
    ] = None,
    weeks: options.Weeks = True,
    seed: options.Seed = 0,
    begins_at: Annotated[
        str | None, typer.Option(metavar="MOMENT", help="When it begins by the clock, as in 2026-03-02T06:00.")
    ] = None,
    risk: Annotated[
        str | None, typer.Option(metavar="sweep|NUMBER,…", help="Places of the risk knob to try (hybrid).")
    ] = None,
    written: options.OutputOptions,
) -> None:
    """Rehearse workloads on a virtual clock, with the core that decides in the live loop."""
    takes_learned, recorded, learned = workers.takes_learned(history), None, None
    if history is not None:
        with connected() as api:
            recorded = read_history(api, history, minutes=minutes, seed=seed)
            learned = learned_behaviour(api, history) if takes_learned else None
    policy = base_profile(
        profile if profile is not None or recorded is None else recorded.profile,
        target_s=None if target is None else seconds(target, option="--target"),
        percentile=percentile,
        floor_workers=floor,
        cap_workers=cap,
    )
    host_count, workers_per_host = hosts_of(hosts)
    beside = None if scenario is None else load_scenario(scenario, columns_of(columns))
    wrongs = wrongs_of(fault or (), hosts=host_count if beside is None else len(beside.hosts))
    setting = workers.setting(
        learned=learned,
        faults=wrongs.faults,
        host_outages=wrongs.host_outages if beside is None else on_hosts(wrongs.host_outages, beside),
        control_outages=wrongs.control_outages,
        hosts=host_count,
        workers_per_host=workers_per_host,
        recalls_weeks=weeks,
        seed=seed,
    )
    settings = phased(setting, workers.phases)
    known = load_strategies()
    strategies = ",".join(strategy) if strategy else None
    written.refuse_unwritable()
    if beside is not None:
        of_one: dict[str, object] = {
            "--trace": trace or files,
            "--synthetic": synthetic,
            "--history": history,
            "--profile": profile,
        }
        of_one |= {"--hosts": hosts, "--slots": workers.slots != 1, "--risk": risk, "--target": target}
        of_one |= {"--percentile": percentile, "--floor": floor is not None, "--cap": cap is not None}
        refuse_beside_scenario(of_one)
        begins_at_s = moment_s(begins_at, option="--begins-at")
        begun = beside if begins_at_s is None else replace(beside, begins_at_s=begins_at_s)
        beside_each_other = beside_cases(begun, strategies, known)
        found, is_whole = _rehearse(beside_each_other, settings, known)
        if found:
            print_rehearsals(by_pool(found), begun, setting, written)
        end(is_whole, done=len(found), asked=len(beside_each_other))
        return
    profiles, risks = strategies_of(strategies, policy, known), risks_of(risk, policy)
    workloads = _workloads(
        [
            *([] if recorded is None else [recorded.workload]),
            *(read_trace(Path(file), columns_of(columns)) for file in (*(trace or ()), *(files or ()))),
            *map(drawn, synthetic or ()),
        ],
        begins_at,
    )
    wanted = cases(workloads, profiles, risks)
    found, is_whole = _rehearse(wanted, settings, known)
    rows = [row for of_case in found for row in of_case]
    if rows:
        _show(rows, workloads, policy, setting, faults=fault or (), written=written)
    end(is_whole, done=len(rows), asked=len(wanted))


def _show(
    rows: Sequence[Row],
    workloads: Sequence[Workload],
    policy: Profile,
    setting: Setting,
    *,
    faults: Sequence[str],
    written: options.OutputOptions,
) -> None:
    """Print ``rows``, and write what files were asked for."""
    console = output()
    objective_text = f"{policy.objective.percentile:g} % of the jobs start within {duration(policy.objective.target_s)}"
    console.print(Text(f"Objective: {objective_text}; up to {policy.workers_max} workers.", style="dim"))
    print_table(console, rows, setting)

    def shown() -> str:
        offered = [offered_load(each.name, each.jobs, slots=setting.slots) for each in workloads]
        names = list(dict.fromkeys(row.workload for row in rows))
        title = f"Rehearsal of {names[0] if len(names) == 1 else f'{len(names)} workloads'}"
        return page(rows, offered, title=title, settings=_facts(policy, setting, faults))

    written.write(lambda: figures(rows, policy, setting), shown)


def _workloads(found: Sequence[Workload], begins_at: str | None) -> list[Workload]:
    """Each under a name of its own."""
    if not found:
        raise Invalid(
            "nothing to rehearse: name a trace, a workload with --synthetic, as in --synthetic flash, "
            "or a pool with --history"
        )
    begins_at_s = moment_s(begins_at, option="--begins-at")
    taken: dict[str, int] = {}
    named = []
    for workload in found:
        taken[workload.name] = number = taken.get(workload.name, 0) + 1
        name = workload.name if number == 1 else f"{workload.name} ({number})"
        begins_s = workload.begins_at_s if begins_at_s is None else begins_at_s
        named.append(replace(workload, name=name, begins_at_s=begins_s))
    return named


def _rehearse(
    wanted: Sequence[AnyCase], settings: Sequence[Setting], known: Mapping[str, Strategy]
) -> tuple[list[tuple[Row, ...]], bool]:
    """The rehearsals that were done, and whether that is all of them."""
    rows: dict[int, tuple[Row, ...]] = {}
    try:
        # The processes of the bench come before the bar, which has a thread.
        with bench(wanted, settings, known) as rehearsed, _progress(wanted, len(settings)) as on_progress:
            for case, found in rehearsed(on_progress):
                rows[id(case)] = found  # one by one: what is done when Ctrl-C comes is kept
    except KeyboardInterrupt:
        pass
    done = [rows[id(case)] for case in wanted if id(case) in rows]
    return done, len(done) == len(wanted)


@contextmanager
def _progress(wanted: Sequence[AnyCase], phases: int) -> Iterator[Callable[[float], None]]:
    """A bar over all rehearsals, in simulated time; on standard error, so that the table can be piped."""
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    at_phases = f" at {counted(phases, 'tick phase')}" if phases > 1 else ""
    with Progress(*columns, console=errors(), transient=True) as bar:
        task = bar.add_task(f"{counted(len(wanted), 'rehearsal')}{at_phases}", total=1.0)
        yield lambda done: bar.update(task, completed=done)


def figures(rows: Sequence[Row], policy: Profile, setting: Setting) -> dict[str, Any]:
    """Everything but the plots, by names that carry their units."""
    return {
        "headway": __version__,
        "objective": asdict(policy.objective),
        "workers_max": policy.workers_max,
        **asdict(setting),
        "rehearsals": [figures_of(row) for row in rows],
    }


def _facts(policy: Profile, setting: Setting, faults: Sequence[str]) -> Mapping[str, str]:
    return {
        "objective": f"{policy.objective.percentile:g} % within {duration(policy.objective.target_s)}",
        "workers at most": f"{policy.workers_max:,}",
        "start-up": start_up_text(setting),
        "tick": duration(setting.tick_s),
        "slots a worker": f"{setting.slots}",
        "hosts": f"{setting.hosts} × {counted(setting.workers_per_host, 'worker')}"
        if setting.hosts
        else "room for all",
        **({"goes wrong": ", ".join(faults)} if faults else {}),
        "seed": f"{setting.seed}",
        "made by": f"headway {__version__}",
    }
