"""Queues that pools' patterns match, kept up with what collectors and programs report: before each evaluation."""

import logging

from headway.store.engine import Engine, transaction
from headway.store.leadership import fence
from headway.store.pools.queue_ownership import QueueNews, read_queue_news, settle_queues

log = logging.getLogger(__name__)


class QueueDiscovery:
    """Settles which pool owns each queue whenever something speaks for a change."""

    def __init__(self) -> None:
        self._settled: QueueNews | None = None
        """What there was when all was settled."""

    async def keep_up(self, engine: Engine, *, epoch: int) -> frozenset[str]:
        """Give new queues to the pools whose patterns match them. Returns the pools with other queues than before.

        Raises:
            Superseded: another process leads under a later epoch; nothing was written.
        """
        async with transaction(engine) as connection:
            news = await read_queue_news(connection)
        if news == self._settled or (not news.patterns and self._settled is None):
            return frozenset()
        async with transaction(engine) as connection:
            await fence(connection, epoch=epoch)
            pools = await settle_queues(connection)
            settled = await read_queue_news(connection)
        self._settled = settled
        for pool in sorted(pools):
            log.info("queues changed pool=%s", pool)
        return pools
