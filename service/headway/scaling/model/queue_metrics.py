"""What is known of a queue, and what is wanted of it."""

from dataclasses import dataclass
from typing import Annotated

from headway.scaling.arithmetic import DAY_S, MINUTE_S
from headway.scaling.keys import Range
from headway.scaling.model.due_jobs import DelayedJobs

OBJECTIVE_WINDOW_MAX_S = 900.0  # finished waits are kept at hand for this long
FAILURE_WINDOW_MIN_S, FAILURE_WINDOW_MAX_S = 30.0, 300.0  # what ended is kept at hand for as long as the latter
FAILED_JOBS_MAX = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective:
    """The objective: ``percentile`` % of the jobs of a window of ``window_s`` start within ``target_s``."""

    target_s: Annotated[float, Range(0, DAY_S, "low", unit="seconds")] = 10.0
    percentile: Annotated[float, Range(0, 100, "both")] = 99.0
    window_s: Annotated[float, Range(0, OBJECTIVE_WINDOW_MAX_S, "low")] = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureLimit:
    """From when on failures are an incident: more than ``share`` of the jobs that ended in ``window_s`` failed."""

    share: Annotated[float, Range(0, 1, "high", why="0.2 is 20 %")] = 0.2
    window_s: Annotated[float, Range(FAILURE_WINDOW_MIN_S, FAILURE_WINDOW_MAX_S)] = 300.0
    jobs_min: Annotated[int, Range(1, FAILED_JOBS_MAX)] = 3
    """Fewer failed jobs than these are none: a single job that fails at night must wake nobody."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrivals:
    """Jobs that arrived in one short span, and how long ago the span ended."""

    jobs: int
    ended_ago_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueMetrics:
    """What is known of one queue at a moment.

    ``sampled_at_s`` dates the depths; rates are over the ``window_s`` before now.
    """

    queue: str
    sampled_at_s: float | None = None
    waiting_jobs: int | None = None
    waiting_min_jobs: int | None = None
    """At least so many jobs wait, where ``waiting_jobs`` is not known; ``None``: no bound is known either."""
    overdue_jobs: int = 0
    """Of those that wait, the ones that were delayed, are due, and are not in the queue yet."""
    in_flight_jobs: int | None = None
    in_flight_min_jobs: int | None = None
    """Workers have at least so many jobs, where ``in_flight_jobs`` is not known."""
    reserved_jobs: int | None = None
    """Of those in flight, the ones that a worker has taken and not begun: they wait, and no other can have them."""
    delayed_jobs: int | None = None
    delayed: tuple[DelayedJobs, ...] = ()
    """When those of ``delayed_jobs`` are due whose time is known, the soonest first; in an evaluation from now on,
    before it from ``sampled_at_s`` on."""
    oldest_age_s: float | None = None
    oldest_age_max_s: float | None = None
    """Where the age is not exact, the most it may be; ``None``: it is exact, or no bound is known."""
    has_unknown_rates: bool = False
    """Whether its source leaves arrivals, starts or ends unreported: a rate that is ``None`` is then not known, and
    deciding estimates it from depths. ``False``: every event is reported."""
    in_flight_mean_jobs: float | None = None
    """Over the window."""
    window_s: float = MINUTE_S
    arrived_jobs: int | None = None
    """In the newest whole span, which ended at ``arrived_until_s``."""
    arrived_until_s: float | None = None
    retried_jobs: int | None = None
    """Of ``arrived_jobs``, those that came back for another attempt: work like any, and no news of what will come."""
    scheduled_jobs: int | None = None
    """Of ``arrived_jobs``, those that were delayed before they came: known before, and no news either."""
    arrival_rate_per_s: float | None = None
    retry_rate_per_s: float | None = None
    """The part of ``arrival_rate_per_s`` that came back."""
    scheduled_rate_per_s: float | None = None
    """The part of it that was delayed before it came."""
    start_rate_per_s: float | None = None
    late_rate_per_s: float | None = None
    """Jobs that started later than the objective allows."""
    completion_rate_per_s: float | None = None
    failure_rate_per_s: float | None = None
    arrival_trend_per_s2: float | None = None
    service_time_s: float | None = None
    service_batch_s: float | None = None
    """Mean service time of the jobs that ended in one span, over spans by their work: where long jobs come in batches
    among many short ones, that of the batches."""
    service_p95_s: float | None = None
    pickup_p50_s: float | None = None
    pickup_p95_s: float | None = None
    pickup_p99_s: float | None = None
    pickup_objective_s: float | None = None
    """The objective's percentile of finished waits over the objective's window."""
    arrivals: tuple[Arrivals, ...] = ()
    """Recent arrivals by span, newest first: with the depth they give the age of every waiting job."""

    @property
    def waiting_least_jobs(self) -> int:
        """So many jobs wait, or more where the number is not known."""
        return (self.waiting_min_jobs or 0) if self.waiting_jobs is None else self.waiting_jobs

    @property
    def in_flight_least_jobs(self) -> int:
        """Workers have so many jobs, or more where the number is not known."""
        return (self.in_flight_min_jobs or 0) if self.in_flight_jobs is None else self.in_flight_jobs

    @property
    def is_wait_known(self) -> bool:
        """Whether all jobs that wait are known: those in the queue, and those that workers hold and have not begun.

        Where a source has a lower bound of the jobs in flight and no number of the reserved ones, any of these may
        wait. An age that is unknown while none is held means that not all that is held was read.
        """
        if self.in_flight_jobs is not None or self.reserved_jobs is not None or self.in_flight_min_jobs is None:
            return True
        return self.in_flight_min_jobs == 0 and self.oldest_age_s is not None

    @property
    def running_jobs(self) -> int | None:
        """Those in flight that have begun: each has a slot. What is reserved and not begun has none yet."""
        return None if self.in_flight_jobs is None else max(0, self.in_flight_jobs - (self.reserved_jobs or 0))

    @property
    def fresh_jobs(self) -> int | None:
        """``arrived_jobs`` without those that came back or were known before: what a forecast learns from."""
        if self.arrived_jobs is None:
            return None
        return max(0, self.arrived_jobs - (self.retried_jobs or 0) - (self.scheduled_jobs or 0))

    @property
    def fresh_rate_per_s(self) -> float | None:
        """``arrival_rate_per_s`` without those that came back or were known before."""
        if self.arrival_rate_per_s is None:
            return None
        no_news_per_s = (self.retry_rate_per_s or 0.0) + (self.scheduled_rate_per_s or 0.0)
        return max(0.0, self.arrival_rate_per_s - no_news_per_s)
