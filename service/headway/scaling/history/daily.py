"""What came at this time of earlier days."""

import math
from collections.abc import Mapping, Sequence

from headway.scaling.arithmetic import DAY_S, MINUTE_S

DAY_MINUTES = int(DAY_S / MINUTE_S)
DAILY_DAYS = 7  # a week has every weekday once
DAILY_ODD_DAYS = 3  # of so many, one may be odd


def minute_of(at_s: float) -> int:
    """The minute that runs at ``at_s``, in minutes of the Unix clock."""
    return math.floor((at_s + 1e-6) / MINUTE_S)


def minutes_ahead(*, now_s: float, ahead_s: float) -> range:
    """The minutes that have begun by ``now_s + ahead_s`` and are not over."""
    return range(minute_of(now_s), minute_of(now_s + ahead_s) + 1)


def recalled_jobs(jobs: Mapping[int, int], *, since: int | None, now_s: float, ahead_s: float) -> int | None:
    """The jobs that a minute begun by ``now_s + ahead_s`` brought on earlier days, less those it has today.

    Args:
        jobs: Minute -> arrivals, earlier days' and today's. A minute that is not among them had none.
        since: The first minute that is known.
        now_s: Unix seconds.
        ahead_s: How far ahead.

    Returns:
        Of the minutes the most; ``None`` until a whole day has been seen.
    """
    if since is None or ended_minute(now_s) - since < DAY_MINUTES:
        return None
    minutes = minutes_ahead(now_s=now_s, ahead_s=ahead_s)
    return max(max(0, busiest(jobs, minute, since=since) - jobs.get(minute, 0)) for minute in minutes)


class Recall:
    """Arrivals of one queue by minute of the clock, for a week."""

    def __init__(self) -> None:
        self.by_minute: dict[int, int] = {}
        """Minute -> arrivals. A minute that is not among them had none."""
        self.since: int | None = None
        """The first minute that is known."""
        self._newest: int | None = None

    def take(self, jobs: int, *, at_s: float) -> None:
        """Count ``jobs`` that arrived up to ``at_s``."""
        minute = ended_minute(at_s)
        if self.since is None:
            self.since = minute
        if jobs:
            self.by_minute[minute] = self.by_minute.get(minute, 0) + jobs
        if minute != self._newest:
            self._newest = minute
            self.by_minute.pop(minute - DAILY_DAYS * DAY_MINUTES - 1, None)

    def arrived_jobs(self, *, now_s: float) -> int:
        """What the minute that runs at ``now_s`` has brought so far."""
        return self.by_minute.get(minute_of(now_s), 0)


def ended_minute(at_s: float) -> int:
    """The minute that a span which ends at ``at_s`` belongs to: it may end with it."""
    return math.ceil(at_s / MINUTE_S) - 1


def busiest(jobs: Mapping[int, int], minute: int, *, since: int) -> int:
    """The most that ``minute`` of an earlier day had, as ``most_of`` takes it."""
    days = (minute - day * DAY_MINUTES for day in range(1, DAILY_DAYS + 1))
    return most_of([jobs.get(earlier, 0) for earlier in days if earlier >= since])


def most_of(counts: Sequence[int]) -> int:
    """The most of some days; of three days or more the second most: one odd day proves nothing."""
    ranked = sorted(counts, reverse=True)
    return ranked[1] if len(ranked) >= DAILY_ODD_DAYS else ranked[0] if ranked else 0
