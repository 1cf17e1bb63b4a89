"""Events and samples as rows of the event log, for tests."""

import os
import time
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from headway.scaling.model import JobEvent, QueueSample
from headway.store.events.event_files import SCHEMA


def table(events_and_samples: Iterable[JobEvent | QueueSample]) -> pa.Table:
    """The rows that ingest would write of them, received as they happened."""
    rows = [
        {"kind": "sample"}
        | asdict(each)
        | {"schema_version": 1, "received_at_s": each.at_s, "producer": "test", "sequence": 0}
        for each in events_and_samples
    ]
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def publish(folder: Path, name: str, rows: pa.Table, *, age_s: float = 0.0) -> None:
    """Put ``rows`` into the event log in ``folder`` as ingest does: whole, by a rename."""
    (folder / "hot").mkdir(parents=True, exist_ok=True)
    pq.write_table(rows, folder / name)
    written_s = time.time() - age_s
    os.utime(folder / name, (written_s, written_s))
    (folder / name).rename(folder / "hot" / name)
