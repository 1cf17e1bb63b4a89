"""What must happen every few minutes whoever leads: each part is harmless to do twice."""

import logging

from headway.store.credentials import forget_ended
from headway.store.engine import Engine, transaction
from headway.store.partitions import keep_partitions
from headway.store.telemetry import forget_old

log = logging.getLogger(__name__)


async def maintain(engine: Engine) -> None:
    """Make the partitions of the days ahead, drop expired ones, and forget what has served."""
    await keep_partitions(engine)
    await forget_old(engine)
    async with transaction(engine) as conn:
        await forget_ended(conn)
