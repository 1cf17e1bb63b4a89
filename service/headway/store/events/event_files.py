"""The files of the event log: their columns, and how rows become one. It brings pyarrow along: import it late."""

from collections.abc import Sequence
from typing import IO, Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

SCHEMA = pa.schema(
    [
        pa.field("schema_version", pa.int32(), nullable=False),
        pa.field("queue", pa.string(), nullable=False),
        pa.field("kind", pa.string(), nullable=False),
        pa.field("job_id", pa.string()),
        pa.field("job_class", pa.string()),
        pa.field("at_s", pa.float64(), nullable=False),
        pa.field("received_at_s", pa.float64(), nullable=False),
        pa.field("enqueued_at_s", pa.float64()),
        pa.field("started_at_s", pa.float64()),
        pa.field("waiting_jobs", pa.int64()),
        pa.field("in_flight_jobs", pa.int64()),
        pa.field("delayed_jobs", pa.int64()),
        pa.field("oldest_age_s", pa.float64()),
        pa.field("attempt", pa.int64()),
        pa.field("reserved_jobs", pa.int64()),
        pa.field("oldest_age_max_s", pa.float64()),
        pa.field("reports_arrivals", pa.bool_()),
        pa.field("reports_starts", pa.bool_()),
        pa.field("reports_ends", pa.bool_()),
        pa.field("waiting_min_jobs", pa.int64()),
        pa.field("in_flight_min_jobs", pa.int64()),
        pa.field("producer", pa.string(), nullable=False),
        pa.field("sequence", pa.int64(), nullable=False),
    ]
)


def write_rows(rows: Sequence[NamedTuple], file: IO[Any]) -> None:
    """Write ``rows``, at least one and each with the fields of ``SCHEMA``, as a Parquet file."""
    columns = dict(zip(rows[0]._fields, zip(*rows, strict=True), strict=True))
    pq.write_table(pa.table([pa.array(columns[field.name], field.type) for field in SCHEMA], schema=SCHEMA), file)
