"""Conditions that a person has to know of: when each becomes an incident, and when that ends."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from headway.scaling.conditions.condition_table import CONDITIONS

CONFIRMED_AFTER_S = MappingProxyType({each.rule: each.confirmed_after_s for each in CONDITIONS.values() if each.rule})


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentKey:
    """What distinguishes incidents: of each there is one at a time."""

    rule: str
    pool: str = ""
    host: str = ""
    kind: str = ""
    """Of ``degraded``, the kind of reason; of a day's error budget, the day."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentCondition:
    """What is so now, why, and what to do."""

    severity: str
    summary: str
    action: str


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentChange:
    """What begins and what ends."""

    opened: Mapping[IncidentKey, tuple[float, IncidentCondition]] = field(default_factory=dict)
    """With the Unix seconds since when it is so."""
    closed: Collection[IncidentKey] = ()


def pending_since(
    pending: Mapping[IncidentKey, float], holds: Collection[IncidentKey], *, now_s: float
) -> dict[IncidentKey, float]:
    """Since when each condition holds; what no longer holds begins anew."""
    return {key: min(pending.get(key, now_s), now_s) for key in holds}


def changed(
    conditions: Mapping[IncidentKey, IncidentCondition],
    pending: Mapping[IncidentKey, float],
    is_open: Collection[IncidentKey],
    unknown: Collection[IncidentKey],
    *,
    now_s: float,
) -> IncidentChange:
    """What becomes of the incidents that are open.

    Args:
        conditions: What holds.
        pending: Since when, of each that holds.
        is_open: The incidents that are open.
        unknown: Of these, those of which nobody knows whether they still hold: they stay.
        now_s: Unix seconds.
    """
    opened = {
        key: (pending[key], condition)
        for key, condition in conditions.items()
        if key not in is_open and now_s - pending[key] >= CONFIRMED_AFTER_S[key.rule]
    }
    return IncidentChange(
        opened=opened, closed=[key for key in is_open if key not in conditions and key not in unknown]
    )


def is_silenced(matchers: Mapping[str, str], labels: Mapping[str, str]) -> bool:
    """Whether an incident has each label that a silence names."""
    return bool(matchers) and all(labels.get(name) == value for name, value in matchers.items())
