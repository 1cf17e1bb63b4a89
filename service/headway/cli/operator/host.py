"""`headway host`: what an operator does about one host and sets of it."""

from typing import Annotated, Any

import typer

from headway.cli.api_client import path_of, sent
from headway.cli.operator.completion import names
from headway.cli.terminal.labels import until
from headway.cli.terminal.printing import say
from headway.cli.terminal.units import seconds
from headway.cli.typer_app import main_of

app = typer.Typer(add_completion=False, no_args_is_help=True, help="Manage one host.")
main = main_of(app)

Host = Annotated[str, typer.Argument(metavar="HOST", help="The host's name.", autocompletion=names.hosts)]
For = Annotated[str | None, typer.Option("--for", help="How long, as in 30m or 2h; else until `uncordon`.")]
Reason = Annotated[str, typer.Option(help="Why; it is shown with the host, and the audit log keeps it.")]


@app.command("cordon")
def cordon(host: Host, *, reason: Reason, duration: For = None) -> None:
    """Give a host nothing new; what runs there stays."""
    answer = _post(host, "cordon", reason=reason, duration=duration)
    say(f"{host} at {answer['at']}: cordoned{_end(answer)}; it keeps {_workers(answer)}")


@app.command("drain")
def drain(host: Host, *, reason: Reason, duration: For = None) -> None:
    """Empty a host: what replaces its workers runs elsewhere before they leave, each with its own drain."""
    answer = _post(host, "drain", reason=reason, duration=duration)
    say(
        f"{host} at {answer['at']}: draining{_end(answer)}, {_workers(answer)} to go; `headway get hosts` shows how far"
    )


@app.command("uncordon")
def uncordon(host: Host) -> None:
    """End a cordon or a drain."""
    answer = _post(host, "uncordon")
    say(f"{host} at {answer['at']}: {answer['state']}")


@app.command("forget")
def forget(host: Host, *, reason: Reason) -> None:
    """Wait no longer for what a silent host may run. It must be gone for good: one that comes back enrols anew."""
    answer = _post(host, "forget", reason=reason)
    say(f"{host} at {answer['at']}: forgotten; what it ran is replaced")


@app.command("rotate")
def rotate(host: Host) -> None:
    """Have a host's credential replaced with its next report. The old one serves until the new one is used."""
    answer = _post(host, "rotate")
    say(f"{host} at {answer['at']}: its credential is replaced with its next report")


@app.command("revoke")
def revoke(host: Host) -> None:
    """Cut a host off within a second. Its workers run on; nobody is let in again as this host without you."""
    answer = _post(host, "revoke")
    say(f"{host} at {answer['at']}: blocked; its workers keep running")
    say(f"to let it in again: headway token create --join --host {host}")


def _post(host: str, what: str, *, reason: str | None = None, duration: str | None = None) -> dict[str, Any]:
    said: dict[str, Any] = {} if reason is None else {"reason": reason}
    if duration is not None:
        said["for_s"] = seconds(duration, option="--for", above_s=0)
    return sent("POST", path_of("hosts", host, what), **({"json": said} if said else {}))


def _end(answer: dict[str, Any]) -> str:
    until_s = answer.get("cordoned_until_s")
    return "" if until_s is None else f" {until(until_s)}"


def _workers(answer: dict[str, Any]) -> str:
    count = len(answer["workers"])
    return "1 worker" if count == 1 else f"{count} workers"
