"""`headway delete`: takes a pool's profile out of the control plane."""

from typing import Annotated
from urllib.parse import quote

import typer

from headway.cli.api_client import connected
from headway.cli.terminal.printing import say
from headway.cli.typer_app import main_of

app = typer.Typer(add_completion=False, help="Delete profiles.")
main = main_of(app)


@app.command()
def delete(
    pools: Annotated[list[str], typer.Argument(metavar="POOL…", help="The pools whose profiles go.")],
) -> None:
    """Delete the profiles of pools. Their workers finish what they do and leave; their queues are seen on.

    `headway apply` with the file that names a pool brings it back.
    """
    with connected() as api:
        # All are looked up before one is deleted: a name that is mistyped leaves the others alone.
        found = {pool: api.send("GET", _path(pool)).headers["ETag"] for pool in pools}
        for pool, etag in found.items():
            api.send("DELETE", _path(pool), headers={"If-Match": etag})
            say(f"deleted {pool} at {api.url}")


def _path(pool: str) -> str:
    return f"/v1/profiles/{quote(pool, safe='')}"
