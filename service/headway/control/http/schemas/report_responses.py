"""What a range of time comes to: columns for a chart, and the report on objectives."""

from collections.abc import Mapping

from headway.control.http.schemas.schema_base import Given
from headway.scaling.metrics.reports.series import Source
from headway.scaling.metrics.reports.slo_report import PeriodReport
from headway.scaling.model import Objective


class SeriesColumns(Given):
    """One value a point in each; null is not known, and never 0. A point is a span of `step_s` that begins at `at_s`.

    Waits, depths and workers are the greatest of the span, events are counted.
    """

    at_s: list[float]
    p50_s: list[float | None]
    """Of finished waits in the objective's window, as it moved over the span; in hours, of an hour's jobs."""
    p95_s: list[float | None]
    pickup_s: list[float | None]
    """The objective's percentile."""
    pickup_ratio: list[float | None]
    """`pickup_s` as a part of the queue's own objective, the greatest of the queues: above 1 is late."""
    pickup_max_s: list[float | None]
    """The longest wait of a job that started in the span; exact."""
    backlog_jobs: list[float | None]
    oldest_age_s: list[float | None]
    enqueued: list[float | None]
    started: list[float | None]
    finished: list[float | None]
    failed: list[float | None]
    """Jobs whose last attempt failed."""
    retried: list[float | None]
    """Attempts that failed and are followed by another one of the same job."""
    running_workers: list[float | None]
    """As decisions recorded: when the count changed, and every 5 minutes. They are kept for 14 days."""
    starting_workers: list[float | None]
    draining_workers: list[float | None]
    target_workers: list[float | None]
    ceiling_workers: list[float | None]
    """By the profile and its schedules; null before its present version."""
    forecast_jobs_per_s: list[float | None]
    """What the weeks predict by what they teach now, where they have been better than other forecasts."""
    forecast_high_jobs_per_s: list[float | None]
    """What 95 % of the minutes do not exceed, by the same weeks."""


class SeriesOut(Given):
    """A queue or pool over a span of time."""

    pool: str | None
    queue: str | None
    """null: all queues of the pool together."""
    from_s: float
    """When the first point begins: what was asked for, or a little earlier."""
    until_s: float
    step_s: float
    source: Source
    """What it is made of: `raw` is of 5 s (kept 2 hours), `minutes` (14 days), `hours` (400 days)."""
    objective: Objective | None
    member_objectives: Mapping[str, Objective]
    """Of a pool, the objectives of those of its queues that have their own."""
    columns: SeriesColumns


class SloPoolOut(Given):
    """How a pool kept its objective, and what its workers took; null is not known."""

    pool: str
    objective: Objective
    attainment: float | None
    """The share of jobs that started in time, 0 to 1, each by the objective of its time."""
    jobs: int | None
    late_jobs: int | None
    budget_left: float | None
    """The share of the range's error budget that is left, 1 at most, below 0 where more is spent."""
    worker_hours: float | None
    cost: float | None
    """By the profile's `cost_per_worker_hour`."""
    static_worker_hours: float | None
    """What a pool of as many workers as the most there were would have taken, in the time that is known."""
    static_cost: float | None
    periods: list[PeriodReport]


class SloOut(Given):
    """Every pool that was asked for, by name."""

    from_s: float
    until_s: float
    step_s: float
    counted_until_s: float | None
    """Jobs that started by then are counted, as far as they were reported: a minute or two ago. Null: none is yet."""
    pools: list[SloPoolOut]
