"""Samples that come directly from the collectors: on stale rows they may raise a count, and never lower it."""

from dataclasses import replace

from headway.scaling.model import QueueMetrics, QueueSample
from headway.scaling.model.due_jobs import delayed_from


def overlaid(queue: QueueMetrics, sample: QueueSample | None) -> QueueMetrics:
    """``queue`` with depths and age from ``sample``, where that is newer."""
    if sample is None or (queue.sampled_at_s is not None and queue.sampled_at_s >= sample.at_s):
        return queue
    return replace(
        queue,
        sampled_at_s=sample.at_s,
        waiting_jobs=sample.waiting_jobs,
        overdue_jobs=sample.overdue_jobs,
        in_flight_jobs=sample.in_flight_jobs,
        delayed_jobs=sample.delayed_jobs,
        delayed=tuple(delayed_from(sample.due)),
        oldest_age_s=sample.oldest_age_s,
        oldest_age_max_s=sample.oldest_age_max_s,
        reserved_jobs=sample.reserved_jobs,
        waiting_min_jobs=sample.waiting_min_jobs,
        in_flight_min_jobs=sample.in_flight_min_jobs,
    )
