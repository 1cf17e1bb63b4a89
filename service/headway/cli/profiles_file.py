"""``profiles.yaml``: brokers by connection name, and the profile of each pool. All mistakes are reported together."""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import yaml

from headway.connection_tables import connections_from
from headway.connections import Connection
from headway.errors import Invalid, Misconfigured
from headway.scaling.group import Group, conflicts_of, group_from_mapping
from headway.scaling.mapping import near
from headway.scaling.profile import Profile, profile_from_mapping
from headway.scaling.profile_keys.queue_patterns import ANY, conflicts, do_overlap, is_pattern, refuse_unsound_patterns
from headway.strategies import refuse_unread_forecast

KEYS_MAX = 10_000  # of one mapping: more than any list of pools has
SLA_DEFAULTS = "sla_defaults"
POOLS_MADE = 50  # of sla_defaults, where it does not say how many
KNOWN = ("brokers", "exclude", "groups", "pools", SLA_DEFAULTS)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfilesFile:
    """What one file says."""

    brokers: tuple[Connection, ...]
    profiles: tuple[Profile, ...]
    exclude: tuple[str, ...] = ()
    """Patterns of queues that no pool may serve, in this file, in others or in the control plane: those of connections,
    too."""
    groups: tuple[Group, ...] = ()
    """Caps over several pools."""


def load_profiles_file(
    path: Path, *, check: Callable[[Iterable[Connection]], list[str]] = lambda _: [], is_whole: bool = True
) -> ProfilesFile:
    """The brokers, profiles and groups in the file at ``path``. ``check`` says what else is wrong with brokers.

    If ``is_whole`` is false, other files may name the pools of groups: the caller compares groups with profiles.

    Raises:
        Misconfigured: it cannot be read.
        Invalid: with every mistake in it, each beginning with the file's name.
    """
    breaches: list[str] = []
    top = mapping_of(parsed(path), "the file", breaches)
    breaches += unknown_keys(top, KNOWN)
    brokers = connections_from(mapping_of(top.get("brokers"), "brokers", breaches), breaches, where="brokers")
    breaches += check(brokers)
    pools = mapping_of(top.get("pools"), "pools", breaches)
    if top.get(SLA_DEFAULTS) is not None:
        if SLA_DEFAULTS in pools:
            breaches.append(f"pool {SLA_DEFAULTS!r}: {SLA_DEFAULTS} beside pools is the profile of that name")
        pools = {**pools, SLA_DEFAULTS: _defaults(top[SLA_DEFAULTS], brokers, breaches)}
    profiles = [profile for pool, values in pools.items() if (profile := _profile(pool, values, breaches)) is not None]
    of_brokers = tuple(f"{each.name}/{pattern}" for each in brokers for pattern in each.exclude)
    everywhere = _patterns(top.get("exclude"), breaches)
    exclude = (*everywhere, *of_brokers)
    breaches += [
        *_queue_breaches(profiles, brokers),
        *_exclude_breaches(profiles, everywhere),
        *(breach for each in profiles for breach in excluded(each.pool, (*each.queues, *each.helps), exclude)),
    ]
    groups = _groups(top.get("groups"), breaches)
    if is_whole:
        # A pool whose profile has mistakes of its own is known all the same.
        unread = {pool for pool in pools if isinstance(pool, str)} - {profile.pool for profile in profiles}
        breaches += group_breaches(groups, profiles, unread=unread)
    if breaches:
        raise Invalid(*(f"{path}: {breach}" for breach in breaches))
    return ProfilesFile(brokers=brokers, profiles=tuple(profiles), exclude=exclude, groups=tuple(groups))


def group_breaches(
    groups: Iterable[Group], profiles: Iterable[Profile], *, unread: Collection[str] = frozenset()
) -> list[str]:
    """A sentence for each way in which ``groups`` contradict ``profiles``; of ``unread`` pools nothing is known."""
    known = {profile.pool: profile for profile in profiles}
    sure = (group.without(unread) for group in groups)
    return [breach for group in sure if group is not None for breach in conflicts_of(group, known)]


def unknown_keys(given: Iterable[Any], known: Collection[str]) -> list[str]:
    """A sentence for each of ``given`` that is not known, with the key that it looks like."""
    return [
        f"unknown key {key!r};{near(key, known) or ' known: ' + ', '.join(known)}" for key in given if key not in known
    ]


class _Loader(yaml.SafeLoader):
    """Plain YAML, where a key that stands twice is a mistake: YAML itself lets the last one win in silence."""

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Take in what ``node`` merges. A few lines that merge one another nine times each are a billion keys."""
        super().flatten_mapping(node)
        if len(node.value) > KEYS_MAX:
            raise yaml.constructor.ConstructorError(
                None, None, f"more than {KEYS_MAX} keys come together here", node.start_mark
            )


def _mapping_once(loader: _Loader, node: yaml.MappingNode) -> dict[Any, Any]:
    lines: dict[Any, int] = {}
    for key_node, _ in node.value:
        if not isinstance(key_node, yaml.ScalarNode):
            raise yaml.constructor.ConstructorError(
                None, None, "a key must be a word, not a list or a mapping", key_node.start_mark
            )
        key, line = key_node.value, key_node.start_mark.line + 1
        if key in lines and key_node.tag != "tag:yaml.org,2002:merge":
            raise yaml.constructor.ConstructorError(
                None, None, f"{key!r} stands there twice, first in line {lines[key]}", key_node.start_mark
            )
        lines[key] = line
    loader.flatten_mapping(node)
    return loader.construct_mapping(node, deep=True)


def _bool(_: _Loader, node: yaml.ScalarNode) -> bool | str:
    """YAML 1.1 reads `off` as false: here it is a word."""
    return node.value.lower() == "true" if node.value.lower() in {"true", "false"} else str(node.value)


def _int(loader: _Loader, node: yaml.ScalarNode) -> int | str:
    """YAML 1.1 reads 18:00 as 1080, to the base of 60: here it is a time of day."""
    return str(node.value) if ":" in node.value else loader.construct_yaml_int(node)


_Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping_once)
_Loader.add_constructor("tag:yaml.org,2002:bool", _bool)
_Loader.add_constructor("tag:yaml.org,2002:int", _int)
# Dates stay as they are written: their zone stands beside them.
_Loader.add_constructor("tag:yaml.org,2002:timestamp", lambda _, node: str(node.value))


def parsed(path: Path, *, hint: str = "`headway init` writes a profiles.yaml") -> Any:
    """What the YAML file at ``path`` says; keys that stand twice are a mistake, times and words stay as written.

    Raises:
        Misconfigured: it cannot be read; ``hint`` says what to do.
        Invalid: it is no YAML.
    """
    try:
        with path.open("rb") as text:
            return yaml.load(text, Loader=_Loader)  # noqa: S506 - a SafeLoader
    except IsADirectoryError:
        raise Misconfigured(f"{path} is a folder: name a file in it") from None
    except OSError as error:
        raise Misconfigured(f"{path} cannot be read: {error.strerror}; {hint}") from error
    except yaml.YAMLError as error:
        raise Invalid(f"{path}{_place_of(error)}") from error
    except RecursionError as error:
        raise Invalid(f"{path}: lists and mappings are nested too deeply") from error


def _place_of(error: yaml.YAMLError) -> str:
    """``error`` as the rest of one sentence that the file's name begins."""
    if not isinstance(error, yaml.MarkedYAMLError):
        return f": is no YAML: {' '.join(str(error).split())}"
    mark = error.problem_mark or error.context_mark
    return f"{f' line {mark.line + 1}' if mark else ''}: {error.problem or error.context}"


def mapping_of(value: Any, what: str, breaches: list[str]) -> dict[Any, Any]:
    """``value`` where it is keys and values, else none of them and a sentence more in ``breaches``."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        breaches.append(f"{what}: expected keys and values, got {type(value).__name__}")
        return {}
    return value


def _patterns(value: Any, breaches: list[str]) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        breaches.append('exclude: expected a list of patterns, as ["redis/test-*"]')
        return ()
    return tuple(value)


def excluded(pool: str, queues: Iterable[str], exclude: Iterable[str]) -> list[str]:
    """A sentence for each of ``queues``, which ``pool`` serves, and pattern of ``exclude`` that matches it."""
    return [
        f"profile {pool!r}: queue {queue!r} is excluded by {pattern!r}"
        for queue in queues
        for pattern in exclude
        if fnmatchcase(queue, pattern)
    ]


def _defaults(value: Any, brokers: Iterable[Connection], breaches: list[str]) -> dict[Any, Any]:
    """The profile of which a pool is made for each queue that no pool names: of every connection of the file."""
    every = [f"{each.name}/{ANY}" for each in brokers]
    given = {"pools_max": POOLS_MADE, **mapping_of(value, SLA_DEFAULTS, breaches)}
    return {"queues": every, **given} if every else given


def _exclude_breaches(profiles: Iterable[Profile], exclude: Iterable[str]) -> list[str]:
    """Patterns of pools that may match what the file excludes: a control plane does not know what a file excludes."""
    return [
        f"profile {each.pool!r}: {queue!r} may match what is excluded by {pattern!r}: write that under `exclude` of "
        "the connection, whose collector then reads no such queue, or narrow one of them"
        for each in profiles
        for queue in each.queues
        for pattern in exclude
        if is_pattern(queue) and not fnmatchcase(queue, pattern) and do_overlap(queue, _widened(pattern))
    ]


def _widened(pattern: str) -> str:
    """A pattern that matches what ``pattern`` does, with no other special character than the star."""
    return re.sub(r"\[[^]]+\]|\?", ANY, pattern)


def _profile(pool: Any, values: Any, breaches: list[str]) -> Profile | None:
    if not isinstance(pool, str):
        breaches.append(f"pools: {pool!r} must be a name; put it in quotes")
        return None
    if not isinstance(values, dict):
        breaches.append(f"profile {pool!r}: expected keys and values, got {type(values).__name__}")
        return None
    try:
        profile = profile_from_mapping(pool, values)
        refuse_unread_forecast(profile)
        refuse_unsound_patterns(profile)
        return profile
    except Invalid as error:
        breaches += error.breaches
        return None


def _groups(value: Any, breaches: list[str]) -> list[Group]:
    groups = []
    for name, values in mapping_of(value, "groups", breaches).items():
        if not isinstance(name, str):
            breaches.append(f"groups: {name!r} must be a name; put it in quotes")
            continue
        try:
            groups.append(group_from_mapping(name, values))
        except Invalid as error:
            breaches += error.breaches
    return groups


def _queue_breaches(profiles: list[Profile], brokers: tuple[Connection, ...]) -> list[str]:
    """Queues that two pools own, and queues that no connection of ``brokers``, where there are any, reads."""
    queues = Counter(queue for profile in profiles for queue in profile.queues)
    breaches = [
        f"queue {queue!r} is in {count} pools; it belongs to exactly one"
        + ("" if is_pattern(queue) else ": name it under helps of the others")
        for queue, count in queues.items()
        if count > 1
    ]
    for at, each in enumerate(profiles):
        # One that stands in both is reported already.
        own = [queue for queue in each.queues if queues[queue] == 1]
        breaches += conflicts(each.pool, own, {other.pool: other.queues for other in profiles[:at]})
    named = {each.name: each for each in brokers}
    for queue in dict.fromkeys([*queues, *(queue for profile in profiles for queue in profile.helps)]):
        connection, separator, name = queue.partition("/")
        if not separator:
            breaches.append(f"queue {queue!r} must be written as connection/queue")
        elif brokers and connection not in named:
            breaches.append(f"queue {queue!r}: no connection {connection!r} under brokers; there: {', '.join(named)}")
        elif not brokers or is_pattern(name):
            continue
        elif named[connection].queues and not replace(named[connection], exclude=()).reads(name):
            breaches.append(
                f"queue {queue!r}: connection {connection!r} reads {', '.join(named[connection].queues)} only"
            )
    return breaches
