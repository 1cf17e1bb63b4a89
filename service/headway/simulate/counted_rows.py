"""An observation that has counts alone, as the rows of 5 s by which a controller reads every queue."""

from collections.abc import Iterator

from headway.scaling.measure import SERVICE_WINDOW_S, BucketRow
from headway.simulate.bucket_view import BUCKET_EDGE_S, Depths, edges_s, row_of
from headway.simulate.observation import Observation


def counted_rows(queue: str, seen: Observation, *, since_s: float) -> Iterator[BucketRow]:
    """The rows of an observation that has counts alone: what happened after ``since_s`` (Unix seconds) happened evenly.

    Of the waits only the longest is known. The first job that started had waited so long, and those that started after
    it came later, evenly over the same time. What no window reaches any more has no row.
    """
    passed_s = max(seen.at_s - since_s, BUCKET_EDGE_S)
    counts = (seen.arrived, seen.retried, seen.started, seen.finished)

    def so_far(at_s: float) -> tuple[int, ...]:
        return counts if at_s == seen.at_s else tuple([int(count * (at_s - since_s) / passed_s) for count in counts])

    def wait_s(job: int) -> float:
        return max(0.0, (seen.pickup_max_s or 0.0) - passed_s * job / seen.started)

    from_s = max(since_s, seen.at_s - SERVICE_WINDOW_S)
    done = so_far(from_s) if from_s > since_s else (0, 0, 0, 0)
    ends_s = (from_s + edge_s for edge_s in edges_s(0.0, seen.at_s - from_s, begins_at_s=from_s))
    for at_s in (*ends_s, seen.at_s):
        before, done = done, so_far(at_s)
        arrived, retried, started, finished = (count - earlier for count, earlier in zip(done, before, strict=True))
        yield row_of(
            queue,
            at_s=at_s,
            counts=(arrived, retried, started, finished),
            service_sum_s=seen.service_sum_s * finished / seen.finished if finished else 0.0,
            pickups_s=[] if seen.pickup_max_s is None else [wait_s(job) for job in range(before[2], done[2])],
            depths=depths_of(seen) if at_s == seen.at_s else None,
        )


def depths_of(seen: Observation) -> Depths:
    """How the queue stood when it was observed; a busy worker of which no more is known has one job in flight."""
    in_flight = seen.busy if seen.in_flight is None else seen.in_flight
    return seen.waiting, in_flight, seen.oldest_age_s if seen.waiting else 0.0
