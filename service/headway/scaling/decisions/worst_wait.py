"""The wait that an objective is compared with: the worst of three, so that no sample hides a stall."""

from headway.scaling.model import Decision, QueueMetrics
from headway.scaling.view import pooled


def worst_wait_s(decision: Decision) -> float | None:
    """The worst of what finished jobs waited, what the oldest has waited and what a new one will.

    Samples of finished jobs alone would hide a stall: while nothing starts, nothing is sampled.
    """
    queue: QueueMetrics = pooled(decision.metrics)
    known = [queue.pickup_objective_s, queue.oldest_age_s, decision.predicted_pickup_s]
    return max((wait_s for wait_s in known if wait_s is not None), default=None)
