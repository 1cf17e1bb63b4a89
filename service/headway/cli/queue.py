"""`headway queue`: what is done about one queue; and how all of them are read, a page at a time."""

import os
from typing import Annotated, Any
from urllib.parse import quote

import typer

from headway.cli.api import Api, api_of
from headway.cli.typed import run
from headway.settings import ClientSettings

PAGE_QUEUES = 2000
PAGES_MAX = 1_000

app = typer.Typer(add_completion=False, no_args_is_help=True, help="What is done about one queue.")


@app.callback()
def _group() -> None:
    """What is done about one queue."""


def main(words: list[str]) -> int:
    """Run `headway queue`. Returns the exit status."""
    return run(app, words)


@app.command("forget")
def forget(queue: Annotated[str, typer.Argument(metavar="QUEUE", help="Its name, as connection/queue.")]) -> None:
    """Forget a queue that is gone, its history too, and make room for another. One that sends again is known anew."""
    with api_of(ClientSettings.from_env(os.environ)) as api:
        api.send("DELETE", f"/v1/queues/{quote(queue, safe='')}")
        print(f"{queue} at {api.url}: forgotten")


def queues_of(api: Api, *, pool: str | None = None, queue: str | None = None) -> dict[str, Any]:
    """Every queue, or those of ``pool``, or the one ``queue``: all pages as one answer."""
    answer = api.get("/v1/queues", pool=pool, queue=queue, limit=PAGE_QUEUES)
    rows, page = list(answer["queues"]), answer
    for _ in range(PAGES_MAX):
        if page.get("next") is None:
            break
        page = api.get("/v1/queues", pool=pool, queue=queue, limit=PAGE_QUEUES, after=page["next"])
        rows += page["queues"]
    return {**answer, "queues": rows, "next": None}
