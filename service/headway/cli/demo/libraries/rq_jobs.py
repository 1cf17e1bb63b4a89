"""The demo's jobs of RQ: sent by RQ's own way, read back from its own record of each."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime

import redis
from rq import Queue

from headway.cli.demo.demo_jobs import STARTS, DemoJobs
from headway.cli.demo.demo_report import JobRecord
from headway.simulate.replay import RecordedJob

WORK = "headway.simulate.replay.work"
DEMO_JOBS_KEPT_S = 3600  # how long RQ keeps the record of a job that is done: until the report at least
TIMEOUT_MARGIN_S = 60.0
FIELDS = ("status", "enqueued_at", "started_at", "ended_at")


class RqJobs(DemoJobs):
    """A demo's jobs of RQ."""

    def __init__(self, url: str, queues: Sequence[str], wait: Callable[[float], bool]) -> None:
        super().__init__(url, wait)
        self._queues = {name: Queue(name, connection=self._redis) for name in queues}

    def _enqueue(self, queue: str, job_id: str, job: RecordedJob) -> None:
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

    def _waiting_jobs(self) -> int:
        return sum(int(self._redis.llen(queue.key)) for queue in self._queues.values())

    def _ended_jobs(self) -> int:
        return sum(
            int(self._redis.zcard(registry.key))
            for queue in self._queues.values()
            for registry in (queue.finished_job_registry, queue.failed_job_registry)
        )

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
