"""Workers that a person has to see: they fail to start, take no jobs, take long to end, or run where no agent can
watch them.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from headway.scaling.arithmetic import HOUR_S, MINUTE_S
from headway.scaling.explanations.phrases import counted, duration
from headway.scaling.model import Host, Inability, StartFailure, Worker, WorkerState

OVERDUE_SERVICE_TIMES = 3.0  # of what 99 % of a pool's jobs take: a worker that drains for longer does not finish one
OVERDUE_UNKNOWN_S = HOUR_S  # where nobody knows how long jobs take
OVERDUE_LEAST_S = MINUTE_S

INABILITIES: Mapping[Inability, str] = MappingProxyType(
    {
        Inability.STOPPED: "its process is stopped",
        Inability.ZOMBIE: "its main process has ended, and what started it takes no note",
        Inability.CONSUMERS_CANCELLED: "it consumes no queue",
        Inability.POOL_SHRUNK: "it runs fewer jobs at once than its template says",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NoticedWorker:
    """A worker, and on which host it is."""

    host: str
    worker: Worker

    def draining_s(self, *, now_s: float) -> float:
        """For how long it has been draining; 0 of one that does not."""
        since_s = self.worker.state_since_s
        is_draining = self.worker.state is WorkerState.DRAINING
        return max(0.0, now_s - since_s) if is_draining and since_s is not None else 0.0


def noticed_workers(hosts: Iterable[Host]) -> Mapping[str, Sequence[NoticedWorker]]:
    """Pool -> its workers on reachable hosts that drain, fail to start, take no jobs, or run in the background."""
    found: dict[str, list[NoticedWorker]] = {}
    for host in hosts:
        for worker in host.workers if host.is_known else ():
            is_ailing = worker.inability is not None or worker.start_failure is not None
            if worker.state is WorkerState.DRAINING or is_ailing or worker.goes_to_background:
                found.setdefault(worker.pool, []).append(NoticedWorker(host=host.name, worker=worker))
    return found


def overdue_after_s(service_p99_s: float | None) -> float:
    """For how long a worker may drain before a person has to see it."""
    if service_p99_s is None:
        return OVERDUE_UNKNOWN_S
    return max(OVERDUE_LEAST_S, OVERDUE_SERVICE_TIMES * service_p99_s)


def overdue(
    noticed: Iterable[NoticedWorker], *, service_p99_s: float | None, now_s: float
) -> tuple[NoticedWorker, ...]:
    """Those that drain for longer than any job of the pool should take, the longest first."""
    bound_s = overdue_after_s(service_p99_s)
    late = [each for each in noticed if each.draining_s(now_s=now_s) > bound_s]
    return tuple(sorted(late, key=lambda each: -each.draining_s(now_s=now_s)))


def overdue_sentence(late: Sequence[NoticedWorker], *, service_p99_s: float | None, now_s: float) -> str:
    """Which workers take long to end, and beside what that is long; without its full stop."""
    first = late[0]
    took = f"has been draining for {duration(float(round(first.draining_s(now_s=now_s))))}"
    which = f"worker {first.worker.worker_id} on {first.host} (process {first.worker.pid}) {took}"
    more = f", and {counted(len(late) - 1, 'other worker')} for longer than that allows" if len(late) > 1 else ""
    if service_p99_s is None:
        return f"{which}; how long its jobs take is not known{more}"
    jobs = f"99 % of its jobs take {duration(round(service_p99_s, 1))} at most"
    return f"{which}, and {jobs}{_jobs_of(first.worker)}{more}"


def unable_of(noticed: Iterable[NoticedWorker]) -> Sequence[NoticedWorker]:
    """Those that are there and take no jobs."""
    return [each for each in noticed if each.worker.inability is not None]


def unable_sentence(noticed: Iterable[NoticedWorker]) -> str | None:
    """How many workers are there and take no jobs, and why the first does not; ``None``: there is none."""
    unable = unable_of(noticed)
    if not unable:
        return None
    first, inability = unable[0], unable[0].worker.inability
    assert inability is not None, "chosen by it"
    takes = "takes no jobs" if len(unable) == 1 else "take no jobs; of the first"
    where = f"{INABILITIES[inability]} on {first.host} (process {first.worker.pid})"
    return f"{counted(len(unable), 'worker')} {takes}: {where}"


def background_sentence(noticed: Iterable[NoticedWorker]) -> str | None:
    """Which template goes to the background, where no agent can watch its workers; ``None``: none does."""
    hidden = next((each for each in noticed if each.worker.goes_to_background), None)
    if hidden is None:
        return None
    return (
        f"template {hidden.worker.template} goes to the background, where its agent cannot watch it: it ended with "
        f"0 and left process {hidden.worker.pid} on {hidden.host}; remove --detach from its argv"
    )


def start_failure_of(noticed: Iterable[NoticedWorker]) -> StartFailure | None:
    """Why workers of a pool fail to start; ``None``: not known, or none does."""
    return next((each.worker.start_failure for each in noticed if each.worker.start_failure is not None), None)


def start_failure_sentence(noticed: Sequence[NoticedWorker]) -> str | None:
    """On which hosts workers fail to start, and why, without its full stop; ``None``: not known, or none does."""
    cause = start_failure_of(noticed)
    if cause is None:
        return None
    where = ", ".join(sorted({each.host for each in noticed if each.worker.start_failure is cause}))
    return f"workers fail to start on {where}: {cause.text}; one is tried at a time"


def awaited_sentence(noticed: Iterable[NoticedWorker], *, now_s: float) -> str | None:
    """For which draining workers, and which of their jobs, others of the pool wait; ``None`` where none drains."""
    draining = sorted(
        (each for each in noticed if each.worker.state is WorkerState.DRAINING),
        key=lambda each: -each.draining_s(now_s=now_s),
    )
    if not draining:
        return None
    first = draining[0]
    more = f" and {counted(len(draining) - 1, 'other')}" if len(draining) > 1 else ""
    took = duration(float(round(first.draining_s(now_s=now_s))))
    which = f"{first.worker.worker_id} on {first.host}, draining for {took}"
    return f"{which}{_jobs_of(first.worker)}{more}"


def _jobs_of(worker: Worker) -> str:
    if not worker.running:
        return ""
    job = worker.running[0]
    kind = f" of {job.job_class}" if job.job_class else ""
    more = f" and {len(worker.running) - 1} more" if len(worker.running) > 1 else ""
    return f"; it runs job {job.job_id}{kind}{more}"
