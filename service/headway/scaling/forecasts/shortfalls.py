"""How many jobs more than expected a pool must be ready for, learned from how far expectations fell short."""

import math
from dataclasses import dataclass
from typing import Any

FINE_JOBS = 32  # up to here a count has a bin of its own
STEP = 1.05  # beyond, two neighbouring bins differ by 5 %
STOCK_BAND_TIME_S = 600.0  # watched for so long, a forecast may show that fewer spare jobs are enough
SCALE_MAX = 1e12  # before weights grow out of what doubles hold exactly, they are scaled back
LOG_STEP = math.log(STEP)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortfalls:
    """Spans in which more jobs came than expected, by how many more; older ones weigh less.

    Instead of letting every weight fade at every evaluation, new ones weigh ``scale`` times as much.
    """

    spans: tuple[float, ...] = ()
    """Their weight by bin; the first bin is a shortfall of one job."""
    jobs: float = 0.0
    """All jobs that came."""
    time_s: float = 0.0
    """All time that was watched."""
    scale: float = 1.0

    @classmethod
    def of(cls, stored: Any) -> "Shortfalls":
        """The value itself, that of the mapping that storing made of it, or of ``None`` an empty one."""
        if isinstance(stored, cls):
            return stored
        return cls(**{**stored, "spans": tuple(stored["spans"])}) if stored else cls()

    def is_watched(self, for_s: float) -> bool:
        """Whether so much time was watched."""
        return self.time_s >= for_s * self.scale

    def faded(self, kept: float) -> "Shortfalls":
        """With everything so far weighing ``kept`` of what it did, 0 to 1."""
        scale = self.scale / kept if kept > 0 else math.inf
        if scale <= SCALE_MAX:
            return Shortfalls(spans=self.spans, jobs=self.jobs, time_s=self.time_s, scale=scale)
        return Shortfalls(
            spans=tuple(weight / scale for weight in self.spans), jobs=self.jobs / scale, time_s=self.time_s / scale
        )

    def seen(self, shortfall_jobs: float, *, jobs: int, span_s: float) -> "Shortfalls":
        """With one more span in which ``jobs`` came, ``shortfall_jobs`` more than expected."""
        spans = self.spans
        if shortfall_jobs > 0:
            index = _bin(shortfall_jobs)
            padded = [*spans, *[0.0] * (index + 1 - len(spans))]
            padded[index] += self.scale
            spans = tuple(padded)
        return Shortfalls(
            spans=spans,
            jobs=self.jobs + jobs * self.scale,
            time_s=self.time_s + span_s * self.scale,
            scale=self.scale,
        )

    def spare(self, *, late_fraction: float, worker_s_per_late_job: float, jobs_per_worker: float) -> float:
        """The spare jobs that are enough, as far as they pay."""
        most_jobs = self.worth(worker_s_per_late_job=worker_s_per_late_job, jobs_per_worker=jobs_per_worker)
        return min(self.least_spare(late_fraction), most_jobs)

    def least_spare(self, late_fraction: float) -> float:
        """The fewest spare jobs with which no more than ``late_fraction`` of all jobs would have been too many.

        Counted by jobs, not by spans: a rush of a hundred weighs a hundred times a single one.
        """
        allowed_jobs = late_fraction * self.jobs
        spans, beyond_jobs, above = 0.0, 0.0, 0.0
        for index in range(len(self.spans) - 1, -1, -1):
            value = _value(index)
            more_jobs = spans * (above - value)
            if spans and beyond_jobs + more_jobs > allowed_jobs:
                return above - (allowed_jobs - beyond_jobs) / spans
            beyond_jobs += more_jobs
            spans, above = spans + self.spans[index], value
        if spans and beyond_jobs + spans * above > allowed_jobs:
            return above - (allowed_jobs - beyond_jobs) / spans
        return 0.0

    def worth(self, *, worker_s_per_late_job: float, jobs_per_worker: float) -> float:
        """The most spare jobs that still pay: a worker standing for the last of them saves late jobs often enough.

        Source: the newsvendor's rule; K. J. Arrow, T. Harris, J. Marschak, "Optimal inventory policy", Econometrica 19
        (1951): stock one more while the chance to need it, times what lacking it costs, exceeds what holding it costs.
        """
        needed_spans = self.time_s / (worker_s_per_late_job * jobs_per_worker)
        spans = 0.0
        for index in range(len(self.spans) - 1, -1, -1):
            spans += self.spans[index]
            if spans >= needed_spans and spans > 0:
                return _value(index)
        return 0.0


def _bin(jobs: float) -> int:
    whole = math.ceil(jobs)
    return whole - 1 if whole <= FINE_JOBS else FINE_JOBS - 1 + math.ceil(math.log(jobs / FINE_JOBS) / LOG_STEP)


def _value(index: int) -> float:
    return index + 1.0 if index < FINE_JOBS else FINE_JOBS * STEP ** (index + 1 - FINE_JOBS)
