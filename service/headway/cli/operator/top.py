"""`headway top`: every pool at this moment, drawn anew while you watch, those that need attention first."""

import math
import threading
import time
from typing import Annotated, Any

import typer
from rich.console import Group, RenderableType
from rich.live import Live

from headway.cli.api_client import Api, connected
from headway.cli.process.shutdown import ENDED_BY_CTRL_C
from headway.cli.terminal.cells import UNKNOWN, count, duration, failed, objective_text, rate, table, within
from headway.cli.terminal.labels import IN_FLIGHT, LONGEST_WAIT, STATES, WANTED, WITHIN, named
from headway.cli.terminal.screen import Text, output
from headway.cli.terminal.units import seconds
from headway.cli.typer_app import main_of
from headway.errors import Invalid, Unavailable
from headway.scaling.explain import counted

TOP_EVERY_MIN_S = 0.5  # a control plane has others to answer
TOP_ANSWERS_WITHIN_S = 10.0  # a viewer must not take the past for the present; a hung Postgres is named after 8 s
URGENT = ("recovering", "unmeasured", "stale", "unseen", "no_host", "failing", "crash_loop", "breaching")
"""States, the later the more urgent."""

app = typer.Typer(add_completion=False)
main = main_of(app)

Body = dict[str, Any]


@app.command("top")
def top(
    *,
    every: Annotated[str, typer.Option(metavar="DURATION", help="Seconds between two updates.")] = "2s",
    once: Annotated[bool, typer.Option("--once", help="Print once and exit.")] = False,
) -> None:
    """Show every pool: its workers, what waits, for how long, and what decides. Ctrl-C ends it."""
    every_s = seconds(every, option="--every")
    if every_s < TOP_EVERY_MIN_S:
        raise Invalid(f"--every={every} must be {TOP_EVERY_MIN_S:g} s or more")
    console = output()
    with connected(timeout_s=TOP_ANSWERS_WITHIN_S) as api:
        shown: RenderableType = picture(api)
        if once or not console.is_terminal:
            console.print(shown)
            return
        try:
            with Live(shown, console=console, screen=True, auto_refresh=False) as live:
                while not threading.Event().wait(every_s):
                    shown, problem = refreshed(api, shown)
                    live.update(shown if problem is None else Group(problem, shown), refresh=True)
        except KeyboardInterrupt:
            raise typer.Exit(ENDED_BY_CTRL_C) from None


def refreshed(api: Api, before: RenderableType) -> tuple[RenderableType, Text | None]:
    """The picture now; while nobody answers, the last one, and a line that says why and since when it is no newer."""
    try:
        return picture(api), None
    except Unavailable as error:
        return before, Text(f"as it was: {error}", style="yellow")


def picture(api: Api) -> RenderableType:
    """Every pool as the API shows it, and what is wrong."""
    answer = api.get("/v1/pools")
    at = time.strftime("%H:%M:%S", time.localtime(answer["at_s"]))
    pools = sorted(answer["pools"], key=lambda pool: (*(-part for part in urgency(pool)), pool["pool"]))
    running = sum(pool["running_workers"] for pool in pools)
    known = [pool["metrics"]["waiting_jobs"] for pool in pools if pool["metrics"]["waiting_jobs"] is not None]
    waiting = f"{counted(sum(known), 'job')} waiting" if known or not pools else f"jobs waiting {UNKNOWN}"
    return Group(
        Text(f"{at}: {counted(len(pools), 'pool')}, {counted(running, 'worker')}, {waiting}"),
        table(COLUMNS, map(row_of, pools), empty="no profiles: write one and run `headway apply profiles.yaml`"),
        *(Text(sentence, style="red") for sentence in wrong(answer)),
    )


COLUMNS = (
    "pool",
    "state",
    "workers",
    WANTED,
    "waiting",
    LONGEST_WAIT,
    "objective",
    "p50",
    WITHIN,
    "failed",
    IN_FLIGHT,
    "arriving",
    "as of",
    "because",
)


def row_of(pool: Body) -> tuple[str, ...]:
    """What is shown of a pool."""
    metrics, objective = pool["metrics"], pool["objective"]
    return (
        pool["pool"],
        STATES.get(pool["state"], pool["state"]),
        running_of(pool),
        count(pool["target_workers"]),
        count(metrics["waiting_jobs"]),
        duration(metrics["oldest_age_s"]),
        objective_text(objective),
        duration(metrics["pickup_p50_s"]),
        within(metrics, objective),
        failed(pool["failures"]),
        count(metrics["in_flight_jobs"]),
        rate(metrics["arrival_rate_per_s"]),
        as_of(pool),
        "-" if pool["binding"] is None else named(pool["binding"]),
    )


def urgency(pool: Body) -> tuple[int, float]:
    """How much attention a pool needs: by its state, then by how much of its objective the oldest job has used up."""
    return URGENT.index(pool["state"]) if pool["state"] in URGENT else -1, (
        (pool["metrics"]["oldest_age_s"] or 0.0) / pool["objective"]["target_s"]
    )


def as_of(pool: Body) -> str:
    """How old the oldest of what is shown is, and what that is where it is old."""
    ages = {
        "read": pool["sample_age_s"],
        "measured": pool["measured_age_s"],
        "reported": pool["reported_age_s"],
    }
    oldest = max(ages, key=lambda name: math.inf if ages[name] is None else ages[name])
    return f"{oldest}: {UNKNOWN}" if ages[oldest] is None else f"{duration(ages[oldest])} ago"


def wrong(answer: Body) -> list[str]:
    """What is wrong with the installation and with each pool, a line each."""
    return [
        *answer["health"]["reasons"],
        *(f"{pool['pool']}: {cause}" for pool in answer["pools"] for cause in pool["causes"]),
    ]


def running_of(pool: Body) -> str:
    """The workers that agents report as running, and those that are on their way or out of sight."""
    text = str(pool["running_workers"])
    for name, what in (
        ("starting_workers", "starting"),
        ("failing_workers", "ending too early"),
        ("unknown_workers", "on unreachable hosts"),
    ):
        if pool[name]:
            text += f" +{pool[name]} {what}"
    return text
