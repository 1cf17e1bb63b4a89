"""`headway tune`: for each pool the policy that its own past speaks for, or that there is none better."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml

from headway import __version__
from headway.cli.backtesting.backtest import facts, print_skipped, rehearsal_figures
from headway.cli.backtesting.backtest_options import CandidateOptions, PastOptions, SparkOptions
from headway.cli.backtesting.candidate_files import refuse_unfit
from headway.cli.backtesting.history_source import past_of
from headway.cli.backtesting.spark_runs import bench
from headway.cli.backtesting.tuning_rounds import tuned
from headway.cli.rehearse import shared_options as options
from headway.cli.rehearse.figures import end, write
from headway.cli.terminal.cells import figures_table
from headway.cli.terminal.screen import Text, errors, output
from headway.cli.terminal.units import fraction
from headway.cli.typer_app import main_of, takes_groups
from headway.errors import Invalid
from headway.scaling.explanations.phrases import counted
from headway.scaling.profile import Profile, profile_to_mapping
from headway.simulate.studies.candidates import Candidate, with_base
from headway.simulate.studies.phases import phased
from headway.simulate.studies.tuned_page import BEFORE_AFTER, change_of, shown_cells, tuned_page
from headway.simulate.studies.tuning import DEFAULT_GRID, TUNED_KEYS, Suggestion, Verdict
from headway.strategies import load_strategies
from headway_spark.studies.backtest import Work

app = typer.Typer(add_completion=False)
main = main_of(app)


@app.command("tune")
@takes_groups
def tune(
    *,
    recorded: PastOptions,
    candidates: CandidateOptions,
    train: Annotated[
        str, typer.Option(metavar="SHARE", help="Of the time, from its beginning, that is chosen on.")
    ] = "67%",
    spark: SparkOptions,
    workers: options.WorkerOptions,
    weeks: options.Weeks = True,
    seed: options.Seed = 0,
    patch: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write what is to change in profiles.yaml, as YAML.")
    ] = None,
    written: options.OutputOptions,
) -> None:
    """Suggest a policy for each pool: chosen on the earlier part of its past, shown on the later part."""
    asked = recorded.asked(seed=seed)
    setting = workers.setting(recalls_weeks=weeks, seed=seed)
    phased(setting, workers.phases)
    compared = with_base(candidates.read() or DEFAULT_GRID)
    refuse_untunable(compared)
    trained_fraction = fraction(train, option="--train")
    if not 0.1 <= trained_fraction <= 0.9:
        raise Invalid(f"--train={train} must lie in 10%..90%: both parts need jobs")
    spark.check()
    written.refuse_unwritable(patch)
    past = past_of(asked, with_behaviours=workers.takes_learned(asked.database_url))
    known = dict(load_strategies())
    refuse_unfit(compared, past.profiles, known)
    with bench(asked, past, spark) as on:
        given = Work(profiles={}, candidates=compared, setting=setting, strategies=known, phases=workers.phases)
        work = on.work(given)
        found, failures, is_whole = tuned(on, work, trained_fraction=trained_fraction)
    skipped = {**on.skipped, **failures}
    _print(found)
    print_skipped(skipped)
    if patch is not None:
        write(patch, patch_of(found, work.profiles))
    title = f"Tuning of {counted(len(found), 'pool')} with {counted(len(compared) - 1, 'candidate')}"
    written.write(
        lambda: figures(found, skipped), lambda: tuned_page(found, skipped, title=title, facts=facts(setting))
    )
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
    shown = figures_table(("pool", "change to"), BEFORE_AFTER)
    for each in found:
        style = "green" if each.verdict is Verdict.CHANGE else "dim"
        texts = {Verdict.CHANGE: change_of(each), Verdict.KEEP: "keep what you have", Verdict.UNKNOWN: "not known"}
        shown.add_row(Text(each.pool), Text(texts[each.verdict], style=style), *shown_cells(each))
    console.print(Text("The later part of the time, before and after:", style="dim"))
    console.print(shown)
    for each in found:
        console.print(Text(f"{each.pool}: {each.why}", style="dim"), soft_wrap=True)
    changes = sum(each.verdict is Verdict.CHANGE for each in found)
    errors().print(f"{counted(changes, 'pool')} of {len(found)} would be better off with a change")
