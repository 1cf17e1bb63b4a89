"""What the queues of exposed pools had in these minutes of earlier days, read from what was kept."""

from collections import Counter
from collections.abc import Mapping, Sequence

from headway.scaling.recall import DAY_MINUTES, DAYS, minute_of, minutes_ahead, recalled_jobs
from headway.store.engine import Engine, transaction
from headway.store.minutes import MinuteCounts, read_minutes


class EarlierDays:
    """Counts of earlier days around one minute, read anew when the next one begins."""

    def __init__(self) -> None:
        self._minute: int | None = None
        self._counts: Mapping[str, MinuteCounts] = {}

    def is_due(self, *, now_s: float) -> bool:
        """Whether a minute has begun since the last reading."""
        return minute_of(now_s) != self._minute

    async def read(self, engine: Engine, exposed_s: Mapping[str, float], *, now_s: float) -> None:
        """Read what every queue of ``exposed_s`` needs for a minute, given for how long its pool is exposed.

        Where no pool is exposed, Postgres is not asked.
        """
        counts: Mapping[str, MinuteCounts] = {}
        if exposed_s:
            # What is read serves until the minute is over, and is looked ahead from then.
            ahead = minutes_ahead(now_s=now_s, ahead_s=max(exposed_s.values()) + 60.0)
            minutes = [minute - day * DAY_MINUTES for minute in ahead for day in range(1, DAYS + 1)]
            async with transaction(engine) as connection:
                counts = await read_minutes(connection, queues=sorted(exposed_s), minutes=minutes)
        self._counts, self._minute = counts, minute_of(now_s)

    def recalled_jobs(self, queues: Sequence[str], *, arrived_jobs: int, now_s: float, ahead_s: float) -> int | None:
        """What earlier days brought the pool of ``queues`` beyond the ``arrived_jobs`` that this minute has brought it.

        ``None`` while nobody has read them, or until a whole day of any member is known.
        """
        known = [self._counts[queue] for queue in queues if queue in self._counts]
        jobs = Counter({minute_of(now_s): arrived_jobs})
        for counts in known:
            jobs.update(counts.jobs)
        since = min((counts.since for counts in known), default=None)
        return recalled_jobs(jobs, since=since, now_s=now_s, ahead_s=ahead_s)
