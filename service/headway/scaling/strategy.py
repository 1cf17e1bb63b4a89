"""What a strategy is: a named function from what is seen of a pool to demands, and how its count comes down."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from headway.scaling.explanations.wording import Wording
from headway.scaling.model import Demand, Note, NoteKind, QueueMetrics
from headway.scaling.policy.limit import Rule
from headway.scaling.policy.stabilization import hold_down
from headway.scaling.view import PoolView

State = Mapping[str, Any]
"""What a strategy wants to be given next time: values that JSON knows or dataclasses of such, never changed in place.

A dataclass comes back as itself, or, once it was stored, as a mapping.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """What a strategy makes of one evaluation of a pool."""

    demands: tuple[Demand, ...]
    """In slots; they compete and the greatest wins. At least one."""
    state: State = field(default_factory=dict)
    burst_workers: int = 0
    """How many of the workers wanted exit by themselves when the queue is empty."""
    notes: tuple[str | Note, ...] = ()
    """Sentences without their full stops. A ``Note`` says what of it is news; the words of a plain one never are."""
    enough_slots: int | None = None
    """As many always there would do: slots beyond these are not held. ``None``: what was wanted may be wanted again."""
    burst_jobs: float | None = None
    """The fewest jobs beyond the rate to be ready for in a tick, so that no more than the objective's share of all jobs
    are late; ``None``: not known."""


def note_of(given: str | Note) -> Note:
    """What a strategy notes, as a note of a decision."""
    return given if isinstance(given, Note) else Note(kind=NoteKind.STRATEGY, text=given)


def is_empty(state: State, now_s: float) -> bool:  # noqa: ARG001 - an empty state has no clock
    """Whether nothing is kept: what is kept may hold times, and be read against the clock."""
    return not state


Advise = Callable[[QueueMetrics, PoolView, State, float], Advice]
"""From the pool's queues seen as one, the pool, the state that it left last time and the time, Unix seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Strategy:
    """A way to size a pool, found by its name."""

    name: str
    advise: Advise
    options: Mapping[str, float] = field(default_factory=dict)
    """Its own numbers and their defaults; a profile's ``strategy_options`` replace them one by one."""
    come_down: Rule = hold_down
    """How a lower count is taken. Raising it here is against the rules of limits: it only ever holds."""
    formulas: Mapping[str, Callable[[Mapping[str, float]], float]] = field(default_factory=dict)
    """By the name of a demand: its slots out of its terms. A demand without terms has none."""
    is_clockless: bool = False
    """Whether, while it leaves no state, the same metrics and view get the same advice at any time.

    Then an idle pool's decision stands.
    """
    is_at_rest: Callable[[State, float], bool] = is_empty
    """Whether a state says the same at this time as when it was left, while nothing arrives."""
    wording: Wording = field(default_factory=Wording)
    """The words for demands and limits of its own."""
