"""The jobs of one run in their broker: sent in RQ's own way, read back from RQ's own record of each."""

import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from statistics import mean

import redis
from rq import Queue

from headway.simulate.replay import RecordedJob, replay

WORK = "headway.simulate.replay.work"
KEPT_S = 3600
TIMEOUT_MARGIN_S = 120.0
SURELY_S = 0.05  # a job that came so long before a worker was free was waiting, whatever the clocks round
FIELDS = ("status", "enqueued_at", "started_at", "ended_at", "worker_name")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRun:
    """What became of one job, Unix seconds; ``None`` where it has not come to that."""

    job_id: str
    status: str
    enqueued_at_s: float
    started_at_s: float | None
    ended_at_s: float | None
    worker: str


class LiveJobs:
    """The jobs of one run, in a queue of their own."""

    def __init__(self, url: str, queue: str, *, function: str = WORK) -> None:
        """``function`` takes the seconds that a job lasts."""
        self._redis = redis.Redis.from_url(url)
        self._function = function
        self._queue = Queue(queue, connection=self._redis)
        self._sent: list[str] = []
        self._thread: threading.Thread | None = None

    def send(self, jobs: Sequence[RecordedJob], *, at_s: float) -> None:
        """Begin to send ``jobs``, the first at Unix time ``at_s`` plus its own, in a thread."""
        self._thread = threading.Thread(target=self._send, args=(jobs, at_s), name="send", daemon=True)
        self._thread.start()

    @property
    def are_sent(self) -> bool:
        """Whether all were sent."""
        return self._thread is not None and not self._thread.is_alive()

    @property
    def are_done(self) -> bool:
        """Whether all that were sent have ended."""
        registries = (self._queue.finished_job_registry, self._queue.failed_job_registry)
        return sum(int(self._redis.zcard(each.key)) for each in registries) >= len(self._sent)

    def records(self) -> list[JobRun]:
        """Every job that was sent, as RQ has it now."""
        with self._redis.pipeline(transaction=False) as pipe:
            for job_id in self._sent:
                pipe.hmget(f"rq:job:{job_id}", FIELDS)
            rows = pipe.execute()
        return [_record(job_id, row) for job_id, row in zip(self._sent, rows, strict=True)]

    def close(self) -> None:
        """Let the broker go."""
        self._redis.close()

    def _send(self, jobs: Sequence[RecordedJob], at_s: float) -> None:
        def sleep(seconds: float) -> bool:
            time.sleep(seconds)
            return False

        sleep(max(0.0, at_s - time.time()))
        replay(jobs, send=self._enqueue, clock=time.monotonic, wait=sleep)

    def _enqueue(self, index: int, job: RecordedJob) -> None:
        job_id = f"{self._queue.name.replace(':', '-')}-{index:05d}"  # RQ allows no colon in an id
        timeout_s = int(job.service_s + TIMEOUT_MARGIN_S)
        kept = {"result_ttl": KEPT_S, "failure_ttl": KEPT_S}
        self._queue.enqueue(self._function, job.service_s, job_id=job_id, job_timeout=timeout_s, **kept)
        self._sent.append(job_id)


def overhead_s(jobs: Iterable[JobRun]) -> float | None:
    """From the end of a job to the start of the next one of the same worker, at the mean, where that one was waiting.

    ``None`` where no worker has found a job waiting.
    """
    by_worker: dict[str, list[tuple[float, float, float]]] = {}
    for job in jobs:
        if job.started_at_s is not None and job.ended_at_s is not None:
            by_worker.setdefault(job.worker, []).append((job.started_at_s, job.ended_at_s, job.enqueued_at_s))
    gaps_s = [
        after[0] - before[1]
        for done in map(sorted, by_worker.values())
        for before, after in pairwise(done)
        if after[2] < before[1] - SURELY_S
    ]
    return mean(gaps_s) if gaps_s else None


def _record(job_id: str, row: Sequence[bytes | None]) -> JobRun:
    status, enqueued, started, ended, worker = row
    enqueued_at_s = _seconds(enqueued)
    assert enqueued_at_s is not None, f"job {job_id} is gone from its broker"
    return JobRun(
        job_id=job_id,
        status=(status or b"").decode(),
        enqueued_at_s=enqueued_at_s,
        started_at_s=_seconds(started),
        ended_at_s=_seconds(ended),
        worker=(worker or b"").decode(),
    )


def _seconds(value: bytes | None) -> float | None:
    return datetime.fromisoformat(value.decode()).timestamp() if value else None
