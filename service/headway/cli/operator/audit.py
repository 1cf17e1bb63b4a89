"""`headway audit`: who did what, newest first; as a table, or a line of JSON each."""

from collections.abc import Iterator
from typing import Annotated, Any

import typer

from headway.cli.api_client import Api, connected
from headway.cli.operator.report_tables import AUDIT
from headway.cli.terminal.printing import say_json
from headway.cli.terminal.screen import output
from headway.cli.terminal.units import moment_s
from headway.cli.typer_app import main_of

PAGE_ACTS = 1_000

app = typer.Typer(add_completion=False, help="Show or export the audit log.")
main = main_of(app)

When = Annotated[str | None, typer.Option(metavar="TIME", help="A time, as 2026-01-31T12:00Z, or how long ago, as 7d.")]


@app.command("audit")
def audit(
    *,
    since: When = None,
    until: When = None,
    actor: Annotated[
        str | None, typer.Option(help="Only who acted so; * stands for anything, as in 'token *'.")
    ] = None,
    action: Annotated[str | None, typer.Option(help="Only this, as in 'sign-in failed' or 'profile *'.")] = None,
    subject: Annotated[str | None, typer.Option(help="Only what was done to this, as in 'host web-1'.")] = None,
    address: Annotated[str | None, typer.Option(help="Only what was done from here, as in '10.0.*'.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="So many of the newest.")] = 50,
    is_whole: Annotated[bool, typer.Option("--all", help="All of them; --limit counts for nothing then.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="A line of JSON each, to be kept or searched.")] = False,
) -> None:
    """Show who did what, newest first: changes, tokens, hosts let in, refused calls and failed sign-ins."""
    query = {
        "from_s": moment_s(since, option="--since"),
        "until_s": moment_s(until, option="--until"),
        "actor": actor,
        "action": action,
        "subject": subject,
        "address": address,
    }
    with connected() as api:
        acts = _acts(api, query, limit=None if is_whole else limit)
        if as_json:
            for act in acts:
                say_json(act, indent=None)
            return
        output().print(AUDIT({"acts": acts}))


def _acts(api: Api, query: dict[str, Any], *, limit: int | None) -> Iterator[dict[str, Any]]:
    """The lines, a page read when the one before is done."""
    before, left = None, limit
    while left is None or left > 0:
        page = api.get("/v1/audit", **query, before=before, limit=PAGE_ACTS if left is None else min(left, PAGE_ACTS))
        yield from page["acts"]
        left = None if left is None else left - len(page["acts"])
        before = page["next"]
        if before is None:
            return
