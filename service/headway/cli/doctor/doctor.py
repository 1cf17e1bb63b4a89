"""`headway doctor`: finds what is wrong with an installation, and says what to do about each thing."""

import os
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from headway.cli.doctor.certificates import certificate_findings
from headway.cli.doctor.control_plane import ask, health_findings, version_findings
from headway.cli.doctor.finding import Finding, Level, skipped
from headway.cli.doctor.outside import broker_findings, database_findings, profiles_findings
from headway.cli.doctor.profiles_and_hosts import cut_findings, pool_findings, queue_findings, template_findings
from headway.cli.doctor.this_machine import (
    Place,
    disk_findings,
    host_findings,
    java_findings,
    port_findings,
    secret_findings,
)
from headway.cli.terminal.printing import TextForm, say, say_json
from headway.cli.typer_app import main_of
from headway.settings import DATA_DIR

FOUND = 1
"""The exit status where something is wrong."""

app = typer.Typer(add_completion=False)


@app.command()
def doctor(
    *,
    profiles: Annotated[Path, typer.Option(metavar="FILE", help="What is wanted.")] = Path("profiles.yaml"),
    host_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="What this host can run (host.toml).", show_default=False)
    ] = None,
    data_dir: Annotated[Path, typer.Option(metavar="PATH", help="The data folder of `up`.")] = Path(DATA_DIR),
    form: Annotated[TextForm, typer.Option("-o", "--output", help="json: every check, for programs.")] = (
        TextForm.TEXT
    ),
) -> None:
    """Find what is wrong, here and at the control plane, and say what to do. Status 1: something is wrong."""
    env = dict(os.environ)
    place = Place(
        env=env,
        profiles=profiles,
        host_file=host_file or Path(env.get("HEADWAY_HOST_FILE") or "host.toml"),
        data_dir=data_dir,
    )
    findings = list(examined(place))
    is_wrong = any(each.is_wrong for each in findings)
    if form is TextForm.JSON:
        say_json({"status": "wrong" if is_wrong else "ok", "findings": [asdict(each) for each in findings]})
    else:
        _print(findings)
    raise typer.Exit(FOUND if is_wrong else 0)


def examined(place: Place) -> Iterator[Finding]:
    """What every check finds, those of the control plane first."""
    asked = ask(place.env)
    yield from asked.findings
    if (installation := asked.installation) is None:
        text = "pools, hosts, queues and versions were not read: the control plane was not asked"
        yield skipped("installation", text)
    else:
        for each in (health_findings, version_findings, template_findings, queue_findings, cut_findings, pool_findings):
            yield from each(installation)
    if not asked.is_answering:
        yield from port_findings(place.env)
    yield from certificate_findings(place.env, now_s=time.time())
    yield from secret_findings(place.env)
    found, file = profiles_findings(place)
    yield from found
    yield from broker_findings(place, file)
    yield from host_findings(place)
    yield from database_findings(place)
    yield from disk_findings(place)
    yield from java_findings(place.env)


def _print(findings: Iterable[Finding]) -> None:
    """What is wrong with its cure, remarks, and how many checks found nothing or were left out."""
    findings = list(findings)
    width = max(len(each.check) for each in findings)
    for level in (Level.FAULT, Level.WARNING):
        for each in findings:
            if each.level is level:
                say(f"{level:<8} {each.check:<{width}}  {each.text}")
                say(f"{'':<8} {'':<{width}}  cure: {each.cure}")
    for each in findings:
        if each.level in {Level.REMARK, Level.SKIPPED}:
            say(f"{each.level:<8} {each.check:<{width}}  {each.text}")
    counts = Counter(each.level for each in findings)
    wrong = f"{_counted(counts[Level.FAULT], 'fault')}, {_counted(counts[Level.WARNING], 'warning')}"
    found = wrong if counts[Level.FAULT] + counts[Level.WARNING] else "nothing wrong"
    say(f"{found}; {counts[Level.OK]} checks found nothing, {counts[Level.SKIPPED]} were not made")


def _counted(number: int, noun: str) -> str:
    return f"1 {noun}" if number == 1 else f"{number} {noun}s"


main = main_of(app)
