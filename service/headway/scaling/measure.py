"""What each metric is, once: the rows of buckets, and what windows of them say.

A bucket is a span of 5 s of one queue. Its row is absolute: written twice, it changes nothing. Counts of a window are
sums over buckets, and quantiles come from sketches that merge by adding. Each job class of a queue has a row a minute
beside the queue's own rows, of the jobs of that class alone. Spark computes the rows from events and samples; property
tests hold them to plain Python (tests/support/defined_rows.py).

What is reported twice counts twice: a batch that is sent again is refused where it enters, and an event inside it is
what its producer says. What is at no time, or in no queue, belongs to no bucket and is left out; a duration that ends
before it begins is 0, because two clocks stamped it; and one whose beginning is at no time is not known.
"""

import math
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from operator import attrgetter, itemgetter
from typing import Any, TypeGuard

from headway.scaling.arithmetic import MINUTE_S, PERCENT
from headway.scaling.model import Arrivals, Objective, QueueMetrics
from headway.scaling.sketch_edges import BEYOND, EDGE_OF, bounds_s, place, plain_index

BUCKET_S = 5.0
CLASS_BUCKET_S = MINUTE_S  # a job class says how jobs differ, which nothing needs within seconds: a twelfth of the rows
LATEST_S = 4_102_444_800.0  # the year 2100: what is later is no time
PERCENTILES = (50, 95, 99)  # of waits and service times, wherever they are shown
BATCH_JOBS = 16  # of fewer, one long job makes the mean
RATE_WINDOW_S = MINUTE_S  # long enough to distinguish a rate from chance, short enough to let go soon after a burst
SERVICE_WINDOW_S = 300.0  # service times are a property of the jobs, not of the moment: a longer memory, less noise

SAMPLED = ("sampled_at_s", "waiting_jobs", "in_flight_jobs", "delayed_jobs", "oldest_age_s")  # of a row

_bucket_s = attrgetter("bucket_s")
_first = itemgetter(0)


def bucket_start_s(at_s: float, *, span_s: float = BUCKET_S) -> float:
    """The start of the bucket that holds ``at_s``: buckets are [start, start + 5 s)."""
    return math.floor(at_s / span_s) * span_s


def is_time(at_s: float | None) -> TypeGuard[float]:
    """Whether ``at_s`` is a moment of Unix time before 2100, which no NaN is."""
    return at_s is not None and 0.0 <= at_s <= LATEST_S


def sketch_index(value_s: float) -> int:
    """The sketch bucket of a duration: index ``i`` holds (GAMMA^(i-1), GAMMA^i] seconds, divided if it holds an edge.

    Source: C. Masson, J. E. Rim, H. K. Lee, "DDSketch", PVLDB 12 (2019), section 2.
    """
    index = plain_index(value_s)
    edge_s = EDGE_OF.get(index)
    return index if edge_s is None or value_s <= edge_s else index + BEYOND


def sketch_value_s(index: int) -> float:
    """The duration that stands for a sketch bucket: at most 1 % from any in it, on the same side of each edge."""
    low_s, high_s = bounds_s(index)
    return 2 * low_s * high_s / (low_s + high_s)


def in_order(sketch: Mapping[int, int]) -> list[int]:
    """The indexes of a sketch, those of the shortest durations first."""
    indexes = sorted(sketch)
    if indexes and indexes[0] < BEYOND / 2:
        indexes.sort(key=place)
    return indexes


def merged(sketches: Iterable[Mapping[int, int]]) -> dict[int, int]:
    """The sketch of everything that any of ``sketches`` holds."""
    total: dict[int, int] = defaultdict(int)
    for sketch in sketches:
        for index, count in sketch.items():
            total[index] += count
    return dict(total)


def late_jobs(pickup_sketch: Mapping[int, int], target_s: float) -> int:
    """Of the waits in a sketch, those longer than ``target_s``.

    At an edge the number is exact; else a wait within 2 % of ``target_s`` may count either way.
    """
    in_time = place(sketch_index(target_s))
    return sum(jobs for index, jobs in pickup_sketch.items() if place(index) > in_time)


def quantile_s(sketch: Mapping[int, int], percentile: float) -> float | None:
    """The duration that ``percentile`` % of the values do not exceed (nearest rank); ``None`` of an empty sketch."""
    return quantiles_s(sketch, (percentile,))[0]


def quantiles_s(sketch: Mapping[int, int], percentiles: Sequence[float]) -> tuple[float | None, ...]:
    """``quantile_s`` of each percentile, in one go through the sketch."""
    if not sketch:
        return (None,) * len(percentiles)
    indexes = in_order(sketch)
    seen = list(accumulate(map(sketch.__getitem__, indexes)))
    ranks = (math.ceil(percentile / PERCENT * seen[-1]) for percentile in percentiles)
    return tuple(sketch_value_s(indexes[bisect_left(seen, rank)]) for rank in ranks)


class MovingSketch:
    """The merged sketch of the rows in a window. As it moves it takes in what is new and gives back what is gone."""

    def __init__(self) -> None:
        self._parts: dict[float, Mapping[int, int]] = {}
        self._total: dict[int, int] = {}

    def of(self, parts: Mapping[float, Mapping[int, int]]) -> Mapping[int, int]:
        """What ``merged`` makes of ``parts``, bucket -> sketch, at the cost of what differs from the last time."""
        for bucket_s in [each for each, part in self._parts.items() if parts.get(each) is not part]:
            self._add(self._parts.pop(bucket_s), -1)
        for bucket_s, part in parts.items():
            if bucket_s not in self._parts:
                self._parts[bucket_s] = part
                self._add(part, 1)
        return self._total

    def _add(self, part: Mapping[int, int], sign: int) -> None:
        total = self._total
        for index, count in part.items():
            left = total.get(index, 0) + sign * count
            if left:
                total[index] = left
            else:
                del total[index]


class Moving:
    """What is kept between two reads of the rows of one queue, so that the next need not go through all of them."""

    def __init__(self) -> None:
        self.services = MovingSketch()
        self.pickups = MovingSketch()


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketRow:
    """One queue in one bucket, or one job class of it. Samples are the bucket's newest; ``None`` where none was taken.

    A class has no samples: a broker reports queues.
    """

    queue: str
    job_class: str | None = None
    """``None``: the queue's own row, of all its jobs."""
    bucket_s: float
    span_s: float = BUCKET_S
    arrived_jobs: int = 0
    started_jobs: int = 0
    finished_jobs: int = 0
    failed_jobs: int = 0
    """Jobs whose last attempt failed."""
    retried_attempts: int = 0
    """Attempts that failed and are followed by another one of the same job."""
    retried_jobs: int = 0
    """Of ``arrived_jobs``, those of a second attempt or a later one, as the events of their entry say."""
    revoked_jobs: int = 0
    """Jobs that left the queue without a start, as workers reported: revoked by a person, or expired."""
    service_sum_s: float = 0.0
    """Over the attempts that ended and whose start is known."""
    pickup_max_s: float | None = None
    service_sketch: Mapping[int, int] = field(default_factory=dict)
    pickup_sketch: Mapping[int, int] = field(default_factory=dict)
    sampled_at_s: float | None = None
    waiting_jobs: int | None = None
    in_flight_jobs: int | None = None
    delayed_jobs: int | None = None
    oldest_age_s: float | None = None

    @property
    def ended_jobs(self) -> int:
        """Attempts that ended, however they did: each gave back a slot."""
        return self.finished_jobs + self.failed_jobs + self.retried_attempts

    @property
    def fresh_jobs(self) -> int:
        """Arrivals but for retries; rows of an earlier version may count more of these than came in their span."""
        return max(0, self.arrived_jobs - self.retried_jobs)


def failures(failed_attempts: int, retried: int) -> tuple[int, int]:
    """``failed_jobs`` and ``retried_attempts`` of a bucket with so many events of kind ``failed`` and ``retried``.

    An attempt that another one follows is reported by an event of each kind, at the same time.
    """
    retried_attempts = min(failed_attempts, retried)
    return failed_attempts - retried_attempts, retried_attempts


def rolled_up(rows: Iterable[BucketRow], *, span_s: float) -> tuple[BucketRow, ...]:
    """``rows`` merged into longer buckets: one row a queue, job class and span in which they hold anything.

    A span in which nothing happened, and nothing waited, was delayed or in flight when it was last sampled, has no row.
    """
    parts: dict[tuple[str, str, float], list[BucketRow]] = defaultdict(list)
    for row in rows:
        parts[row.queue, row.job_class or "", bucket_start_s(row.bucket_s, span_s=span_s)].append(row)
    merged_rows = (merged_row(found, start_s, span_s) for (_, _, start_s), found in sorted(parts.items(), key=_first))
    return tuple(row for row in merged_rows if not is_uneventful(row) or _depths(row))


def merged_row(rows: Sequence[BucketRow], start_s: float, span_s: float) -> BucketRow:
    """What happened in ``rows`` together, and how the queue stood by the newest; of equally new ones, by the first."""
    sampled = max([row for row in rows if row.sampled_at_s is not None], key=_bucket_s, default=None)
    return BucketRow(
        queue=rows[0].queue,
        job_class=rows[0].job_class,
        bucket_s=start_s,
        span_s=span_s,
        arrived_jobs=sum(row.arrived_jobs for row in rows),
        started_jobs=sum(row.started_jobs for row in rows),
        finished_jobs=sum(row.finished_jobs for row in rows),
        failed_jobs=sum(row.failed_jobs for row in rows),
        retried_attempts=sum(row.retried_attempts for row in rows),
        retried_jobs=sum(row.retried_jobs for row in rows),
        revoked_jobs=sum(row.revoked_jobs for row in rows),
        service_sum_s=sum(row.service_sum_s for row in rows),
        pickup_max_s=max((row.pickup_max_s for row in rows if row.pickup_max_s is not None), default=None),
        service_sketch=merged(row.service_sketch for row in rows),
        pickup_sketch=merged(row.pickup_sketch for row in rows),
        **_sampled(sampled),
    )


def _sampled(row: BucketRow | None) -> dict[str, Any]:
    """What ``row`` says of its newest sample; nothing without a row."""
    return {name: getattr(row, name) for name in SAMPLED} if row else {}


def _depths(row: BucketRow) -> int:
    return (row.waiting_jobs or 0) + (row.in_flight_jobs or 0) + (row.delayed_jobs or 0)


def queue_metrics(
    rows: Sequence[BucketRow],
    *,
    queue: str,
    now_s: float,
    window_s: float = RATE_WINDOW_S,
    objective: Objective,
    tick_s: float = BUCKET_S,
    moving: Moving | None = None,
) -> QueueMetrics:
    """What ``rows`` of one queue say at ``now_s``.

    Rates are of (now - window, now]: the running bucket counts as far as it has come, and of the bucket that the window
    begins in, the part inside. Waits are of every bucket that the objective's window touches. Everything stays ``None``
    where nothing was ever seen, and rates where the source reports depths alone. Arrivals are of the newest whole
    buckets that make up ``tick_s``, from one evaluation to the next. ``moving`` of the last read of the same queue
    makes this one cheaper and no different.
    """
    if not rows:
        return QueueMetrics(queue=queue, window_s=window_s)
    moving = moving or Moving()
    recent = _within(rows, from_s=now_s - window_s, now_s=now_s)
    shares = [(row, _share(row, from_s=now_s - window_s)) for row in recent]
    running_s = bucket_start_s(now_s)
    newest = _within(rows, from_s=running_s - max(BUCKET_S, tick_s), now_s=running_s - BUCKET_S)
    sampled = max([row for row in rows if row.sampled_at_s is not None], key=_bucket_s, default=None)
    served = _within(rows, from_s=now_s - SERVICE_WINDOW_S, now_s=now_s)
    services = moving.services.of({row.bucket_s: row.service_sketch for row in served if row.service_sketch})
    promised = _within(rows, from_s=now_s - objective.window_s, now_s=now_s)
    pickups = moving.pickups.of({row.bucket_s: row.pickup_sketch for row in promised if row.pickup_sketch})
    p50_s, p95_s, p99_s, objective_s = quantiles_s(pickups, (*PERCENTILES, objective.percentile))
    if sampled is not None and is_depth_alone(sampled, served):
        return _of_depth_alone(queue, sampled, window_s=window_s)
    in_flight_jobs = _in_flight_mean_jobs(sampled, recent, from_s=now_s - window_s, window_s=window_s)
    ended_per_s = sum(share * row.ended_jobs for row, share in shares) / window_s
    return QueueMetrics(
        queue=queue,
        **_sampled(sampled),
        in_flight_mean_jobs=in_flight_jobs,
        window_s=window_s,
        arrived_jobs=sum(row.arrived_jobs for row in newest),
        retried_jobs=sum(row.retried_jobs for row in newest),
        # Also while jobs only start: those that came too fast may be late when nothing comes any more.
        arrived_until_s=running_s if any(row.arrived_jobs or row.started_jobs for row in recent) else None,
        arrival_rate_per_s=sum(share * row.arrived_jobs for row, share in shares) / window_s,
        retry_rate_per_s=sum(share * row.retried_jobs for row, share in shares) / window_s,
        start_rate_per_s=sum(share * row.started_jobs for row, share in shares) / window_s,
        late_rate_per_s=sum(share * _late_jobs(row, objective.target_s) for row, share in shares) / window_s,
        completion_rate_per_s=ended_per_s,
        failure_rate_per_s=sum(share * row.failed_jobs for row, share in shares) / window_s,
        arrival_trend_per_s2=_trend_per_s2(rows, now_s=now_s, window_s=window_s),
        # Over those whose start is known: others have no service time, and would make the mean too short.
        service_time_s=_mean(sum([row.service_sum_s for row in served]), sum(services.values()))
        if services
        else _by_little_s(in_flight_jobs, ended_per_s),
        service_batch_s=batch_mean_s((row.ended_jobs, row.service_sum_s) for row in served),
        service_p95_s=quantile_s(services, 95),
        pickup_p50_s=p50_s,
        pickup_p95_s=p95_s,
        pickup_p99_s=p99_s,
        pickup_objective_s=objective_s,
        # Earlier arrivals give no ages: what waits is then taken for as old as the oldest.
        arrivals=_arrivals(served, waiting_jobs=(sampled.waiting_jobs if sampled else None) or 0, now_s=now_s),
    )


def _in_flight_mean_jobs(
    sampled: BucketRow | None, recent: Sequence[BucketRow], *, from_s: float, window_s: float
) -> float | None:
    """Jobs in flight, on average over the window: what is now, less what each start and end since has changed.

    Samples say it at moments, and only the newest is kept of a quiet queue; starts and ends are counted.
    """
    if sampled is None or sampled.in_flight_jobs is None:
        return None
    more_jobs_s = sum(
        (row.started_jobs - row.ended_jobs) * max(0.0, row.bucket_s + BUCKET_S / 2 - from_s) for row in recent
    )
    return max(0.0, sampled.in_flight_jobs - more_jobs_s / window_s)


def batch_mean_s(ended: Iterable[tuple[int, float]]) -> float | None:
    """The mean service time of batches of at least ``BATCH_JOBS`` jobs, each weighing as much as its work.

    Where long jobs end together among many short ones it is far above the mean, and where both mix it is near.

    Args:
        ended: Jobs that ended in a span and their service times' sum, the oldest span first.
    """
    work_s = work_s2 = part_s = 0.0
    part_jobs = 0
    for jobs, sum_s in ended:
        part_jobs, part_s = part_jobs + jobs, part_s + sum_s
        if part_jobs >= BATCH_JOBS:
            work_s, work_s2 = work_s + part_s, work_s2 + part_s * part_s / part_jobs
            part_jobs, part_s = 0, 0.0
    return work_s2 / work_s if work_s else None


def _late_jobs(row: BucketRow, target_s: float) -> int:
    """Starts of the bucket that came later than the objective allows, by its sketch."""
    is_any_late = row.pickup_max_s is not None and row.pickup_max_s > target_s
    return late_jobs(row.pickup_sketch, target_s) if is_any_late else 0


def _arrivals(rows: Sequence[BucketRow], *, waiting_jobs: int, now_s: float) -> tuple[Arrivals, ...]:
    """The newest arrivals, by bucket, until they explain every waiting job."""
    found: list[Arrivals] = []
    left_jobs = waiting_jobs
    for row in reversed(rows):
        if left_jobs <= 0:
            break
        if row.arrived_jobs:
            found.append(Arrivals(jobs=row.arrived_jobs, ended_ago_s=max(0.0, now_s - row.bucket_s - BUCKET_S)))
            left_jobs -= row.arrived_jobs
    return tuple(found)


def is_depth_alone(sampled: BucketRow, rows: Iterable[BucketRow]) -> bool:
    """Whether the source of a queue reports no events, as far as its rows show it.

    Who reports events knows when each job came, and so the age of the oldest, 0 where none waits. Without an age and
    without an event in minutes, that nothing was reported does not mean that nothing happened.
    """
    return sampled.oldest_age_s is None and all(map(is_uneventful, rows))


def _of_depth_alone(queue: str, sampled: BucketRow, *, window_s: float) -> QueueMetrics:
    return QueueMetrics(
        queue=queue,
        **_sampled(sampled),
        has_unknown_rates=True,
        window_s=window_s,
    )


def read_again(metrics: QueueMetrics, row: BucketRow) -> QueueMetrics:
    """What ``queue_metrics`` says, once settled, when an uneventful ``row`` with the newest sample has come."""
    if metrics.has_unknown_rates or is_depth_alone(row, ()):
        now_s = row.bucket_s + BUCKET_S
        return queue_metrics((row,), queue=metrics.queue, now_s=now_s, window_s=metrics.window_s, objective=Objective())
    return replace(
        metrics,
        **_sampled(row),
        in_flight_mean_jobs=None if row.in_flight_jobs is None else float(row.in_flight_jobs),
        arrivals=(),  # what came is too long ago
    )


def is_uneventful(row: BucketRow) -> bool:
    """Whether a row holds a sample only: but for the newest such, ``queue_metrics`` is the same without it."""
    return not (
        row.arrived_jobs
        or row.started_jobs
        or row.ended_jobs
        or row.retried_jobs
        or row.revoked_jobs
        or row.service_sketch
        or row.pickup_sketch
    )


def longest_window_s(*, objective: Objective, tick_s: float = BUCKET_S) -> float:
    """The longest window of ``queue_metrics``: what ended earlier changes none of its figures."""
    return max(SERVICE_WINDOW_S, objective.window_s, tick_s + BUCKET_S)


def _within(rows: Sequence[BucketRow], *, from_s: float, now_s: float) -> list[BucketRow]:
    """The rows whose buckets have a part in (from, now]."""
    since_s = from_s - BUCKET_S
    return [row for row in rows if since_s < row.bucket_s <= now_s]


def _share(row: BucketRow, *, from_s: float) -> float:
    """How much of a row's bucket lies after ``from_s``, 0 to 1; what the running bucket holds, holds already."""
    return min(1.0, (row.bucket_s + BUCKET_S - from_s) / BUCKET_S)


def _by_little_s(in_flight_jobs: float | None, ended_per_s: float) -> float | None:
    """The mean service time where ends are counted and no job says when it started; ``None`` where none ended.

    Source: J. D. C. Little, "A Proof for the Queuing Formula L = λW", Operations Research 9 (1961).
    """
    return in_flight_jobs / ended_per_s if in_flight_jobs and ended_per_s else None


def _mean(total: float, count: int) -> float | None:
    return total / count if count else None


def _trend_per_s2(rows: Sequence[BucketRow], *, now_s: float, window_s: float) -> float:
    """Slope of the least-squares line through the rates of the window's complete buckets, retries left out.

    A bucket without a row is one in which nothing happened, as it is for the rates: both then describe the same queue.
    The running bucket is left out: what has not arrived yet would appear as a fall.
    """
    count = int(window_s / BUCKET_S)
    running_s = bucket_start_s(now_s)
    middle_s = running_s - BUCKET_S * (count + 1) / 2
    spread = BUCKET_S**2 * count * (count**2 - 1) / 12  # of evenly spaced starts around their middle, squared and added
    # The mean rate cancels, because the starts' distances from their middle add up to nothing.
    slant = sum(
        (row.bucket_s - middle_s) * row.fresh_jobs / BUCKET_S
        for row in rows
        if running_s - BUCKET_S * count <= row.bucket_s < running_s
    )
    return slant / spread if spread else 0.0
