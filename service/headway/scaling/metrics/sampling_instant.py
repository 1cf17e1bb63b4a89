"""The instant for which a view holds: workers are counted as the newest samples of their queues could know them.

Reports of workers reach a decision sooner than samples of queues. Joined as they come, a worker that has just become
ready stands idle beside jobs that it was started for, and one that has just taken a job has nothing to do.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from headway.scaling.arithmetic import MINUTE_S
from headway.scaling.model import QueueMetrics, Worker, WorkerState

SAMPLE_RECENT_S = MINUTE_S  # an older sample is stale for other reasons, and then nothing goes down


@dataclass(frozen=True, slots=True, kw_only=True)
class RecentStarts:
    """What the workers of one pool did of late, in Unix seconds."""

    ready_at_s: tuple[float, ...] = ()
    """When running workers became ready."""
    begun_at_s: tuple[float, ...] = ()
    """When running workers began the job that they have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkersAtInstant:
    """Workers as they were at the instant of the samples, and what they have begun since."""

    running_workers: int
    starting_workers: int
    taken_jobs: int


NOTHING_RECENT = RecentStarts()


def recent_of(workers: Iterable[Worker], *, since_s: float, ahead_s: float = 0.0) -> dict[str, RecentStarts]:
    """Pool -> what its workers did after ``since_s``, of pools where that is anything.

    States are dated by a clock to which ``ahead_s`` must be added, jobs by that of the samples.
    """
    ready: dict[str, list[float]] = {}
    begun: dict[str, list[float]] = {}
    for worker in workers:
        if worker.state is not WorkerState.RUNNING:
            continue
        if worker.state_since_s is not None and worker.state_since_s + ahead_s > since_s:
            ready.setdefault(worker.pool, []).append(worker.state_since_s + ahead_s)
        if worker.busy_since_s is not None and worker.busy_since_s > since_s:
            begun.setdefault(worker.pool, []).append(worker.busy_since_s)
    return {
        pool: RecentStarts(ready_at_s=tuple(ready.get(pool, ())), begun_at_s=tuple(begun.get(pool, ())))
        for pool in ready.keys() | begun.keys()
    }


def instant_s(queues: Sequence[QueueMetrics]) -> float | None:
    """Until when everything that happened to ``queues`` is in their samples; ``None`` while none was sampled.

    A collector polls all queues of its connection at once and omits those that have not changed. So the
    newest sample of a connection dates all of them.
    """
    newest: dict[str, float] = {}
    for queue in queues:
        if queue.sampled_at_s is not None:
            connection = queue.queue.partition("/")[0]
            newest[connection] = max(newest.get(connection, queue.sampled_at_s), queue.sampled_at_s)
    return min(newest.values(), default=None)


def counted(
    queues: Sequence[QueueMetrics],
    recent: RecentStarts,
    *,
    running_workers: int,
    starting_workers: int,
    slots_per_worker: int,
) -> WorkersAtInstant:
    """The workers at the instant of the samples. Present ones stay as many as they are.

    One that became ready later still starts: it has had no chance to take what it was started for. But where more jobs
    are in flight than the others have slots, it has taken one, and a report was late.
    """
    at_s = instant_s(queues)
    if at_s is None:
        return WorkersAtInstant(running_workers=running_workers, starting_workers=starting_workers, taken_jobs=0)
    known = [queue.running_jobs for queue in queues if queue.running_jobs is not None]
    present = running_workers + starting_workers
    fresh = min(running_workers, sum(ready_at_s > at_s for ready_at_s in recent.ready_at_s))
    running = max(running_workers - fresh, min(present, math.ceil(sum(known) / slots_per_worker)))
    begun_jobs = sum(begun_at_s > at_s for begun_at_s in recent.begun_at_s)
    # No more than there are free slots: a worker's clock may be ahead of the one that dated the sample.
    free_slots = max(0, running_workers * slots_per_worker - sum(known))
    return WorkersAtInstant(
        running_workers=running,
        starting_workers=present - running,
        taken_jobs=min(begun_jobs, free_slots),
    )
