"""The documented alert rules, evaluated on an answer of ``/metrics``: as much of Prometheus's language as they use."""

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from prometheus_client.parser import text_string_to_metric_families

RULES = Path(__file__).parents[2] / "docs/reference/alerts.yml"
EXPRESSION = re.compile(
    r"(?:(?P<function>increase)\()?(?P<metric>\w+)(?:\{(?P<labels>[^}]*)\})?(?:\[\w+\]\))?"
    r" (?P<than>==|>) (?P<bound>\d+)"
)
LABEL = re.compile(r'(\w+)(=~?|!=)"([^"]*)"')
COMPARED: Mapping[str, Callable[[float, float], bool]] = {"==": operator.eq, ">": operator.gt}
SECONDS = {"s": 1, "m": 60, "h": 3600}

Samples = list[tuple[str, dict[str, str], float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One alert."""

    name: str
    expression: str
    for_s: float
    function: str | None
    metric: str
    labels: tuple[tuple[str, str, str], ...]
    """Name, ``=``, ``=~`` or ``!=``, and what it must be, or not."""
    than: str
    bound: float

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> "Rule":
        """The rule of a row in the file. Refuses an expression that says more than is understood here."""
        found = EXPRESSION.fullmatch(row["expr"])
        assert found, row["expr"]
        return cls(
            name=row["alert"],
            expression=row["expr"],
            for_s=float(row["for"][:-1]) * SECONDS[row["for"][-1]],
            function=found["function"],
            metric=found["metric"],
            labels=tuple(LABEL.findall(found["labels"] or "")),
            than=found["than"],
            bound=float(found["bound"]),
        )

    def pending(self, samples: Samples, before: Samples) -> list[dict[str, str]]:
        """The labels of each series of which it is true; ``before`` is the first answer, for what has grown since."""
        earlier = {(name, *sorted(labels.items())): value for name, labels, value in before}
        found = []
        for name, labels, value in samples:
            if name != self.metric or not all(self._fits(labels, *each) for each in self.labels):
                continue
            since = earlier.get((name, *sorted(labels.items())), 0.0) if self.function else 0.0
            if COMPARED[self.than](value - since, self.bound):
                found.append(labels)
        return found

    @staticmethod
    def _fits(labels: Mapping[str, str], name: str, how: str, wanted: str) -> bool:
        said = labels.get(name, "")
        if how == "=~":
            return bool(re.fullmatch(wanted, said))
        return (said == wanted) is (how == "=")


@cache
def rules() -> list[Rule]:
    """Every rule of the file's first group: those that compare one series with a number."""
    group, *_ = yaml.safe_load(RULES.read_text())["groups"]
    return [Rule.of(row) for row in group["rules"]]


def scraped(text: str | None) -> Samples:
    """What Prometheus stores of an answer, its own ``up`` included; ``None`` is no answer."""
    up: Samples = [("up", {"job": "headway"}, float(text is not None))]
    families = text_string_to_metric_families(text or "")
    return up + [(each.name, dict(each.labels), each.value) for family in families for each in family.samples]
