"""The queues of a pool seen as one queue."""

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from headway.scaling.arithmetic import MINUTE_S
from headway.scaling.model import QueueMetrics
from headway.scaling.reading.sample_age import is_seen

Number = TypeVar("Number", int, float)


def pooled(queues: Sequence[QueueMetrics]) -> QueueMetrics:
    """The members seen as one queue: counts and rates add, ages and waits are the greatest.

    The service time is the members' mean weighted by their completions. What no member knows stays ``None``. So do the
    jobs that wait, are in flight or are delayed where one member does not know them: the others' sum is then a lower
    bound.
    """
    seen = [queue for queue in queues if is_seen(queue)]
    if len(seen) == 1:
        return seen[0]
    return QueueMetrics(
        queue="+".join(queue.queue for queue in queues),
        sampled_at_s=min((queue.sampled_at_s for queue in seen if queue.sampled_at_s is not None), default=None),
        window_s=max((queue.window_s for queue in seen), default=MINUTE_S),
        waiting_jobs=_exact(seen, "waiting_jobs"),
        waiting_min_jobs=_least(seen, "waiting_jobs", "waiting_least_jobs"),
        overdue_jobs=sum([queue.overdue_jobs for queue in seen]),
        in_flight_jobs=_exact(seen, "in_flight_jobs"),
        in_flight_min_jobs=_least(seen, "in_flight_jobs", "in_flight_least_jobs"),
        delayed_jobs=_exact(seen, "delayed_jobs"),
        delayed=tuple(sorted((each for queue in seen for each in queue.delayed), key=lambda each: each.due_in_s)),
        reserved_jobs=_total(queue.reserved_jobs for queue in seen),
        oldest_age_s=_oldest_age_s(seen),
        oldest_age_max_s=_greatest_bound_s(seen),
        has_unknown_rates=any(queue.has_unknown_rates for queue in seen),
        in_flight_mean_jobs=_exact(seen, "in_flight_mean_jobs"),
        arrived_jobs=_total(queue.arrived_jobs for queue in seen),
        retried_jobs=_total(queue.retried_jobs for queue in seen),
        arrived_until_s=_greatest(queue.arrived_until_s for queue in seen),
        start_rate_per_s=_total_rate(seen, "start_rate_per_s"),
        late_rate_per_s=_total_rate(seen, "late_rate_per_s"),
        arrival_rate_per_s=_total_rate(seen, "arrival_rate_per_s"),
        retry_rate_per_s=_total_rate(seen, "retry_rate_per_s"),
        completion_rate_per_s=_total_rate(seen, "completion_rate_per_s"),
        failure_rate_per_s=_total_rate(seen, "failure_rate_per_s"),
        arrival_trend_per_s2=_total_rate(seen, "arrival_trend_per_s2"),
        service_time_s=_mean_service_time_s(seen),
        service_batch_s=_greatest(queue.service_batch_s for queue in seen),
        service_p95_s=_greatest(queue.service_p95_s for queue in seen),
        pickup_p50_s=_greatest(queue.pickup_p50_s for queue in seen),
        pickup_p95_s=_greatest(queue.pickup_p95_s for queue in seen),
        pickup_p99_s=_greatest(queue.pickup_p99_s for queue in seen),
        pickup_objective_s=_greatest(queue.pickup_objective_s for queue in seen),
        arrivals=tuple(
            sorted((each for queue in seen for each in queue.arrivals), key=lambda arrivals: arrivals.ended_ago_s)
        ),
    )


def _total(values: Iterable[Number | None]) -> Number | None:
    known = [value for value in values if value is not None]
    return sum(known[1:], start=known[0]) if known else None


def _exact(queues: Sequence[QueueMetrics], name: str) -> Any:
    """The sum of a figure; ``None`` where that of a member is not known."""
    values = [getattr(queue, name) for queue in queues]
    return None if None in values or not values else sum(values)


def _least(queues: Sequence[QueueMetrics], exact: str, least: str) -> int | None:
    """The sum of what the members have at least; ``None`` where each of them knows its figure."""
    if all(getattr(queue, exact) is not None for queue in queues):
        return None
    return sum([int(getattr(queue, least)) for queue in queues])


def _total_rate(queues: Sequence[QueueMetrics], name: str) -> float | None:
    """The sum of a rate; ``None`` where that of a member is not known: without it the sum is too small."""
    if any(queue.has_unknown_rates and getattr(queue, name) is None for queue in queues):
        return None
    return _total(getattr(queue, name) for queue in queues)


def _oldest_age_s(queues: Sequence[QueueMetrics]) -> float | None:
    """The greatest age; ``None`` rather than 0 where jobs of a member may wait, for how long is unknown."""
    oldest_s = _greatest(queue.oldest_age_s for queue in queues)
    return (
        oldest_s if oldest_s or all(queue.oldest_age_s is not None or queue.is_wait_known for queue in queues) else None
    )


def _greatest_bound_s(queues: Sequence[QueueMetrics]) -> float | None:
    """The most that the oldest age may be; ``None`` where no member's age is less than exact."""
    if all(queue.oldest_age_max_s is None for queue in queues):
        return None
    return _greatest(
        queue.oldest_age_s if queue.oldest_age_max_s is None else queue.oldest_age_max_s for queue in queues
    )


def _greatest(values: Iterable[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)


def _mean_service_time_s(queues: Sequence[QueueMetrics]) -> float | None:
    timed = [(queue.service_time_s, queue.completion_rate_per_s or 0.0) for queue in queues if queue.service_time_s]
    if not timed:
        return None
    weight = sum(rate for _, rate in timed)
    if weight <= 0:
        return max(service_s for service_s, _ in timed)
    return sum(service_s * rate for service_s, rate in timed) / weight
