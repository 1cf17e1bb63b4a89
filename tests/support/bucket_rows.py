"""What a row of a bucket is, in plain Python: what Spark and the rollups are held to, row by row.

Only tests need it: the pipeline makes rows on Spark (``headway_spark/stream/buckets.py``), minutes and hours are made
in Postgres (``store/metrics/rollups.py``).
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from operator import attrgetter, itemgetter

from headway.scaling.measure import (
    CLASS_BUCKET_S,
    BucketRow,
    bucket_start_s,
    is_retry,
    is_time,
    is_uneventful,
    merged,
    pickup_time_s,
    service_time_s,
    sketch_index,
)
from headway.scaling.model import EventKind, JobEvent, QueueSample

_bucket_s = attrgetter("bucket_s")
_first = itemgetter(0)


def bucket_rows(events_and_samples: Iterable[JobEvent | QueueSample]) -> tuple[BucketRow, ...]:
    """One row a queue and bucket in which anything happened or was sampled, ordered by queue and bucket."""
    events: dict[tuple[str, float], list[JobEvent]] = defaultdict(list)
    samples: dict[tuple[str, float], list[QueueSample]] = defaultdict(list)
    for each in events_and_samples:
        if not is_time(each.at_s):
            continue
        key = (each.queue, bucket_start_s(each.at_s))
        if isinstance(each, QueueSample):
            samples[key].append(each)
        else:
            events[key].append(each)
    keys = sorted(events.keys() | samples.keys())
    return tuple(
        _row(
            BucketRow(queue=queue, bucket_s=bucket_s),
            events.get((queue, bucket_s), []),
            max(samples.get((queue, bucket_s), []), key=_age, default=None),
        )
        for queue, bucket_s in keys
    )


def class_rows(events: Iterable[JobEvent]) -> tuple[BucketRow, ...]:
    """One row a queue, job class and minute in which a job of the class did anything, ordered by these."""
    classed: dict[tuple[str, str, float], list[JobEvent]] = defaultdict(list)
    for event in events:
        if event.job_class and is_time(event.at_s):
            start_s = bucket_start_s(event.at_s, span_s=CLASS_BUCKET_S)
            classed[event.queue, event.job_class, start_s].append(event)
    return tuple(
        _row(BucketRow(queue=queue, job_class=job_class, bucket_s=bucket_s, span_s=CLASS_BUCKET_S), found, None)
        for (queue, job_class, bucket_s), found in sorted(classed.items(), key=_first)
    )


def rolled_up(rows: Iterable[BucketRow], *, span_s: float) -> tuple[BucketRow, ...]:
    """``rows`` merged into longer buckets: one row a queue, job class and span in which they hold anything.

    A span in which nothing happened, and nothing waited, was delayed or in flight when it was last sampled, has no row.
    """
    parts: dict[tuple[str, str, float], list[BucketRow]] = defaultdict(list)
    for row in rows:
        parts[row.queue, row.job_class or "", bucket_start_s(row.bucket_s, span_s=span_s)].append(row)
    merged_rows = (_merged(found, start_s, span_s) for (_, _, start_s), found in sorted(parts.items(), key=_first))
    return tuple(row for row in merged_rows if not is_uneventful(row) or _depths(row))


def _merged(rows: Sequence[BucketRow], start_s: float, span_s: float) -> BucketRow:
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
        retried_jobs=sum(row.retried_jobs for row in rows),
        service_sum_s=sum(row.service_sum_s for row in rows),
        pickup_max_s=max((row.pickup_max_s for row in rows if row.pickup_max_s is not None), default=None),
        service_sketch=merged(row.service_sketch for row in rows),
        pickup_sketch=merged(row.pickup_sketch for row in rows),
        sampled_at_s=sampled.sampled_at_s if sampled else None,
        waiting_jobs=sampled.waiting_jobs if sampled else None,
        in_flight_jobs=sampled.in_flight_jobs if sampled else None,
        delayed_jobs=sampled.delayed_jobs if sampled else None,
        oldest_age_s=sampled.oldest_age_s if sampled else None,
    )


def _depths(row: BucketRow) -> int:
    return (row.waiting_jobs or 0) + (row.in_flight_jobs or 0) + (row.delayed_jobs or 0)


def _age(sample: QueueSample) -> tuple[float, ...]:
    """What is greatest of the newest sample; of two at the same instant the greater depths win, unknown ones last."""
    depths = (sample.waiting_jobs, sample.in_flight_jobs, sample.delayed_jobs, sample.oldest_age_s)
    return (sample.at_s, *(-math.inf if depth is None else depth for depth in depths))


def _row(empty: BucketRow, events: Sequence[JobEvent], sample: QueueSample | None) -> BucketRow:
    kinds = [event.kind for event in events]
    services_s = [value for value in map(service_time_s, events) if value is not None]
    pickups_s = [value for value in map(pickup_time_s, events) if value is not None]
    return replace(
        empty,
        arrived_jobs=kinds.count(EventKind.ENQUEUED),
        started_jobs=kinds.count(EventKind.STARTED),
        finished_jobs=kinds.count(EventKind.FINISHED),
        failed_jobs=kinds.count(EventKind.FAILED),
        retried_jobs=sum(map(is_retry, events)),
        service_sum_s=sum(services_s),
        pickup_max_s=max(pickups_s, default=None),
        service_sketch=merged({sketch_index(value): 1} for value in services_s),
        pickup_sketch=merged({sketch_index(value): 1} for value in pickups_s),
        sampled_at_s=sample.at_s if sample else None,
        waiting_jobs=sample.waiting_jobs if sample else None,
        in_flight_jobs=sample.in_flight_jobs if sample else None,
        delayed_jobs=sample.delayed_jobs if sample else None,
        oldest_age_s=sample.oldest_age_s if sample else None,
    )
