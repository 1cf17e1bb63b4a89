"""`headway apply`, `headway get` and `headway delete`: what an operator wants, what is so, and what goes."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal

import httpx
import typer

from headway.cli.api_client import Api, connected, path_of
from headway.cli.operator.queue import queues_of
from headway.cli.operator.tables import decisions, health, hosts, profiles, queues, wanted
from headway.cli.profiles_file import excluded, load_profiles_file
from headway.cli.terminal.live_behaviour import behaviour
from headway.cli.terminal.printing import say, say_json
from headway.cli.terminal.screen import output
from headway.cli.typer_app import called
from headway.errors import Conflict, Invalid, NotFound, Refused
from headway.scaling.profile import Profile, profile_to_mapping
from headway.settings import ClientTls

Outcome = Literal["created", "updated", "unchanged"]


app = typer.Typer(add_completion=False, no_args_is_help=True, help="Talk to a control plane.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """What became of one profile."""

    pool: str
    outcome: Outcome
    notes: tuple[str, ...]
    """What it cannot keep."""


class What(StrEnum):
    """What can be listed."""

    PROFILES = "profiles"
    QUEUES = "queues"
    HOSTS = "hosts"
    WANTED = "wanted"
    DECISIONS = "decisions"
    BEHAVIOUR = "behaviour"
    HEALTH = "health"


def main(words: list[str]) -> int:
    """Run `apply` or `get`. Returns the exit status."""
    return called(app, words)


def apply_profiles(
    url: str,
    token: str | None,
    profiles: Iterable[Profile],
    *,
    exclude: Sequence[str] = (),
    warn: Callable[[str], None] = lambda _: None,
    tls: ClientTls | None = None,
) -> list[tuple[str, Outcome]]:
    """Make the control plane at ``url`` hold ``profiles``. What became of each, by pool, in their order.

    ``warn`` receives a sentence for each queue that a pattern of ``exclude`` matches and that another pool serves which
    the control plane holds: that pool goes on until somebody changes it.

    Raises:
        HeadwayError: it does not answer, or refuses any; the others are applied all the same.
    """
    with Api(url, token, tls=tls) as api:
        applied, refusals = _applied(api, list(profiles))
        for sentence in _excluded_elsewhere(api, exclude):
            warn(sentence)
    if refusals:
        raise Invalid(*refusals)
    return [(each.pool, each.outcome) for each in applied]


@app.command("apply")
def apply_files(
    files: Annotated[list[Path], typer.Argument(metavar="FILE", help="Files like profiles.yaml.")],
) -> None:
    """Send profiles to the control plane; profiles that the files do not name are left alone."""
    wanted, exclude = _profiles_of(files)
    if not (wanted or exclude):
        named = ", ".join(map(str, files))
        raise Refused(
            f"{named}: no pool is named under `pools`, nothing was applied; `headway delete` takes pools away"
        )
    with connected() as api:
        applied, refusals = _applied(api, wanted)
        refusals += _excluded_elsewhere(api, exclude)
        where = api.url
    for each in applied:
        say(f"{each.outcome} {each.pool} at {where}")
        for note in each.notes:
            say(f"  note: {note}")
    if refusals:
        raise Invalid(*refusals)


@app.command("get")
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


@app.command("delete")
def delete(
    pools: Annotated[list[str], typer.Argument(metavar="POOL…", help="The pools whose profiles go.")],
) -> None:
    """Delete the profiles of pools. Their workers finish what they do and leave; their queues are seen on.

    `headway apply` with the file that names a pool brings it back.
    """
    with connected() as api:
        # All are looked up before one is deleted: a name that is mistyped leaves the others alone.
        found = {pool: api.send("GET", path_of("profiles", pool)).headers["ETag"] for pool in pools}
        for pool, etag in found.items():
            api.send("DELETE", path_of("profiles", pool), headers={"If-Match": etag})
            say(f"deleted {pool} at {api.url}")


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
        raise Refused("which pool? --pool NAME says it")
    if what in {What.HOSTS, What.WANTED} and pool is not None:
        raise Refused("hosts belong to no pool: leave --pool out")
    if what is What.HEALTH and pool is not None:
        raise Refused("health belongs to no pool: leave --pool out")


def _of_pool(api: Api, answer: dict[str, Any], rows: str, pool: str | None) -> dict[str, Any]:
    """``answer``; where nothing is known of ``pool``, refused in the API's words if there is no such pool."""
    if pool is not None and not answer[rows]:
        api.get(path_of("profiles", pool))
    return answer


def _profiles_of(files: Sequence[Path]) -> tuple[list[Profile], list[str]]:
    """The profiles of all files, and what the files exclude. Raises ``Invalid`` with what is wrong in any of them."""
    breaches: list[str] = []
    exclude: dict[str, Path] = {}
    found: dict[str, tuple[Profile, Path]] = {}
    for file in files:
        try:
            loaded = load_profiles_file(file)
        except Invalid as error:
            breaches += error.breaches
            continue
        exclude.update(dict.fromkeys(loaded.exclude, file))
        for profile in loaded.profiles:
            if profile.pool in found:
                breaches.append(f"{file}: pool {profile.pool!r} is in {found[profile.pool][1]} already")
            found[profile.pool] = profile, file
    for profile, file in found.values():
        others = [pattern for pattern, named_in in exclude.items() if named_in != file]
        breaches += [f"{file}: {sentence}" for sentence in excluded(profile.pool, profile.queues, others)]
    if breaches:
        raise Invalid(*breaches)
    return [profile for profile, _ in found.values()], list(exclude)


def _excluded_elsewhere(api: Api, exclude: Sequence[str]) -> list[str]:
    """A sentence for each queue that is excluded and served by a pool that the control plane holds."""
    if not exclude:
        return []
    return [
        f"{sentence}; the control plane holds that profile: change it, or `headway delete {row['pool']}`"
        for row in api.get("/v1/profiles")["profiles"]
        for sentence in excluded(row["pool"], row["profile"]["queues"], exclude)
    ]


def _applied(api: Api, wanted: list[Profile]) -> tuple[list[Applied], list[str]]:
    """What became of each profile, and one sentence for each breach of those that were refused."""
    applied: dict[str, Applied] = {}
    refusals: list[str] = []
    pending = wanted
    while pending:
        conflicts: list[tuple[Profile, str]] = []
        for profile in pending:
            try:
                applied[profile.pool] = _put(api, profile)
            except Conflict as error:
                conflicts.append((profile, str(error)))
            except Invalid as error:
                refusals += error.breaches
        if len(conflicts) == len(pending):
            refusals += [sentence for _, sentence in conflicts]
            break
        # A queue may be on its way from one of these pools to another: what was in the way may be gone by now.
        pending = [profile for profile, _ in conflicts]
    return [applied[profile.pool] for profile in wanted if profile.pool in applied], refusals


def _put(api: Api, profile: Profile) -> Applied:
    path = path_of("profiles", profile.pool)
    try:
        etag = api.send("GET", path).headers["ETag"]
    except NotFound:
        etag = None
    condition = {"If-None-Match": "*"} if etag is None else {"If-Match": etag}
    answer = api.send("PUT", path, json=profile_to_mapping(profile), headers=condition)
    outcome: Outcome = "unchanged" if answer.headers["ETag"] == etag else "updated"
    if answer.status_code == httpx.codes.CREATED:
        outcome = "created"
    return Applied(pool=profile.pool, outcome=outcome, notes=tuple(answer.json()["notes"]))
