"""Batches, and an ingest over a database and a folder, for tests of the servers and of ingest itself."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from headway.control.ingest.backpressure import DEFAULT, UnreadBound
from headway.control.ingest.ingest import Ingest
from headway.scaling.model import EventKind, JobEvent, QueueSample, TelemetryBatch
from headway.store.events.event_log import EventLog
from support.engines import engine_to

NOW_S = 1_700_000_000.0


def batch(sequence: int, *, producer: str = "app", events: int = 1, **values: Any) -> TelemetryBatch:
    """A batch whose events name it: ``app-7-0``."""
    sent_events = tuple(
        JobEvent(queue="redis/mail", job_id=f"{producer}-{sequence}-{n}", kind=EventKind.ENQUEUED, at_s=NOW_S)
        for n in range(events)
    )
    return TelemetryBatch(
        **{"producer": producer, "sequence": sequence, "sent_at_s": NOW_S, "events": sent_events, **values}
    )


def sample(queue: str, waiting_jobs: int, *, at_s: float = NOW_S) -> QueueSample:
    """A reading of ``queue``."""
    return QueueSample(queue=queue, at_s=at_s, waiting_jobs=waiting_jobs)


@asynccontextmanager
async def ingesting(
    url: str,
    root: Path,
    *,
    event_log: EventLog | None = None,
    unread: UnreadBound = DEFAULT,
    clock: Callable[[], float] = lambda: NOW_S,
) -> AsyncIterator[Ingest]:
    """An ingest that has started; the clock stands still, unless one is given."""
    engine = engine_to(url)
    ingest = Ingest(engine=engine, event_log=event_log or EventLog(root), clock=clock, unread=unread)
    await ingest.start()
    try:
        yield ingest
    finally:
        await ingest.stop()
        await engine.dispose()


def hot_jobs(root: Path) -> list[str]:
    """The jobs in the log as the stream reads it, in the order of the files; samples as their queue."""
    rows = [row for path in sorted((root / "hot").glob("*.parquet")) for row in pq.read_table(path).to_pylist()]
    return [row["job_id"] or row["queue"] for row in rows]


def files(root: Path, folder: str) -> list[str]:
    """The Parquet files in a folder of the log."""
    return sorted(path.name for path in (root / folder).glob("*.parquet"))
