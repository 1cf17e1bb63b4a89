"""What a host may say of itself: the labels and templates that its join token allows. Any, where that says nothing.

A pattern is matched as a shell matches file names: ``mail-*`` allows each template whose name begins so, ``zone=a``
that label alone, ``rack=*`` the label with any value.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any

from sqlalchemy import select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from headway.errors import Invalid
from headway.scaling.mapping import from_mapping, to_mapping
from headway.scaling.model import Template
from headway.store.hosts.hosts import template_to_json, templates_of
from headway.store.tables import hosts

ALLOWANCE_REFUSED_MAX = 20  # sentences that are kept of one report; of more, how many


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """Patterns of labels, as ``name=value``, and of templates; ``None`` allows any, an empty tuple none."""

    labels: tuple[str, ...] | None = None
    templates: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        wrong = [pattern for pattern in self.labels or () if "=" not in pattern]
        if wrong:
            raise Invalid(*(f"label {pattern!r}: expected name=value, as in zone=a or rack=*" for pattern in wrong))

    def allows_label(self, name: str, value: str) -> bool:
        """Whether the host may have this label."""
        return _allows(self.labels, f"{name}={value}")

    def allows_template(self, name: str) -> bool:
        """Whether the host may have workers of this template."""
        return _allows(self.templates, name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Admitted:
    """What is left of what a host says of itself, and a sentence for each label and template that is not."""

    labels: Mapping[str, str]
    templates: tuple[Template, ...]
    refused: tuple[str, ...]


ANYTHING = Allowance()


def allowance_of(body: Mapping[str, Any] | None) -> Allowance:
    """The value that ``allowance_to_json`` made ``body`` of."""
    return from_mapping(Allowance, body or {})


def allowance_to_json(allowance: Allowance) -> dict[str, Any] | None:
    """``allowance`` as Postgres keeps it; ``None`` where it allows anything."""
    return {name: patterns for name, patterns in to_mapping(allowance).items() if patterns is not None} or None


def admitted(allowance: Allowance, labels: Mapping[str, str], templates: Iterable[Template]) -> Admitted:
    """What ``allowance`` leaves of a host's ``labels`` and of its ``templates`` with theirs."""
    refused: dict[str, None] = {}  # in order, and each once: all templates may have one label

    def kept_of(reported: Mapping[str, str]) -> dict[str, str]:
        kept = {name: value for name, value in reported.items() if allowance.allows_label(name, value)}
        refused.update(
            (f"label {name}={reported[name]}: the join token allows {_patterns_text(allowance.labels)}", None)
            for name in reported
            if name not in kept
        )
        return kept

    kept_labels, kept_templates = kept_of(labels), []
    for template in templates:
        if allowance.allows_template(template.name):
            kept_templates.append(replace(template, labels=kept_of(template.labels)))
        else:
            refused[f"template {template.name}: the join token allows {_patterns_text(allowance.templates)}"] = None
    sentences = list(refused)
    if len(sentences) > ALLOWANCE_REFUSED_MAX:
        sentences[ALLOWANCE_REFUSED_MAX:] = [f"and {len(sentences) - ALLOWANCE_REFUSED_MAX} more"]
    return Admitted(labels=kept_labels, templates=tuple(kept_templates), refused=tuple(sentences))


async def allow(conn: AsyncConnection, host_id: str, allowance: Allowance) -> None:
    """Let the host say of itself what ``allowance`` says from now on, and take back what it has said beyond that."""
    allowed = allowance_to_json(allowance)
    mine = hosts.c.host_id == host_id
    reported = (await conn.execute(select(hosts.c.allowed, hosts.c.labels, hosts.c.templates).where(mine))).one()
    if reported.allowed == allowed:
        return
    kept = admitted(allowance, reported.labels, templates_of(json.dumps(reported.templates)))
    await conn.execute(
        update(hosts)
        .where(mine)
        .values(
            allowed=allowed,
            labels=kept.labels,
            templates=[template_to_json(template) for template in kept.templates],
            refused=list(kept.refused),
            report_sequence=0,  # the next report is read as a whole, also where it holds nothing new
        )
    )


def _allows(patterns: tuple[str, ...] | None, name: str) -> bool:
    return patterns is None or any(fnmatchcase(name, pattern) for pattern in patterns)


def _patterns_text(patterns: tuple[str, ...] | None) -> str:
    return ", ".join(patterns or ()) or "none"
