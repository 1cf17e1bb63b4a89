"""What runs a pool today beside what Headway would have run, over the same recorded stretch."""

from dataclasses import dataclass

from headway.scaling.arithmetic import HOUR_S
from headway.scaling.fields import taken_from
from headway.scaling.metrics.attainment import Attained
from headway.scaling.metrics.reports.listed_time import ListedTime
from headway.simulate.engine.results import Result


@dataclass(frozen=True, slots=True, kw_only=True)
class TodaySide:
    """What the record says; ``None`` is not known."""

    worker_hours: float | None
    """While it is known how many workers there were."""
    known_hours: float
    unknown_hours: float
    mean_workers: float | None
    """On average while it is known."""
    jobs: int
    """That started, and of which it is known how long they waited."""
    late_jobs: int
    attainment_percent: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadwaySide:
    """What the rehearsal of the recorded jobs came to."""

    worker_hours: float
    mean_workers: float
    """All worker-hours, those after the end of the stretch too, over the hours of the stretch."""
    jobs: int
    unserved_jobs: int
    attainment_percent: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Savings:
    """Both sides of one pool, from ``from_s`` until ``until_s`` (Unix seconds)."""

    pool: str
    objective_s: float
    percentile: float
    from_s: float
    until_s: float
    today: TodaySide
    headway: HeadwaySide | None
    """``None``: it cannot be rehearsed."""
    why_not: str = ""
    """Why it cannot be."""

    @property
    def saved_percent(self) -> float | None:
        """How many workers fewer Headway has on average, of those of today; below 0 where it has more.

        ``None`` where a side is not known, and where nobody ran a worker.
        """
        if self.headway is None or not self.today.mean_workers:
            return None
        return 100.0 * (1.0 - self.headway.mean_workers / self.today.mean_workers)


def today_side(listed: ListedTime, attained: Attained) -> TodaySide:
    """The record's side: workers that were listed, and how long jobs waited."""
    share = attained.attainment
    return taken_from(
        TodaySide,
        listed,
        attained,
        worker_hours=listed.worker_s / HOUR_S if listed.known_s else None,
        known_hours=listed.known_s / HOUR_S,
        unknown_hours=listed.unknown_s / HOUR_S,
        attainment_percent=None if share is None else 100.0 * share,
    )


def headway_side(result: Result, *, stretch_s: float) -> HeadwaySide:
    """The side of a rehearsal whose jobs came in a stretch of ``stretch_s``, above 0."""
    return taken_from(HeadwaySide, result, mean_workers=result.worker_hours * HOUR_S / stretch_s)
