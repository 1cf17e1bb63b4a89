"""Conditions that a person has to know of: when each becomes an incident, and when that ends."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

CONFIRMED_S = 60.0  # what mends itself within a minute is nobody's incident


def confirmed_after_s(rule: str) -> float:
    """For how long the condition of ``rule`` must have held: what was done to a job is not undone by itself."""
    return 0.0 if rule in {"jobs_lost", "jobs_cut", "job_poisonous"} else CONFIRMED_S


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentKey:
    """What distinguishes incidents: of each there is one at a time."""

    rule: str
    pool: str = ""
    host: str = ""
    kind: str = ""
    """Of ``degraded``, the kind of reason."""


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
        if key not in is_open and now_s - pending[key] >= confirmed_after_s(key.rule)
    }
    return IncidentChange(
        opened=opened, closed=[key for key in is_open if key not in conditions and key not in unknown]
    )


def is_silenced(matchers: Mapping[str, str], labels: Mapping[str, str]) -> bool:
    """Whether an incident has each label that a silence names."""
    return bool(matchers) and all(labels.get(name) == value for name, value in matchers.items())
