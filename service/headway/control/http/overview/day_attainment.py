"""What pools attained today and yesterday, in days of UTC, as the SLO report counts it."""

import math
from collections.abc import Mapping

from headway.scaling.arithmetic import DAY_S
from headway.scaling.metrics.attainment import NO_JOBS, DayAttained
from headway.store.engine import Connection
from headway.store.pools.slo_report import read_attained_by_period

READ_S = 60.0  # it is counted once a minute, and a thousand busy pools have half a million rows in two days


class DayAttainment:
    """Read at most once a minute, and when a day begins."""

    def __init__(self) -> None:
        self._read_at_s = float("-inf")
        self._pools: frozenset[str] = frozenset()
        self._attained: Mapping[str, DayAttained] = {}

    async def of(self, conn: Connection, pools: frozenset[str], *, now_s: float) -> Mapping[str, DayAttained]:
        """Pool -> its jobs of the day that ``now_s`` is in; one of which no job has started then is missing."""
        day_s = math.floor(now_s / DAY_S) * DAY_S
        if not (day_s <= self._read_at_s <= now_s < self._read_at_s + READ_S and pools == self._pools):
            days = await read_attained_by_period(
                conn, sorted(pools), from_s=day_s - DAY_S, until_s=day_s + DAY_S, step_s=DAY_S
            )
            self._attained = {
                pool: DayAttained(from_s=day_s, today=of_days[day_s], before=of_days.get(day_s - DAY_S, NO_JOBS))
                for pool, of_days in days.items()
                if day_s in of_days
            }
            self._read_at_s, self._pools = now_s, pools
        return self._attained
