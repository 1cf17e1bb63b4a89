"""`headway top`: every pool at this moment, drawn anew while you watch, those that need attention first."""

import threading
import time
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from rich.console import Group, RenderableType
from rich.live import Live

from headway.cli.api_client import Api, connected
from headway.cli.operator.pools_table import POOLS
from headway.cli.terminal.cells import UNKNOWN, is_wait_known
from headway.cli.terminal.screen import Text, output
from headway.cli.terminal.units import seconds
from headway.cli.typer_app import main_of
from headway.errors import Invalid, Unavailable
from headway.scaling.explanations.phrases import counted

TOP_EVERY_MIN_S = 0.5  # a control plane has others to answer
TOP_ANSWERS_WITHIN_S = 10.0  # a viewer must not take the past for the present; a hung Postgres is named after 8 s
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
        with Live(shown, console=console, screen=True, auto_refresh=False) as live:
            while not threading.Event().wait(every_s):
                shown, problem = refreshed(api, shown)
                live.update(shown if problem is None else Group(problem, shown), refresh=True)


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
    pools = answer["pools"]
    running = total([pool["running_workers"] for pool in pools], "worker")
    return Group(
        Text(f"{at}: {counted(len(pools), 'pool')}, {running}, {waiting_jobs(pools)}"),
        POOLS(answer),
        *(Text(sentence, style="red") for sentence in wrong(answer)),
    )


def waiting_jobs(pools: Sequence[Body]) -> str:
    """How many jobs wait, those included that workers have reserved and not begun."""
    known = [pool["metrics"]["waiting_jobs"] for pool in pools]
    reserved = [pool["metrics"]["reserved_jobs"] or 0 for pool in pools]
    jobs = [None if number is None else number + more for number, more in zip(known, reserved, strict=True)]
    text = f"{total(jobs, 'job')} waiting"
    return text if all(map(is_wait_known, pools)) else f"{text} to be taken, reserved jobs {UNKNOWN}"


def total(numbers: Sequence[int | None], noun: str) -> str:
    """How many there are in all pools together; where the number of a pool is unknown, so many or more."""
    known = [number for number in numbers if number is not None]
    if numbers and not known:
        return f"{noun}s {UNKNOWN}"
    return f"{counted(sum(known), noun)}{' or more' if len(known) < len(numbers) else ''}"


def wrong(answer: Body) -> list[str]:
    """What is wrong with the installation and with each pool, a line each."""
    return [
        *answer["health"]["reasons"],
        *(f"{pool['pool']}: {cause}" for pool in answer["pools"] for cause in pool["causes"]),
    ]
