"""What Postgres must hold, worked out from what the producers were answered, and how it differs from what it holds."""

import asyncio
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import psycopg
from psycopg.rows import dict_row

from headway.scaling.measure import CLASS_BUCKET_S, BucketRow
from headway.scaling.model import JobEvent, QueueSample, TelemetryBatch
from headway.store.engine import create_engine, transaction
from headway.store.overview import read_buckets
from proof.producers import OVERDUE, Ledger
from support.defined_rows import bucket_rows, class_rows

COUNTS = ("arrived_jobs", "started_jobs", "finished_jobs", "failed_jobs", "retried_jobs")
SHOWN_MAX = 20

VALUES = [each.name for each in fields(BucketRow) if each.name != "span_s"]

Rows = Mapping[tuple[str, str, float], BucketRow]


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """What was answered, and what may be there because its answer did not arrive."""

    surely: Rows
    maybe: Mapping[str, Rows]
    """Queue of a batch that was given up -> its rows: all of them or none are there."""
    overdue: Mapping[str, int]
    """Counts over all buckets of the queue whose events ingest moved."""


def truth(ledgers: Iterable[Ledger]) -> Truth:
    """What ``ledgers`` make of it, by the definitions of ``scaling.measure``."""
    kept = list(ledgers)
    answered = [each for ledger in kept for batch in ledger.answered for each in _sent(batch)]
    return Truth(
        surely=keyed(_rows([each for each in answered if each.queue != OVERDUE])),
        maybe={batch.events[0].queue: keyed(_rows(_sent(batch))) for each in kept for batch in each.abandoned},
        overdue=overdue_totals(_rows([each for each in answered if each.queue == OVERDUE])),
    )


def stored(database_url: str) -> list[BucketRow]:
    """Every row in Postgres: those of queues, as the control plane reads them, and those of job classes."""

    async def read() -> list[BucketRow]:
        engine = create_engine(database_url)
        try:
            async with transaction(engine) as connection:
                return list((await read_buckets(connection, from_s=0.0))[0])
        finally:
            await engine.dispose()

    with psycopg.connect(database_url, row_factory=dict_row) as connection:
        classes = connection.execute(f"select {', '.join(VALUES)} from rollup_minutes where job_class <> ''").fetchall()
    return [*asyncio.run(read()), *(_class_row(row) for row in classes)]


def _class_row(row: Mapping[str, Any]) -> BucketRow:
    sketches = {
        name: {int(index): count for index, count in row[name].items()} for name in ("service_sketch", "pickup_sketch")
    }
    return BucketRow(**{**row, **sketches}, span_s=CLASS_BUCKET_S)


def totals(rows: Iterable[BucketRow]) -> dict[str, int]:
    """Each count over those of ``rows`` that are of queues, how many values their sketches hold, and what has a class.

    A job of a class counts twice: in its queue and in its class.
    """
    sums: dict[str, int] = dict.fromkeys((*COUNTS, "service_sketch", "pickup_sketch", "classed"), 0)
    for row in rows:
        if row.job_class is not None:
            sums["classed"] += sum(getattr(row, name) for name in COUNTS)
            continue
        for name in COUNTS:
            sums[name] += getattr(row, name)
        for name in ("service_sketch", "pickup_sketch"):
            sums[name] += sum(getattr(row, name).values())
    return sums


def overdue_totals(rows: Iterable[BucketRow]) -> dict[str, int]:
    """The totals of events that ingest has moved in time, with all attempts that failed as failed ones.

    Which of them were tried again shows by equal times, which moved events have no more.
    """
    kept = list(rows)
    sums = totals(kept)
    sums["failed_jobs"] += sum(row.retried_attempts for row in kept if row.job_class is None)
    sums["classed"] += sum(row.retried_attempts for row in kept if row.job_class is not None)
    return sums


def differences(expected: Truth, found: Sequence[BucketRow]) -> list[str]:
    """What is missing, too much or different, a line each; nothing where all is exact."""
    by_queue: dict[str, list[BucketRow]] = defaultdict(list)
    for row in found:
        by_queue[row.queue].append(row)
    overdue = overdue_totals(by_queue.pop(OVERDUE, []))
    lines = [] if overdue == expected.overdue else [f"{OVERDUE}: {overdue}, not {expected.overdue}"]
    for queue, rows in expected.maybe.items():
        present = keyed(by_queue.pop(queue, []))
        lines += differing(rows, present) if present else []
    rest = keyed(row for rows in by_queue.values() for row in rows)
    lines += differing(expected.surely, rest)
    if lines:
        lines.insert(0, f"all buckets: {totals(rest.values())}, not {totals(expected.surely.values())}")
    return lines[:SHOWN_MAX] + ([f"and {len(lines) - SHOWN_MAX} more"] if len(lines) > SHOWN_MAX else [])


def differing(expected: Rows, found: Rows) -> list[str]:
    """A line each for what of ``found`` is not as ``expected``."""
    lines = []
    for key in sorted(expected.keys() | found.keys()):
        ours, theirs = expected.get(key), found.get(key)
        if ours is None or theirs is None:
            lines.append(f"{_named(key)}: {'not expected' if ours is None else 'missing'}: {theirs or ours}")
            continue
        for each in fields(BucketRow):
            right, wrong = getattr(ours, each.name), getattr(theirs, each.name)
            if not _is_same(right, wrong):
                lines.append(f"{_named(key)}: {each.name} is {wrong}, not {right}")
    return lines


def _is_same(right: object, wrong: object) -> bool:
    if isinstance(right, float) and isinstance(wrong, float):
        return math.isclose(right, wrong, rel_tol=1e-9, abs_tol=1e-9)  # sums of floats, in another order
    return right == wrong


def _sent(batch: TelemetryBatch) -> list[JobEvent | QueueSample]:
    return [*batch.events, *batch.samples]


def _rows(reported: Sequence[JobEvent | QueueSample]) -> list[BucketRow]:
    return [*bucket_rows(reported), *class_rows(each for each in reported if isinstance(each, JobEvent))]


def keyed(rows: Iterable[BucketRow]) -> Rows:
    """``rows`` by what each is of; of two of the same the later."""
    return {(row.queue, row.job_class or "", row.bucket_s): row for row in rows}


def _named(key: tuple[str, str, float]) -> str:
    queue, job_class, bucket_s = key
    return f"{queue} {job_class} {bucket_s:.0f}"
