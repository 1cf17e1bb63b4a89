"""`headway restart` and `headway kill`: replace the workers of a pool one by one, and end one that hangs."""

import time
from typing import Annotated, Any

import typer

from headway.cli.api_client import Api, connected, path_of, sent
from headway.cli.operator.completion import names
from headway.cli.terminal.printing import say
from headway.cli.typer_app import called

RESTART_POLL_S = 2.0  # agents report changes at once, and the dashboard shows the same

app = typer.Typer(add_completion=False, no_args_is_help=True, help="Replace or kill workers.")


def main(words: list[str]) -> int:
    """Run `restart` or `kill`. Returns the exit status."""
    return called(app, words)


@app.command("restart")
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


@app.command("kill")
def kill(
    worker: Annotated[
        str,
        typer.Argument(
            metavar="WORKER", help="Its id, as `headway get workers` shows it.", autocompletion=names.workers
        ),
    ],
    *,
    reason: Annotated[str | None, typer.Option(help="Why; the audit log keeps it.")] = None,
) -> None:
    """Kill a worker. Its agent does so at once, and the jobs that the worker runs are cut."""
    answer = sent("POST", path_of("workers", worker, "kill"), json={} if reason is None else {"reason": reason})
    say(f"{worker} at {answer['at']}: its agent kills it; `headway events` shows the jobs that this cuts")
