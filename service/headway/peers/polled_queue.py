"""What other makers' formulas are given of a queue: a number also for a metric that is unknown."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from headway.peers.formulas.target_sizing import Polled, Sized
from headway.scaling.demands.formulas import Formula, Terms
from headway.scaling.model import Demand, QueueMetrics
from headway.scaling.view import PoolView

KNOWN_RATE_MIN_PER_S = 1e-9  # a job in thirty years: what a difference of rates leaves of nothing


def polled(queue: QueueMetrics, view: PoolView) -> Polled:
    """What the predecessor's formulas take, by the options of the pool's strategy."""
    return Polled(
        rate_per_s=served_per_s(queue),
        backlog_jobs=queue.waiting_least_jobs,
        oldest_age_s=queue.oldest_age_s or 0.0,
        objective_s=view.profile.objective.target_s,
        threshold=view.options.get("breach_threshold", 0.0),
        measured_s=queue.service_time_s or 0.0,
        fallback_s=view.options.get("service_guess_s", 0.0),
    )


def polled_of(terms: Terms) -> Polled:
    """What ``terms`` have of a ``Polled``."""
    return Polled(**{name: terms[name] for name in Polled.__dataclass_fields__})  # type: ignore[arg-type]


def formulas_of(sized: Callable[[Terms], Sized], parts: Mapping[str, str]) -> Mapping[str, Formula]:
    """The formula of each demand in ``parts``: the part of that name of what ``sized`` makes of the terms."""
    return MappingProxyType({name: _part(sized, part) for name, part in parts.items()})


def _part(sized: Callable[[Terms], Sized], part: str) -> Formula:
    return lambda terms: float(getattr(sized(terms), part))


def demands_of(formulas: Mapping[str, Formula], terms: Terms) -> tuple[Demand, ...]:
    """A demand for each of ``formulas``, all of the same terms."""
    return tuple(Demand(name=name, slots=formula(terms), terms=terms) for name, formula in formulas.items())


def served_per_s(queue: QueueMetrics) -> float:
    """Jobs that ended well, per second."""
    rate_per_s = (queue.completion_rate_per_s or 0.0) - (queue.failure_rate_per_s or 0.0)
    return rate_per_s if rate_per_s > KNOWN_RATE_MIN_PER_S else 0.0


def failure_percent(queue: QueueMetrics) -> float:
    """Of the jobs that ended, those that failed."""
    ended_per_s = queue.completion_rate_per_s or 0.0
    return 100.0 * (queue.failure_rate_per_s or 0.0) / ended_per_s if ended_per_s > 0 else 0.0


def active_slots(view: PoolView) -> int:
    """The number of jobs that the running workers can run at the same time."""
    return view.running_workers * view.slots_per_worker
