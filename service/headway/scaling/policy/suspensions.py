"""Pools whose workers something beside Headway keeps from taking jobs, and what they learn of it, which is nothing."""

from collections.abc import Iterable, Sequence

from headway.scaling.model import (
    ActivitySource,
    Inability,
    Mode,
    QueueSample,
    Stoppage,
    Suspension,
    Worker,
    is_suspended,
)
from headway.scaling.view import PoolView, aged

STOPPAGE_FADES_S = 60.0  # rates of late starts cover so long
STOPPAGE_KEPT_LEAST_S = 600.0  # after its end, where jobs without a known age go on to wait


def suspension_of(samples: Sequence[QueueSample], running: Iterable[Worker], *, are_settled: bool) -> Suspension | None:
    """What keeps all workers of a pool from taking jobs; ``None``: not known.

    Args:
        samples: The fresh readings of its queues; empty where one of its queues has none.
        running: Its running workers.
        are_settled: Whether these have run for long enough to be listed by the broker, and none is starting or may run
            unseen.
    """
    workers = tuple(running)
    said = [sample.suspension for sample in samples]
    if said and all(each is Suspension.LIBRARY for each in said):
        return Suspension.LIBRARY
    if are_settled and workers and all(each.inability is Inability.CONSUMERS_CANCELLED for each in workers):
        return Suspension.CONSUMERS_CANCELLED
    if are_settled and workers and said and all(map(is_suspended, said)):
        return Suspension.NO_CONSUMERS
    return Suspension.NONE if Suspension.NONE in said or any(map(_takes_jobs, workers)) else None


def _takes_jobs(worker: Worker) -> bool:
    """Whether the worker itself reports, and nothing that keeps it from jobs: of others that is not known."""
    return worker.activity_source is ActivitySource.REPORTER and worker.inability is None


def stoppage_of(view: PoolView, before: Stoppage | None, *, now_s: float) -> Stoppage | None:
    """The time in which the pool's workers took no jobs, while it goes on or shows in the jobs that are there.

    It goes on while the pool is suspended, and while jobs wait that an operator's pause keeps from a first worker.
    """
    if is_suspended(view.suspension) or _does_pause_hold_jobs(view, now_s):
        is_new = before is None or before.until_s is not None
        return Stoppage(since_s=now_s) if is_new or before is None else before
    if before is None:
        return None
    if before.until_s is None:
        return Stoppage(since_s=before.since_s, until_s=now_s)
    return before if _does_show(view, before.since_s, before.until_s, now_s=now_s) else None


def _does_pause_hold_jobs(view: PoolView, now_s: float) -> bool:
    does_any_job_wait = any(queue.waiting_least_jobs for queue in view.queues)
    is_anybody_there = view.assigned_workers or view.running_workers or view.starting_workers
    return does_any_job_wait and not is_anybody_there and view.profile.mode_at(now_s) in {Mode.PAUSE, Mode.PAUSE_UP}


def _does_show(view: PoolView, since_s: float, until_s: float, *, now_s: float) -> bool:
    """Whether a stoppage that is over shows in the jobs that wait, or in the rates of late starts."""
    passed_s = now_s - until_s
    if passed_s < STOPPAGE_FADES_S:
        return True
    if passed_s > max(STOPPAGE_KEPT_LEAST_S, until_s - since_s):
        return False
    left_s = passed_s - STOPPAGE_FADES_S  # jobs of before that have started since show in the rates for a while
    ages_s = (aged(queue, now_s=now_s).oldest_age_s for queue in view.queues if queue.waiting_least_jobs)
    return any(age_s is None or age_s > left_s for age_s in ages_s)
