"""`headway kill`: ends a worker that does not end by itself, with its jobs."""

from typing import Annotated

import typer

from headway.cli.api_client import path_of, sent
from headway.cli.operator.completion import names
from headway.cli.terminal.printing import say
from headway.cli.typer_app import main_of

app = typer.Typer(add_completion=False, help="Kill a worker, with its jobs.")
main = main_of(app)


@app.command()
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
