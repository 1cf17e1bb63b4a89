"""The jobs of one queue, by column: what a rehearsal is fed with."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from headway.errors import Invalid
from headway.simulate.replay import RecordedJob


@dataclass(frozen=True, slots=True, kw_only=True)
class Jobs:
    """Jobs in order of arrival: when each arrives, in seconds from the start, and how long a worker needs for it."""

    at_s: Sequence[float]
    service_s: Sequence[float]
    dispatch_s: float = 0.0
    """The part of each service time that the queue library spends around the job: a worker is busy for it, and no
    measurement of service times shows it."""
    retries: Sequence[bool] = ()
    """Which of them came back for another attempt: work like any, of which forecasts learn nothing. Empty: none did."""
    scheduled_at_s: Sequence[float] = ()
    """Since when each was known to arrive when it does, as a scheduled job is. Empty: none before it arrived."""

    def __post_init__(self) -> None:
        breaches = []
        if len(self.at_s) != len(self.service_s):
            breaches.append(f"jobs: {len(self.at_s)} arrivals and {len(self.service_s)} service times")
        if len(self.retries) not in {0, len(self.at_s)}:
            breaches.append(
                f"jobs: {len(self.at_s)} arrivals, and {len(self.retries)} of them are known for retries or not"
            )
        if len(self.scheduled_at_s) not in {0, len(self.at_s)}:
            breaches.append(f"jobs: {len(self.at_s)} arrivals, and {len(self.scheduled_at_s)} times of scheduling")
        if any(later < earlier for earlier, later in pairwise(self.at_s)):
            breaches.append("jobs are not in order of arrival; sort them by at_s")
        if self.at_s and self.at_s[0] < 0:
            breaches.append(f"the first job arrives at {self.at_s[0]} s, before the start")
        if any(not service_s >= 0 for service_s in self.service_s):
            breaches.append("a service time is negative or not a number")
        if self.dispatch_s < 0 or any(service_s < self.dispatch_s for service_s in self.service_s):
            breaches.append(f"dispatch_s={self.dispatch_s} must be at least 0 and at most each service time")
        if breaches:
            raise Invalid(*breaches)

    def __len__(self) -> int:
        return len(self.at_s)

    def part(self, first: int, end: int, *, from_s: float) -> "Jobs":
        """The jobs from number ``first`` to before ``end``, their times from ``from_s`` on."""
        return replace(
            self,
            at_s=[each - from_s for each in self.at_s[first:end]],
            service_s=self.service_s[first:end],
            retries=self.retries[first:end],
            scheduled_at_s=[each - from_s for each in self.scheduled_at_s[first:end]],
        )

    @classmethod
    def of(cls, recorded: Iterable[RecordedJob]) -> "Jobs":
        """The same jobs by column, in order of arrival."""
        ordered = sorted(recorded, key=lambda job: job.at_s)
        return cls(at_s=[job.at_s for job in ordered], service_s=[job.service_s for job in ordered])
