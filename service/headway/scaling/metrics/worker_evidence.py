"""What the running workers of a pool do, as far as somebody who knows each of them has said.

Unknown is treated as busy wherever work is counted, and as idle nowhere.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from headway.scaling.model import Worker


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
    undated_jobs: int = 0
    """Jobs at least of the busy workers that do not say since when they are busy: a sample may have missed these."""

    @property
    def may_be_busy_workers(self) -> int:
        """Those that are not known to be idle."""
        return self.busy_workers + self.unknown_workers

    def most_slots(self, slots_per_worker: int) -> int:
        """Slots that may have a job: all of a worker that is not known to be idle and does not say how many it runs."""
        return self.reported_jobs + (self.uncounted_workers + self.unknown_workers) * slots_per_worker


def evidence_of(workers: Iterable[Worker], *, running_workers: int) -> WorkerEvidence:
    """What ``running_workers`` of a pool do by the word on each of ``workers``; of the others nobody knows."""
    idle = busy = uncounted = reported = undated = 0
    for worker in workers:
        if worker.is_busy is False:
            idle += 1
        elif worker.is_busy:
            busy += 1
            jobs = max(1, worker.running_jobs or 0)
            uncounted += worker.running_jobs is None
            reported += 0 if worker.running_jobs is None else jobs
            undated += jobs if worker.busy_since_s is None else 0
    busy = min(busy, running_workers)
    idle = min(idle, running_workers - busy)
    return WorkerEvidence(
        idle_workers=idle,
        busy_workers=busy,
        unknown_workers=running_workers - busy - idle,
        reported_jobs=reported,
        uncounted_workers=uncounted,
        undated_jobs=undated,
    )
