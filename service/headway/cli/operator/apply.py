"""Profiles and groups between files and the control plane: `headway apply`, `diff`, `validate`, `export`, `delete`."""

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import httpx
import typer
import yaml

from headway.agent.config import host_file
from headway.agent.config.commands.queue_orders import UNKNOWN, Taking, queue_order_of, queues_named
from headway.agent.config.cut_warnings import cut_warnings
from headway.agent.config.templates import Template
from headway.cli.api_client import Api, connected, path_of
from headway.cli.operator.completion import names
from headway.cli.operator.queue import queues_of
from headway.cli.profiles_file import excluded, group_breaches, load_profiles_file
from headway.cli.terminal.printing import say, say_text
from headway.cli.typer_app import called
from headway.environment import ClientTls
from headway.errors import Conflict, HeadwayError, Invalid, NotFound, Refused, printable
from headway.scaling.explanations.phrases import counted
from headway.scaling.group import Group, conflicts_of, group_from_mapping, group_to_mapping
from headway.scaling.mapping import near, to_mapping
from headway.scaling.planning.doubtful_percentiles import doubtful_percentiles
from headway.scaling.planning.inexact_objectives import inexact_objectives
from headway.scaling.planning.shared_pool import first_helped_remarks, order_remarks, unowned_remarks
from headway.scaling.profile import Profile, profile_from_mapping, profile_to_mapping
from headway.scaling.profile_changes import changes, shortest
from headway.scaling.profile_keys.queue_patterns import is_pattern
from headway.strategies import load_strategies, refuse_unknown
from headway.zones import refuse_unknown_zones

HOST_FILE = "host.toml"
PROFILES_FILE = Path("profiles.yaml")
ASKED_S = 3.0  # for what a validation can do without
DIFFERS = 1  # the exit status of `diff`, as of diff(1)

Outcome = Literal["created", "updated", "unchanged"]
Place = tuple[Literal["profiles", "groups"], str]
"""Where the API has a profile or a group: the kind, and the name of the pool or the group."""
Files = Annotated[
    list[Path] | None, typer.Argument(metavar="FILE…", help="Files like profiles.yaml.", show_default=False)
]
MoreFiles = Annotated[list[Path] | None, typer.Option("-f", "--file", help="The same.", show_default=False)]

app = typer.Typer(add_completion=False, no_args_is_help=True, help="Talk to a control plane.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """What became of one profile or group."""

    name: str
    """Of the pool, or ``group`` and the name of the group."""
    outcome: Outcome
    notes: tuple[str, ...]
    """What it cannot keep."""
    changes: tuple[Mapping[str, Any], ...] = ()
    """The keys that have another value now: ``key``, ``before``, ``after``."""


def main(words: list[str]) -> int:
    """Run one of these commands. Returns the exit status."""
    return called(app, words)


def apply_profiles(
    url: str,
    token: str | None,
    profiles: Iterable[Profile],
    *,
    groups: Iterable[Group] = (),
    exclude: Sequence[str] = (),
    warn: Callable[[str], None] = lambda _: None,
    tls: ClientTls | None = None,
) -> list[tuple[str, Outcome]]:
    """Make the control plane at ``url`` hold ``profiles`` and ``groups``. What became of each, by name, in their order.

    ``warn`` receives a sentence for each queue that a pattern of ``exclude`` matches and that another pool serves which
    the control plane holds: that pool goes on until somebody changes it.

    Raises:
        HeadwayError: it does not answer, or refuses any; the others are applied all the same.
    """
    with Api(url, token, tls=tls) as api:
        applied, refusals = _applied(api, [*profiles, *groups])
        for sentence in _excluded_elsewhere(api, exclude):
            warn(sentence)
    if refusals:
        raise Invalid(*refusals)
    return [(each.name, each.outcome) for each in applied]


@app.command("apply")
def apply_files(
    files: Files = None,
    more: MoreFiles = None,
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would change, and change nothing.")] = False,
    prune: Annotated[
        bool, typer.Option("--prune", help="Delete the profiles and groups that no file names. It asks.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Send profiles and groups to the control plane; those that the files do not name are left alone."""
    named = _named(files, more)
    wanted, groups, exclude = _contents_of(named)
    if not (wanted or exclude) or (prune and not wanted):
        raise Refused(
            f"{', '.join(map(str, named))}: no pool is named under `pools`, nothing was applied; "
            "`headway delete` takes pools away"
        )
    with connected() as api:
        surplus = _surplus(api, wanted, groups) if prune else {}
        if surplus and not (dry_run or yes):
            _confirm(f"delete {', '.join(map(_named_as, surplus))} at {api.url}?")
        applied, refusals = _applied(api, [*wanted, *groups], is_dry_run=dry_run)
        refusals += _excluded_elsewhere(api, exclude)
        for each in applied:
            _say_applied(each, api.url, is_dry_run=dry_run)
        if not refusals:
            _delete(api, surplus, is_dry_run=dry_run)
    if refusals:
        raise Invalid(*refusals)


@app.command("diff")
def diff(files: Files = None, more: MoreFiles = None) -> None:
    """Show what `headway apply` would change, key by key: ./profiles.yaml where no file is named.

    The exit status is 1 if it would change anything.
    """
    wanted, groups, exclude = _contents_of(_named_or_here("diff", files, more))
    with connected() as api:
        applied, refusals = _applied(api, [*wanted, *groups], is_dry_run=True)
        refusals += _excluded_elsewhere(api, exclude)
        for each in applied:
            if each.outcome != "unchanged" or each.notes:
                _say_applied(each, api.url, is_dry_run=True)
        for path in _surplus(api, wanted, groups):
            say(f"only at {api.url}: {_named_as(path)}; `headway apply --prune` deletes it")
    if refusals:
        raise Invalid(*refusals)
    if not applied:
        say("the files name no profile: `headway apply` would change nothing")
        return
    changed = sum(each.outcome != "unchanged" for each in applied)
    say(f"{changed} of {_counted(len(wanted), len(groups))} would change")
    if changed:
        raise typer.Exit(DIFFERS)


@app.command("validate")
def validate(files: Files = None, more: MoreFiles = None) -> None:
    """Find every mistake in the files, without a control plane: in ./profiles.yaml where no file is named.

    If a control plane answers, queues that it has never found in their broker are a warning.
    """
    named = _named_or_here("validate", files, more)
    wanted, groups, _ = _contents_of(named)
    breaches: list[str] = []
    strategies = load_strategies()
    for profile in wanted:
        for refuse in (partial(refuse_unknown, strategies=strategies), refuse_unknown_zones):
            try:
                refuse(profile)
            except Invalid as error:
                breaches += error.breaches
    if breaches:
        raise Invalid(*breaches)
    say(f"{', '.join(map(str, named))}: {_counted(len(wanted), len(groups))}, no mistake")
    templates = {}
    for path in sorted({file.parent / HOST_FILE for file in named}):
        with suppress(HeadwayError):  # its own mistakes are the business of `headway agent check`
            templates[path] = host_file.load(path).templates
    doubts = (sentence for profile in wanted for sentence in doubtful_percentiles(profile))
    owned = {queue for profile in wanted for queue in profile.queues}
    unowned = (sentence for profile in wanted for sentence in unowned_remarks(profile, owned))
    for sentence in (
        *doubts,
        *unowned,
        *_template_warnings(wanted, templates),
        *_unserved_helps(wanted, templates),
        *_queue_warnings(wanted),
    ):
        say(f"warning: {sentence}")
    for profile in wanted:
        order, strict_queues = _order(profile, templates.values())
        remarks = (*order_remarks(profile, order, strict_queues), *first_helped_remarks(profile, strict_queues))
        for sentence in (*inexact_objectives(profile), *remarks):
            say(f"note: {sentence}")


def _template_warnings(wanted: Iterable[Profile], hosts: Mapping[Path, Mapping[str, Template]]) -> Iterator[str]:
    """What is wrong with the templates of the profiles in the host files beside them, a sentence each."""
    names: dict[str, list[str]] = {}
    for each in wanted:
        names.setdefault(each.template, []).append(each.pool)
    where = " and ".join(map(str, hosts))
    for name, pools in names.items():
        if where and not any(name in known for known in hosts.values()):
            which, of = "profile" if len(pools) == 1 else "profiles", "it" if len(pools) == 1 else "them"
            lacking = f"{which} {', '.join(map(repr, pools))}: no template {name!r} in {where}"
            yield f"{lacking}: no worker of {of} can start on this host"
    for path, known in hosts.items():
        yield from (f"{path}: {each}" for each in cut_warnings(known[name] for name in known if name in names))


def _unserved_helps(wanted: Iterable[Profile], hosts: Mapping[Path, Mapping[str, Template]]) -> Iterator[str]:
    """A sentence for each profile that helps with queues which the command line of its template does not name."""
    for profile in wanted:
        for path, known in hosts.items():
            named = queues_named(known[profile.template].argv) if profile.template in known else ()
            missing = [name for queue in profile.helps if (name := queue.partition("/")[2]) not in named]
            if named and missing:
                yield (
                    f"{path}: template {profile.template}: its command line names {', '.join(named)} only: add "
                    f"{', '.join(missing)}, which pool {profile.pool!r} helps with"
                )


def _queue_warnings(wanted: Sequence[Profile]) -> list[str]:
    """Queues that were never found in their broker, by a control plane that answers and whose collectors poll it."""
    try:
        with connected(timeout_s=ASKED_S) as api:
            rows, where = queues_of(api)["queues"], api.url
    except HeadwayError:
        return []  # nobody to ask: a file is validated where it is written
    found = {row["queue"] for row in rows if row["sample_age_s"] is not None or row["event_sources"]}
    polled = {row["queue"].partition("/")[0] for row in rows if row["collectors"]}
    served = {queue for profile in wanted for queue in profile.queues}
    return [
        f"profile {profile.pool!r}: the control plane at {where} has never found queue {queue!r} in its broker: it has "
        f"had no job yet, or is misspelt;{near(queue, sorted(found - served))}".rstrip(";")
        for profile in wanted
        for queue in profile.queues
        if not is_pattern(queue) and queue not in found and queue.partition("/")[0] in polled
    ]


def _order(profile: Profile, hosts: Iterable[Mapping[str, Template]]) -> Taking:
    """In what order workers of ``profile`` take from its queues, by the host files; unknown where they differ."""
    orders = {queue_order_of(known[profile.template].argv) for known in hosts if profile.template in known}
    return orders.pop() if len(orders) == 1 else UNKNOWN


@app.command("export")
def export(
    pools: Annotated[
        list[str] | None, typer.Argument(metavar="[POOL]…", help="Only these.", show_default=False)
    ] = None,
) -> None:
    """Print the profiles of the control plane as a profiles.yaml, which `headway apply` takes; the groups, too, where
    no pool is named.
    """
    with connected() as api:
        # What is made of another profile is made again.
        rows = [row for row in api.get("/v1/profiles")["profiles"] if row.get("made_of") is None]
        groups = [] if pools else api.get("/v1/groups")["groups"]
        where = api.url
    unknown = set(pools or ()) - {row["pool"] for row in rows}
    if unknown:
        raise NotFound(f"no profile {min(unknown)!r}: `headway get profiles` lists them")
    chosen = {
        row["pool"]: shortest(profile_from_mapping(row["pool"], row["profile"]))
        for row in rows
        if not pools or row["pool"] in pools
    }
    say(f"# What {where} holds. Connections are in the file of `headway up`, or in HEADWAY_BROKERS.")
    exported: dict[str, Any] = {"pools": chosen}
    if groups:
        exported["groups"] = {
            row["name"]: group_to_mapping(group_from_mapping(row["name"], row["group"])) for row in groups
        }
    say_text(yaml.safe_dump(exported, sort_keys=False, allow_unicode=True, width=120))


@app.command("delete")
def delete(
    pools: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="POOL…", help="The pools whose profiles go.", autocompletion=names.pools, show_default=False
        ),
    ] = None,
    *,
    groups: Annotated[
        list[str] | None,
        typer.Option("--group", help="A group that goes.", autocompletion=names.groups, show_default=False),
    ] = None,
) -> None:
    """Delete the profiles of pools. Their workers finish what they do and leave; their queues are seen on.

    `headway apply` with the file that names a pool brings it back. With --group, delete groups: their pools stay.
    """
    named: list[Place] = [*(("profiles", pool) for pool in pools or ()), *(("groups", name) for name in groups or ())]
    if not named:
        raise Refused("no pool is named: `headway delete POOL`, or --group NAME")
    with connected() as api:
        # All are looked up before one is deleted: a name that is mistyped leaves the others alone.
        _delete(api, {place: api.send("GET", path_of(*place)).headers["ETag"] for place in named})


def _delete(api: Api, etags: Mapping[Place, str], *, is_dry_run: bool = False) -> None:
    """Delete profiles and groups, each of the version that was read."""
    for place, etag in etags.items():
        if not is_dry_run:
            api.send("DELETE", path_of(*place), headers={"If-Match": etag})
        say(f"{'would be deleted:' if is_dry_run else 'deleted'} {_named_as(place)} at {api.url}")


def _named_as(place: Place) -> str:
    """A profile by its pool, and a group as one."""
    kind, name = place
    return f"group {name}" if kind == "groups" else name


def _counted(profiles: int, groups: int) -> str:
    said = counted(profiles, "profile")
    return f"{said} and {counted(groups, 'group')}" if groups else said


def _named(files: Sequence[Path] | None, more: Sequence[Path] | None) -> list[Path]:
    named = [*(files or ()), *(more or ())]
    if not named:
        raise Refused("no file is named: `headway apply profiles.yaml`, or -f profiles.yaml")
    return named


def _named_or_here(command: str, files: Sequence[Path] | None, more: Sequence[Path] | None) -> list[Path]:
    """The files that are named, else the one that `headway up` takes: what changes nothing may choose it."""
    if files or more:
        return _named(files, more)
    if not PROFILES_FILE.is_file():
        raise Refused(f"no file is named, and this folder has no {PROFILES_FILE}: `headway {command} FILE`")
    return [PROFILES_FILE]


def _surplus(api: Api, wanted: Sequence[Profile], groups: Sequence[Group]) -> dict[Place, str]:
    """What the control plane holds and the files do not name, with the versions that were read; groups first."""
    kept = {*map(_place_of, wanted), *map(_place_of, groups)}
    held: dict[Place, str] = {("groups", row["name"]): f'"{row["version"]}"' for row in api.get("/v1/groups")["groups"]}
    rows = [row for row in api.get("/v1/profiles")["profiles"] if row.get("made_of") is None]
    held |= {("profiles", row["pool"]): f'"{row["version"]}"' for row in rows}
    return {place: etag for place, etag in held.items() if place not in kept}


def _confirm(question: str) -> None:
    """Ask. Raises ``Refused`` where nobody can answer, or the answer is no."""
    if not sys.stdin.isatty():
        raise Refused(f"{question} No terminal to ask on, so nothing was changed; --yes answers yes")
    if not typer.confirm(printable(question)):
        raise Refused("nothing was changed")


def _say_applied(applied: Applied, where: str, *, is_dry_run: bool) -> None:
    would = "would be " if is_dry_run and applied.outcome != "unchanged" else ""
    say(f"{would}{applied.outcome}{':' if would else ''} {applied.name} at {where}")
    if is_dry_run:
        for change in applied.changes:
            say(f"  {change['key']}: {_value(change['before'])} → {_value(change['after'])}")
    for note in applied.notes:
        say(f"  note: {note}")


def _value(value: Any) -> str:
    """As a profiles.yaml has it, in one line."""
    return "not set" if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _contents_of(files: Sequence[Path]) -> tuple[list[Profile], list[Group], list[str]]:
    """The profiles and groups of all files, and what the files exclude.

    Raises:
        Invalid: with what is wrong in any of them.
    """
    breaches: list[str] = []
    exclude: dict[str, Path] = {}
    found: dict[str, tuple[Profile, Path]] = {}
    groups: dict[str, tuple[Group, Path]] = {}
    for file in files:
        try:
            loaded = load_profiles_file(file, is_whole=len(files) == 1)
        except Invalid as error:
            breaches += error.breaches
            continue
        exclude.update(dict.fromkeys(loaded.exclude, file))
        for profile in loaded.profiles:
            if profile.pool in found:
                breaches.append(f"{file}: pool {profile.pool!r} is in {found[profile.pool][1]} already")
            found[profile.pool] = profile, file
        for group in loaded.groups:
            if group.name in groups:
                breaches.append(f"{file}: group {group.name!r} is in {groups[group.name][1]} already")
            groups[group.name] = group, file
    if len(files) > 1 and not breaches:  # a profile that could not be read is not missing
        profiles = [profile for profile, _ in found.values()]
        breaches += [f"{file}: {each}" for group, file in groups.values() for each in group_breaches([group], profiles)]
    for profile, file in found.values():
        others = [pattern for pattern, named_in in exclude.items() if named_in != file]
        named = (*profile.queues, *profile.helps)
        breaches += [f"{file}: {sentence}" for sentence in excluded(profile.pool, named, others)]
    if breaches:
        raise Invalid(*breaches)
    return [profile for profile, _ in found.values()], [group for group, _ in groups.values()], list(exclude)


def _excluded_elsewhere(api: Api, exclude: Sequence[str]) -> list[str]:
    """A sentence for each queue that is excluded and served by a pool that the control plane holds."""
    if not exclude:
        return []
    return [
        f"{sentence}; the control plane holds that profile: change it, or `headway delete {row['pool']}`"
        for row in api.get("/v1/profiles")["profiles"]
        for sentence in excluded(row["pool"], row["profile"]["queues"], exclude)
    ]


def _applied(
    api: Api, wanted: Sequence[Profile | Group], *, is_dry_run: bool = False
) -> tuple[list[Applied], list[str]]:
    """What became of each profile and group, and one sentence for each breach of those that were refused."""
    applied: dict[Place, Applied] = {}
    refusals: list[str] = []
    # Owners first: a helper's answer says which queues that it helps with have none.
    pending = sorted(wanted, key=lambda each: isinstance(each, Profile) and bool(each.helps))
    while pending:
        conflicts: list[tuple[Profile | Group, str]] = []
        for each in pending:
            try:
                applied[_place_of(each)] = _put(api, each, is_dry_run=is_dry_run)
            except Conflict as error:
                conflicts.append((each, str(error)))
            except Invalid as error:
                refusals += error.breaches
        if len(conflicts) == len(pending):
            moving = _moving(api, wanted) if is_dry_run else frozenset()
            applied |= {place: _moved(api, each) for each, _ in conflicts if (place := _place_of(each)) in moving}
            refusals += [sentence for each, sentence in conflicts if _place_of(each) not in moving]
            break
        # A queue may be on its way from one of these pools to another, or a cap and a floor may change together: what
        # was in the way may be gone by now.
        pending = [each for each, _ in conflicts]
    return [applied[place] for each in wanted if (place := _place_of(each)) in applied], refusals


def _place_of(wanted: Profile | Group) -> Place:
    return ("groups", wanted.name) if isinstance(wanted, Group) else ("profiles", wanted.pool)


def _body_of(wanted: Profile | Group) -> dict[str, Any]:
    return group_to_mapping(wanted) if isinstance(wanted, Group) else profile_to_mapping(wanted)


def _put(api: Api, wanted: Profile | Group, *, is_dry_run: bool) -> Applied:
    path = path_of(*_place_of(wanted))
    try:
        found = api.send("GET", path)
        api.body(found)  # or what answers is no Headway, and gets no profile
        etag = found.headers["ETag"]
    except NotFound:
        etag = None
    condition = {"If-None-Match": "*"} if etag is None else {"If-Match": etag}
    parameters = {"dry_run": "true"} if is_dry_run else {}
    answer = api.send("PUT", path, params=parameters, json=_body_of(wanted), headers=condition)
    outcome: Outcome = "unchanged" if answer.headers["ETag"] == etag else "updated"
    if answer.status_code == httpx.codes.CREATED:
        outcome = "created"
    body = api.body(answer)
    return Applied(
        name=_named_as(_place_of(wanted)),
        outcome=outcome,
        notes=tuple(body["notes"]),
        changes=tuple(body.get("changes", ())),
    )


def _moving(api: Api, wanted: Sequence[Profile | Group]) -> frozenset[Place]:
    """Those of ``wanted`` that nothing is in the way of once all of ``wanted`` is applied: no queue, and no cap."""
    held = {
        row["pool"]: profile_from_mapping(row["pool"], row["profile"]) for row in api.get("/v1/profiles")["profiles"]
    }
    groups = {row["name"]: group_from_mapping(row["name"], row["group"]) for row in api.get("/v1/groups")["groups"]}
    for each in wanted:
        if isinstance(each, Group):
            groups[each.name] = each
        else:
            held[each.pool] = each
    uses = Counter(queue for profile in held.values() for queue in profile.queues)
    torn = {group.name: group for group in groups.values() if conflicts_of(group, held)}
    capped = {pool for group in torn.values() for pool in group.pools}
    return frozenset(
        _place_of(each)
        for each in wanted
        if (
            each.name not in torn
            if isinstance(each, Group)
            else each.pool not in capped and all(uses[queue] == 1 for queue in each.queues)
        )
    )


def _moved(api: Api, wanted: Profile | Group) -> Applied:
    """What would become of ``wanted``, of which a dry run knows no more: another change must come before it."""
    place = _place_of(wanted)
    kind, name = place
    try:
        body = api.get(path_of(*place))[kind.removesuffix("s")]
    except NotFound:
        return Applied(name=_named_as(place), outcome="created", notes=())
    if isinstance(wanted, Group):
        before, after = group_to_mapping(group_from_mapping(name, body)), group_to_mapping(wanted)
        found = [
            {"key": key, "before": before.get(key), "after": after.get(key)}
            for key in dict.fromkeys([*after, *before])
            if before.get(key) != after.get(key)
        ]
    else:
        found = [to_mapping(each) for each in changes(profile_from_mapping(name, body), wanted)]
    return Applied(name=_named_as(place), outcome="updated", notes=(), changes=tuple(found))
