"""Which terms can be left out together: backwards, while attainment and cost hardly change."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, geometric_mean

from closed_loop.ablated import Outcome, Without, Workload

FALL_MAX_POINTS = 0.05
RISE_MAX = 0.01
ROUNDING = 1e-9

Row = Mapping[Workload, Outcome]
"""What each workload came to without the terms of one row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What a row differs in from the whole strategy, on the workloads that both were run on."""

    workloads: int
    percent: float
    """Mean attainment."""
    fall_points: float
    """How much higher the mean attainment of the whole strategy is."""
    cost: float
    """Geometric mean of worker-hours ÷ those of the whole strategy."""
    starts: float
    """The same of starts of workers."""

    @property
    def is_affordable(self) -> bool:
        """Whether the terms of the row may go."""
        return self.fall_points <= FALL_MAX_POINTS + ROUNDING and self.cost <= 1 + RISE_MAX + ROUNDING

    @property
    def loss(self) -> float:
        """How much of what is permitted the row takes, by the worse of both figures: 1 is all of it."""
        return max(self.fall_points / FALL_MAX_POINTS, (self.cost - 1) / RISE_MAX)


def change(row: Row, nothing: Row) -> Change | None:
    """The change from ``nothing`` to ``row``; ``None`` if no workload was run in both."""
    both = [workload for workload in nothing if workload in row]
    if not both:
        return None
    percent = fmean(row[workload].percent for workload in both)
    return Change(
        workloads=len(both),
        percent=percent,
        fall_points=fmean(nothing[workload].percent for workload in both) - percent,
        cost=geometric_mean(cost(row[workload], nothing[workload]) for workload in both),
        starts=geometric_mean(max(1, row[workload].starts) / max(1, nothing[workload].starts) for workload in both),
    )


def cost(found: Outcome, whole: Outcome) -> float:
    """Worker-hours ÷ those of the whole strategy."""
    return found.worker_hours / whole.worker_hours


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One more term left out, beside those that were left out before."""

    term: str
    without: Without
    change: Change


def elimination_steps(candidates: Sequence[str], row_of: Callable[[Without], Row]) -> Iterator[Step]:
    """Leave out ``candidates`` one after another, that which loses least first, and show what each step comes to.

    A term whose step is not affordable stays in, and the next is tried without it. A row that was not run ends it.
    """
    nothing = row_of(frozenset())
    alone = {term: change(row_of(frozenset({term})), nothing) for term in candidates}
    losses = {term: found.loss for term, found in alone.items() if found is not None}
    out: Without = frozenset()
    for term in sorted(losses, key=lambda term: losses[term]):
        without = out | {term}
        found = change(row_of(without), nothing)
        if found is None:
            return
        yield Step(term=term, without=without, change=found)
        out = without if found.is_affordable else out
