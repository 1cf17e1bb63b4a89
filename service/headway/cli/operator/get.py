"""`headway get`: what is so, as tables or for programs, once or again and again."""

import csv
import sys
import time
from collections.abc import Callable, Mapping
from enum import StrEnum
from functools import partial
from typing import Annotated, Any

import typer
from rich.console import RenderableType
from rich.live import Live
from rich.table import Table

from headway.cli.api_client import Api, connected, path_of
from headway.cli.operator.completion import names
from headway.cli.operator.pools_table import POOLS
from headway.cli.operator.queue import queues_of
from headway.cli.operator.report_tables import ALERTS, AUDIT, slo_table
from headway.cli.operator.tables import DECISIONS, GROUPS, HOSTS, PROFILES, QUEUES, WORKERS, health, wanted
from headway.cli.terminal.cells import Listing, Row
from headway.cli.terminal.live_behaviour import behaviour
from headway.cli.terminal.printing import say_json, say_text
from headway.cli.terminal.screen import Text, output
from headway.cli.typer_app import main_of
from headway.errors import NotFound, Refused, csv_cell

WATCH_EVERY_S = 2.0
PAGE_WORKERS = 2_000  # as many as the API gives at once
PAGE_ALERTS = 1_000

app = typer.Typer(add_completion=False)


class What(StrEnum):
    """What can be listed."""

    PROFILES = "profiles"
    GROUPS = "groups"
    POOLS = "pools"
    QUEUES = "queues"
    HOSTS = "hosts"
    WORKERS = "workers"
    WANTED = "wanted"
    DECISIONS = "decisions"
    ALERTS = "alerts"
    SLO = "slo"
    AUDIT = "audit"
    BEHAVIOUR = "behaviour"
    HEALTH = "health"


class Form(StrEnum):
    """How it is printed."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"
    CSV = "csv"


@app.command()
def get(
    what: Annotated[What, typer.Argument(help="What to list.")],
    *,
    pool: Annotated[str | None, typer.Option(help="Only this pool.", autocompletion=names.pools)] = None,
    limit: Annotated[
        int, typer.Option(min=1, max=500, help="So many decisions, lines of the audit log, or alerts of --all.")
    ] = 20,
    is_whole: Annotated[bool, typer.Option("--all", help="Alerts that have ended, too; the newest first.")] = False,
    form: Annotated[
        Form,
        typer.Option(
            "-o", "--output", help="wide: more columns; json and yaml: the API's answer; csv: the table's cells."
        ),
    ] = Form.TABLE,
    as_json: Annotated[bool, typer.Option("--json", help="The same as -o json.")] = False,
    watch: Annotated[bool, typer.Option("--watch", help="Refresh every two seconds.")] = False,
) -> None:
    """List what there is, or show how a pool behaves or how the installation is."""
    form = Form.JSON if as_json else form
    if is_whole and what is not What.ALERTS:
        raise Refused("only alerts end and are kept: leave --all out")
    with connected() as api:
        asked = partial(_asked, api, what, pool=pool, limit=limit if is_whole or what is not What.ALERTS else None)
        if not watch:
            _print(what, form, asked())
            return
        if form not in {Form.TABLE, Form.WIDE}:
            raise Refused("--watch shows tables: leave -o out, or call again")
        _watch(lambda: _listing(what, form, asked()))


LISTINGS: Mapping[What, Listing | Callable[[Row], Table | str]] = {
    What.PROFILES: PROFILES,
    What.GROUPS: GROUPS,
    What.POOLS: POOLS,
    What.QUEUES: QUEUES,
    What.HOSTS: HOSTS,
    What.WORKERS: WORKERS,
    What.WANTED: wanted,
    What.DECISIONS: DECISIONS,
    What.ALERTS: ALERTS,
    What.SLO: slo_table,
    What.AUDIT: AUDIT,
    What.BEHAVIOUR: behaviour,
    What.HEALTH: health,
}

# What is answered as it is, with nothing to choose by.
WHOLE = {
    What.PROFILES: "/v1/profiles",
    What.GROUPS: "/v1/groups",
    What.HOSTS: "/v1/hosts",
    What.WANTED: "/v1/hosts/wanted",
    What.HEALTH: "/v1/health",
}


def _print(what: What, form: Form, answer: dict[str, Any]) -> None:
    match form:
        case Form.JSON:
            say_json(answer)
        case Form.YAML:
            import yaml

            say_text(yaml.safe_dump(answer, sort_keys=False))
        case Form.CSV:
            _print_csv(_listing(what, form, answer))
        case _:
            output().print(_listing(what, form, answer))


def _listing(what: What, form: Form, answer: Row) -> Table | str:
    listing = LISTINGS[what]
    # Of the others, the usual table shows all that there is.
    return listing(answer, is_wide=form is Form.WIDE) if isinstance(listing, Listing) else listing(answer)


def _print_csv(listing: Table | str) -> None:
    """The cells of a table under the names of its columns; nothing where it is empty."""
    if isinstance(listing, str):
        return
    columns = [[_plain(column.header), *map(_plain, column.cells)] for column in listing.columns]
    csv.writer(sys.stdout, lineterminator="\n").writerows(zip(*columns, strict=True))


def _plain(cell: RenderableType) -> str:
    return csv_cell(cell.plain if isinstance(cell, Text) else str(cell))


def _watch(listing: Callable[[], Table | str]) -> None:
    console = output()
    with Live(listing(), console=console, screen=console.is_terminal, auto_refresh=False) as live:
        while True:
            time.sleep(WATCH_EVERY_S)
            live.update(listing(), refresh=True)


def _asked(api: Api, what: What, *, pool: str | None, limit: int | None) -> dict[str, Any]:
    _check(what, pool)
    match what:
        case What.QUEUES:
            return _of_pool(api, queues_of(api, pool=pool), "queues", pool)
        case What.DECISIONS:
            return _of_pool(api, api.get("/v1/decisions", pool=pool, limit=limit), "decisions", pool)
        case What.ALERTS:
            return _of_pool(api, _alerts(api, pool, limit), "alerts", pool)
        case What.WORKERS:
            found = api.get_all("/v1/workers", "workers", pool=pool, limit=PAGE_WORKERS)
            return _of_pool(api, found, "workers", pool)
        case What.SLO:
            return api.get("/v1/slo", pool=pool)
        case What.AUDIT:
            return api.get("/v1/audit", limit=limit)
        case What.BEHAVIOUR:
            return api.get(path_of("pools", str(pool), "behaviour"))
        case What.PROFILES | What.GROUPS if pool is not None:
            return _concerning(api, what, pool)
        case What.POOLS:
            return _only(api.get("/v1/pools"), pool)
        case _:
            return api.get(WHOLE[what])


def _concerning(api: Api, what: What, pool: str) -> dict[str, Any]:
    """The profile of a pool, or the groups that it is in."""
    if what is What.PROFILES:
        return {"profiles": [api.get(path_of("profiles", pool))]}
    rows = api.get("/v1/groups")["groups"]
    return _of_pool(api, {"groups": [row for row in rows if pool in row["group"]["pools"]]}, "groups", pool)


def _check(what: What, pool: str | None) -> None:
    """Refuse a pool where there is none to name, and its lack where one must be."""
    if what is What.BEHAVIOUR and pool is None:
        raise Refused("name the pool: --pool NAME")
    if what in {What.HOSTS, What.WANTED} and pool is not None:
        raise Refused("hosts belong to no pool: leave --pool out")
    if what is What.AUDIT and pool is not None:
        raise Refused(f"the audit log is of all: leave --pool out, or ask `headway audit --subject 'profile {pool}'`")
    if what is What.HEALTH and pool is not None:
        raise Refused("health belongs to no pool: leave --pool out")


def _alerts(api: Api, pool: str | None, limit: int | None) -> dict[str, Any]:
    """The newest ``limit`` alerts; without a limit every one that goes on, all pages as one answer."""
    if limit is not None:
        return api.get("/v1/alerts", state="all", pool=pool, limit=limit)
    return api.get_all("/v1/alerts", "alerts", by="before", pool=pool, limit=PAGE_ALERTS)


def _only(answer: dict[str, Any], pool: str | None) -> dict[str, Any]:
    """The answer with the one pool that is named, if one is."""
    if pool is None:
        return answer
    rows = [row for row in answer["pools"] if row["pool"] == pool]
    if not rows:
        raise NotFound(f"no pool {pool!r}: `headway get pools` lists them")
    return {**answer, "pools": rows}


def _of_pool(api: Api, answer: dict[str, Any], rows: str, pool: str | None) -> dict[str, Any]:
    """``answer``; where nothing is known of ``pool``, refused in the API's words if there is no such pool."""
    if pool is not None and not answer[rows]:
        api.get(path_of("profiles", pool))
    return answer


main = main_of(app)
