"""Ties a database to its event log, and finishes what dead ingests left in it."""

import asyncio
import logging
from uuid import UUID, uuid4

from headway.errors import Unavailable
from headway.store.engine import Engine, transaction
from headway.store.events.batches import event_log_of, recorded_files, set_event_log
from headway.store.events.event_log import SETTING, EventLog

log = logging.getLogger(__name__)


async def attach(engine: Engine, event_log: EventLog) -> None:
    """Open ``event_log`` after making sure that it is the one this database knows; at the first use, introduce them.

    Raises:
        Unavailable: Postgres or the disk is not there, or the folder is not this database's event log.
    """
    async with transaction(engine) as connection:
        marker, _ = await event_log_of(connection)
        if marker is None:
            marker = await asyncio.to_thread(_first_use, event_log)
            await set_event_log(connection, marker=marker, location=str(event_log.root))
            log.info("event log made location=%s marker=%s", event_log.root, marker)
    await asyncio.to_thread(event_log.open, marker)


async def recover(engine: Engine, event_log: EventLog) -> None:
    """Publish the recorded files that dead ingests left and delete their others. Harmless when repeated.

    Raises:
        Unavailable: Postgres or the disk is not there, or a dead ingest's transaction is still ending.
    """
    names = await asyncio.to_thread(event_log.leftovers)
    if names:
        await settle(engine, event_log, names)


async def settle(engine: Engine, event_log: EventLog, names: list[str]) -> None:
    """Publish those of ``names`` that are recorded and delete the others. Nobody may be writing them any more."""
    async with transaction(engine) as connection:
        recorded = await recorded_files(connection, names)
    published, deleted = await asyncio.to_thread(event_log.recover, names, recorded)
    log.warning("event log recovered published=%d deleted=%d", len(published), len(deleted))


def _first_use(event_log: EventLog) -> UUID:
    marker = event_log.read_marker()
    if marker is None:
        marker = uuid4()
        event_log.create(marker)
    elif not event_log.is_unused:
        # An unused one is an earlier first use that did not come to its end.
        raise Unavailable(
            f"the event log at {event_log.root} holds the events of another database: "
            f"name an empty folder in {SETTING}, or restore that database; telemetry is refused until then"
        )
    return marker
