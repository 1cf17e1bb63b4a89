"""The application of the Celery worker that `benchmarks/emit.py` floods; its jobs count how many came late."""

import os
import time

import redis
from celery import Celery

LATE_S = 1.0

app = Celery("shop", broker=os.environ["BROKER"])
app.conf.update(task_ignore_result=True, worker_prefetch_multiplier=16)
counts = redis.Redis(unix_socket_path=os.environ["BROKER"].partition("://")[2], db=1)


@app.task(name="shop.mail.send")
def send(sent_at_s: float) -> None:
    """Count this job."""
    late = time.time() - sent_at_s > LATE_S
    with counts.pipeline(transaction=False) as commands:
        commands.incr("ended")
        commands.incrby("late", int(late))
        commands.execute()
