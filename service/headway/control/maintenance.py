"""What must happen every few minutes whoever leads: each part is harmless to do twice."""

import logging
from collections.abc import Awaitable, Callable

from headway.errors import Unavailable
from headway.store.credentials import forget_ended
from headway.store.engine import Engine, transaction
from headway.store.partitions import keep_partitions
from headway.store.retention import forget_old

log = logging.getLogger(__name__)


async def prepare(engine: Engine) -> None:
    """Make what no decision can be stored without. Who was away for longer than partitions reach finds none of today's.

    Waited for before the first tick, which would fail with all pools.
    """
    await _do("partitions", keep_partitions, engine)


async def maintain(engine: Engine) -> None:
    """Make the partitions of the days ahead, drop expired ones, and forget what has served.

    A part that fails is told and done the next time; it keeps no other from being done.
    """
    parts: dict[str, Callable[[Engine], Awaitable[object]]] = {
        "partitions": keep_partitions,
        "old rows": forget_old,
        "ended credentials": _forget_credentials,
    }
    for what, part in parts.items():
        await _do(what, part, engine)


async def _do(what: str, part: Callable[[Engine], Awaitable[object]], engine: Engine) -> None:
    try:
        await part(engine)
    except Unavailable as error:
        log.warning("upkeep of %s missed: %s", what, error)
    except Exception:
        log.exception("upkeep of %s failed", what)  # a bug, or a table that somebody changed by hand


async def _forget_credentials(engine: Engine) -> None:
    async with transaction(engine) as conn:
        await forget_ended(conn)
