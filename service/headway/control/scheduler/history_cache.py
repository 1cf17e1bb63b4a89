"""What the past predicts for exposed pools: the weeks of a queue where they are believed, else minutes of days."""

import logging
from collections import Counter
from collections.abc import Mapping, Sequence

from headway.scaling.history.daily import DAILY_DAYS, DAY_MINUTES, minute_of, minutes_ahead, recalled_jobs
from headway.scaling.history.weekly import Member, Recalled, Season, recalled
from headway.scaling.model import QueueMetrics
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

    def recalled(
        self,
        queues: Sequence[QueueMetrics],
        *,
        arrived_jobs: Mapping[str, int],
        now_s: float,
        ahead_s: float,
        tick_s: float,
    ) -> Recalled:
        """What the past brought the pool of ``queues`` beyond the ``arrived_jobs`` of this minute, by queue.

        Nothing while nobody has read it, or until a whole day of any member is known.
        """
        members = [
            Member(
                season=self._seasons[queue.queue],
                arrived_jobs=arrived_jobs[queue.queue],
                rate_per_s=queue.fresh_rate_per_s or 0.0,
            )
            for queue in queues
            if queue.queue in self._seasons
        ]
        others = [queue.queue for queue in queues if queue.queue not in self._seasons]
        arrived = sum(arrived_jobs[queue] for queue in others)
        by_days = self._by_days(others, arrived_jobs=arrived, now_s=now_s, ahead_s=ahead_s)
        return recalled(members, by_days=by_days, now_s=now_s, ahead_s=ahead_s, tick_s=tick_s)

    def _by_days(self, queues: Sequence[str], *, arrived_jobs: int, now_s: float, ahead_s: float) -> int | None:
        known = [self._counts[queue] for queue in queues if queue in self._counts]
        jobs = Counter({minute_of(now_s): arrived_jobs})
        for counts in known:
            jobs.update(counts.jobs)
        since = min((counts.since for counts in known), default=None)
        return recalled_jobs(jobs, since=since, now_s=now_s, ahead_s=ahead_s)
