"""`headway restart`: replaces a pool's workers, one by one."""

import time
from typing import Annotated, Any

import typer

from headway.cli.api_client import Api, connected, path_of
from headway.cli.operator.completion import names
from headway.cli.terminal.printing import say
from headway.cli.typer_app import main_of

RESTART_POLL_S = 2.0  # agents report changes at once, and the dashboard shows the same

app = typer.Typer(add_completion=False, help="Replace a pool's workers.")
main = main_of(app)


@app.command()
def restart(
    pool: Annotated[str, typer.Argument(metavar="POOL", help="The pool.", autocompletion=names.pools)],
    *,
    reason: Annotated[str, typer.Option(help="Why; the audit log keeps it.")],
    wait: Annotated[bool, typer.Option("--wait", help="Print the progress, and wait for the end.")] = False,
) -> None:
    """Replace every worker, one by one on a host and host by host; an old one leaves when its replacement runs."""
    path = path_of("pools", pool, "restart")
    with connected() as api:
        progress = api.body(api.send("POST", path, json={"reason": reason}))
        say(f"at {api.url}")
        say(line := _progress_text(progress))
        while wait and _left(progress):
            time.sleep(RESTART_POLL_S)
            progress = api.get(path)
            if (now := _progress_text(progress, awaited=_awaited(api, pool))) != line:
                say(line := now)


def _awaited(api: Api, pool: str) -> str:
    """The id of the draining worker that the restart waits for, and its host; empty where none drains."""
    draining = [row for row in api.get("/v1/workers", pool=pool, state="draining")["workers"] if row["is_reachable"]]
    first = min(draining, key=lambda row: row["state_since_s"] or 0.0, default=None)
    return "" if first is None else f"{first['worker_id']} on {first['host']}"


def _left(answer: dict[str, Any]) -> int:
    """Workers yet to be replaced on hosts that are there."""
    return int(answer["outdated_workers"] + answer["awaited_workers"])


def _progress_text(answer: dict[str, Any], *, awaited: str = "") -> str:
    left, silent = _left(answer), answer["silent_workers"]
    how_far = f"{left} to go" if left else "through"
    if left and awaited:
        how_far += f", waiting for worker {awaited}"
    if silent:
        how_far += f", except {silent} on unreachable hosts: replaced when they return"
    return f"{answer['pool']}: restart {answer['restart_generation']}: {answer['renewed_workers']} renewed, {how_far}"
