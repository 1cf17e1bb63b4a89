"""The interface of every forecast of arrivals, and the one rule by which all of them are trusted.

Each is measured against the recent rate, which needs no trust: it counts by how many jobs it fell short, and how often.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol, Self

from headway.scaling.forecasts.rhythm_detection import Periods
from headway.scaling.forecasts.shortfalls import Shortfalls


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """An exposed pool at one evaluation."""

    now_s: float
    tick_s: float
    ahead_s: float
    """For how long from now arriving jobs are late for any worker asked for at the next evaluation."""
    rate_jobs: float
    """What the recent rate brings in a tick."""
    used_jobs: int | None
    """How many jobs are there; ``None``: not known."""
    periods: Periods | None
    """The rhythms in what came of late; ``None``: none may be used."""
    recalled_jobs: float | None
    """What the past predicts for ``ahead_s``, beyond the recent rate; ``None``: nothing that may be used."""
    is_by_weeks: bool
    """Whether weeks predict it, and not days."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """What came since the last evaluation that taught anything."""

    jobs: int
    lasts_s: float
    kept: float
    """What is left of the weight of all that was counted before, 0 to 1."""
    is_lost: bool
    """Whether more came than the pool can ever start in time: no forecast fell short of those."""
    rate_jobs: float
    """What the recent rate made expect."""

    def counted(self, before: Shortfalls, *expected_jobs: float | None) -> Shortfalls:
        """``before``, faded, and by how much the ``expected_jobs`` together fell short, where all are known."""
        faded, short_jobs = before.faded(self.kept), 0.0 if self.is_lost else float(self.jobs)
        for jobs in expected_jobs:
            if jobs is None:
                return faded
            short_jobs -= jobs
        return faded.seen(short_jobs, jobs=self.jobs, span_s=self.lasts_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecentRate:
    """What the pool must be ready for by the recent rate alone."""

    ahead_jobs: float
    """Expected while the pool is exposed."""
    spare_jobs: float
    """Beyond these."""
    quiet_s: float
    """Since when nothing was learned."""
    spare_of: Callable[[Shortfalls], float]
    """The spare jobs that are enough, and worth it, for what fell short so often."""


class Outlook(NamedTuple):
    """The jobs beyond the recent rate that are enough by one forecast, and how far it has earned trust."""

    spare_jobs: float
    may_raise: bool
    """Whether it says when jobs come, so that no fewer are enough."""
    may_lower: bool
    """Whether it was watched for long enough to show that no more are needed."""


def trusted(spare_jobs: float, outlook: Outlook | None) -> float:
    """The ``spare_jobs`` of those before, raised or lowered to the forecast's own where it may."""
    if outlook is None:
        return spare_jobs
    may = outlook.may_raise if outlook.spare_jobs > spare_jobs else outlook.may_lower
    return outlook.spare_jobs if may else spare_jobs


class ArrivalForecast(Protocol):
    """A frozen dataclass of what one forecast has learned, and expects next. Each field is stored by its name."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> Self:
        """The forecast with what it finds of its own in ``stored``, which others share."""

    def after(self, span: Span | None, moment: Moment) -> Self:
        """With the span that was predicted last, where it teaches anything, and with what is expected of the next."""

    def outlook(self, moment: Moment, recent: RecentRate) -> Outlook | None:
        """What is enough while the pool is exposed; ``None`` where it says nothing."""
