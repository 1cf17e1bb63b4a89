"""`headway simulate`: workloads rehearsed under strategies, as a table, a report and figures for a program."""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from headway import __version__
from headway.cli import past_options as options
from headway.cli.amounts import seconds
from headway.cli.api import api_of
from headway.cli.behaviour import read_behaviour
from headway.cli.faults import KINDS as FAULTS
from headway.cli.faults import wrongs_of
from headway.cli.history import MINUTES_MAX, Recorded, read_history
from headway.cli.rehearsal import Case, base_profile, cases, hosts_of, rehearsed, risks_of, strategies_of
from headway.cli.traces import Workload, columns_of, read_trace
from headway.cli.typed import output, run
from headway.cli.workloads import drawn
from headway.errors import Invalid, Misconfigured
from headway.scaling.explain import counted, duration
from headway.scaling.profile import Profile
from headway.scaling.strategy import Strategy
from headway.settings import ClientSettings
from headway.simulate.loads import LOADS
from headway.simulate.report.page import COLUMNS, cells, page
from headway.simulate.report.rows import Row, offered_load
from headway.simulate.single import Setting
from headway.simulate.synthetic import KINDS
from headway.strategies import load_strategies

ENDED_BY_CTRL_C = 130
STEPS_SHOWN = 200  # of the progress bar for each rehearsal: more would only cost time

app = typer.Typer(add_completion=False)


def main(words: list[str]) -> int:
    """Run `simulate`. Returns the exit status."""
    return run(app, words)


@app.command("simulate")
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
    minutes: Annotated[int, typer.Option(help="So far back does the history go, up to 120.")] = MINUTES_MAX,
    profile: Annotated[
        str | None, typer.Option(metavar="FILE[:POOL]", help="The policy, from a profiles.yaml.")
    ] = None,
    strategy: Annotated[
        str | None, typer.Option(metavar="NAME[:KEY=NUMBER],…", help="The strategies to compare.")
    ] = None,
    target: Annotated[str | None, typer.Option(metavar="DURATION", help="In place of the profile's target_s.")] = None,
    percentile: Annotated[float | None, typer.Option(metavar="PERCENT", help="In place of the profile's.")] = None,
    floor: Annotated[int | None, typer.Option(metavar="WORKERS", help="In place of the profile's workers_min.")] = None,
    cap: Annotated[int | None, typer.Option(metavar="WORKERS", help="In place of the profile's workers_max.")] = None,
    slots: Annotated[int, typer.Option(metavar="COUNT", help="Jobs that one worker runs at once.")] = 1,
    start_up: Annotated[str, typer.Option(metavar="DURATION", help="From a worker's spawn to its first job.")] = "2s",
    jitter: Annotated[
        float, typer.Option(metavar="SIGMA", help="Spread of the start-up around that mean (lognormal).")
    ] = 0.0,
    tick: Annotated[str, typer.Option(metavar="DURATION", help="From one decision to the next.")] = "5s",
    behaviour: options.BehaviourFile = None,
    host_cores: options.HostCores = None,
    hosts: Annotated[
        str | None,
        typer.Option(metavar="HOSTSxWORKERS", help="Room for workers, as in 3x8; without it there is room for all."),
    ] = None,
    fault: Annotated[
        list[str] | None, typer.Option(metavar="KIND:KEY=VALUE,…", help=f"What goes wrong: {', '.join(FAULTS)}.")
    ] = None,
    weeks: options.Weeks = True,
    seed: Annotated[int, typer.Option(help="Of everything random.")] = 0,
    begins_at: Annotated[
        str | None, typer.Option(metavar="MOMENT", help="When it begins by the clock, as in 2026-03-02T06:00.")
    ] = None,
    risk: Annotated[
        str | None, typer.Option(metavar="sweep|NUMBER,…", help="Places of the risk knob to try (hybrid).")
    ] = None,
    report: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write plots and tables as one HTML file.")
    ] = None,
    json_: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write the figures for a program.")
    ] = None,
) -> None:
    """Rehearse workloads on a virtual clock, with the core that decides in the live loop."""
    recorded = None if history is None else _recorded(history, minutes=minutes, seed=seed)
    policy = base_profile(
        profile if profile is not None or recorded is None else recorded.profile,
        target_s=None if target is None else seconds(target, option="--target"),
        percentile=percentile,
        floor_workers=floor,
        cap_workers=cap,
    )
    host_count, workers_per_host = hosts_of(hosts)
    wrongs = wrongs_of(fault or (), hosts=host_count)
    setting = Setting(
        faults=wrongs.faults,
        host_outages=wrongs.host_outages,
        control_outages=wrongs.control_outages,
        hosts=host_count,
        workers_per_host=workers_per_host,
        tick_s=seconds(tick, option="--tick"),
        start_up_s=seconds(start_up, option="--start-up"),
        start_up_spread=jitter,
        slots=slots,
        recalls_weeks=weeks,
        seed=seed,
        behaviour=read_behaviour(behaviour),
        host_cores=host_cores,
    )
    known = load_strategies()
    profiles, risks = strategies_of(strategy, policy, known), risks_of(risk, policy)
    for file in filter(None, (report, json_)):
        check_writable(file)
    workloads = _workloads(
        [
            *([] if recorded is None else [recorded.workload]),
            *(read_trace(Path(file), columns_of(columns)) for file in (*(trace or ()), *(files or ()))),
            *map(drawn, synthetic or ()),
        ],
        begins_at,
    )
    wanted = cases(workloads, profiles, risks)
    rows, is_whole = _rehearse(wanted, setting, known)
    _print(rows, policy)
    if json_ is not None and rows:
        write(json_, json.dumps(figures(rows, policy, setting), indent=2, allow_nan=False) + "\n")
    if report is not None and rows:
        offered = [offered_load(each.name, each.jobs, slots=slots) for each in workloads]
        write(report, page(rows, offered, title=_title(rows), settings=_facts(policy, setting, fault or ())))
    if not is_whole:
        Console(stderr=True).print(f"interrupted: {len(rows)} of {len(wanted)} rehearsals were done")
        raise typer.Exit(ENDED_BY_CTRL_C)


def _recorded(pool: str, *, minutes: int, seed: int) -> Recorded:
    settings = ClientSettings.from_env(os.environ)
    with api_of(settings) as api:
        return read_history(api, pool, minutes=minutes, seed=seed)


def _workloads(found: Sequence[Workload], begins_at: str | None) -> list[Workload]:
    """Each under a name of its own."""
    if not found:
        raise Invalid(
            "nothing to rehearse: name a trace, a workload with --synthetic, as in --synthetic flash, "
            "or a pool with --history"
        )
    begins_at_s = None if begins_at is None else _moment_s(begins_at)
    taken: dict[str, int] = {}
    named = []
    for workload in found:
        taken[workload.name] = number = taken.get(workload.name, 0) + 1
        name = workload.name if number == 1 else f"{workload.name} ({number})"
        begins_s = workload.begins_at_s if begins_at_s is None else begins_at_s
        named.append(replace(workload, name=name, begins_at_s=begins_s))
    return named


def _moment_s(text: str) -> float:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise Invalid(
            f"--begins-at={text!r} is no moment, as in 2026-03-02T06:00 (UTC unless it says otherwise)"
        ) from error
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _rehearse(wanted: Sequence[Case], setting: Setting, known: Mapping[str, Strategy]) -> tuple[list[Row], bool]:
    """The rehearsals that were done, and whether that is all of them."""
    rows: list[Row] = []
    try:
        with _progress(wanted) as on_tick:
            for case in wanted:
                row = rehearsed(case, setting, strategies=known, on_tick=on_tick(case))
                rows.append(row)  # one by one: what is done when Ctrl-C comes is kept
    except KeyboardInterrupt:
        return rows, False
    return rows, True


@contextmanager
def _progress(wanted: Sequence[Case]) -> Iterator[Any]:
    """A bar over all rehearsals, in simulated time; on standard error, so that the table can be piped."""
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=sum(case.length_s for case in wanted) or 1.0)
        before_s = 0.0

        def begun(case: Case) -> Any:
            nonlocal before_s
            began_s, before_s = before_s, before_s + case.length_s
            step_s = case.length_s / STEPS_SHOWN
            shown_s = -step_s
            bar.update(task, completed=began_s, description=f"{case.workload.name}, {case.profile.strategy}")

            def on_tick(now_s: float) -> None:
                nonlocal shown_s
                if now_s - shown_s >= step_s:
                    shown_s = now_s
                    bar.update(task, completed=began_s + min(now_s, case.length_s))

            return on_tick

        yield begun


def _print(rows: Sequence[Row], policy: Profile) -> None:
    if not rows:
        return
    console = output()
    objective = policy.objective
    promise = f"{objective.percentile:g} % of the jobs start within {duration(objective.target_s)}"
    console.print(Text(f"Promised: {promise}; up to {policy.workers_max} workers.", style="dim"))
    console.print(table(rows))


def table(rows: Sequence[Row]) -> Table:
    """A row a rehearsal."""
    shown = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    has_workloads = len({row.workload for row in rows}) > 1
    for name in (["workload"] if has_workloads else []) + ["strategy"]:
        shown.add_column(name, overflow="fold")
    for name, _ in COLUMNS:
        # In two lines, so that eighty columns of a terminal are enough: a figure that is cut short is none.
        shown.add_column(name.replace("-", " ").replace(" ", "\n", 1), justify="right", no_wrap=True)
    last = None
    for row in rows:
        first = [Text(row.workload if row.workload != last else "")] if has_workloads else []
        in_time, *rest = cells(row)
        verdict = Text(in_time, style="green" if row.is_kept else "red")
        shown.add_row(*first, Text(row.label), verdict, *rest)
        last = row.workload
    return shown


def figures(rows: Sequence[Row], policy: Profile, setting: Setting) -> dict[str, Any]:
    """Everything but the plots, by names that carry their units."""
    return {
        "headway": __version__,
        "objective": asdict(policy.objective),
        "workers_max": policy.workers_max,
        **asdict(setting),
        "rehearsals": [
            {"workload": row.workload, "strategy": row.strategy, "risk": row.risk, "is_kept": row.is_kept}
            | {name: value for name, value in asdict(row.result).items() if name != "points"}
            | {"work_multiple": row.result.work_multiple}
            for row in rows
        ],
    }


def _title(rows: Sequence[Row]) -> str:
    names = list(dict.fromkeys(row.workload for row in rows))
    return f"Rehearsal of {names[0] if len(names) == 1 else f'{len(names)} workloads'}"


def _facts(policy: Profile, setting: Setting, faults: Sequence[str]) -> Mapping[str, str]:
    return {
        "promise": f"{policy.objective.percentile:g} % within {duration(policy.objective.target_s)}",
        "workers at most": f"{policy.workers_max:,}",
        "start-up": start_up_told(setting),
        "tick": duration(setting.tick_s),
        "slots a worker": f"{setting.slots}",
        "hosts": f"{setting.hosts} × {counted(setting.workers_per_host, 'worker')}"
        if setting.hosts
        else "room for all",
        **({"goes wrong": ", ".join(faults)} if faults else {}),
        "seed": f"{setting.seed}",
        "made by": f"headway {__version__}",
    }


def start_up_told(setting: Setting) -> str:
    """How long workers take to start, in words."""
    if setting.behaviour is not None and setting.behaviour.start_up is not None:
        measured = setting.behaviour.start_up
        return f"{duration(measured.p50_s)}, p95 {duration(measured.p95_s)}, as measured"
    spread = f", spread {setting.start_up_spread:g}" if setting.start_up_spread else ""
    return f"{duration(setting.start_up_s)}{spread}"


def check_writable(file: Path) -> None:
    """Refuse now what could not be written after the work."""
    folder = file.parent
    if file.is_dir() or not folder.is_dir() or not os.access(file if file.exists() else folder, os.W_OK):
        raise Misconfigured(f"{file} cannot be written: name a file in a folder that exists and is yours")


def write(file: Path, text: str) -> None:
    """Write ``text`` to ``file`` and say so on standard error."""
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise Misconfigured(f"{file} cannot be written: {error.strerror}") from error
    Console(stderr=True, highlight=False).print(Text(f"wrote {file}"), soft_wrap=True)
