"""What came at this time of earlier days."""

import math

MINUTE_S = 60.0
DAY_MINUTES = 1440
DAYS = 7  # a week has every weekday once
ODD_DAYS = 3  # of so many, one may be odd


class Recall:
    """Arrivals of one queue by minute of the clock, for a week."""

    def __init__(self) -> None:
        self._jobs: dict[int, int] = {}
        self._first: int | None = None
        self._newest: int | None = None

    def take(self, jobs: int, *, at_s: float) -> None:
        """Count ``jobs`` that arrived up to ``at_s``."""
        minute = math.ceil(at_s / MINUTE_S) - 1  # a span that ends with a minute belongs to it
        if self._first is None:
            self._first = minute
        if jobs:
            self._jobs[minute] = self._jobs.get(minute, 0) + jobs
        if minute != self._newest:
            self._newest = minute
            self._jobs.pop(minute - DAYS * DAY_MINUTES - 1, None)

    def jobs(self, *, now_s: float, ahead_s: float) -> int | None:
        """The jobs that a minute begun by ``now_s + ahead_s`` brought on earlier days, less those it has today.

        ``None`` until a whole day has been seen.
        """
        if self._first is None or self._newest is None or self._newest - self._first < DAY_MINUTES:
            return None
        current = math.floor((now_s + 1e-6) / MINUTE_S)
        until = math.floor((now_s + ahead_s) / MINUTE_S)
        return max(max(0, self._busiest(minute) - self._jobs.get(minute, 0)) for minute in range(current, until + 1))

    def _busiest(self, minute: int) -> int:
        """The most that an earlier day had; of three days or more the second most: one odd day proves nothing."""
        first = self._first or 0
        days = (minute - day * DAY_MINUTES for day in range(1, DAYS + 1))
        counts = sorted((self._jobs.get(earlier, 0) for earlier in days if earlier >= first), reverse=True)
        return counts[1] if len(counts) >= ODD_DAYS else counts[0] if counts else 0
