"""`headway get`: what is so, in tables."""

from collections.abc import Callable
from enum import StrEnum
from typing import Annotated, Any

import typer

from headway.cli.api_client import Api, connected, path_of
from headway.cli.operator.queue import queues_of
from headway.cli.operator.tables import decisions, health, hosts, profiles, queues, wanted
from headway.cli.terminal.live_behaviour import behaviour
from headway.cli.terminal.printing import say_json
from headway.cli.terminal.screen import output
from headway.cli.typer_app import main_of
from headway.errors import Refused

app = typer.Typer(add_completion=False)


class What(StrEnum):
    """What can be listed."""

    PROFILES = "profiles"
    QUEUES = "queues"
    HOSTS = "hosts"
    WANTED = "wanted"
    DECISIONS = "decisions"
    BEHAVIOUR = "behaviour"
    HEALTH = "health"


@app.command()
def get(
    what: Annotated[What, typer.Argument(help="What to list.")],
    *,
    pool: Annotated[str | None, typer.Option(help="Only this pool.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=500, help="So many decisions.")] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="The API's answer as it is.")] = False,
) -> None:
    """List profiles, queues, hosts, hosts wanted or decisions, or show how a pool behaves or the installation is."""
    with connected() as api:
        answer = _asked(api, what, pool=pool, limit=limit)
    if as_json:
        say_json(answer)
        return
    listing: Callable[[dict[str, Any]], Any] = {
        What.PROFILES: profiles,
        What.QUEUES: queues,
        What.HOSTS: hosts,
        What.WANTED: wanted,
        What.DECISIONS: decisions,
        What.BEHAVIOUR: behaviour,
        What.HEALTH: health,
    }[what]
    output().print(listing(answer))


def _asked(api: Api, what: What, *, pool: str | None, limit: int) -> dict[str, Any]:
    _check(what, pool)
    match what:
        case What.QUEUES:
            return _of_pool(api, queues_of(api, pool=pool), "queues", pool)
        case What.DECISIONS:
            return _of_pool(api, api.get("/v1/decisions", pool=pool, limit=limit), "decisions", pool)
        case What.BEHAVIOUR:
            return api.get(path_of("pools", str(pool), "behaviour"))
        case What.PROFILES if pool is not None:
            return {"profiles": [api.get(path_of("profiles", pool))]}
        case What.PROFILES:
            return api.get("/v1/profiles")
        case What.HOSTS:
            return api.get("/v1/hosts")
        case What.WANTED:
            return api.get("/v1/hosts/wanted")
        case What.HEALTH:
            return api.get("/v1/health")


def _check(what: What, pool: str | None) -> None:
    """Refuse a pool where there is none to name, and its lack where one must be."""
    if what is What.BEHAVIOUR and pool is None:
        raise Refused("name the pool: --pool NAME")
    if what in {What.HOSTS, What.WANTED} and pool is not None:
        raise Refused("hosts belong to no pool: leave --pool out")
    if what is What.HEALTH and pool is not None:
        raise Refused("health belongs to no pool: leave --pool out")


def _of_pool(api: Api, answer: dict[str, Any], rows: str, pool: str | None) -> dict[str, Any]:
    """``answer``; where nothing is known of ``pool``, refused in the API's words if there is no such pool."""
    if pool is not None and not answer[rows]:
        api.get(path_of("profiles", pool))
    return answer


main = main_of(app)
