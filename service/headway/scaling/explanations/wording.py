"""How a strategy words its demands and limits for people."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum

from headway.scaling.explanations.phrases import slots_text, words
from headway.scaling.model import Decision, Demand, Step


class Grounds(Enum):
    """Which figures of its queues a demand follows from: a short reason names them before the demand."""

    DEPTHS = "depths"
    """What waits and runs."""
    RATES = "rates"
    """What arrives, and its service time."""


@dataclass(frozen=True, slots=True)
class DemandWording:
    """A demand for people."""

    clause: str
    """What it asks for, without a capital and a full stop; ``{slots}`` stands for its slots."""
    label: str | None = None
    """A few words for it; ``None``: its name."""
    grounds: Grounds | None = None


LimitSentence = Callable[[Step, Step, Decision], str]
"""From the step before a limit, the step that it left and their decision; called where the two counts differ."""


@dataclass(frozen=True, slots=True)
class LimitWording:
    """A limit for people."""

    sentence: str | LimitSentence
    """In it ``{before}`` and ``{after}`` stand for the two counts, and ``{fewer}`` for the first, as ``None`` at 0."""
    label: str | None = None
    """A few words for it; ``None``: its name."""

    def text(self, before: Step, after: Step, decision: Decision) -> str:
        """The sentence for a limit that took the count from ``before`` to ``after``."""
        if not isinstance(self.sentence, str):
            return self.sentence(before, after, decision)
        return self.sentence.format(before=before.workers, after=after.workers, fewer=before.workers or "None")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wording:
    """The words for demands and limits, by their names. A demand or limit without is shown by its name."""

    demands: Mapping[str, DemandWording] = field(default_factory=dict)
    limits: Mapping[str, LimitWording] = field(default_factory=dict)

    def clause(self, demand: Demand) -> str:
        """What ``demand`` asks for, as a part of a sentence."""
        known, slots = self.demands.get(demand.name), slots_text(demand.slots)
        return f"{words(demand.name)} wants {slots}" if known is None else known.clause.format(slots=slots)

    def label(self, name: str) -> str:
        """A few words for the demand or limit ``name``."""
        known = self.demands.get(name) or self.limits.get(name)
        return words(name) if known is None or known.label is None else known.label
