"""What must happen every few minutes whoever leads: each part is harmless to do twice."""

import logging
from collections.abc import Awaitable, Callable

from headway.errors import Unavailable
from headway.store.credentials import forget_ended
from headway.store.engine import Engine, transaction
from headway.store.partitions import keep_partitions
from headway.store.retention import forget_old

log = logging.getLogger(__name__)


async def maintain(engine: Engine) -> None:
    """Make the partitions of the days ahead, drop expired ones, and forget what has served.

    A part that Postgres does not do now is told in a line and done the next time; it keeps no other from being done.
    """
    parts: dict[str, Callable[[Engine], Awaitable[object]]] = {
        "partitions": keep_partitions,
        "old rows": forget_old,
        "ended credentials": _forget_credentials,
    }
    for what, part in parts.items():
        try:
            await part(engine)
        except Unavailable as error:
            log.warning("upkeep of %s missed: %s", what, error)


async def _forget_credentials(engine: Engine) -> None:
    async with transaction(engine) as conn:
        await forget_ended(conn)
