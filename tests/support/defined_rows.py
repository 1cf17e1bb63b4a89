"""The rows of events and samples, in plain Python: what Spark's rows of the same events are held to."""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from operator import itemgetter

from headway.scaling.measure import (
    CLASS_BUCKET_S,
    BucketRow,
    bucket_start_s,
    failures,
    is_time,
    merged,
    sketch_index,
)
from headway.scaling.model import EventKind, JobEvent, QueueSample

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


def service_time_s(event: JobEvent) -> float | None:
    """Start to end of a job that ended, at least 0; ``None`` for other events and where the start is not known."""
    if event.kind not in {EventKind.FINISHED, EventKind.FAILED}:
        return None
    return max(0.0, event.at_s - event.started_at_s) if is_time(event.started_at_s) else None


def pickup_time_s(event: JobEvent) -> float | None:
    """Enqueue to start of a job that started, at least 0; ``None`` otherwise and where the enqueue is not known."""
    if event.kind is not EventKind.STARTED:
        return None
    return max(0.0, event.at_s - event.enqueued_at_s) if is_time(event.enqueued_at_s) else None


def is_retry(event: JobEvent) -> bool:
    """Whether a job enters its queue for another attempt. Where the attempt is not known it is the first."""
    return event.kind is EventKind.ENQUEUED and (event.attempt or 1) > 1


def _age(sample: QueueSample) -> tuple[float, ...]:
    """What is greatest of the newest sample; of two at the same instant the greater depths win, unknown ones last."""
    depths = (sample.waiting_jobs, sample.in_flight_jobs, sample.delayed_jobs, sample.oldest_age_s)
    return (sample.at_s, *(-math.inf if depth is None else depth for depth in depths))


def _row(empty: BucketRow, events: Sequence[JobEvent], sample: QueueSample | None) -> BucketRow:
    kinds = [event.kind for event in events]
    services_s = [value for value in map(service_time_s, events) if value is not None]
    pickups_s = [value for value in map(pickup_time_s, events) if value is not None]
    failed_jobs, retried_attempts = failures(kinds.count(EventKind.FAILED), kinds.count(EventKind.RETRIED))
    return replace(
        empty,
        arrived_jobs=kinds.count(EventKind.ENQUEUED),
        started_jobs=kinds.count(EventKind.STARTED),
        finished_jobs=kinds.count(EventKind.FINISHED),
        failed_jobs=failed_jobs,
        retried_attempts=retried_attempts,
        retried_jobs=sum(map(is_retry, events)),
        revoked_jobs=kinds.count(EventKind.REVOKED),
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
