"""Events and samples as rows of the event log, for tests."""

from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from headway.scaling.model import JobEvent, QueueSample
from headway.store.event_log import SCHEMA


def table(events: Iterable[JobEvent], samples: Iterable[QueueSample]) -> pa.Table:
    """The rows that ingest would write of them, received as they happened."""
    rows = [
        {
            "queue": event.queue,
            "kind": event.kind.value,
            "job_id": event.job_id,
            "at_s": event.at_s,
            "enqueued_at_s": event.enqueued_at_s,
            "started_at_s": event.started_at_s,
        }
        for event in events
    ] + [
        {
            "queue": sample.queue,
            "kind": "sample",
            "at_s": sample.at_s,
            "waiting_jobs": sample.waiting_jobs,
            "in_flight_jobs": sample.in_flight_jobs,
            "delayed_jobs": sample.delayed_jobs,
            "oldest_age_s": sample.oldest_age_s,
        }
        for sample in samples
    ]
    for row in rows:
        row.update(schema_version=1, received_at_s=row["at_s"], producer="test", sequence=0)
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def publish(folder: Path, name: str, rows: pa.Table) -> None:
    """Put ``rows`` into the event log in ``folder`` as ingest does: whole, by a rename."""
    (folder / "hot").mkdir(parents=True, exist_ok=True)
    pq.write_table(rows, folder / name)
    (folder / name).rename(folder / "hot" / name)
