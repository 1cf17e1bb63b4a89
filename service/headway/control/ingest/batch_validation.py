"""What a batch must be to be taken, and the rows it becomes."""

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace

from headway.control.bounds import BIGINT_MAX, TEXT_CHARS_MAX, refuse
from headway.control.ingest.clock_skew import CLOCK_WRONG_S, corrected, corrected_enqueued
from headway.control.ingest.job_classes import JobClasses
from headway.errors import Invalid
from headway.scaling.model import (
    BrokerPoll,
    EventKind,
    JobEvent,
    QueueCounts,
    QueueReceptions,
    QueueSample,
    TelemetryBatch,
    WorkerActivity,
)
from headway.scaling.model.event_row import EventRow

BATCH_ITEMS_MAX = 10_000  # 2 MB, and 20 ms of work
_DEPTHS = (
    "waiting_jobs",
    "in_flight_jobs",
    "delayed_jobs",
    "reserved_jobs",
    "listed_workers",
    "waiting_min_jobs",
    "in_flight_min_jobs",
)
_OF_ROWS = {item.name for item in fields(EventRow)}
_OF_SAMPLES = tuple(item.name for item in fields(QueueSample) if item.name in _OF_ROWS)
_TIME_MAX_S = 1e11  # the year 5138; a time in milliseconds is far beyond


@dataclass(frozen=True, slots=True, kw_only=True)
class Admitted:
    """What of a batch is taken, and why the rest is not."""

    batch: TelemetryBatch
    refused_items: int = 0
    why: str = ""


def items(batch: TelemetryBatch) -> int:
    """How many things ``batch`` holds that are stored."""
    return len(batch.events) + len(batch.samples) + len(batch.activities) + len(batch.counts)


def _unstored_items(batch: TelemetryBatch) -> int:
    """How many it holds beside them: queues, jobs and times."""
    polled = sum(1 + len(row.entered) for poll in batch.polls for row in poll.queues)
    return len(batch.polls) + polled + sum(1 + len(each.received_at_s) for each in batch.receptions)


def check(batch: TelemetryBatch) -> None:
    """Refuse what would break the group it is written with, or the stream that reads it.

    Raises:
        Invalid: the batch is too large, or a value of it can be no queue, no time or no count.
    """
    check_size(max(items(batch), _unstored_items(batch)), producer=batch.producer)
    refuse(_breaches(batch))


def check_size(count: int, *, producer: str) -> None:
    """Refuse a batch of more items than are taken, before anything is made of them. Raises ``Invalid``."""
    if count > BATCH_ITEMS_MAX:
        raise Invalid(f"batch of producer {producer!r}: {count} items, at most {BATCH_ITEMS_MAX} are taken: split it")


def _breaches(batch: TelemetryBatch) -> Iterator[str]:
    if not _is_name(batch.producer):
        yield f"producer {batch.producer!r} is no name"
    if batch.sequence > BIGINT_MAX:
        yield f"batch of producer {batch.producer!r}: sequence={batch.sequence} exceeds {BIGINT_MAX}"
    if not 0 <= batch.sent_at_s < _TIME_MAX_S:  # 0: the producer does not say
        yield f"batch of producer {batch.producer!r}: sent_at_s={batch.sent_at_s} is no Unix time in seconds"
    for event in batch.events:
        yield from _event_breaches(event)
    for sample in batch.samples:
        yield from _sample_breaches(sample)
    for activity in batch.activities:
        yield from _activity_breaches(activity)
    for counts in batch.counts:
        yield from _counts_breaches(counts)
    for poll in batch.polls:
        yield from _poll_breaches(poll)
    for receptions in batch.receptions:
        yield from _reception_breaches(receptions)


def _event_breaches(event: JobEvent) -> Iterator[str]:
    if not (_is_name(event.queue) and _is_name(event.job_id) and _is_name(event.job_class or "-")):
        yield f"event of job {event.job_id!r} in queue {event.queue!r}: a name is too long or holds what is no text"
    for name in ("at_s", "enqueued_at_s", "started_at_s", "received_at_s"):
        if not _is_time(getattr(event, name)):
            yield (
                f"event of job {event.job_id!r} in queue {event.queue!r}: {name}={getattr(event, name)} is no "
                "Unix time in seconds"
            )


def _sample_breaches(sample: QueueSample) -> Iterator[str]:
    if not _is_name(sample.queue):
        yield f"sample of queue {sample.queue!r}: the name is too long or holds what is no text"
    if not _is_time(sample.at_s):
        yield f"sample of queue {sample.queue!r}: at_s={sample.at_s} is no Unix time in seconds"
    for name, kind in (("oldest_age_s", "age"), ("oldest_age_max_s", "age"), ("poll_interval_s", "interval")):
        if not 0 <= (getattr(sample, name) or 0.0) < _TIME_MAX_S:  # which NaN is not
            yield f"sample of queue {sample.queue!r}: {name}={getattr(sample, name)} is no {kind} in seconds"
    for name in _DEPTHS:
        if (getattr(sample, name) or 0) > BIGINT_MAX:
            yield f"sample of queue {sample.queue!r}: {name}={getattr(sample, name)} is no count"
    if any(each.jobs > BIGINT_MAX for each in sample.due):
        yield f"sample of queue {sample.queue!r}: due has a number of jobs that is no count"


def _activity_breaches(activity: WorkerActivity) -> Iterator[str]:
    if not _is_name(activity.host):
        yield f"worker activity: host {activity.host!r} is no name"
    if activity.busy_queue is not None and not _is_name(activity.busy_queue):
        yield f"worker activity on host {activity.host!r}: busy_queue={activity.busy_queue!r} is no name"
    if not 0 < activity.pid <= BIGINT_MAX:
        yield f"worker activity on host {activity.host!r}: pid={activity.pid} is no process"
    for name in ("ended_jobs", "running_jobs"):
        if (getattr(activity, name) or 0) > BIGINT_MAX:
            yield f"worker activity on host {activity.host!r}: {name}={getattr(activity, name)} is no count"
    if not _is_time(activity.busy_since_s):
        yield f"worker activity on host {activity.host!r}: busy_since_s={activity.busy_since_s} is no Unix time"


def _counts_breaches(counts: QueueCounts) -> Iterator[str]:
    if not (_is_name(counts.queue) and _is_name(counts.epoch)):
        yield f"counts of queue {counts.queue!r}: a name is too long or holds what is no text"
    if not _is_time(counts.at_s):
        yield f"counts of queue {counts.queue!r}: at_s={counts.at_s} is no Unix time in seconds"
    for name in ("arrived_jobs", "started_jobs", "finished_jobs", "failed_jobs"):
        if (getattr(counts, name) or 0) > BIGINT_MAX:
            yield f"counts of queue {counts.queue!r}: {name}={getattr(counts, name)} is no count"


def _poll_breaches(poll: BrokerPoll) -> Iterator[str]:
    if not all(map(_is_time, (poll.at_s, poll.until_s, poll.after_s))) or poll.until_s < poll.at_s:
        yield f"poll of connection {poll.connection!r}: at_s={poll.at_s} until_s={poll.until_s} is no time"
    for row in poll.queues:
        names = (row.queue, *(job.job_id for job in row.entered))
        if not all(map(_is_name, names)) or row.queue.partition("/")[0] != poll.connection:
            yield f"poll of connection {poll.connection!r}: queue {row.queue!r} or a job of it has no name of its own"
        if max(row.waiting_jobs, row.held_jobs or 0, row.consumers or 0) > BIGINT_MAX:
            yield f"poll of connection {poll.connection!r}: a number of queue {row.queue!r} is no count"


def _reception_breaches(receptions: QueueReceptions) -> Iterator[str]:
    if not _is_name(receptions.queue):
        yield f"receptions of queue {receptions.queue!r}: the name is too long or holds what is no text"
    if not all(map(_is_time, (receptions.since_s, receptions.until_s, *receptions.received_at_s))):
        yield f"receptions of queue {receptions.queue!r}: a time is no Unix time in seconds"


def _is_name(value: str) -> bool:
    if not value or len(value) > TEXT_CHARS_MAX or "\0" in value:
        return False
    try:
        value.encode()  # a lone surrogate, which JSON can spell, is no text
    except UnicodeEncodeError:
        return False
    return True


def _is_time(value: float | None) -> bool:
    return value is None or 0 < value < _TIME_MAX_S


@dataclass(slots=True, kw_only=True)
class Rows:
    """What one batch becomes, its times corrected."""

    rows: list[EventRow] = field(default_factory=list)
    samples: list[QueueSample] = field(default_factory=list)
    corrected_times: int = 0
    future_times: int = 0
    """Of these, the ones that lay in the future."""
    backward_waits: int = 0
    """Starts of jobs that were enqueued well after that, by the clocks that stamped both: nobody knows their wait."""


def rows_of(batch: TelemetryBatch, *, received_at_s: float, offset_s: float, classes: JobClasses | None = None) -> Rows:
    """The rows of ``batch``, which came at ``received_at_s`` from a clock ``offset_s`` behind ours.

    Job classes beyond the bound of ``classes`` are counted under one name.
    """
    made = Rows()
    for event in batch.events:
        at_s = corrected(event.at_s, received_at_s=received_at_s, offset_s=offset_s)
        if at_s != event.at_s:
            made.corrected_times += 1
            made.future_times += at_s < event.at_s
        if event.kind is EventKind.STARTED and event.enqueued_at_s is not None:
            made.backward_waits += event.enqueued_at_s - event.at_s > CLOCK_WRONG_S
        row = _event_row(event, batch, at_s=at_s, received_at_s=received_at_s)
        if classes is not None:
            row = replace(row, job_class=classes.name(row.job_class, queue=row.queue, received_at_s=received_at_s))
        made.rows.append(row)
    for sample in batch.samples:
        at_s = corrected(sample.at_s, received_at_s=received_at_s, offset_s=offset_s)
        if at_s != sample.at_s:
            made.corrected_times += 1
            sample = replace(sample, at_s=at_s)
        made.samples.append(sample)
        made.rows.append(_sample_row(sample, batch, received_at_s=received_at_s))
    return made


def _event_row(event: JobEvent, batch: TelemetryBatch, *, at_s: float, received_at_s: float) -> EventRow:
    started_at_s, enqueued_at_s = event.started_at_s, event.enqueued_at_s
    moved_s = at_s - event.at_s
    if moved_s and started_at_s is not None:
        started_at_s += moved_s  # the same worker stamped both: the service time stays what it was
    if moved_s and enqueued_at_s is not None:
        enqueued_at_s = corrected_enqueued(enqueued_at_s, at_s=event.at_s, moved_s=moved_s, received_at_s=received_at_s)
    return EventRow(
        queue=event.queue,
        kind=event.kind,
        at_s=at_s,
        received_at_s=received_at_s,
        producer=batch.producer,
        sequence=batch.sequence,
        job_id=event.job_id,
        job_class=event.job_class,
        enqueued_at_s=enqueued_at_s,
        started_at_s=started_at_s,
        attempt=event.attempt,
    )


def _sample_row(sample: QueueSample, batch: TelemetryBatch, *, received_at_s: float) -> EventRow:
    return EventRow(
        kind=EventKind.SAMPLE,
        received_at_s=received_at_s,
        producer=batch.producer,
        sequence=batch.sequence,
        **{name: getattr(sample, name) for name in _OF_SAMPLES},
    )
