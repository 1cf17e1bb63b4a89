"""What counts since the last look add up to: rates, service time and the arrivals that still wait."""

import math
from collections import deque
from dataclasses import dataclass

from headway.scaling.model import Arrivals

RATE_WINDOW_S = 30.0  # long enough to tell a rate from chance, short enough to let go soon after a burst
SERVICE_MEMORY_S = 900.0  # service times are a property of the jobs, not of the moment


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """What happened between two looks at a queue."""

    ended_at_s: float
    arrived_jobs: int
    finished_jobs: int


class Recent:
    """The last spans of one queue. It forgets what no window reaches."""

    def __init__(self) -> None:
        self._spans: deque[Span] = deque()
        self._arrivals: deque[tuple[float, int]] = deque()
        self._arrived_jobs = 0
        self._finished_jobs = 0
        self._service_jobs = 0.0
        self._service_sum_s = 0.0
        self._at_s: float | None = None

    def take(self, span: Span, *, service_sum_s: float, waiting_jobs: int) -> None:
        """Add what happened since the last look."""
        if span.arrived_jobs or span.finished_jobs:
            self._spans.append(span)
            self._arrived_jobs += span.arrived_jobs
            self._finished_jobs += span.finished_jobs
        while self._spans and self._spans[0].ended_at_s <= span.ended_at_s - RATE_WINDOW_S:
            gone = self._spans.popleft()
            self._arrived_jobs -= gone.arrived_jobs
            self._finished_jobs -= gone.finished_jobs
        if span.finished_jobs:
            kept = 1.0 if self._at_s is None else math.exp(-(span.ended_at_s - self._at_s) / SERVICE_MEMORY_S)
            self._service_jobs = self._service_jobs * kept + span.finished_jobs
            self._service_sum_s = self._service_sum_s * kept + service_sum_s
            self._at_s = span.ended_at_s
        if not waiting_jobs:
            self._arrivals.clear()
        elif span.arrived_jobs:
            self._arrivals.append((span.ended_at_s, span.arrived_jobs))

    def arrivals(self, *, waiting_jobs: int, now_s: float) -> tuple[Arrivals, ...]:
        """The arrivals among which the ``waiting_jobs`` are, newest first: the oldest jobs start first."""
        found: list[Arrivals] = []
        left_jobs = waiting_jobs
        for at_s, jobs in reversed(self._arrivals):
            if left_jobs <= 0:
                break
            found.append(Arrivals(jobs=jobs, ended_ago_s=now_s - at_s))
            left_jobs -= jobs
        while len(self._arrivals) > len(found):
            self._arrivals.popleft()
        return tuple(found)

    @property
    def arrival_rate_per_s(self) -> float:
        """Over ``RATE_WINDOW_S``."""
        return self._arrived_jobs / RATE_WINDOW_S

    @property
    def completion_rate_per_s(self) -> float:
        """Over ``RATE_WINDOW_S``."""
        return self._finished_jobs / RATE_WINDOW_S

    @property
    def service_time_s(self) -> float | None:
        """The mean, the newest jobs weighing most; ``None`` until a job has finished."""
        return self._service_sum_s / self._service_jobs if self._service_jobs else None
