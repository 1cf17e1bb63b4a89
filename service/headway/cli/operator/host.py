"""`headway host`: what is done about one host."""

import os
from typing import Annotated
from urllib.parse import quote

import typer

from headway.cli.api_client import api_of
from headway.cli.operator import host_states
from headway.cli.terminal.printing import say
from headway.cli.typer_app import run
from headway.settings import ClientSettings

app = typer.Typer(add_completion=False, no_args_is_help=True, help="Manage one host.")

host_states.add_to(app)

Host = Annotated[str, typer.Argument(metavar="HOST", help="The host's name.")]


def main(words: list[str]) -> int:
    """Run `headway host`. Returns the exit status."""
    return run(app, words)


@app.command("rotate")
def rotate(host: Host) -> None:
    """Have a host's credential replaced with its next report. The old one serves until the new one is used."""
    at = _post(host, "rotate")
    say(f"{host} at {at}: its credential is replaced with its next report")


@app.command("revoke")
def revoke(host: Host) -> None:
    """Cut a host off within a second. Its workers run on; nobody is let in again as this host without you."""
    at = _post(host, "revoke")
    say(f"{host} at {at}: blocked; its workers keep running")
    say(f"to let it in again: headway token create --join --host {host}")


def _post(host: str, what: str) -> str:
    """Which installation has done it."""
    settings = ClientSettings.from_env(os.environ)
    with api_of(settings) as api:
        api.send("POST", f"/v1/hosts/{quote(host, safe='')}/{what}")
        return api.url
