"""What differs between two profiles, key by key."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from headway.scaling.profile import Profile, profile_from_mapping, profile_to_mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One key that a change of a profile gives another value."""

    key: str
    """With a dot for each level: ``objective.target_s``."""
    before: Any
    """As JSON knows it; ``None`` where the key was not set."""
    after: Any


def changes(before: Profile, after: Profile) -> tuple[Change, ...]:
    """The keys whose values differ, in the order of a profile's keys."""
    old, new = (dict(_flat(profile_to_mapping(profile))) for profile in (before, after))
    keys = list(dict.fromkeys([*new, *old]))
    found = (Change(key=key, before=old.get(key), after=new.get(key)) for key in keys)
    return tuple(change for change in found if change.before != change.after)


def shortest(profile: Profile) -> dict[str, Any]:
    """The mapping that makes ``profile`` and names what differs from the defaults, its preset's where it has one."""
    given = {"queues": list(profile.queues), "template": profile.template}
    if profile.preset is not None:
        given["preset"] = profile.preset
    plain = profile_to_mapping(profile_from_mapping(profile.pool, given))
    whole = profile_to_mapping(profile)
    return {**given, **{key: value for key, value in whole.items() if value != plain[key]}}


def _flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value or None if isinstance(value, Mapping) else value
