"""`headway scale`, `headway pause` and `headway resume`: what an operator sets for a while, beside the profile."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from headway.cli.api_client import path_of, sent
from headway.cli.operator.completion import names
from headway.cli.operator.pool_names import check_pool_name
from headway.cli.terminal.labels import mode_of, until
from headway.cli.terminal.printing import say
from headway.cli.terminal.units import seconds
from headway.cli.typer_app import called
from headway.errors import Invalid, Refused
from headway.scaling.model import Mode
from headway.scaling.profile_keys.pauses import WORDS

AUTO = "auto"
DIRECTIONS: Mapping[str | None, frozenset[str]] = {
    None: frozenset(),
    "pause": frozenset({"up", "down"}),
    "pause_up": frozenset({"up"}),
    "pause_down": frozenset({"down"}),
}

app = typer.Typer(add_completion=False, no_args_is_help=True, help="Override a pool's workers for a limited time.")

Pool = Annotated[str, typer.Argument(metavar="POOL", help="The pool.", autocompletion=names.pools)]
Up = Annotated[bool, typer.Option("--up", help="Only the way up.")]
Down = Annotated[bool, typer.Option("--down", help="Only the way down.")]


def main(words: list[str]) -> int:
    """Run `scale`, `pause` or `resume`. Returns the exit status."""
    return called(app, words)


# What begins with a dash is a count that somebody has miscounted, and no option: it is refused as such.
@app.command("scale", context_settings={"ignore_unknown_options": True})
def scale(
    pool: Pool,
    workers: Annotated[str, typer.Argument(metavar="N|auto", help="So many workers; `auto` decides again.")],
    *,
    duration: Annotated[str, typer.Option("--for", help="How long, as in 30m or 2h.")] = "1h",
    reason: Annotated[str | None, typer.Option(help="Why; a count needs it, `auto` does not.")] = None,
) -> None:
    """Set a pool's workers for a while. Bounds, budget and capacity still hold."""
    check_pool_name(pool, "scale")
    path = path_of("pools", pool, "override")
    if workers == AUTO:
        _print_answer(sent("DELETE", path))
        return
    if not workers.isdecimal():
        raise Invalid(f"{workers!r} is no number of workers: expected 0 or more, or {AUTO}")
    if reason is None:
        raise Refused('say why, for those who read the decision: --reason "…"')
    body = {"workers": int(workers), "for_s": seconds(duration, option="--for", above_s=0), "reason": reason}
    _print_answer(sent("PUT", path, json=body))


@app.command("pause")
def pause(
    pool: Pool,
    *,
    up: Up = False,
    down: Down = False,
    duration: Annotated[str | None, typer.Option("--for", help="How long, as in 30m; else until `resume`.")] = None,
    reason: Annotated[str | None, typer.Option(help="Why; it is shown with every decision.")] = None,
) -> None:
    """Keep a pool's last target, in both directions or one. `headway apply` does not end it.

    What an earlier pause said of its end and reason stays where this one says nothing.
    """
    said: dict[str, Any] = {} if reason is None else {"reason": reason}
    if duration is not None:
        said["for_s"] = seconds(duration, option="--for", above_s=0)
    check_pool_name(pool, "pause")
    before = sent("GET", path_of("profiles", pool))
    _set(pool, before, DIRECTIONS[before["pause"]] | _asked(up=up, down=down), said)


@app.command("resume")
def resume(pool: Pool, *, up: Up = False, down: Down = False) -> None:
    """End a pause, in both directions or one. A pause that is the profile's own mode is ended by `headway apply`."""
    check_pool_name(pool, "resume")
    before = sent("GET", path_of("profiles", pool))
    _set(pool, before, DIRECTIONS[before["pause"]] - _asked(up=up, down=down), {})


def _asked(*, up: bool, down: bool) -> frozenset[str]:
    named = {name for name, is_named in (("up", up), ("down", down)) if is_named}
    return frozenset(named or {"up", "down"})


def _set(pool: str, before: dict[str, Any], left: frozenset[str], said: dict[str, Any]) -> None:
    """Pause the directions ``left`` and no others."""
    mode = next(mode for mode, directions in DIRECTIONS.items() if directions == left)
    path = path_of("pools", pool, "pause")
    if mode is None:
        _print_answer(sent("DELETE", path))
        return
    kept: dict[str, Any] = {}
    if before.get("pause_reason") is not None:
        kept["reason"] = before.get("pause_reason")
    if before.get("pause_until_s") is not None and "for_s" not in said:
        kept["until_s"] = before.get("pause_until_s")
    _print_answer(sent("PUT", path, json={"mode": mode, **kept, **said}))


def _print_answer(answer: dict[str, Any]) -> None:
    """What holds for the pool now."""
    parts = []
    if answer["pause"]:
        until_s = answer.get("pause_until_s")
        end = f"until `headway resume {answer['pool']}`" if until_s is None else until(until_s)
        why = f": {answer.get('pause_reason')}" if answer.get("pause_reason") else ""
        parts.append(f"{WORDS[Mode(answer['pause'])]} {end}{why}")
    if override := answer["override"]:
        parts.append(f"{override['workers']} workers {until(override['until_s'])}: {override['reason']}")
    if not parts:
        parts = [f"goes by its profile, whose mode is {mode_of(answer)}"]
    say(f"{answer['pool']} at {answer['at']}: {'; '.join(parts)}")
