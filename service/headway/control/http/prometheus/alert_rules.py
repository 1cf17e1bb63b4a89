"""The rules of Prometheus that docs/reference/alerts.yml is made of: those of the table of conditions.

`python -m headway.control.http.prometheus.alert_files docs/reference` writes it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from headway.scaling.conditions.condition import Condition, Subject
from headway.scaling.conditions.condition_table import CONDITIONS

SUBJECTS = {
    Subject.POOL: "pool {{ $labels.pool }} ",
    Subject.HOST: "host {{ $labels.host }} ",
    Subject.INSTALLATION: "",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertRule:
    """A rule of Prometheus, with the urgency and the sentence of its condition."""

    name: str
    expression: str
    for_s: float
    severity: str
    summary: str


def _rules(*, is_composed: bool) -> Iterator[AlertRule]:
    sharing: dict[str, list[Condition]] = {}
    for each in CONDITIONS.values():
        if each.alert is not None and each.alert.is_composed is is_composed:
            sharing.setdefault(each.alert.name, []).append(each)
    for name, (first, *_) in sharing.items():
        alert, severity = first.alert, first.severity
        assert alert is not None, "chosen by it"
        assert severity is not None, name
        yield AlertRule(
            name=name,
            expression=alert.expression,
            for_s=alert.for_s,
            severity=severity,
            summary=alert.summary or f"{SUBJECTS[first.subject]}{first.sentence}",
        )


SIMPLE: Sequence[AlertRule] = tuple(_rules(is_composed=False))
"""Each of one series, compared with a number."""
COMPOSED: Sequence[AlertRule] = tuple(_rules(is_composed=True))
"""Each of several series, or of a difference."""
