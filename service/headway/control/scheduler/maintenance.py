"""What must happen every few minutes whoever leads: each part is harmless to do twice."""

import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from functools import partial

from headway.errors import Unavailable
from headway.store.access.credentials import forget_ended
from headway.store.decision_partitions import keep_partitions
from headway.store.engine import Engine, first_line, transaction
from headway.store.pools.attainment import count_attainment
from headway.store.pools.profiles import list_profiles
from headway.store.retention import SERVED, forget_old

MAINTENANCE_MISSED_MAX = 1  # once, a part may find a table locked

log = logging.getLogger(__name__)


class Maintenance:
    """What of upkeep is not done, and why."""

    def __init__(self) -> None:
        self.failing: dict[str, str] = {}
        """Part -> why it failed the last time; one that was only missed is here from the second time on."""
        self._missed: Counter[str] = Counter()

    async def do(self, what: str, part: Callable[[Engine], Awaitable[object]], engine: Engine) -> None:
        """Do a part. One that fails is logged, and keeps no other from being done."""
        try:
            await part(engine)
        except Unavailable as error:  # Postgres did not do it now
            self._missed[what] += 1
            if self._missed[what] > MAINTENANCE_MISSED_MAX:
                self.failing[what] = str(error)
            log.warning("upkeep of %s missed: %s", what, error)
        except Exception as error:
            self.failing[what] = first_line(error)
            log.exception("upkeep of %s failed", what)  # a bug, or a table that somebody changed by hand
        else:
            self.failing.pop(what, None)
            del self._missed[what]


async def prepare(engine: Engine) -> None:
    """Make what no decision can be stored without. Who was away for longer than partitions reach finds none of today's.

    Waited for before the first tick, which would fail with all pools.
    """
    await Maintenance().do("partitions", keep_partitions, engine)


async def maintain(engine: Engine, upkeep: Maintenance) -> None:
    """Make the partitions of the days ahead, drop expired ones, and forget what has served.

    A part that fails is logged, is in ``upkeep``, and is done the next time; it keeps no other from being done.
    """
    parts: dict[str, Callable[[Engine], Awaitable[object]]] = {
        "partitions": keep_partitions,
        **{f"old rows of {table}": partial(forget_old, table=table) for table in SERVED},
        "ended credentials": _forget_credentials,
    }
    for what, part in parts.items():
        await upkeep.do(what, part, engine)


async def attain(engine: Engine, upkeep: Maintenance) -> None:
    """Count which jobs of each pool started in time, as far as the pipeline has rolled them up."""
    await upkeep.do("attainment", _count_attainment, engine)


async def _count_attainment(engine: Engine) -> None:
    async with transaction(engine) as conn:
        await count_attainment(conn, [stored.profile for stored in await list_profiles(conn)], now_s=time.time())


async def _forget_credentials(engine: Engine) -> None:
    async with transaction(engine) as conn:
        await forget_ended(conn)
