"""`headway top`: every pool at this moment, drawn anew while you look, those furthest behind their promise first."""

import os
import threading
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer
from rich.console import Group, RenderableType
from rich.live import Live
from rich.text import Text

from headway.cli.amounts import seconds
from headway.cli.api import Api, api_of
from headway.cli.cells import UNKNOWN, count, duration, rate, table
from headway.cli.simulate import ENDED_BY_CTRL_C
from headway.cli.typed import output, run
from headway.cli.words import AT_WORK, LONGEST_WAIT, WANTED, WITHIN, named
from headway.errors import Invalid, Unavailable
from headway.scaling.explain import counted
from headway.settings import ClientSettings

EVERY_MIN_S = 0.5  # a control plane has others to answer

app = typer.Typer(add_completion=False)

Body = dict[str, Any]


def main(words: list[str]) -> int:
    """Run `top`. Returns the exit status."""
    return run(app, words)


@app.command("top")
def top(
    *,
    every: Annotated[str, typer.Option(metavar="DURATION", help="From one look to the next.")] = "2s",
    once: Annotated[
        bool, typer.Option("--once", help="Look once and end, as where nothing can be drawn anew.")
    ] = False,
) -> None:
    """Show every pool: its workers, what waits, for how long, and what decides. Ctrl-C ends it."""
    every_s = seconds(every, option="--every")
    if every_s < EVERY_MIN_S:
        raise Invalid(f"--every={every} must be {EVERY_MIN_S:g} s or more")
    console = output()
    with api_of(ClientSettings.from_env(os.environ)) as api:
        shown: RenderableType = picture(api)
        if once or not console.is_terminal:
            console.print(shown)
            return
        try:
            with Live(shown, console=console, screen=True, auto_refresh=False) as live:
                while not threading.Event().wait(every_s):
                    shown = looked(api, shown)
                    live.update(shown, refresh=True)
        except KeyboardInterrupt:
            raise typer.Exit(ENDED_BY_CTRL_C) from None


def looked(api: Api, before: RenderableType) -> RenderableType:
    """The picture now; while nobody answers, the last one and why."""
    try:
        return picture(api)
    except Unavailable as error:
        return Group(Text(f"as it was: {error}", style="yellow"), before)


def picture(api: Api) -> RenderableType:
    """Every pool as the API tells of it."""
    profiles = {row["pool"]: row["profile"] for row in api.get("/v1/profiles")["profiles"]}
    decisions = {row["decision"]["pool"]: row["decision"] for row in api.get("/v1/decisions/latest")["decisions"]}
    queues: dict[str, list[Body]] = defaultdict(list)
    for row in api.get("/v1/queues")["queues"]:
        queues[row["pool"]].append(row["metrics"])
    rows = [pool_row(pool, profile, decisions.get(pool), queues[pool]) for pool, profile in profiles.items()]
    rows.sort(key=lambda each: (-each[0], each[1][0]))
    running = sum(decision["running_workers"] for decision in decisions.values())
    waiting = sum(metrics["waiting_jobs"] or 0 for each in queues.values() for metrics in each)
    return Group(
        Text(f"{counted(len(profiles), 'pool')}, {counted(running, 'worker')}, {counted(waiting, 'job')} waiting"),
        table(
            (
                "pool",
                "workers",
                WANTED,
                "waiting",
                LONGEST_WAIT,
                "promised",
                AT_WORK,
                "arriving",
                WITHIN,
                "because",
            ),
            (cells for _, cells in rows),
            empty="no profiles: write one and run `headway apply profiles.yaml`",
        ),
    )


def pool_row(
    pool: str, profile: Mapping[str, Any], decision: Mapping[str, Any] | None, queues: Sequence[Body]
) -> tuple[float, tuple[str, ...]]:
    """How much of its promise the oldest job has used up, and what is shown of the pool."""
    target_s = profile["objective"]["target_s"]
    oldest_s = greatest(queues, "oldest_age_s")
    return (oldest_s or 0.0) / target_s, (
        pool,
        UNKNOWN if decision is None else running_of(decision),
        UNKNOWN if decision is None else str(decision["target_workers"]),
        count(total(queues, "waiting_jobs")),
        duration(oldest_s),
        duration(target_s),
        count(total(queues, "in_flight_jobs")),
        rate(total(queues, "arrival_rate_per_s")),
        duration(greatest(queues, "pickup_p95_s")),
        "-" if decision is None else named(decision["binding"]),
    )


def running_of(decision: Mapping[str, Any]) -> str:
    """The workers that run, and those that start or may still run on silent hosts."""
    told = str(decision["running_workers"])
    if decision["starting_workers"]:
        told += f" +{decision['starting_workers']} starting"
    if decision["unknown_workers"]:
        told += f" +{decision['unknown_workers']} on silent hosts"
    return told


def total(queues: Sequence[Body], figure: str) -> Any:
    """The sum of what is known; ``None`` where nothing is."""
    known = [metrics[figure] for metrics in queues if metrics[figure] is not None]
    return sum(known) if known else None


def greatest(queues: Sequence[Body], figure: str) -> float | None:
    """The greatest of what is known."""
    return max((metrics[figure] for metrics in queues if metrics[figure] is not None), default=None)
