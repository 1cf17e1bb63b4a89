"""Which pools help with whose queues, and which of the jobs that workers run are of queues of other pools.

A running job counts once: in the pool whose worker runs it. A worker's report, or its broker's record, says of which
queue its job is. Other jobs are bounds of the owner's figures.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from headway.scaling.metrics.worker_evidence import SampledInstant, is_running_at
from headway.scaling.model import (
    ActivitySource,
    Objective,
    QueueMetrics,
    QueueSample,
    SharedJobs,
    Worker,
    WorkerState,
)
from headway.scaling.profile import Profile
from headway.scaling.view import copied

JOBLESS = frozenset({WorkerState.STARTING, WorkerState.BACKING_OFF, WorkerState.GONE})


class SharedQueues:
    """The owners of queues, and the pools that help with them; the same for any order of the profiles."""

    def __init__(self, profiles: Iterable[Profile] = ()) -> None:
        """Take the profiles of all pools."""
        by_pool = {profile.pool: profile for profile in profiles}
        helping = [profile for profile in by_pool.values() if profile.helps]
        owning = by_pool.values() if helping else ()  # of ten thousand pools that share nothing, nothing is kept
        self._owners = {queue: profile for profile in owning for queue in profile.queues}
        self._names = {
            profile.pool: {
                queue.partition("/")[2]: queue for queue in profile.helps if self.owner_of(queue) != profile.pool
            }
            for profile in helping
        }
        self._templates = {profile.pool: profile.template for profile in helping}
        self._helpers: dict[str, tuple[str, ...]] = {}
        for pool in sorted(self._names):
            owners = {self.owner_of(queue) for queue in self._names[pool].values()}
            for owner in owners - {None}:
                self._helpers[str(owner)] = (*self._helpers.get(str(owner), ()), pool)

    @property
    def is_empty(self) -> bool:
        """Whether no pool helps with any queue."""
        return not self._names

    def objective_of(self, queue: str) -> Objective:
        """The objective of the jobs of ``queue``: its owner's, or the default if no pool owns it."""
        owner = self._owners.get(queue)
        return Objective() if owner is None else owner.objective_of(queue)

    def owner_of(self, queue: str) -> str | None:
        """The pool that owns ``queue``; ``None``: none does."""
        owner = self._owners.get(queue)
        return None if owner is None else owner.pool

    def helpers_of(self, pool: str) -> tuple[str, ...]:
        """The pools that help with queues of ``pool``, by name."""
        return self._helpers.get(pool, ())

    def helped_by(self, pool: str) -> Mapping[str, str]:
        """The queues that ``pool`` helps with, by the own name that workers report; empty where it helps with none."""
        return self._names.get(pool, {})

    def template_of(self, helper: str) -> str:
        """The template of the workers of a pool that helps."""
        return self._templates[helper]


NOTHING_SHARED = SharedQueues()


class HelpedJob(NamedTuple):
    """A running job of another pool's queue."""

    queue: str
    started_at_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class HelpingWorkers:
    """What the running workers of one pool do for others."""

    workers: int = 0
    """Those that report a job of another pool's queue."""
    jobs: tuple[SharedJobs, ...] = ()
    """Such jobs, by queue."""


def helped_jobs(worker: Worker, names: Mapping[str, str]) -> tuple[HelpedJob, ...]:
    """The jobs that ``worker`` runs of the queues in ``names``, by its own report or its broker's record.

    ``names`` are those of ``SharedQueues.helped_by`` its pool.
    """
    if worker.activity_source is ActivitySource.REPORTER:
        return tuple(HelpedJob(names[job.queue], job.started_at_s) for job in worker.running if job.queue in names)
    if worker.busy_queue is None or worker.busy_queue not in names.values():
        return ()
    # A broker's record says since when the first of them runs.
    since_s = -math.inf if worker.busy_since_s is None else worker.busy_since_s
    return (HelpedJob(worker.busy_queue, since_s),) * max(1, worker.running_jobs or 0)


def of_own_queues(worker: Worker, names: Mapping[str, str]) -> Worker:
    """``worker`` with the jobs of its pool's own queues alone; the very ``worker`` where it is known to run no others.

    It stays busy, whosever job it runs.
    """
    helped = helped_jobs(worker, names)
    if not helped:
        return worker
    is_named = worker.activity_source is ActivitySource.REPORTER
    own = tuple(job for job in worker.running if is_named and job.queue not in names)
    running_jobs = max(len(own), (worker.running_jobs or 0) - len(helped))
    since_s = min((job.started_at_s for job in own), default=worker.busy_since_s if running_jobs else None)
    return copied(
        worker, running=own, running_jobs=running_jobs, busy_since_s=since_s, busy_queue=None, other_jobs=len(helped)
    )


def helping_of(workers: Iterable[Worker], sharing: SharedQueues) -> HelpingWorkers:
    """What ``workers`` of one pool do for others by their newest reports."""
    jobs: Counter[str] = Counter()
    helping_workers = 0
    for worker in workers:
        helped = helped_jobs(worker, sharing.helped_by(worker.pool))
        helping_workers += bool(helped)
        jobs.update(each.queue for each in helped)
    return HelpingWorkers(
        workers=helping_workers,
        jobs=tuple(
            SharedJobs(queue=queue, pool=sharing.owner_of(queue), jobs=count, most_jobs=count)
            for queue, count in sorted(jobs.items())
        ),
    )


def shared_jobs(
    queue: QueueMetrics,
    helper: str,
    workers: Iterable[Worker],
    names: Mapping[str, str],
    *,
    slots_per_worker: int,
    unknown_workers: int,
    instant: SampledInstant,
) -> SharedJobs:
    """The jobs of ``queue`` that workers of another pool run at the instant of its samples.

    Args:
        queue: As it was sampled, with the jobs of all workers.
        helper: The other pool.
        workers: Of it, on known hosts.
        names: Those of ``SharedQueues.helped_by`` the other pool.
        slots_per_worker: Of the other pool.
        unknown_workers: Of the other pool, on hosts that went silent.
        instant: A job that began later still waits in the sample; one whose worker reported last before it
            could have ended may have ended.
    """
    jobs, perhaps_jobs, is_reported = 0, unknown_workers * slots_per_worker, not unknown_workers
    for worker in workers:
        if worker.state in JOBLESS or worker.is_busy is False:
            continue
        named = [job for job in helped_jobs(worker, names) if job.queue == queue.queue]
        known_at_s = math.inf if worker.activity_known_at_s is None else worker.activity_known_at_s + instant.ahead_s
        running_jobs = sum(is_running_at(job.started_at_s, known_at_s, instant) for job in named)
        jobs += running_jobs
        perhaps_jobs += sum(job.started_at_s <= instant.at_s for job in named) - running_jobs
        perhaps_jobs += _unnamed_jobs(worker, slots_per_worker)
        is_reported &= worker.state is not WorkerState.RUNNING or _is_reported(worker)
    most_jobs = jobs + perhaps_jobs
    if queue.in_flight_jobs is not None:
        jobs, most_jobs = min(jobs, queue.running_jobs or 0), min(most_jobs, queue.running_jobs or 0)
    return SharedJobs(queue=queue.queue, pool=helper, jobs=jobs, most_jobs=most_jobs, is_reported=is_reported)


def _is_reported(worker: Worker) -> bool:
    """Whether it is known of which queues the jobs of a busy worker are."""
    return worker.activity_source is ActivitySource.REPORTER or worker.busy_queue is not None


def _unnamed_jobs(worker: Worker, slots_per_worker: int) -> int:
    """Jobs that a worker may have beside those of which the queue is known."""
    if worker.activity_source is ActivitySource.REPORTER and worker.is_busy:
        return max(0, (worker.running_jobs or 0) - len(worker.running))
    if worker.busy_queue is not None:
        return 0
    if worker.activity_source is ActivitySource.BROKER and worker.running_jobs is not None:
        return worker.running_jobs
    return slots_per_worker


def without_shared(queues: Sequence[QueueMetrics], shared: Iterable[SharedJobs]) -> tuple[QueueMetrics, ...]:
    """``queues`` without the jobs in flight that workers of other pools report: the others are those of the owner.

    Their mean over the window stays: it is compared with the ends of all workers.
    """
    jobs = _by_queue(shared)
    if not jobs:
        return tuple(queues)
    return tuple(_with_in_flight(queue, -jobs[queue.queue]) if jobs[queue.queue] else queue for queue in queues)


def with_shared(queues: Sequence[QueueMetrics], shared: Iterable[SharedJobs]) -> tuple[QueueMetrics, ...]:
    """``queues`` with the jobs in flight that workers of other pools report: what ``without_shared`` has taken off."""
    jobs = _by_queue(shared)
    return tuple(_with_in_flight(queue, jobs[queue.queue]) if jobs[queue.queue] else queue for queue in queues)


def _with_in_flight(queue: QueueMetrics, jobs: int) -> QueueMetrics:
    in_flight_jobs, least_jobs = _less(queue.in_flight_jobs, -jobs), _less(queue.in_flight_min_jobs, -jobs)
    return copied(queue, in_flight_jobs=in_flight_jobs, in_flight_min_jobs=least_jobs)


def samples_without_shared(
    samples: Mapping[str, QueueSample], shared: Iterable[SharedJobs]
) -> Mapping[str, QueueSample]:
    """The same of the newest reading of each queue, by name."""
    jobs = _by_queue(shared)
    if not jobs:
        return samples
    return {
        name: copied(
            sample,
            in_flight_jobs=_less(sample.in_flight_jobs, jobs[name]),
            in_flight_min_jobs=_less(sample.in_flight_min_jobs, jobs[name]),
        )
        if jobs[name]
        else sample
        for name, sample in samples.items()
    }


def _by_queue(shared: Iterable[SharedJobs]) -> Counter[str]:
    jobs: Counter[str] = Counter()
    for each in shared:
        jobs[each.queue] += each.jobs
    return +jobs


def _less(count: int | None, jobs: int) -> int | None:
    return None if count is None else max(0, count - jobs)
