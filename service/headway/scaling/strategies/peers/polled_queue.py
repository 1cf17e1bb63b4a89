"""What the predecessor's formulas are given of a queue."""

from headway.scaling.model import QueueMetrics
from headway.scaling.strategies.known_metrics import served_per_s
from headway.scaling.strategies.peers.formulas.target_sizing import Polled
from headway.scaling.view import PoolView


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
