"""The demo's jobs of Celery: sent by Celery's own way; when each began and ended is what its worker wrote down.

Celery's own results say neither. Each moment is a hash in the demo's broker, job -> Unix seconds.
"""

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from urllib.parse import urlsplit

import redis
from celery import Celery
from kombu.exceptions import OperationalError

from headway.cli.demo.demo_jobs import STARTS, DemoJobs
from headway.cli.demo.demo_report import JobRecord
from headway.simulate.replay import RecordedJob

TASK = "headway.demo.work"
BROKER = "DEMO_BROKER_URL"
"""The setting of the demo's workers that holds the broker's URL."""
ENQUEUED, STARTED, ENDED = "demo:enqueued", "demo:started", "demo:ended"


def celery_url(url: str) -> str:
    """What Celery calls the broker at ``url``, which may be a socket."""
    parts = urlsplit(url)
    return url if parts.scheme != "unix" else f"redis+socket://{parts.path}?virtual_host=0"


class CeleryJobs(DemoJobs):
    """A demo's jobs of Celery."""

    UNREACHED = (redis.RedisError, OperationalError)

    def __init__(self, url: str, queues: Sequence[str], wait: Callable[[float], bool]) -> None:  # noqa: ARG002 - the port
        super().__init__(url, wait)
        self._app = Celery("demo", broker=celery_url(url), set_as_current=False)

    def _enqueue(self, queue: str, job_id: str, job: RecordedJob) -> None:
        self._redis.hsetnx(ENQUEUED, job_id, str(time.time()))
        self._app.send_task(TASK, (job.service_s,), task_id=job_id, queue=queue, retry=False, ignore_result=True)

    def _waiting_jobs(self) -> int:
        """Those in a worker that has not begun them among them."""
        return max(len(self._sent) - int(self._redis.hlen(STARTS)), 0)

    def _ended_jobs(self) -> int:
        return int(self._redis.hlen(ENDED))

    def records(self) -> list[JobRecord]:
        """Every job that was sent, as its worker wrote it down; one of which nothing is known is ``gone``."""
        sent = list(self._sent)
        ids = [job_id for _, job_id in sent]
        columns: list[list[bytes | None]] = [[None] * len(ids)] * 4
        with suppress(redis.RedisError), self._redis.pipeline(transaction=False) as pipeline:
            for key in (ENQUEUED, STARTED, ENDED, STARTS) if ids else ():
                pipeline.hmget(key, ids)
            columns = pipeline.execute() if ids else columns
        return [_record(queue, job_id, *row) for (queue, job_id), *row in zip(sent, *columns, strict=True)]

    def close(self) -> None:
        """Let the broker go."""
        self._app.close()
        super().close()


def _record(
    queue: str,
    job_id: str,
    enqueued: bytes | None,
    started: bytes | None,
    ended: bytes | None,
    starts: bytes | None,
) -> JobRecord:
    moments = (("finished", ended), ("started", started), ("queued", enqueued))
    return JobRecord(
        job_id=job_id,
        queue=queue,
        status=next((status for status, at_s in moments if at_s is not None), "gone"),
        enqueued_at_s=float(enqueued or job_id.partition("-")[0]),
        started_at_s=None if started is None else float(started),
        ended_at_s=None if ended is None else float(ended),
        starts=int(starts or 0),
    )
