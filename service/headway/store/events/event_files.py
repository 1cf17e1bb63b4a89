"""The files of the event log: their columns, and how rows become one. It brings pyarrow along: import it late."""

from collections.abc import Sequence
from dataclasses import fields
from operator import attrgetter
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq

from headway.scaling.keys import parts_of
from headway.scaling.model.event_row import EventRow, Version

_TYPES = {Version: pa.int32(), str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}

SCHEMA = pa.schema(
    [
        pa.field(each.name, _TYPES[kind], nullable=is_optional)
        for each in fields(EventRow)
        for kind, _, is_optional in (parts_of(each.type),)
    ]
)
_VALUES = attrgetter(*SCHEMA.names)


def write_rows(rows: Sequence[EventRow], file: IO[Any]) -> None:
    """Write ``rows``, at least one, as a Parquet file."""
    columns = zip(*map(_VALUES, rows), strict=True)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)]
    pq.write_table(pa.table(arrays, schema=SCHEMA), file)
