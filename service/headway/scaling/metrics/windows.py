"""What a queue, or one job class of it, did over a longer window: from its buckets or from their rollups alike.

Deciding reads the last minutes by ``measure.queue_metrics``. This is for whoever reads further back, sizes a pool,
or feeds a queueing model.
"""

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from headway.scaling.arithmetic import HOUR_S, MINUTE_S
from headway.scaling.measure import BUCKET_S, PERCENTILES, BucketRow, merged, quantiles_s, sketch_value_s
from headway.scaling.metrics.unreported import NOTHING
from headway.scaling.view import copied

WINDOWS_S = (MINUTE_S, 300.0, 900.0, HOUR_S)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningTime:
    """How long jobs that have not ended have run, as far as their worker has said. Times are Unix seconds."""

    started_at_s: float
    known_at_s: float
    """Since then they may have ended."""
    jobs: int = 1

    def within_s(self, *, from_s: float, until_s: float) -> float:
        """What of that is between these times, of all jobs together."""
        return self.jobs * max(0.0, min(until_s, self.known_at_s) - max(from_s, self.started_at_s))


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowMetrics:
    """One window of one queue or job class. Rates are per second of it; ``None`` is not known."""

    from_s: float
    until_s: float
    measured_s: float
    """Of it, the part since its queues were first read or reported: all, but for new queues. Rates are of this part."""
    span_s: float
    """How long the buckets are that ``arrivals`` counts by."""
    arrived_jobs: float | None
    started_jobs: float | None
    finished_jobs: float | None
    failed_jobs: float | None
    """Jobs whose last attempt failed."""
    retried_attempts: float | None
    """Attempts that failed and are followed by another one of the same job."""
    retried_jobs: float | None
    """Of ``arrived_jobs``, those of a second attempt or a later one."""
    arrival_rate_per_s: float | None
    start_rate_per_s: float | None
    completion_rate_per_s: float | None
    failure_share: float | None
    """Of the jobs that ended for good: an attempt that is tried again is none of them."""
    retry_share: float | None
    """Of the jobs that started: how many came back for another attempt."""
    service_time_s: float | None
    service_variance_s2: float | None
    service_scv: float | None
    """Squared coefficient of variation of service times: 0 where all are alike, 1 where they are exponential."""
    service_p50_s: float | None
    service_p95_s: float | None
    service_p99_s: float | None
    pickup_time_s: float | None
    pickup_p50_s: float | None
    pickup_p95_s: float | None
    pickup_p99_s: float | None
    pickup_max_s: float | None
    busy_slots: float | None
    """Busy on average: the service time of the jobs that ended, and how long those have run that run, a second.
    ``None`` where none is known."""
    utilization: float | None
    """Of the slots that ran. ``None`` where they are not known."""
    arrival_trend_per_s2: float | None
    """How fast the arrival rate grows, by the least-squares line; ``None`` of fewer than two whole spans."""
    arrival_dispersion: float | None
    """Variance of the arrivals a span over their mean: 1 where they come at random, more where they come in bursts."""
    arrivals: tuple[int, ...]
    """Arrivals of each whole span in the window, oldest first, to begin a forecast with; empty: not known."""


COUNTED: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "reports_arrivals": (
            "arrived_jobs",
            "retried_jobs",
            "arrival_rate_per_s",
            "retry_share",
            "arrival_trend_per_s2",
            "arrival_dispersion",
        ),
        "reports_starts": ("started_jobs", "start_rate_per_s", "retry_share"),
        "reports_ends": (
            "finished_jobs",
            "failed_jobs",
            "retried_attempts",
            "completion_rate_per_s",
            "failure_share",
            "busy_slots",
            "utilization",
        ),
    }
)
"""What of a window the events are counted for that a source reports, or does not."""


def window_metrics(
    rows: Sequence[BucketRow],
    *,
    until_s: float,
    window_s: float,
    since_s: float | None = None,
    running_slots: float | None = None,
    running: Sequence[RunningTime] = (),
    unknown: Collection[str] = NOTHING,
) -> WindowMetrics:
    """What ``rows`` of one queue, or of one job class, say of (until - window, until].

    The running bucket counts as far as it has come, and of the one that the window begins in, the part inside;
    quantiles and moments are of every row that has one. Spans may be mixed, as long as they do not overlap: the old in
    minutes or hours, the last of them in buckets of 5 s. Rows of several queues are taken together.

    Args:
        rows: Those of the window, and any others.
        until_s: Unix seconds: now, or where a span of the rows ends.
        window_s: Its length.
        since_s: When the first of its queues was read or reported first; ``None``: long before.
        running_slots: How many slots ran on average, where that is known.
        running: The jobs that run, where they are known: those that ended are in ``rows``.
        unknown: Which events are not reported, as ``unreported`` has them.
    """
    from_s = until_s - window_s
    measured_s = window_s if since_s is None else min(window_s, max(BUCKET_S, until_s - since_s))
    inside = [row for row in rows if row.bucket_s < until_s and row.bucket_s + row.span_s > from_s]
    shares = [(row, min(1.0, (row.bucket_s + row.span_s - from_s) / row.span_s)) for row in inside]

    def jobs(name: str) -> float:
        return math.fsum(share * getattr(row, name) for row, share in shares)

    finished, failed, started, retried = map(jobs, ("finished_jobs", "failed_jobs", "started_jobs", "retried_jobs"))
    ended = jobs("ended_jobs")
    services = merged(row.service_sketch for row in inside)
    pickups = merged(row.pickup_sketch for row in inside)
    service_s, variance_s2 = _service_moments(inside, services)
    busy_slots = None
    if services or not ended:
        busy_s = jobs("service_sum_s") + math.fsum(each.within_s(from_s=from_s, until_s=until_s) for each in running)
        busy_slots = busy_s / measured_s
    service_p50_s, service_p95_s, service_p99_s = quantiles_s(services, PERCENTILES)
    pickup_p50_s, pickup_p95_s, pickup_p99_s = quantiles_s(pickups, PERCENTILES)
    span_s = max((row.span_s for row in inside), default=window_s)
    arrivals = _arrivals(inside, from_s=from_s, until_s=until_s, span_s=span_s)
    seen = WindowMetrics(
        from_s=from_s,
        until_s=until_s,
        measured_s=measured_s,
        span_s=span_s,
        arrived_jobs=jobs("arrived_jobs"),
        started_jobs=started,
        finished_jobs=finished,
        failed_jobs=failed,
        retried_attempts=jobs("retried_attempts"),
        retried_jobs=retried,
        arrival_rate_per_s=jobs("arrived_jobs") / measured_s,
        start_rate_per_s=started / measured_s,
        completion_rate_per_s=ended / measured_s,
        failure_share=_ratio(failed, finished + failed),
        retry_share=_ratio(retried, started),
        service_time_s=service_s,
        service_variance_s2=variance_s2,
        service_scv=None if variance_s2 is None or not service_s else variance_s2 / service_s**2,
        service_p50_s=service_p50_s,
        service_p95_s=service_p95_s,
        service_p99_s=service_p99_s,
        pickup_time_s=_ratio(_moment(pickups, 1), sum(pickups.values())),
        pickup_p50_s=pickup_p50_s,
        pickup_p95_s=pickup_p95_s,
        pickup_p99_s=pickup_p99_s,
        pickup_max_s=max((row.pickup_max_s for row in inside if row.pickup_max_s is not None), default=None),
        busy_slots=busy_slots,
        utilization=None if busy_slots is None or running_slots is None else _ratio(busy_slots, running_slots),
        arrival_trend_per_s2=_trend_per_s2(arrivals, span_s=span_s),
        arrival_dispersion=_dispersion(arrivals),
        arrivals=() if "reports_arrivals" in unknown else arrivals,
    )
    return copied(seen, **dict.fromkeys(name for events in unknown for name in COUNTED[events]))


def _service_moments(rows: Sequence[BucketRow], services: Mapping[int, int]) -> tuple[float | None, float | None]:
    """Mean and variance of the service times.

    The mean is exact. Their squares come from the sketch, each within 2 %: so 1 + the squared coefficient of variation,
    which is what queueing models take, errs by 2 % at most. Of jobs that are all alike it may show 0.02.
    """
    count = sum(services.values())
    mean_s = _ratio(math.fsum(row.service_sum_s for row in rows), count)
    if mean_s is None:
        return None, None
    return mean_s, max(0.0, _moment(services, 2) / count - mean_s**2)


def _moment(sketch: Mapping[int, int], power: int) -> float:
    return math.fsum(count * sketch_value_s(index) ** power for index, count in sketch.items())


def _ratio(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def _arrivals(rows: Sequence[BucketRow], *, from_s: float, until_s: float, span_s: float) -> tuple[int, ...]:
    """Arrivals of the whole spans between; one without a row had none."""
    first, end = math.ceil(from_s / span_s), math.floor(until_s / span_s)
    jobs: Counter[int] = Counter()
    for row in rows:
        jobs[math.floor(row.bucket_s / span_s)] += row.arrived_jobs
    return tuple(jobs[number] for number in range(first, end))


def _trend_per_s2(arrivals: Sequence[int], *, span_s: float) -> float | None:
    count = len(arrivals)
    if count < 2:
        return None
    middle = (count - 1) / 2
    slant = math.fsum((number - middle) * jobs for number, jobs in enumerate(arrivals))
    return slant / span_s**2 / (count * (count**2 - 1) / 12)


def _dispersion(arrivals: Sequence[int]) -> float | None:
    if len(arrivals) < 2 or not sum(arrivals):
        return None
    mean = sum(arrivals) / len(arrivals)
    return math.fsum((jobs - mean) ** 2 for jobs in arrivals) / (len(arrivals) - 1) / mean
