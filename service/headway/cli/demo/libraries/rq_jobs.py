"""The demo's jobs of RQ: sent by RQ's own way, read back from its own record of each."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime

import redis
from rq import Queue

from headway.cli.demo.demo_jobs import SEND_AGAIN_S, STARTS
from headway.cli.demo.demo_report import JobRecord
from headway.simulate.replay import RecordedJob

WORK = "headway.simulate.replay.work"
DEMO_JOBS_KEPT_S = 3600  # how long RQ keeps the record of a job that is done: until the report at least
TIMEOUT_MARGIN_S = 60.0
FIELDS = ("status", "enqueued_at", "started_at", "ended_at")


class RqJobs:
    """A demo's jobs of RQ."""

    def __init__(self, url: str, queues: Sequence[str], wait: Callable[[float], bool]) -> None:
        self._redis = redis.Redis.from_url(url)
        self._queues = {name: Queue(name, connection=self._redis) for name in queues}
        self._run = f"{time.time():.0f}"
        self._wait = wait
        self._sent: list[tuple[str, str]] = []
        """Queue and id of each job."""

    def clear(self) -> None:
        """Forget what an earlier demo left in this broker, which is the demo's own."""
        self._redis.flushdb()

    @property
    def sent(self) -> int:
        """How many jobs were sent."""
        return len(self._sent)

    def send(self, queue: str, index: int, job: RecordedJob) -> None:
        """Enqueue ``job``; while the broker cannot be reached, try again until the demo ends. Any thread may."""
        job_id = f"{self._run}-{queue}-{index:05d}"
        while True:
            try:
                # RQ writes job and queue in one transaction: what the last try left is either all there or not at all.
                if not self._redis.exists(f"rq:job:{job_id}"):
                    self._queues[queue].enqueue(
                        WORK,
                        job.service_s,
                        job_id=job_id,
                        job_timeout=int(job.service_s + TIMEOUT_MARGIN_S),
                        result_ttl=DEMO_JOBS_KEPT_S,
                        failure_ttl=DEMO_JOBS_KEPT_S,
                    )
            except redis.RedisError:
                if self._wait(SEND_AGAIN_S):
                    return
            else:
                self._sent.append((queue, job_id))
                return

    def waiting(self) -> int | None:
        """How many jobs wait, None while the broker cannot be reached."""
        with suppress(redis.RedisError):
            return sum(int(self._redis.llen(queue.key)) for queue in self._queues.values())
        return None

    def ended(self) -> int | None:
        """How many jobs have ended, well or not; None while the broker cannot be reached."""
        with suppress(redis.RedisError):
            return sum(
                int(self._redis.zcard(registry.key))
                for queue in self._queues.values()
                for registry in (queue.finished_job_registry, queue.failed_job_registry)
            )
        return None

    def records(self) -> list[JobRecord]:
        """Every job that was sent, as RQ has it now; one that RQ does not know, or cannot be asked for, is ``gone``."""
        sent = list(self._sent)
        rows: list[Sequence[bytes | None]] = [(None,) * len(FIELDS)] * len(sent)
        starts: list[bytes | None] = [None] * len(sent)
        with suppress(redis.RedisError), self._redis.pipeline(transaction=False) as pipeline:
            for _, job_id in sent:
                pipeline.hmget(f"rq:job:{job_id}", FIELDS)
            if sent:
                pipeline.hmget(STARTS, [job_id for _, job_id in sent])
                *rows, starts = pipeline.execute()
        return [
            _record(queue, job_id, dict(zip(FIELDS, row, strict=True)), int(count or 0))
            for (queue, job_id), row, count in zip(sent, rows, starts, strict=True)
        ]

    def close(self) -> None:
        """Let the broker go."""
        self._redis.close()


def _record(queue: str, job_id: str, row: Mapping[str, bytes | None], starts: int) -> JobRecord:
    enqueued_at_s = _seconds(row["enqueued_at"])
    return JobRecord(
        job_id=job_id,
        queue=queue,
        status=row["status"].decode() if row["status"] else "gone",
        enqueued_at_s=float(job_id.partition("-")[0]) if enqueued_at_s is None else enqueued_at_s,
        started_at_s=_seconds(row["started_at"]),
        ended_at_s=_seconds(row["ended_at"]),
        starts=starts,
    )


def _seconds(value: bytes | None) -> float | None:
    return datetime.fromisoformat(value.decode()).timestamp() if value else None
