"""Pools whose workers something beside Headway keeps from taking jobs, and what they learn of it, which is nothing."""

from collections.abc import Iterable, Sequence

from headway.scaling.arithmetic import MINUTE_S
from headway.scaling.metrics.newest_sample import LISTED_GAP_S, LISTED_WITHIN_S
from headway.scaling.model import (
    ActivitySource,
    Inability,
    Mode,
    QueueMetrics,
    QueueSample,
    Stoppage,
    Suspension,
    Worker,
    is_suspended,
)
from headway.scaling.reading.sample_age import aged
from headway.scaling.view import PoolView

STOPPAGE_FADES_S = MINUTE_S  # rates of late starts cover so long
STOPPAGE_KEPT_LEAST_S = 600.0  # after its end, where jobs without a known age go on to wait


def suspension_of(
    samples: Sequence[QueueSample],
    running: Iterable[Worker],
    *,
    is_anybody_unseen: bool,
    now_s: float,
    ahead_s: float = 0.0,
) -> Suspension | None:
    """What keeps all workers of a pool from taking jobs; ``None``: not known.

    Args:
        samples: The fresh readings of its queues; empty where one of its queues has none.
        running: Its running workers.
        is_anybody_unseen: Whether another is starting, or may run unseen.
        now_s: By the clock that dates samples and jobs.
        ahead_s: How far the clock that dates states of workers is behind it.
    """
    workers = tuple(running)
    said = [sample.suspension for sample in samples]
    if said and all(each is Suspension.LIBRARY for each in said):
        return Suspension.LIBRARY
    if workers and not is_anybody_unseen:
        are_cancelled = all(each.inability is Inability.CONSUMERS_CANCELLED for each in workers)
        if are_cancelled and _are_listed(workers, by_s=now_s - ahead_s):
            return Suspension.CONSUMERS_CANCELLED
        if said and all(map(is_suspended, said)):
            # The broker's count of consumers may be older than the sample by this much.
            counted_s = min(sample.at_s for sample in samples) - LISTED_GAP_S
            has_begun = any(_has_begun(worker, samples, since_s=counted_s) for worker in workers)
            if _are_listed(workers, by_s=counted_s - ahead_s) and not has_begun:
                return Suspension.NO_CONSUMERS
    return Suspension.NONE if Suspension.NONE in said or any(map(_takes_jobs, workers)) else None


def _are_listed(workers: Iterable[Worker], *, by_s: float) -> bool:
    """Whether all ``workers`` had run by then for long enough to be listed by the broker."""
    return all(each.state_since_s is None or each.state_since_s <= by_s - LISTED_WITHIN_S for each in workers)


def _has_begun(worker: Worker, samples: Iterable[QueueSample], *, since_s: float) -> bool:
    """Whether the worker itself reports a job of one of the queues that it began since then, and runs."""
    names = {sample.queue.partition("/")[2] for sample in samples}
    does_report = worker.activity_source is ActivitySource.REPORTER
    return does_report and any(job.started_at_s > since_s and job.queue in names for job in worker.running)


def _takes_jobs(worker: Worker) -> bool:
    """Whether the worker itself reports, and nothing that keeps it from jobs: of others that is not known."""
    return worker.activity_source is ActivitySource.REPORTER and worker.inability is None


def stoppage_of(view: PoolView, before: Stoppage | None, *, now_s: float) -> Stoppage | None:
    """The time in which the pool's workers took no jobs, while it goes on or shows in the jobs that are there.

    It goes on while the pool is suspended, and while jobs wait that an operator's pause keeps from a first worker.
    """
    is_anybody_there = view.assigned_workers or view.running_workers or view.starting_workers
    is_asleep = not is_anybody_there and any(queue.waiting_least_jobs for queue in view.queues)
    is_held = is_asleep and view.profile.mode_at(now_s) in {Mode.PAUSE, Mode.PAUSE_UP}
    if is_suspended(view.suspension) or is_held:
        is_new = before is None or before.until_s is not None
        return Stoppage(since_s=now_s) if is_new or before is None else before
    if before is None:
        return None
    if before.until_s is None:
        return Stoppage(since_s=before.since_s, until_s=now_s)
    return before if _does_show(view.queues, before.since_s, before.until_s, now_s=now_s) else None


def _does_show(queues: Iterable[QueueMetrics], since_s: float, until_s: float, *, now_s: float) -> bool:
    """Whether a stoppage that is over shows in the jobs that wait, or in the rates of late starts."""
    passed_s = now_s - until_s
    if passed_s < STOPPAGE_FADES_S:
        return True
    if passed_s > max(STOPPAGE_KEPT_LEAST_S, until_s - since_s):
        return False
    left_s = passed_s - STOPPAGE_FADES_S  # jobs of before that have started since show in the rates for a while
    ages_s = (aged(queue, now_s=now_s).oldest_age_s for queue in queues if queue.waiting_least_jobs)
    return any(age_s is None or age_s > left_s for age_s in ages_s)
