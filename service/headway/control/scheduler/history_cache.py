"""What the past predicts for exposed pools: the weeks of a queue where they are believed, else minutes of days."""

import logging
from collections.abc import Mapping

from headway.scaling.history.daily import DAILY_DAYS, DAY_MINUTES, minute_of, minutes_ahead
from headway.scaling.history.weekly import Season
from headway.scaling.reading.gathered_view import PastArrivals
from headway.store.engine import Engine, transaction
from headway.store.metrics.arrival_history import MinuteCounts, read_minutes
from headway.store.metrics.seasons import Stored, read_seasons

SEASONS_READ_S = 600.0  # they are learned once a day: ten minutes later is soon enough

log = logging.getLogger(__name__)


class HistoryCache:
    """Counts of earlier days around one minute, read anew when the next one begins, and the seasons of their queues."""

    def __init__(self) -> None:
        self._minute: int | None = None
        self._counts: Mapping[str, MinuteCounts] = {}
        self._seasons: Mapping[str, Season] = {}
        """By queue, those that are believed."""
        self._seasons_of: frozenset[str] = frozenset()
        """The queues that were asked for."""
        self._seasons_at_s = 0.0
        self._unfit: Mapping[str, str] = {}

    def is_due(self, *, now_s: float) -> bool:
        """Whether a minute has begun since the last reading."""
        return minute_of(now_s) != self._minute

    async def read(self, engine: Engine, exposed_s: Mapping[str, float], *, now_s: float) -> None:
        """Read what every queue of ``exposed_s`` needs for a minute, given for how long its pool is exposed.

        Where no pool is exposed, Postgres is not asked.
        """
        counts: Mapping[str, MinuteCounts] = {}
        if exposed_s:
            # What is read serves until the minute is over, and forecasts start from then.
            ahead = minutes_ahead(now_s=now_s, ahead_s=max(exposed_s.values()) + 60.0)
            minutes = [minute - day * DAY_MINUTES for minute in ahead for day in range(1, DAILY_DAYS + 1)]
            async with transaction(engine) as connection:
                counts = await read_minutes(connection, queues=sorted(exposed_s), minutes=minutes)
                if not exposed_s.keys() <= self._seasons_of or abs(now_s - self._seasons_at_s) >= SEASONS_READ_S:
                    self._take(await read_seasons(connection, queues=sorted(exposed_s)))
                    self._seasons_of, self._seasons_at_s = frozenset(exposed_s), now_s
        self._counts, self._minute = counts, minute_of(now_s)

    def _take(self, stored: Stored) -> None:
        self._seasons = {queue: each.season for queue, each in stored.seasons.items() if each.season.is_better}
        for queue, why in stored.unfit.items():
            if self._unfit.get(queue) != why:
                log.warning("season not used, earlier days are: queue=%s reason=%s", queue, why)
        self._unfit = stored.unfit

    def past(self, queue: str, *, arrived_jobs: int) -> PastArrivals:
        """What is remembered of ``queue``, which has had ``arrived_jobs`` in this minute."""
        counts = self._counts.get(queue)
        return PastArrivals(
            arrived_jobs=arrived_jobs,
            season=self._seasons.get(queue),
            jobs={} if counts is None else counts.jobs,
            since=None if counts is None else counts.since,
        )
