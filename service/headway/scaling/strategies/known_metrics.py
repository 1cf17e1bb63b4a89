"""What strategies of other makers read off a pool: numbers for metrics that may be unknown, whole workers as slots."""

from headway.scaling.model import Demand, QueueMetrics
from headway.scaling.view import PoolView

KNOWN_RATE_MIN_PER_S = 1e-9  # a job in thirty years: what a difference of rates leaves of nothing


def served_per_s(queue: QueueMetrics) -> float:
    """Jobs that ended well, per second."""
    rate_per_s = (queue.completion_rate_per_s or 0.0) - (queue.failure_rate_per_s or 0.0)
    return rate_per_s if rate_per_s > KNOWN_RATE_MIN_PER_S else 0.0


def failure_percent(queue: QueueMetrics) -> float:
    """Of the jobs that ended, those that failed."""
    ended_per_s = queue.completion_rate_per_s or 0.0
    return 100.0 * (queue.failure_rate_per_s or 0.0) / ended_per_s if ended_per_s > 0 else 0.0


def seen_workers(view: PoolView) -> int:
    """Those that run and those that start."""
    return view.running_workers + view.starting_workers


def idle_workers(view: PoolView) -> int:
    """Running workers without a job. Where it is not known which have one, all of them may."""
    return 0 if view.busy_workers is None else max(0, view.running_workers - view.busy_workers)


def active_slots(view: PoolView) -> int:
    """What the running workers can do at once."""
    return view.running_workers * view.slots_per_worker


def in_workers(name: str, workers: float, view: PoolView) -> Demand:
    """A demand for so many workers, in slots."""
    return Demand(name=name, slots=max(0.0, workers) * view.slots_per_worker)
