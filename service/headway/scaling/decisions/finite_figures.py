"""Whether all figures of an evaluation are finite: no count of workers follows from NaN or infinity.

An evaluation compares pools with each other, and a comparison with NaN is wrong for every pool that takes part. So the
evaluation of a pool with such a figure has failed, and no other.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields
from itertools import repeat
from operator import attrgetter
from typing import Any

from headway.scaling.decisions.outcome import Outcome
from headway.scaling.model import DayBudget, DayPaid, Decision, QueueMetrics, QueueSample
from headway.scaling.view import PoolView

Kind = tuple[Iterable[str], Callable[[Any], Sequence[float | None]]]
"""The names of a value's figures, and what reads all of them."""


def _kind(of: type[Any]) -> Kind:
    names = tuple(each.name for each in fields(of) if each.type in (float, float | None))
    return names, attrgetter(*names)


VIEW, QUEUE, SAMPLE, DECISION, BUDGET, PAID = map(
    _kind, (PoolView, QueueMetrics, QueueSample, Decision, DayBudget, DayPaid)
)
ARRIVALS: Kind = (repeat("ended_ago_s of arrivals"), lambda rows: [row.ended_ago_s for row in rows])
DEMANDS: Kind = (repeat("slots of a demand"), lambda demands: [demand.slots for demand in demands])


def non_finite_in(view: PoolView) -> str | None:
    """The first figure of the view that is NaN or infinite, as ``oldest_age_s=nan of queue 'redis/mail'``.

    ``None`` if each figure is finite or unknown.
    """
    return _first_of(_in_view(view))


def non_finite_decided(outcome: Outcome) -> str | None:
    """The same of what an outcome holds beside its view: the decision, and what was remembered of the day's budget."""
    return _first_of(_in_decision(outcome))


Part = tuple[Kind, Any, str]
"""A value, its kind, and the queue that it is about; empty if it is about the pool."""


def _in_view(view: PoolView) -> Iterator[Part]:
    yield VIEW, view, ""
    for queue in view.queues:
        yield QUEUE, queue, queue.queue
        yield ARRIVALS, queue.arrivals, queue.queue
    for sample in view.direct:
        yield SAMPLE, sample, sample.queue


def _in_decision(outcome: Outcome) -> Iterator[Part]:
    decision = outcome.decision
    yield DECISION, decision, ""
    yield DEMANDS, decision.demands, ""
    for queue in decision.metrics:
        if not any(queue is known for known in outcome.view.queues):
            yield QUEUE, queue, queue.queue
    if decision.day_budget is not None:
        yield BUDGET, decision.day_budget, ""
    if outcome.before.day_paid is not None:
        yield PAID, outcome.before.day_paid, ""


def _first_of(parts: Iterable[Part]) -> str | None:
    for (names, figures_of), value, queue in parts:
        figures = figures_of(value)
        if _is_finite_sum(figures):
            continue
        for name, figure in zip(names, figures, strict=False):
            if figure is not None and not _is_finite(figure):
                return f"{name}={figure} of queue {queue!r}" if queue else f"{name}={figure}"
    return None


def _is_finite_sum(figures: Iterable[float | None]) -> bool:
    """Whether all figures are certainly finite. It is quick; a sum of finite figures may be infinite."""
    try:
        return math.isfinite(sum(filter(None, figures)))
    except OverflowError:
        return False


def _is_finite(figure: float) -> bool:
    try:
        return math.isfinite(figure)
    except OverflowError:  # a whole number that no float can hold
        return False
