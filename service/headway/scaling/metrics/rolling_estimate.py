"""What counts since the last observation add up to: rates, service time and the arrivals that still wait."""

import math
from collections import deque
from dataclasses import dataclass

from headway.scaling.measure import BATCH_JOBS
from headway.scaling.model import Arrivals, QueueMetrics

ROLLING_WINDOW_S = 60.0  # long enough to distinguish a rate from chance, short enough to let go soon after a burst
DISPATCH_JOBS_MIN = 20
ROLLING_SERVICE_MEMORY_S = 900.0  # service times are a property of the jobs, not of the moment


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """What happened between two observations of a queue, and its state at the second."""

    ended_at_s: float
    arrived_jobs: int
    started_jobs: int
    finished_jobs: int
    service_sum_s: float
    pickup_max_s: float | None
    waiting_jobs: int
    in_flight_jobs: int
    oldest_age_s: float | None
    retried_jobs: int = 0
    """Of those that arrived."""
    running_slots: int | None = None
    """Slots of running workers; ``None``: not known."""


Sums = tuple[float, float, float, float, float, float]  # arrived, retried, started, finished, late, slot seconds in use
NONE: Sums = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


class RecentSpans:
    """The last spans of one queue. It forgets what no window reaches."""

    def __init__(self, *, target_s: float, tick_s: float) -> None:
        self._target_s = target_s
        self._tick_s = tick_s
        self._spans: deque[tuple[float, Sums]] = deque()
        self._sums = NONE
        self._waiting: deque[tuple[float, int]] = deque()
        """Arrivals among which the waiting jobs are: when their span ended, and how many are left of it."""
        self._waiting_jobs = 0
        self._service_jobs = 0.0
        self._service_sum_s = 0.0
        self._batch_work_s = self._batch_sum_s2 = 0.0
        self._part_jobs, self._part_sum_s = 0, 0.0
        self._dispatch = _Dispatch()
        self._began_at_s: float | None = None
        self._newest: Span | None = None

    def take(self, span: Span) -> None:
        """Add what happened since the last observation."""
        if self._began_at_s is None:
            self._began_at_s = span.ended_at_s - self._tick_s
        before = self._newest
        passed_s = self._tick_s if before is None else max(0.0, span.ended_at_s - before.ended_at_s)
        in_use_s = passed_s * ((before.in_flight_jobs if before else 0) + span.in_flight_jobs) / 2
        if before is not None and (span.oldest_age_s or 0.0) > passed_s:
            self._dispatch.take(before, span, passed_s=passed_s)
        self._newest = span
        self._add(span, in_use_s=in_use_s, late_jobs=self._started_late(span))
        if span.finished_jobs:
            kept = math.exp(-passed_s / ROLLING_SERVICE_MEMORY_S)
            self._service_jobs = self._service_jobs * kept + span.finished_jobs
            self._service_sum_s = self._service_sum_s * kept + span.service_sum_s
            self._batch_work_s, self._batch_sum_s2 = self._batch_work_s * kept, self._batch_sum_s2 * kept
            self._part_jobs += span.finished_jobs
            self._part_sum_s += span.service_sum_s
            if self._part_jobs >= BATCH_JOBS:
                self._batch_work_s += self._part_sum_s
                self._batch_sum_s2 += self._part_sum_s * self._part_sum_s / self._part_jobs
                self._part_jobs, self._part_sum_s = 0, 0.0

    def _add(self, span: Span, *, in_use_s: float, late_jobs: float) -> None:
        counts = (span.arrived_jobs, span.retried_jobs, span.started_jobs, span.finished_jobs, late_jobs, in_use_s)
        if any(counts):
            self._spans.append((span.ended_at_s, counts))
            self._sums = _plus(self._sums, counts, 1)
        while self._spans and self._spans[0][0] <= span.ended_at_s - ROLLING_WINDOW_S:
            self._sums = _plus(self._sums, self._spans.popleft()[1], -1)
        if not self._spans:
            self._sums = NONE  # what rounding left

    def _started_late(self, span: Span) -> float:
        """Of the jobs that left the queue, about how many had waited longer than the target.

        Only the longest wait is known, not which job had it: it was one of the oldest, and those that came later in its
        span waited less, evenly.
        """
        if span.arrived_jobs:
            self._waiting.append((span.ended_at_s, span.arrived_jobs))
            self._waiting_jobs += span.arrived_jobs
        left_jobs = self._waiting_jobs - span.waiting_jobs
        self._waiting_jobs = min(self._waiting_jobs, span.waiting_jobs)
        over_s = (span.pickup_max_s or 0.0) - self._target_s
        late_jobs, oldest_s = 0.0, self._waiting[0][0] if self._waiting else 0.0
        while left_jobs > 0:
            ended_s, jobs = self._waiting.popleft()
            gone = min(jobs, left_jobs)
            late_jobs += gone * min(1.0, max(0.0, (over_s - (ended_s - oldest_s)) / self._tick_s))
            left_jobs -= gone
            if jobs > gone:
                self._waiting.appendleft((ended_s, jobs - gone))
        return late_jobs

    @property
    def dispatch_overhead_s(self) -> float | None:
        """From the end of a job to the next start in the same slot while jobs wait; ``None``: not measured yet."""
        return self._dispatch.overhead_s

    @property
    def is_empty(self) -> bool:
        """Whether nothing happened in the window, and nothing is under way."""
        return not self._spans and not self._waiting

    def metrics(self, queue: str, *, now_s: float | None = None) -> QueueMetrics:
        """What is known of ``queue`` since the last observation; how long ago jobs came is counted at ``now_s``."""
        span = self._newest
        assert span is not None
        assert self._began_at_s is not None
        window_s = min(ROLLING_WINDOW_S, max(self._tick_s, span.ended_at_s - self._began_at_s))
        arrived, retried, started, finished, late, in_use_s = self._sums
        return QueueMetrics(
            queue=queue,
            sampled_at_s=span.ended_at_s,
            waiting_jobs=span.waiting_jobs,
            in_flight_jobs=span.in_flight_jobs,
            in_flight_mean_jobs=max(0.0, in_use_s) / window_s,
            oldest_age_s=span.oldest_age_s,
            window_s=window_s,
            arrived_jobs=span.arrived_jobs,
            retried_jobs=span.retried_jobs,
            arrived_until_s=span.ended_at_s,
            arrival_rate_per_s=arrived / window_s,
            retry_rate_per_s=retried / window_s,
            start_rate_per_s=started / window_s,
            late_rate_per_s=max(0.0, late) / window_s,
            completion_rate_per_s=finished / window_s,
            service_time_s=self._service_sum_s / self._service_jobs if self._service_jobs else None,
            service_batch_s=self._batch_sum_s2 / self._batch_work_s if self._batch_work_s else None,
            pickup_objective_s=span.pickup_max_s,
            arrivals=self._arrivals(span.ended_at_s if now_s is None else now_s),
        )

    def _arrivals(self, now_s: float) -> tuple[Arrivals, ...]:
        """The spans whose jobs wait and are not overdue: how long the others have been changes nothing."""
        found = []
        for ended_s, jobs in reversed(self._waiting):
            if now_s - ended_s > self._target_s:
                break
            found.append(Arrivals(jobs=jobs, ended_ago_s=now_s - ended_s))
        return tuple(found)


class _Dispatch:
    """What slots do between two jobs. It is seen only in spans in which jobs waited from beginning to end."""

    def __init__(self) -> None:
        self._jobs = 0.0
        self._between_s = 0.0

    @property
    def overhead_s(self) -> float | None:
        return self._between_s / self._jobs if self._jobs >= DISPATCH_JOBS_MIN else None

    def take(self, before: Span, span: Span, *, passed_s: float) -> None:
        """Add a span without a moment in which nothing waited: whoever ran and had no job was between two."""
        if before.running_slots is None or span.running_slots is None or not span.started_jobs:
            return
        slots = min(
            before.running_slots, span.running_slots
        )  # who started or left meanwhile was not there all the time
        between = slots - (before.in_flight_jobs + span.in_flight_jobs) / 2
        kept = math.exp(-passed_s / ROLLING_SERVICE_MEMORY_S)
        self._jobs = self._jobs * kept + span.started_jobs
        self._between_s = self._between_s * kept + max(0.0, between) * passed_s


def _plus(sums: Sums, counts: Sums, sign: int) -> Sums:
    a, b, c, d, e, f = sums
    u, v, w, x, y, z = counts
    return (a + sign * u, b + sign * v, c + sign * w, d + sign * x, e + sign * y, f + sign * z)
