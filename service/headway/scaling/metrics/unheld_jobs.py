"""Jobs that a broker counts as taken and that no worker has: what a killed worker or a restarted broker leaves behind.

Where a source names a ``Redelivery``, a job of a dead worker stays taken for a while. It neither waits nor runs then.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from headway.scaling.model import ActivitySource, Host, QueueSample, Redelivery, Worker, WorkerState

UNHELD_AFTER_S = 60.0  # three reports of an agent, 18 s apart at most, and a dozen samples: no running job escapes all
UNHELD_GAP_S = 30.0  # a worker that begins a job says nothing of the others; later, nobody knows what workers did
SAMPLE_AGE_MAX_S = 12.0  # two readings have not come
REPORT_AGE_MAX_S = 20.0  # agents report every 18 s at the latest, and at once that an idle worker has a job


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldJobs:
    """At least so many jobs of a pool that are due are taken by workers, as the broker counts."""

    jobs: int
    redelivery: Redelivery | None
    """What becomes of those whose worker died; ``None`` if none is taken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnheldJobs:
    """Jobs of a pool that are taken and that no worker has."""

    jobs: int
    redelivery: Redelivery
    is_of_any_worker: bool
    """Whether the broker lists no worker beside those of the pool; else these are known only."""


def held_jobs(samples: Iterable[QueueSample | None], *, now_s: float) -> HeldJobs | None:
    """What is taken of the queues with these newest samples; ``None`` if that is not known of one of them.

    A worker may hold jobs that are due later. Where a source does not know how many are delayed, these may be such.
    """
    jobs, redelivery = 0, None
    for sample in samples:
        if sample is None or sample.delayed_jobs is None or now_s - sample.at_s > SAMPLE_AGE_MAX_S:
            return None
        least = sample.in_flight_min_jobs if sample.in_flight_jobs is None else sample.in_flight_jobs
        if least is None or (least and sample.redelivery is None):
            return None
        if least:
            jobs, redelivery = jobs + least, sample.redelivery
    return HeldJobs(jobs=jobs, redelivery=redelivery)


def are_all_idle(pools: Collection[str], hosts: Iterable[Host]) -> bool:
    """Whether each worker of ``pools`` is known to run and to be idle. ``hosts`` are those that have any of them."""
    return all(
        _is_reporting(host) and all(_is_idle(worker) for worker in host.workers if worker.pool in pools)
        for host in hosts
    )


def _is_reporting(host: Host) -> bool:
    return host.is_known and host.is_confirmed and (host.silent_s or 0.0) <= REPORT_AGE_MAX_S


def _is_idle(worker: Worker) -> bool:
    """Whether the worker, or the broker of it, says that it has no job. One that takes no jobs may keep one."""
    return (
        worker.is_busy is False
        and worker.activity_source in {ActivitySource.REPORTER, ActivitySource.BROKER}
        and worker.state is WorkerState.RUNNING
        and worker.inability is None
        and not (worker.is_left_behind or worker.goes_to_background)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Watch:
    """A pool whose workers are idle while jobs of it are taken."""

    since_s: float
    """The beginning of the span that ``least_jobs`` is of."""
    seen_s: float
    """When the workers were last known to be idle."""
    least_jobs: int
    """The fewest jobs that were taken in this span."""
    jobs: int | None = None
    """The fewest in the last whole span of ``UNHELD_AFTER_S``; ``None``: none is over yet."""


class UnheldWatch:
    """Counts the jobs of each pool that no worker has, from one evaluation to the next."""

    def __init__(self) -> None:
        self._watched: dict[str, _Watch] = {}

    def see(self, pool: str, held: HeldJobs | None, *, are_workers_idle: bool, now_s: float) -> int | None:
        """How many of the jobs that are ``held`` no worker has.

        Args:
            pool: Evaluated now.
            held: What its broker counts as taken; ``None``: not known.
            are_workers_idle: Whether it is known that no worker of it has a job.
            now_s: Unix seconds.

        Returns:
            0 if none is taken; ``None`` if it is not known, as before ``UNHELD_AFTER_S`` have passed.
        """
        taken_jobs = None if held is None else held.jobs
        for old in [each for each, watch in self._watched.items() if now_s - watch.seen_s > UNHELD_GAP_S]:
            del self._watched[old]
        watch = _watched(self._watched.pop(pool, None), taken_jobs, are_workers_idle=are_workers_idle, now_s=now_s)
        if watch is not None:
            self._watched[pool] = watch
        return taken_jobs if not taken_jobs else None if watch is None else watch.jobs


def _watched(before: _Watch | None, taken_jobs: int | None, *, are_workers_idle: bool, now_s: float) -> _Watch | None:
    if taken_jobs == 0:
        return None
    if taken_jobs is None or not are_workers_idle:
        if before is None or before.jobs is None:
            return None
        return before if taken_jobs is None else replace(before, jobs=min(before.jobs, taken_jobs))
    if before is None:
        return _Watch(since_s=now_s, seen_s=now_s, least_jobs=taken_jobs)
    least_jobs = min(before.least_jobs, taken_jobs)
    if now_s - before.since_s >= UNHELD_AFTER_S:
        return _Watch(since_s=now_s, seen_s=now_s, least_jobs=taken_jobs, jobs=least_jobs)
    jobs = None if before.jobs is None else min(before.jobs, taken_jobs)
    return replace(before, seen_s=now_s, least_jobs=least_jobs, jobs=jobs)
