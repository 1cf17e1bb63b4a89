"""Keeping the arrivals of every minute for later days: the leader's work, once a minute."""

import logging
from collections.abc import Callable

from headway.control.leadership import Leadership
from headway.store.engine import Engine
from headway.store.leadership import Superseded
from headway.store.minutes import keep_minutes

CAUGHT_UP_S = 3600.0  # how far back is looked for what was written while nobody kept it

log = logging.getLogger(__name__)


class MinuteKeeper:
    """Sums up buckets while this process leads. It remembers how far it is; going over them again changes nothing."""

    def __init__(self, *, engine: Engine, leadership: Leadership, clock: Callable[[], float]) -> None:
        self._engine = engine
        self._leadership = leadership
        self._clock = clock
        self._revision = 0

    async def keep(self) -> None:
        """Keep what was written since the last time. Apart from the ticks, so that deciding never waits for it.

        Raises:
            Unavailable: Postgres cannot be reached; nothing was kept, and the next time goes over it again.
        """
        epoch = self._leadership.epoch
        if epoch is None:
            return
        from_s = self._clock() - CAUGHT_UP_S
        try:
            self._revision = await keep_minutes(self._engine, after_revision=self._revision, from_s=from_s, epoch=epoch)
        except Superseded as error:
            log.info("minutes not kept: %s", error)  # the next tick steps down
