"""The last minutes of a pool, for a chart and for a rehearsal."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from headway.control.http.schemas.responses import BucketPoint, ServiceTimePoint
from headway.scaling.measure import BucketRow, MovingSketch, in_order, merged, quantile_s, quantiles_s, sketch_value_s
from headway.scaling.metrics.unreported import NOTHING
from headway.scaling.profile import Profile


def bucket_points(
    rows: Sequence[BucketRow], profile: Profile, *, from_s: float, unknown: Collection[str] = NOTHING
) -> list[BucketPoint]:
    """One point for each 5 s since ``from_s`` in which any queue of the pool has a row, oldest first.

    Args:
        rows: Of the pool's queues, from a window of their objectives before ``from_s`` on.
        profile: The pool's.
        from_s: Unix seconds.
        unknown: Which events are not reported of one of the queues, as ``unreported`` has them.
    """
    pickups = _pickups(rows, profile)
    by_time: dict[float, list[BucketRow]] = defaultdict(list)
    for row in rows:
        if row.bucket_s >= from_s:
            by_time[row.bucket_s].append(row)
    return [_point(at_s, together, profile, pickups.get(at_s), unknown) for at_s, together in sorted(by_time.items())]


def longest_window_s(profile: Profile) -> float:
    """How much earlier than a chart the rows that it is made of begin."""
    return max(profile.objective_of(queue).window_s for queue in profile.queues)


def service_times(rows: Iterable[BucketRow]) -> list[ServiceTimePoint]:
    """How long the jobs that ended took, shortest first."""
    sketch = merged(row.service_sketch for row in rows)
    return [ServiceTimePoint(service_s=sketch_value_s(index), jobs=sketch[index]) for index in in_order(sketch)]


def _point(
    at_s: float, rows: list[BucketRow], profile: Profile, pickup: "Pickup | None", unknown: Collection[str]
) -> BucketPoint:
    has_arrivals, has_starts = "reports_arrivals" not in unknown, "reports_starts" not in unknown
    waiting_jobs = [row.waiting_jobs for row in rows if row.waiting_jobs is not None]
    ages_s = {row.queue: row.oldest_age_s for row in rows if row.oldest_age_s is not None}
    used = [age_s / profile.objective_of(queue).target_s for queue, age_s in ages_s.items()]
    return BucketPoint(
        at_s=at_s,
        waiting_jobs=sum(waiting_jobs) if waiting_jobs else None,
        oldest_age_s=max(ages_s.values(), default=None),
        pickup_p95_s=quantile_s(merged(row.pickup_sketch for row in rows), 95),
        pickup_p50_s=pickup.p50_s if pickup else None,
        pickup_objective_s=pickup.objective_s if pickup else None,
        oldest_wait_ratio=max(used, default=None),
        pickup_ratio=pickup.ratio if pickup else None,
        arrived_jobs=sum(row.arrived_jobs for row in rows) if has_arrivals else None,
        retried_jobs=sum(row.retried_jobs for row in rows) if has_arrivals else None,
        started_jobs=sum(row.started_jobs for row in rows) if has_starts else None,
    )


class Pickup(NamedTuple):
    """A pool's pickup times over the objective's window: the greatest of its queues, as in its metrics."""

    p50_s: float
    objective_s: float
    ratio: float
    """Of a queue's own objective."""


def _pickups(rows: Iterable[BucketRow], profile: Profile) -> Mapping[float, Pickup]:
    """Bucket -> the pool's pickup times at the bucket's end."""
    by_queue: dict[str, dict[float, BucketRow]] = defaultdict(dict)
    times: set[float] = set()
    for row in rows:
        by_queue[row.queue][row.bucket_s] = row
        times.add(row.bucket_s)
    found: dict[float, Pickup] = {}
    for queue, of_queue in by_queue.items():
        objective, window = profile.objective_of(queue), MovingSketch()
        starts = sorted(bucket_s for bucket_s, row in of_queue.items() if row.pickup_sketch)
        for at_s in sorted(times):
            inside = starts[bisect_right(starts, at_s - objective.window_s) : bisect_right(starts, at_s)]
            sketch = window.of({bucket_s: of_queue[bucket_s].pickup_sketch for bucket_s in inside})
            p50_s, objective_s = quantiles_s(sketch, (50, objective.percentile))
            if p50_s is not None and objective_s is not None:
                own = Pickup(p50_s, objective_s, objective_s / objective.target_s)
                found[at_s] = Pickup(*map(max, own, found.get(at_s, own)))
    return found
