"""The share of jobs that started within their objective, what it may be, and how fast the difference is used up.

Source: Google, "The Site Reliability Workbook" (2018), chapter 5, "Multiwindow, Multi-Burn-Rate Alerts".
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from headway.scaling.arithmetic import DAY_S, HOUR_S, PERCENT
from headway.scaling.measure import late_jobs, merged

PERIOD_S = 300.0  # the shortest window of a burn rate
BUDGET_WINDOW_S = 30 * DAY_S


@dataclass(frozen=True, slots=True, kw_only=True)
class Burn:
    """A pair of windows in which a budget burns too fast: the long one shows that much is lost, the short one that it
    goes on.
    """

    name: str
    long_s: float
    short_s: float
    rate: float
    """How many times as fast as would use up the budget of 30 days in 30 days."""


FAST = Burn(name="fast", long_s=HOUR_S, short_s=PERIOD_S, rate=14.4)  # 2 % of the budget in an hour
SLOW = Burn(name="slow", long_s=6 * HOUR_S, short_s=1800.0, rate=6.0)  # 5 % in six hours
BURNS = (FAST, SLOW)


@dataclass(frozen=True, slots=True, kw_only=True)
class Attained:
    """The jobs of a window that started, as far as their waits are known."""

    jobs: int
    late_jobs: int

    @property
    def attainment(self) -> float | None:
        """The share that started in time, 0 to 1; ``None`` where none started."""
        return None if not self.jobs else 1.0 - self.late_jobs / self.jobs

    def burn_rate(self, percentile: float) -> float | None:
        """How many times more jobs are late than the objective allows; ``None`` where none started."""
        if not self.jobs:
            return None
        allowed = error_budget(percentile)
        share = self.late_jobs / self.jobs
        if not allowed:
            return float("inf") if share else 0.0
        return share / allowed

    def budget_left(self, percentile: float) -> float | None:
        """The share of the window's error budget that is left, 1 at most, below 0 where more is spent than there was.

        ``None`` where none started, and of an objective that allows no late job.
        """
        rate = self.burn_rate(percentile)
        return None if rate is None or not error_budget(percentile) else 1.0 - rate


NO_JOBS = Attained(jobs=0, late_jobs=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class DayAttained:
    """The jobs of a day of UTC that has not ended, and of the day before."""

    from_s: float
    """When the day began."""
    today: Attained
    before: Attained

    def allowed_jobs(self, percentile: float) -> float:
        """How many jobs may be late on a day with as many jobs as there are yet, or as there were the day before.

        How many come later in the day is not known: by those of the first minutes alone, a single late job spends all.
        One late job is allowed on any day.
        """
        return max(1.0, error_budget(percentile) * max(self.today.jobs, self.before.jobs))

    def is_spent(self, percentile: float) -> bool:
        """Whether more are late. An objective that allows no late job has no budget to spend."""
        return bool(error_budget(percentile)) and self.today.late_jobs > self.allowed_jobs(percentile)


def attained(sketches: Iterable[Mapping[int, int]], *, target_s: float) -> Attained:
    """The jobs that started, by sketches of how long they waited, and of these the ones that waited too long."""
    waits = merged(sketches)
    return Attained(jobs=sum(waits.values()), late_jobs=late_jobs(waits, target_s))


def error_budget(percentile: float) -> float:
    """The share of jobs that may be late, 0 to 1."""
    return round(1.0 - percentile / PERCENT, 9)
