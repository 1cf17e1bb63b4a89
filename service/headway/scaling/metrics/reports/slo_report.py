"""How a pool kept its objective by day or hour, and what its workers took, beside a pool sized for its peak."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from headway.scaling.arithmetic import HOUR_S, PERCENT
from headway.scaling.metrics.attainment import Attained


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerTime:
    """What decisions recorded of a pool's workers in one period."""

    worker_s: float
    known_s: float
    """Of the period: how long a decision held."""
    peak_workers: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PeriodReport:
    """A day or an hour of a pool; ``None`` is not known."""

    from_s: float
    jobs: int | None
    late_jobs: int | None
    attainment: float | None
    """The share of jobs that started in time, 0 to 1."""
    burn_rate: float | None
    """How many times more jobs were late than the objective allows; ``None`` of one that allows none."""
    worker_hours: float | None
    workers_known_s: float
    """Of the period: how long it is known how many workers there were."""
    cost: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SloReport:
    """A pool over the whole range, and by period."""

    attainment: float | None
    jobs: int | None
    late_jobs: int | None
    budget_left: float | None
    """The share of the range's error budget that is left, 1 at most, below 0 where more is spent."""
    worker_hours: float | None
    cost: float | None
    static_worker_hours: float | None
    """What as many workers as the most there were would have taken in the same time."""
    static_cost: float | None
    periods: tuple[PeriodReport, ...]


def slo_report(
    periods_s: Sequence[float],
    attained: Mapping[float, Attained],
    worked: Mapping[float, WorkerTime],
    *,
    percentile: float,
    cost_per_worker_hour: float | None,
) -> SloReport:
    """What is known of a pool in the periods that begin at ``periods_s``.

    Args:
        periods_s: Unix seconds, oldest first.
        attained: Start of a period -> its jobs; one that is not among them had none, or is not known.
        worked: Start of a period -> its workers.
        percentile: The objective's.
        cost_per_worker_hour: The profile's; ``None``: no cost is known.
    """
    inside = [attained[from_s] for from_s in periods_s if from_s in attained]
    together = Attained(jobs=sum(each.jobs for each in inside), late_jobs=sum(each.late_jobs for each in inside))
    times = [worked[from_s] for from_s in periods_s if from_s in worked]
    worker_hours = sum(each.worker_s for each in times) / HOUR_S if times else None
    static_hours = None
    if times:
        static_hours = max(each.peak_workers for each in times) * sum(each.known_s for each in times) / HOUR_S
    return SloReport(
        attainment=together.attainment,
        jobs=together.jobs if inside else None,
        late_jobs=together.late_jobs if inside else None,
        budget_left=together.budget_left(percentile),
        worker_hours=worker_hours,
        cost=_cost(worker_hours, cost_per_worker_hour),
        static_worker_hours=static_hours,
        static_cost=_cost(static_hours, cost_per_worker_hour),
        periods=tuple(
            _period(from_s, attained.get(from_s), worked.get(from_s), percentile, cost_per_worker_hour)
            for from_s in periods_s
        ),
    )


def _period(
    from_s: float, jobs: Attained | None, time: WorkerTime | None, percentile: float, cost_per_worker_hour: float | None
) -> PeriodReport:
    worker_hours = None if time is None else time.worker_s / HOUR_S
    allows_late = percentile < PERCENT
    return PeriodReport(
        from_s=from_s,
        jobs=None if jobs is None else jobs.jobs,
        late_jobs=None if jobs is None else jobs.late_jobs,
        attainment=None if jobs is None else jobs.attainment,
        burn_rate=jobs.burn_rate(percentile) if jobs is not None and allows_late else None,
        worker_hours=worker_hours,
        workers_known_s=0.0 if time is None else time.known_s,
        cost=_cost(worker_hours, cost_per_worker_hour),
    )


def _cost(worker_hours: float | None, cost_per_worker_hour: float | None) -> float | None:
    return None if worker_hours is None or cost_per_worker_hour is None else worker_hours * cost_per_worker_hour
