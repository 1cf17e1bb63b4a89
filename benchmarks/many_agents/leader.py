"""Who leads in the place of the control plane, so that the one under test answers agents and decides nothing."""

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence

from headway.scaling.model import Assignment
from headway.store.engine import Engine
from headway.store.leadership import LeaderSession
from headway.store.pools.evaluation_io import EvaluationResult, Gathered, apply

RENEW_S = 2.0


class Leader:
    """Leads, and changes assignments with the function and the fence of a tick."""

    def __init__(self, engine: Engine, database_url: str) -> None:
        self._engine = engine
        self._url = database_url
        self._rows: dict[str, Assignment] = {}
        self._revisions: Counter[str] = Counter()

    @contextlib.asynccontextmanager
    async def leading(self) -> AsyncIterator[None]:
        """Lead for as long as this is open."""
        session = await LeaderSession.open(self._url)
        epoch = await session.try_lead("benchmark")
        assert epoch is not None
        self._epoch = epoch

        async def renew() -> None:
            while True:
                await asyncio.sleep(RENEW_S)
                await session.renew(epoch)

        renewing = asyncio.create_task(renew())
        try:
            yield
        finally:
            renewing.cancel()
            await session.close()

    async def change(self, host_ids: Sequence[str]) -> tuple[float, dict[str, int]]:
        """Another number of workers for each of these hosts: when it was committed, and their new revisions."""
        before = list(self._rows.values())
        for host_id in host_ids:
            row = self._rows.get(host_id)
            count = row.base_workers % 4 + 1 if row else 4
            self._rows[host_id] = Assignment(pool="mail", host_id=host_id, template="mail", base_workers=count)
            self._revisions[host_id] += 1
        gathered = Gathered(
            at_s=0.0,
            revision=0,
            buckets=(),
            profiles={},
            states={},
            hosts=(),
            assignments=tuple(before),
            stored=tuple(before),
            direct={},
            worker_hours_today={},
        )
        news = EvaluationResult(remembered=(), decisions=(), assignments=tuple(self._rows.values()))
        await apply(self._engine, news, gathered, epoch=self._epoch)
        return time.monotonic(), {host_id: self._revisions[host_id] for host_id in host_ids}
