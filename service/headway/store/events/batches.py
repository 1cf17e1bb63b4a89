"""The event log in Postgres: batches that were claimed, files that count, and which log is this database's."""

from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import text

from headway.store.engine import Connection


class BatchKey(NamedTuple):
    """What identifies a batch."""

    producer: str
    sequence: int


_CLAIM = text(
    """
    insert into event_batches (producer, sequence, file)
    select * from unnest(cast(:producers as text[]), cast(:sequences as bigint[]), cast(:files as text[]))
    on conflict do nothing returning producer, sequence
    """
)
_RECORD_FILE = text("insert into event_files (file, ingest, rows, bytes) values (:file, :ingest, :rows, :size_bytes)")
_RECORD_UNKNOWN = text(
    """
    insert into event_files (file, ingest, rows, bytes)
    select file, '', 0, 0 from unnest(cast(:files as text[])) as file
    on conflict do nothing returning file
    """
)
_LOCK_EVENT_LOG = text("select event_log_marker, event_log_location from cluster for update")
_SET_EVENT_LOG = text("update cluster set event_log_marker = :marker, event_log_location = :location")


async def claim_batches(connection: Connection, files: dict[BatchKey, str | None]) -> set[BatchKey]:
    """Claim batches, each with the file that will hold its rows, or None where it has none.

    A batch that another transaction is claiming is waited for: exactly one of the two gets it.

    Returns:
        The batches that are ours; the others were claimed before.
    """
    ordered = sorted(files)  # two ingests that claim the same batches meet in the same order: no deadlock
    rows = await connection.execute(
        _CLAIM,
        {
            "producers": [key.producer for key in ordered],
            "sequences": [key.sequence for key in ordered],
            "files": [files[key] for key in ordered],
        },
    )
    return {BatchKey(*row) for row in rows}


async def record_file(connection: Connection, *, file: str, ingest: str, rows: int, size_bytes: int) -> None:
    """Record that ``file`` counts: from the commit on, recovery publishes it instead of deleting it."""
    await connection.execute(_RECORD_FILE, {"file": file, "ingest": ingest, "rows": rows, "size_bytes": size_bytes})


async def recorded_files(connection: Connection, files: Sequence[str]) -> set[str]:
    """Those of ``files`` that are recorded.

    A dead ingest's transaction may still be committing: reading would not see it, so this tries to record the files
    itself, which waits for such a transaction to end, and takes that back.
    """
    async with connection.begin_nested() as attempt:
        rows = await connection.execute(_RECORD_UNKNOWN, {"files": sorted(files)})
        unrecorded = set(rows.scalars())
        await attempt.rollback()
    return set(files) - unrecorded


async def event_log_of(connection: Connection) -> tuple[UUID | None, str | None]:
    """The marker and the location of this database's event log; None before its first use.

    Locks the row, so that of two ingests at their first use one sees what the other did.
    """
    row = (await connection.execute(_LOCK_EVENT_LOG)).one()
    return row.event_log_marker, row.event_log_location


async def set_event_log(connection: Connection, *, marker: UUID, location: str) -> None:
    """Tie this database to the event log ``marker`` at ``location``."""
    await connection.execute(_SET_EVENT_LOG, {"marker": marker, "location": location})
