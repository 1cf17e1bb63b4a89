"""`headway queue`: what is done about one queue; and how all of them are read, a page at a time."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import typer

from headway.cli.api_client import PAGES_MAX, Api, connected
from headway.cli.operator.completion import names
from headway.cli.terminal.printing import say
from headway.cli.typer_app import main_of
from headway.errors import Refused

PAGE_QUEUES = 2000
QUEUES_FORGOTTEN_AT_ONCE = 100  # as many as the API takes

app = typer.Typer(add_completion=False, no_args_is_help=True, help="Manage one queue.")
main = main_of(app)


@app.callback()
def _group() -> None:
    """Manage one queue."""


@app.command("forget")
def forget(
    queues: Annotated[
        list[str] | None,
        typer.Argument(metavar="QUEUE…", help="Names, as connection/queue.", autocompletion=names.queues),
    ] = None,
    *,
    prefix: Annotated[
        str | None, typer.Option(help="Every queue whose name begins so and that no profile names.", metavar="TEXT")
    ] = None,
) -> None:
    """Forget queues that are gone, their history too, and make room for others. One that sends again is known anew."""
    if bool(queues) == bool(prefix):
        raise Refused("which queues? Name them, or say with --prefix how their names begin")
    with connected() as api:
        for queue in _forgotten(api, list(dict.fromkeys(queues or ())), prefix or None):
            say(f"{queue} at {api.url}: forgotten")


def _forgotten(api: Api, queues: Sequence[str], prefix: str | None) -> Iterator[str]:
    """The queues that are forgotten, as many at once as the API takes."""
    if prefix is None:
        for begin in range(0, len(queues), QUEUES_FORGOTTEN_AT_ONCE):
            which = {"queues": queues[begin : begin + QUEUES_FORGOTTEN_AT_ONCE]}
            yield from api.body(api.send("POST", "/v1/queues/forget", json=which))["queues"]
        return
    for _ in range(PAGES_MAX):
        answer = api.body(api.send("POST", "/v1/queues/forget", json={"prefix": prefix}))
        yield from answer["queues"]
        if answer["is_all"]:
            return


def queues_of(api: Api, *, pool: str | None = None, queue: str | None = None) -> dict[str, Any]:
    """Every queue, or those of ``pool``, or the one ``queue``: all pages as one answer."""
    return api.get_all("/v1/queues", "queues", pool=pool, queue=queue, limit=PAGE_QUEUES)
