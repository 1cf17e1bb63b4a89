"""What the running workers of a pool do, as far as somebody who knows each of them has said.

Unknown is treated as busy wherever work is counted, and as idle nowhere.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from headway.scaling.model import ActivitySource, Worker


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerEvidence:
    """Running workers of one pool by what they are known to do."""

    idle_workers: int = 0
    busy_workers: int = 0
    unknown_workers: int = 0
    reported_jobs: int = 0
    """Jobs of the busy workers that say how many they run."""
    uncounted_workers: int = 0
    """Busy workers that do not say how many jobs they run."""
    certain_jobs: int = 0
    """Jobs that the busy workers certainly ran at the instant of the samples, which may have missed them."""

    @property
    def may_be_busy_workers(self) -> int:
        """Those that are not known to be idle."""
        return self.busy_workers + self.unknown_workers

    def most_slots(self, slots_per_worker: int) -> int:
        """Slots that may have a job: all of a worker that is not known to be idle and does not say how many it runs."""
        return self.reported_jobs + (self.uncounted_workers + self.unknown_workers) * slots_per_worker


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledInstant:
    """The instant of the samples, to which the word on each worker is brought."""

    at_s: float = math.inf
    """By the clock that dates jobs."""
    ahead_s: float = 0.0
    """So much the clock that dates the words on workers is behind."""
    service_time_s: float | None = None
    """How long a job of the pool takes; ``None``: not known."""


LATEST = SampledInstant()


def evidence_of(workers: Iterable[Worker], *, running_workers: int, instant: SampledInstant = LATEST) -> WorkerEvidence:
    """What ``running_workers`` of a pool do by the word on each of ``workers``; of the others nobody knows."""
    idle = busy = uncounted = reported = certain = 0
    for worker in workers:
        if worker.is_busy is False:
            idle += 1
        elif worker.is_busy:
            busy += 1
            jobs = worker.running_jobs or 0 if worker.other_jobs else max(1, worker.running_jobs or 0)
            uncounted += worker.running_jobs is None
            reported += 0 if worker.running_jobs is None else jobs
            certain += jobs if worker.busy_since_s is None else _certain_jobs(worker, jobs, instant)
    busy = min(busy, running_workers)
    idle = min(idle, running_workers - busy)
    return WorkerEvidence(
        idle_workers=idle,
        busy_workers=busy,
        unknown_workers=running_workers - busy - idle,
        reported_jobs=reported,
        uncounted_workers=uncounted,
        certain_jobs=certain,
    )


def _certain_jobs(worker: Worker, jobs: int, instant: SampledInstant) -> int:
    """Of the ``jobs`` of a busy worker that says since when, those that ran at the instant.

    Only a worker's own report is another source than the samples: the dates of a broker's record are in them. A job
    that began later is among those that were taken since.
    """
    if worker.activity_source is not ActivitySource.REPORTER or worker.activity_known_at_s is None:
        return 0
    known_at_s = worker.activity_known_at_s + instant.ahead_s
    over_or_later = sum(not is_running_at(job.started_at_s, known_at_s, instant) for job in worker.running)
    return max(0, jobs - over_or_later) if worker.running else 0


def is_running_at(started_at_s: float, known_at_s: float, instant: SampledInstant) -> bool:
    """Whether a job that ran by the last word of its worker ran at the instant, all by the clock that dates jobs.

    After that word it is taken to run on for as long as it had run by then, or as the jobs of its pool take: a word
    that is seconds old says nothing of jobs of milliseconds.
    """
    if started_at_s > instant.at_s:
        return False
    lasts_s = math.inf if instant.service_time_s is None else max(instant.service_time_s, known_at_s - started_at_s)
    return instant.at_s - known_at_s <= lasts_s
