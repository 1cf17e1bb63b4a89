"""`headway token`: who may call the control plane, and as what."""

import time
from enum import StrEnum
from typing import Annotated

import typer

from headway.cli.api_client import path_of, sent
from headway.cli.terminal.cells import Listing, Row, ago
from headway.cli.terminal.cells import duration as length
from headway.cli.terminal.printing import say
from headway.cli.terminal.screen import output
from headway.cli.terminal.units import seconds
from headway.cli.typer_app import main_of
from headway.errors import Refused

app = typer.Typer(add_completion=False, no_args_is_help=True, help="Make, list and revoke tokens.")
main = main_of(app)


class Role(StrEnum):
    """What a token is for."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    ADMIN = "admin"
    INGEST = "ingest"
    AUDITOR = "auditor"


@app.command("create")
def create(
    *,
    role: Annotated[Role | None, typer.Option(help="What its holder may do.")] = None,
    join: Annotated[bool, typer.Option("--join", help="A token that lets a host in, and nothing else.")] = False,
    name: Annotated[str | None, typer.Option(help="Whom the audit log names.")] = None,
    duration: Annotated[
        str | None, typer.Option("--for", help="How long it is valid, as in 30m or 90d; a join token 1h unless said.")
    ] = None,
    uses: Annotated[int | None, typer.Option(min=1, help="How many hosts a join token lets in; 1 unless said.")] = None,
    host: Annotated[str | None, typer.Option(help="The only host that a join token lets in.")] = None,
    label: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE", help="A label that its hosts may have, as zone=a or rack=*; any unless said."
        ),
    ] = None,
    template: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A template that its hosts may have, as rq or mail-*; any unless said."),
    ] = None,
) -> None:
    """Make a token and print its secret, which is shown this once."""
    if (role is None) == (not join):
        raise Refused("say what it is for: --role viewer, operator, admin, ingest or auditor; or --join")
    if not join and name is None:
        raise Refused("say who holds it, for the audit log: --name ci")
    given = {
        "role": "join" if role is None else role.value,
        "name": name,
        "for_s": None if duration is None else seconds(duration, option="--for", above_s=0),
        "uses": uses,
        "host": host,
        "labels": label or None,
        "templates": template or None,
    }
    made = sent("POST", "/v1/tokens", json={key: value for key, value in given.items() if value is not None})
    say(f"made {made['name']} at {made['at']}; its secret, shown only once:", is_error=True)
    say(made["secret"])


@app.command("list")
def list_all() -> None:
    """List the tokens that are valid or expired lately, and warn of those that end. Their secrets are kept nowhere."""
    answer = sent("GET", "/v1/tokens")
    output().print(TOKENS(answer))
    ending = [row["name"] for row in answer["tokens"] if row["role"] != "join" and row["state"] != "valid"]
    if ending:
        say(
            f"warning: {', '.join(ending)}: expired, or soon; make another of the role under another name, give it to "
            "its holder, then `headway token revoke` the old one",
            is_error=True,
        )


@app.command("revoke")
def revoke(name: Annotated[str, typer.Argument(metavar="NAME", help="As `headway token list` prints it.")]) -> None:
    """End a token: within a second nobody is let in with it."""
    answer = sent("DELETE", path_of("tokens", name))
    say(f"revoked {name} at {answer['at']}")


def _valid_for(row: Row) -> str:
    """How long a token is valid yet, with a word of warning where that is not long."""
    if row["expires_at_s"] is None:
        return "ever"
    if row["state"] == "expired":
        return f"expired {ago(row['expires_at_s'])}"
    left = length(max(0.0, row["expires_at_s"] - time.time()))
    return f"{left}: expires soon" if row["state"] == "expires_soon" else left


def _lets_in(row: Row) -> str:
    """How many hosts a join token lets in, and what these may say of themselves; empty of other tokens."""
    if row["uses_left"] is None:
        return ""
    bounds = [f"{what} {', '.join(row[what]) or 'none'}" for what in ("templates", "labels") if row[what] is not None]
    return "; ".join([f"{row['uses_left']} × {row['host'] or 'any host'}", *bounds])


TOKENS = Listing(
    rows="tokens",
    columns={
        "token": lambda row: row["name"],
        "role": lambda row: row["role"],
        "made by": lambda row: row["created_by"],
        "valid for": _valid_for,
        "first used": lambda row: ago(row["first_used_at_s"]),
        "lets in": _lets_in,
    },
    empty="no tokens: make one with `headway token create`",
)
"""Tokens that are valid or expired lately, newest first."""
