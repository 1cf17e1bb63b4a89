"""How many workers all hosts may report together. Each costs a row, and a line wherever workers are shown.

Where there are as many as that, a host still has its share. So hosts that report workers without end, each within its
own bound, keep no other host from reporting; and there are never more than twice as many.
"""

import logging
import time
from collections import Counter
from collections.abc import Callable

from headway.control.bounds import Bounds
from headway.errors import Invalid
from headway.local.throttle import Throttle
from headway.store.engine import Engine, transaction
from headway.store.hosts.template_counts import count_workers

QUOTA_COUNTED_S = 1.0  # a count of a hundred thousand rows takes some hundredths of a second

log = logging.getLogger(__name__)


class WorkerQuota:
    """The workers of all hosts, counted now and then."""

    def __init__(
        self,
        *,
        engine: Engine,
        bounds: Bounds,
        refused: Counter[str] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._engine = engine
        self._workers_max = bounds.workers_max
        self._share = bounds.workers_max // bounds.hosts_max
        self._clock = clock
        self._counted_at_s = float("-inf")
        self._every = 0
        """Those that were counted, and all that was reported since, as if none of it had been counted."""
        self._throttle = Throttle()
        self._refused = Counter[str]() if refused is None else refused
        """Of what there was no room for, with other such counts; here reports."""

    async def require(self, host_id: str, workers: int) -> None:
        """Return if there is room for a report of ``host_id`` with so many.

        Raises:
            Invalid: there is none, and the host has more than its share.
        """
        if workers <= self._share:
            return
        if self._clock() - self._counted_at_s >= QUOTA_COUNTED_S:
            await self._count(host_id)
        if self._every + workers > self._workers_max:
            own = await self._count(host_id)
            if self._every - own + workers > self._workers_max:
                self._refuse(host_id, workers)
        self._every += workers

    async def _count(self, host_id: str) -> int:
        """Those of ``host_id``; all are counted, too."""
        async with transaction(self._engine) as connection:
            self._every, own = await count_workers(connection, host_id)
        self._counted_at_s = self._clock()
        return own

    def _refuse(self, host_id: str, workers: int) -> None:
        why = (
            f"host reports {workers} workers, and {self._every} of all hosts are known, as many as HEADWAY_WORKERS "
            f"allows: have {self._share} at most, or raise it"
        )
        self._refused["workers"] += 1
        if self._throttle.due(host_id) is not None:
            log.warning("report refused host_id=%s: %s", host_id, why)
        raise Invalid(why)
