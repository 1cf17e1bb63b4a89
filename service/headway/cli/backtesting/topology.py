"""`headway topology`: job classes that share a queue and should not, and the split that cures it."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from html import escape
from pathlib import Path
from typing import Annotated

import typer

from headway import __version__
from headway.cli.backtesting.backtest import facts
from headway.cli.backtesting.backtest_options import From, ProfileFile, SparkOptions, Until, names_of
from headway.cli.backtesting.history_source import Asked, past_of
from headway.cli.rehearse import shared_options as options
from headway.cli.rehearse.rehearsal import base_profile
from headway.cli.terminal.screen import Text, errors, output
from headway.cli.terminal.units import moment_s, seconds
from headway.cli.typer_app import main_of, takes_groups
from headway.errors import Invalid
from headway.scaling.explanations.phrases import counted
from headway.simulate.report.page import document
from headway_spark.studies.history import held_events, jobs_of
from headway_spark.studies.topology import Finding, Question, findings

FOOT = (
    "Waits at the mean rate are queueing theory's for first come, first served; what happens in queues of their own "
    "was rehearsed on the recorded jobs, with the core that decides in the live loop."
)

app = typer.Typer(add_completion=False)
main = main_of(app)


@app.command("topology")
@takes_groups
def topology(
    event_log: Annotated[Path, typer.Option(metavar="DIR", help="The event log: it knows the class of each job.")],
    *,
    from_: From = None,
    until: Until = None,
    queues: Annotated[str | None, typer.Option(metavar="QUEUE,…", help="Only these queues.")] = None,
    profile: ProfileFile = None,
    objective: Annotated[
        list[str] | None,
        typer.Option(metavar="CLASS=DURATION", help="The objective of a class, if it differs from its pool's."),
    ] = None,
    spark: SparkOptions,
    slots: options.Slots = 1,
    start_up: options.StartUp = None,
    jitter: options.Jitter = 0.0,
    tick: options.Tick = "5s",
    seed: options.Seed = 0,
    written: options.OutputOptions,
) -> None:
    """Find job classes that keep each other waiting in one queue, and rehearse them apart."""
    asked = Asked(
        event_log=event_log,
        from_s=moment_s(from_, option="--from"),
        until_s=moment_s(until, option="--until"),
        profiles_file=profile,
        seed=seed,
    )
    workers = options.WorkerOptions(tick=tick, start_up=start_up, jitter=jitter, slots=slots)
    setting = workers.setting(seed=seed)
    targets_s = targets_of(objective or ())
    spark.check()
    written.refuse_unwritable()
    profiles = {queue: each for each in past_of(asked).profiles.values() for queue in each.queues}
    question = Question(profiles=profiles, default=base_profile(None), setting=setting, targets_s=targets_s)
    found = _found(asked, question, names_of(queues), spark)
    _print(found)
    # "told" is the key that readers of this file know.
    rows = [{"told" if name == "text" else name: value for name, value in asdict(each).items()} for each in found]
    title = f"Topology of {counted(len(found), 'queue')}"
    written.write(
        lambda: {"headway": __version__, "queues": rows}, lambda: page(found, title=title, settings=facts(setting))
    )


def targets_of(texts: Sequence[str]) -> dict[str, float]:
    """The objectives of classes, as in ``report=10m``."""
    targets_s = {}
    for text in texts:
        name, equals, value = text.rpartition("=")
        if not equals or not name.strip():
            raise Invalid(f"--objective={text!r} must be a class and a duration, as in report=10m")
        targets_s[name.strip()] = seconds(value, option="--objective")
    return targets_s


def _found(asked: Asked, question: Question, wanted: Sequence[str], spark: SparkOptions) -> tuple[Finding, ...]:
    assert asked.event_log is not None
    with (
        errors().status("starting Spark, reading the jobs and rehearsing their classes apart"),
        spark.session() as (session, _),
        held_events(session, asked.event_log, from_s=asked.from_s, until_s=asked.until_s) as events,
    ):
        jobs = jobs_of(events, from_s=asked.from_s, until_s=asked.until_s)
        found = findings(jobs, question)
    unknown = sorted(set(wanted) - {each.queue for each in found})
    if unknown:
        raise Invalid(f"--queues: no job of {', '.join(unknown)} came in that time")
    if not found:
        raise Invalid(f"no job came in that time: the event log in {asked.event_log} says nothing of it")
    return tuple(each for each in found if not wanted or each.queue in wanted)


def _print(found: Sequence[Finding]) -> None:
    console = output()
    for each in found:
        mark = Text("split " if each.is_cure else "keep  ", style="yellow" if each.is_cure else "green")
        console.print(mark + Text(each.queue, style="bold") + Text(f"  {each.jobs:,} jobs", style="dim"))
        console.print(Text(f"  {each.text or f'Nothing to divide: {each.why}.'}"), soft_wrap=True)
    cures = sum(each.is_cure for each in found)
    errors().print(f"{counted(cures, 'queue')} of {len(found)} would be better off divided")


def page(found: Sequence[Finding], *, title: str, settings: Mapping[str, str]) -> str:
    """The findings as HTML."""
    sections = "".join(
        f"<section><h2>{escape(each.queue)}</h2>"
        f'<p class="soft">{each.jobs:,} jobs; {"divide it" if each.is_cure else "leave it as it is"}</p>'
        f"<p>{escape(each.text or f'Nothing to divide: {each.why}.')}</p></section>"
        for each in found
    )
    return document(title, settings, sections, foot=FOOT)
