"""`headway scale`, `headway pause` and `headway resume`: what an operator sets for a while, beside the profile."""

import os
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any
from urllib.parse import quote

import typer

from headway.cli.amounts import seconds
from headway.cli.api import api_of
from headway.cli.typed import called
from headway.errors import Invalid, Refused
from headway.settings import ClientSettings

AUTO = "auto"
DIRECTIONS: Mapping[str | None, frozenset[str]] = {
    None: frozenset(),
    "pause": frozenset({"up", "down"}),
    "pause_up": frozenset({"up"}),
    "pause_down": frozenset({"down"}),
}
TOLD: Mapping[str, str] = {"pause": "paused", "pause_up": "paused upwards", "pause_down": "paused downwards"}

app = typer.Typer(add_completion=False, no_args_is_help=True, help="Set a pool by hand for a while.")

Pool = Annotated[str, typer.Argument(metavar="POOL", help="The pool.")]
Up = Annotated[bool, typer.Option("--up", help="Only the way up.")]
Down = Annotated[bool, typer.Option("--down", help="Only the way down.")]


def main(words: list[str]) -> int:
    """Run `scale`, `pause` or `resume`. Returns the exit status."""
    return called(app, words)


@app.command("scale")
def scale(
    pool: Pool,
    workers: Annotated[str, typer.Argument(metavar="N|auto", help="So many workers; `auto` decides again.")],
    *,
    duration: Annotated[str, typer.Option("--for", help="How long, as in 30m or 2h.")] = "1h",
    reason: Annotated[str | None, typer.Option(help="Why; a count needs it, `auto` does not.")] = None,
) -> None:
    """Set a pool's workers for a while. Bounds, budget and capacity still hold."""
    path = f"/v1/pools/{quote(pool, safe='')}/override"
    if workers == AUTO:
        _tell(_sent("DELETE", path))
        return
    if not workers.isdecimal():
        raise Invalid(f"{workers!r}: expected a number of workers, or {AUTO}")
    if reason is None:
        raise Refused('say why, for those who read the decision: --reason "…"')
    body = {"workers": int(workers), "for_s": seconds(duration, option="--for", above_s=0), "reason": reason}
    _tell(_sent("PUT", path, json=body))


@app.command("pause")
def pause(pool: Pool, *, up: Up = False, down: Down = False) -> None:
    """Keep a pool's last target, in both directions or one. `headway apply` does not end it."""
    _turn(pool, _asked(up=up, down=down), is_pausing=True)


@app.command("resume")
def resume(pool: Pool, *, up: Up = False, down: Down = False) -> None:
    """End a pause, in both directions or one. A pause that is the profile's own mode is ended by `headway apply`."""
    _turn(pool, _asked(up=up, down=down), is_pausing=False)


def _asked(*, up: bool, down: bool) -> frozenset[str]:
    named = {name for name, is_named in (("up", up), ("down", down)) if is_named}
    return frozenset(named or {"up", "down"})


def _turn(pool: str, asked: frozenset[str], *, is_pausing: bool) -> None:
    """Add the directions ``asked`` to those that are paused, or take them away."""
    name = quote(pool, safe="")
    paused = DIRECTIONS[_sent("GET", f"/v1/profiles/{name}")["pause"]]
    left = paused | asked if is_pausing else paused - asked
    mode = next(mode for mode, directions in DIRECTIONS.items() if directions == left)
    path = f"/v1/pools/{name}/pause"
    _tell(_sent("DELETE", path) if mode is None else _sent("PUT", path, json={"mode": mode}))


def _sent(method: str, path: str, **options: Any) -> dict[str, Any]:
    settings = ClientSettings.from_env(os.environ)
    with api_of(settings) as api:
        answer: dict[str, Any] = api.send(method, path, **options).json()
    return answer


def _tell(answer: dict[str, Any]) -> None:
    """What holds for the pool now."""
    told = [TOLD[answer["pause"]]] if answer["pause"] else []
    if answer["override"]:
        until = datetime.fromtimestamp(answer["override"]["until_s"]).astimezone()
        told.append(
            f"{answer['override']['workers']} workers until {until:%Y-%m-%d %H:%M %Z}: {answer['override']['reason']}"
        )
    if not told:
        mode = answer["profile"]["mode"]
        told = [f"goes by its profile, whose mode is {mode.replace('_', ' ')}"]
    print(f"{answer['pool']}: {'; '.join(told)}")
