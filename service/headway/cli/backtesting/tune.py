"""`headway tune`: for each pool the policy that its own past speaks for, or that there is none better."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml
from rich.table import Table

from headway import __version__
from headway.cli.backtesting.backtest import (
    asked_of,
    end,
    facts,
    learns_of,
    prepare,
    print_skipped,
    rehearsal_figures,
    setting_of,
)
from headway.cli.backtesting.candidate_files import read_candidates, read_grid, refuse_unfit
from headway.cli.backtesting.history_source import past_of
from headway.cli.backtesting.spark_runs import bench
from headway.cli.backtesting.tuning_rounds import tuned
from headway.cli.rehearse import shared_options as options
from headway.cli.rehearse.figures import write
from headway.cli.terminal.screen import Text, errors, output
from headway.cli.terminal.units import fraction
from headway.cli.typer_app import run
from headway.errors import Invalid
from headway.scaling.explain import counted
from headway.scaling.profile import Profile, profile_to_mapping
from headway.simulate.studies.candidates import Candidate, with_base
from headway.simulate.studies.phases import PHASES, phased
from headway.simulate.studies.tuned_page import BEFORE_AFTER, change_of, shown_cells, tuned_page
from headway.simulate.studies.tuning import DEFAULT_GRID, TUNED_KEYS, Suggestion, Verdict
from headway.strategies import load_strategies
from headway_spark.studies.backtest import Work

app = typer.Typer(add_completion=False)


def main(words: list[str]) -> int:
    """Run `tune`. Returns the exit status."""
    return run(app, words)


@app.command("tune")
def tune(
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
    train: Annotated[
        str, typer.Option(metavar="SHARE", help="Of the time, from its beginning, that is chosen on.")
    ] = "67%",
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
    patch: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write what is to change in profiles.yaml, as YAML.")
    ] = None,
    report: options.Report = None,
    json_: options.Json = None,
) -> None:
    """Suggest a policy for each pool: chosen on the earlier part of its past, shown on the later part."""
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
    given = (*(read_candidates(candidates) if candidates else ()), *read_grid(grid or ()))
    compared = with_base(given or DEFAULT_GRID)
    refuse_untunable(compared)
    trained_fraction = fraction(train, option="--train")
    if not 0.1 <= trained_fraction <= 0.9:
        raise Invalid(f"--train={train} must lie in 10%..90%: both parts need jobs")
    prepare(cores, report, json_, patch)
    past = past_of(asked, with_behaviours=learns_of(asked, behaviour, start_up=start_up, jitter=jitter))
    known = dict(load_strategies())
    refuse_unfit(compared, past.profiles, known)
    with bench(asked, past, master=master, cores=cores) as on:
        work = on.work(Work(profiles={}, candidates=compared, setting=setting, strategies=known, phases=phases))
        found, failures, is_whole = tuned(on, work, trained_fraction=trained_fraction)
    skipped = {**on.skipped, **failures}
    _print(found)
    print_skipped(skipped)
    if patch is not None:
        write(patch, patch_of(found, work.profiles))
    if json_ is not None:
        write(json_, json.dumps(figures(found, skipped), indent=2, allow_nan=False) + "\n")
    if report is not None:
        title = f"Tuning of {counted(len(found), 'pool')} with {counted(len(compared) - 1, 'candidate')}"
        write(report, tuned_page(found, skipped, title=title, facts=facts(setting)))
    end(is_whole, done=len(found), asked=len(on.sizes), what="pools")


def refuse_untunable(compared: Sequence[Candidate]) -> None:
    """Refuse candidates that would change more than the pace of deciding."""
    breaches = [
        f"candidate {each.name!r}: {', '.join(odd)} is the operator's word and not tuned; "
        "`headway backtest` shows what it would do"
        for each in compared
        if (odd := sorted(each.changes.keys() - set(TUNED_KEYS)))
    ]
    if breaches:
        raise Invalid(*breaches)


def patch_of(found: Sequence[Suggestion], profiles: Mapping[str, Profile]) -> str:
    """What is to change in ``profiles.yaml``, as YAML with the same shape: keys to replace, null for the default."""
    pools = {
        each.pool: changes_of(each.candidate, profiles[each.pool]) for each in found if each.verdict is Verdict.CHANGE
    }
    lines = ["# What `headway tune` suggests: put these keys into your profiles.yaml. Other keys stay as they are."]
    if not pools:
        return "\n".join([*lines, "pools: {}", ""])
    lines.append("pools:")
    for each in found:
        if each.verdict is Verdict.CHANGE:
            body = yaml.safe_dump(pools[each.pool], default_flow_style=True, sort_keys=True, width=1000).strip()
            lines += [
                f"  # {each.why}",
                f"  {yaml.safe_dump(each.pool, default_flow_style=True).splitlines()[0]}: {body}",
            ]
    return "\n".join([*lines, ""])


def changes_of(candidate: Candidate, profile: Profile) -> dict[str, Any]:
    """The keys of ``profile`` that ``candidate`` makes different, and what they become."""
    before, after = profile_to_mapping(profile), profile_to_mapping(candidate.of(profile))
    return {key: after[key] for key in TUNED_KEYS if before[key] != after[key]}


def figures(found: Sequence[Suggestion], skipped: Mapping[str, str]) -> dict[str, Any]:
    """What was found, by names that carry their units."""
    return {
        "headway": __version__,
        "pools": [
            {
                "pool": each.pool,
                "verdict": each.verdict.value,
                "why": each.why,
                "candidate": each.candidate.name,
                "changes": dict(each.candidate.changes),
                "earlier": [rehearsal_figures(row) for row in each.trained],
                "later": [rehearsal_figures(row) for row in (each.before, each.after) if row is not None],
            }
            for each in found
        ],
        "skipped": dict(skipped),
    }


def _print(found: Sequence[Suggestion]) -> None:
    console = output()
    if not found:
        return
    shown = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    shown.add_column("pool", overflow="fold")
    shown.add_column("change to", overflow="fold")
    for name in BEFORE_AFTER:
        shown.add_column(name, justify="right")
    for each in found:
        style = "green" if each.verdict is Verdict.CHANGE else "dim"
        told = {Verdict.CHANGE: change_of(each), Verdict.KEEP: "keep what you have", Verdict.UNKNOWN: "not known"}
        shown.add_row(Text(each.pool), Text(told[each.verdict], style=style), *shown_cells(each))
    console.print(Text("The later part of the time, before and after:", style="dim"))
    console.print(shown)
    for each in found:
        console.print(Text(f"{each.pool}: {each.why}", style="dim"), soft_wrap=True)
    changes = sum(each.verdict is Verdict.CHANGE for each in found)
    errors().print(f"{counted(changes, 'pool')} of {len(found)} would be better off with a change")
