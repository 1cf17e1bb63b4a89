"""`headway events`: what happened, a line each, and on with `--watch` as it happens."""

import sys
import time
from collections.abc import Iterable
from typing import Annotated

import typer

from headway.cli.api_client import Api, connected
from headway.cli.operator.completion import names
from headway.cli.operator.events.sources import Event, events_of
from headway.cli.terminal.cells import moment
from headway.cli.terminal.printing import TextForm, say, say_json
from headway.cli.terminal.units import moment_s
from headway.cli.typer_app import main_of
from headway.errors import Unavailable

WATCH_EVENTS_EVERY_S = 2.0
OVERLAP_S = 600.0  # an alert may have begun well before it is opened
EVENTS_MAX = 1_000

app = typer.Typer(add_completion=False)
main = main_of(app)


@app.command("events")
def events(
    *,
    pool: Annotated[str | None, typer.Option(help="Only this pool.", autocompletion=names.pools)] = None,
    since: Annotated[str, typer.Option(metavar="TIME", help="A time, or how long ago, as 15m or 7d.")] = "1h",
    limit: Annotated[int, typer.Option(min=1, max=EVENTS_MAX, help="So many of the newest.")] = 100,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Go on as it happens; Ctrl-C ends it.")] = False,
    form: Annotated[TextForm, typer.Option("-o", "--output", help="json: a line of JSON each.")] = TextForm.TEXT,
) -> None:
    """Show what happened, the oldest first: targets that changed and why, alerts, what people changed."""
    from_s = moment_s(since, option="--since") or 0.0
    with connected() as api:
        found = events_of(api, from_s=from_s, pool=pool, limit=EVENTS_MAX if watch else limit)
        _print(found[-limit:], form)
        if watch:
            _follow(api, found, pool=pool, form=form, from_s=from_s)
        elif not found and form is TextForm.TEXT:
            say("nothing happened in that time: --since 7d goes further back", is_error=True)


def _follow(api: Api, printed: Iterable[Event], *, pool: str | None, form: TextForm, from_s: float) -> None:
    """Print each event once, until Ctrl-C. Whether the control plane answers is said when that changes."""
    seen = {each.key: each.at_s for each in printed}
    is_away = False
    while True:
        time.sleep(WATCH_EVENTS_EVERY_S)
        since_s = max(from_s, max(seen.values(), default=from_s) - OVERLAP_S)
        try:
            found = events_of(api, from_s=since_s, pool=pool, limit=EVENTS_MAX)
        except Unavailable as error:
            if not is_away:
                say(f"headway: {error}", is_error=True)
            is_away = True
            continue
        is_away = False
        _print((each for each in found if each.key not in seen), form)
        seen = {each.key: each.at_s for each in found} or seen


def _print(found: Iterable[Event], form: TextForm) -> None:
    for each in found:
        if form is TextForm.JSON:
            body = {"at_s": each.at_s, "kind": each.kind, "about": each.about, "text": each.text}
            say_json({**body, "source": each.source}, indent=None)
        else:
            say(f"{moment(each.at_s)}  {each.kind:<11}  {each.about}  {each.text}")
    sys.stdout.flush()  # whoever reads a pipe waits for it
