"""The demo's Celery application, which `celery worker` loads, and nothing else does."""

import os
import time
from contextlib import suppress
from functools import cache
from typing import Any

import redis
from celery import Celery

from headway.cli.demo.demo_jobs import STARTS
from headway.cli.demo.libraries.celery_jobs import BROKER, ENDED, STARTED, TASK, celery_url
from headway.simulate import replay

_url = os.environ.get(BROKER, "")
app = Celery("demo", broker=celery_url(_url))
app.conf.update(broker_connection_retry_on_startup=True)


# With early acknowledgements a worker takes the next job while it runs one, and that job waits for this worker alone.
@app.task(name=TASK, bind=True, ignore_result=True, acks_late=True)  # type: ignore[untyped-decorator]
def work(self: Any, service_s: float) -> None:
    """Do a job, and write down when it began and ended."""
    job_id = self.request.id
    with suppress(redis.RedisError), _broker().pipeline() as pipe:  # no reason not to work
        pipe.hincrby(STARTS, job_id, 1)
        pipe.hsetnx(STARTED, job_id, str(time.time()))
        pipe.execute()
    replay.work(service_s)
    with suppress(redis.RedisError):
        _broker().hset(ENDED, job_id, str(time.time()))


@cache
def _broker() -> "redis.Redis":
    """Opened by the first job, so by each child process for itself."""
    return redis.Redis.from_url(_url)
