"""Jobs that a source counts instead of naming each: from one report of its counters to the next.

A counter says how many jobs there were since its epoch began. What it has grown by since the last report that was
taken are jobs of the time between the two. They are recorded like events, evenly over that time, so that all that
reads events counts them.
"""

from collections.abc import Iterator

from headway.control.ingest.clock_skew import LATENESS_S, corrected
from headway.scaling.model import EventKind, QueueCounts
from headway.scaling.model.event_row import EventRow
from headway.store.events.batches import BatchKey
from headway.store.events.telemetry import CountsTaken

JOBS_MAX = 20_000  # of a kind, from one report to the next: what is more is a counter that jumped, and no load
BATCH_JOBS_MAX = 50_000  # of all counters of a batch: a few lines must not become a file of gigabytes
KINDS = {
    "arrived_jobs": EventKind.ENQUEUED,
    "started_jobs": EventKind.STARTED,
    "finished_jobs": EventKind.FINISHED,
    "failed_jobs": EventKind.FAILED,
}


def is_odd(known: CountsTaken | None, report: QueueCounts) -> bool:
    """Whether a counter fell within its epoch, or jumped: it says nothing of how many jobs there were."""
    return known is not None and any(not 0 <= jobs <= JOBS_MAX for _, jobs in _growth(known, report))


def grown(known: CountsTaken | None, report: QueueCounts, *, received_at_s: float) -> dict[EventKind, int]:
    """By how many jobs each counter has grown from the report ``known`` to ``report``, where it has.

    Nothing of a first report, which may count from long ago, nor of one after a silence too long for the stream, nor of
    a counter that fell or jumped: what cannot be known is not counted.
    """
    if known is None or received_at_s - known.received_at_s > LATENESS_S:
        return {}
    return {kind: jobs for kind, jobs in _growth(known, report) if 0 < jobs <= JOBS_MAX}


def _growth(known: CountsTaken, report: QueueCounts) -> Iterator[tuple[EventKind, int]]:
    """By how much each counter of both reports differs. A new epoch begins at 0."""
    for name, kind in KINDS.items():
        value, before = getattr(report, name), getattr(known, name) if known.epoch == report.epoch else 0
        if value is not None and before is not None:
            yield kind, value - before


def rows_of_counts(
    known: CountsTaken | None, report: QueueCounts, key: BatchKey, *, received_at_s: float, offset_s: float
) -> Iterator[EventRow]:
    """A row for each job by which the counters have grown, evenly over the time since the report ``known``."""
    until_s = corrected(report.at_s, received_at_s=received_at_s, offset_s=offset_s)
    for kind, jobs in grown(known, report, received_at_s=received_at_s).items():
        assert known is not None
        # Both reports may have waited on their way: what this one was late by is not of the time between them.
        span_s = max(0.0, received_at_s - known.received_at_s)
        from_s = max(until_s - span_s, received_at_s - LATENESS_S)
        for number in range(jobs):
            yield EventRow(
                queue=report.queue,
                kind=kind,
                at_s=from_s + (until_s - from_s) * (number + 0.5) / jobs,
                received_at_s=received_at_s,
                producer=key.producer,
                sequence=key.sequence,
            )


def taken(report: QueueCounts, *, sequence: int, received_at_s: float) -> CountsTaken:
    """What is remembered of ``report`` until the next one."""
    counters = {name: getattr(report, name) for name in KINDS}
    return CountsTaken(sequence=sequence, epoch=report.epoch, received_at_s=received_at_s, **counters)
