"""`headway host cordon`, `uncordon`, `drain` and `forget`: what an operator sets of a host."""

import os
from typing import Annotated, Any
from urllib.parse import quote

import typer

from headway.cli.api_client import api_of
from headway.cli.terminal.printing import say
from headway.settings import ClientSettings

Host = Annotated[str, typer.Argument(metavar="HOST", help="The host's name.")]
Reason = Annotated[str, typer.Option(help="Why; it is shown with the host, and the audit log keeps it.")]


def cordon(host: Host, *, reason: Reason) -> None:
    """Give a host nothing new; what runs there stays."""
    answer = _post(host, "cordon", reason=reason)
    say(f"{host} at {answer['at']}: cordoned; it keeps {_workers(answer)}")


def drain(host: Host, *, reason: Reason) -> None:
    """Empty a host: what replaces its workers runs elsewhere before they leave, each with its own drain."""
    answer = _post(host, "drain", reason=reason)
    say(f"{host} at {answer['at']}: draining, {_workers(answer)} to go; `headway get hosts` shows how far")


def uncordon(host: Host) -> None:
    """End a cordon or a drain."""
    answer = _post(host, "uncordon")
    say(f"{host} at {answer['at']}: {answer['state']}")


def forget(host: Host, *, reason: Reason) -> None:
    """Wait no longer for what a silent host may run. It must be gone for good: one that comes back enrols anew."""
    answer = _post(host, "forget", reason=reason)
    say(f"{host} at {answer['at']}: forgotten; what it ran is replaced")


def add_to(app: typer.Typer) -> None:
    """Make these commands of ``app``."""
    for command in (cordon, drain, uncordon, forget):
        app.command(command.__name__)(command)


def _post(host: str, what: str, *, reason: str | None = None) -> dict[str, Any]:
    """The answer, and under ``at`` which installation gave it."""
    settings = ClientSettings.from_env(os.environ)
    body = {} if reason is None else {"json": {"reason": reason}}
    with api_of(settings) as api:
        answer = api.send("POST", f"/v1/hosts/{quote(host, safe='')}/{what}", **body)
        return {**(answer.json() if answer.content else {}), "at": api.url}


def _workers(answer: dict[str, Any]) -> str:
    count = len(answer["workers"])
    return "1 worker" if count == 1 else f"{count} workers"
