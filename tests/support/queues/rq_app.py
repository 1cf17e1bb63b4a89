"""Jobs of the tests with RQ 2 and 3, and what one does to them with RQ's own means."""

import os
import time
from contextlib import suppress
from datetime import timedelta
from typing import Any

import job_runs
import redis
from rq import Queue, Retry, Worker
from rq.command import send_stop_job_command
from rq.exceptions import InvalidJobOperation, NoSuchJobError
from rq.job import Job, get_current_job
from rq.registry import FailedJobRegistry, ScheduledJobRegistry, StartedJobRegistry
from rq.scheduler import RQScheduler

QUEUE = "mail"
ABANDONED_AFTER_S = 600.0

connection = redis.Redis.from_url(os.environ["BROKER"])
queue = Queue(QUEUE, connection=connection)
scheduled = ScheduledJobRegistry(queue=queue)
started = StartedJobRegistry(queue=queue)


def work(plan: list[job_runs.Step]) -> Any:
    match job_runs.run(get_current_job().id, plan):
        case "fail":
            raise RuntimeError("as asked")
        case "retry":
            return Retry(max=9)


def put(
    job_id: str,
    plan: list[job_runs.Step],
    *,
    at_front: bool = False,
    delay_s: float | None = None,
    retries: int = 0,
    retry_s: float = 0.0,
    ttl: int | None = None,
    after: str | None = None,
) -> None:
    more: dict[str, Any] = {"job_id": job_id, "ttl": ttl}
    if retries:
        more["retry"] = Retry(max=retries, interval=int(retry_s))
    if after is not None:
        more["depends_on"] = after
    if delay_s is not None:
        queue.enqueue_in(timedelta(seconds=delay_s), work, plan, **more)
    else:
        queue.enqueue(work, plan, at_front=at_front, **more)


def cancel(job_id: str) -> bool:
    """Returns whether it could be cancelled."""
    with suppress(InvalidJobOperation, NoSuchJobError):
        job = Job.fetch(job_id, connection=connection)
        if job.get_status() in ("queued", "scheduled", "deferred"):
            job.cancel()
            return True
    return False


def stop(job_id: str) -> bool:
    """End a job that runs. Returns whether its worker was asked to."""
    with suppress(InvalidJobOperation, NoSuchJobError):
        send_stop_job_command(connection, job_id)
        return True
    return False


def requeue(job_id: str) -> bool:
    """Give a job that has failed another try. Returns whether it got one."""
    with suppress(InvalidJobOperation, NoSuchJobError):
        FailedJobRegistry(queue=queue).requeue(job_id)
        return True
    return False


def counts() -> list[int]:
    """Waiting, in flight, delayed, and those that a worker took and has not begun."""
    taken = {job_id.decode() for job_id in connection.lrange(f"{queue.key}:intermediate", 0, -1)}
    begun = set(started.get_job_ids(cleanup=False))  # for a moment, one that begins is in both
    return [queue.count, len(begun), scheduled.get_job_count(cleanup=False), len(taken - begun)]


def overdue_s(at_s: float) -> list[float]:
    """When those scheduled jobs were due that are by ``at_s``: nobody has moved them into the queue yet."""
    return [due_s for _, due_s in connection.zrangebyscore(scheduled.key, "-inf", at_s, withscores=True)]


def entered_s() -> dict[str, float]:
    """When the jobs that wait entered, by their ids."""
    jobs = Job.fetch_many(queue.get_job_ids(), connection=connection)
    return {job.id: job.enqueued_at.timestamp() for job in jobs if job is not None and job.enqueued_at is not None}


def held() -> list[str]:
    """The jobs that workers have, dead ones included."""
    return started.get_job_ids(cleanup=False)


def recover() -> list[str]:
    """Give up the jobs of workers that are gone, as other workers do after minutes. Returns their ids."""
    before = held()
    started.cleanup(time.time() + ABANDONED_AFTER_S)
    return [job_id for job_id in before if job_id not in held()]


def worker() -> None:
    """Work until asked to end."""
    Worker([queue], connection=connection, job_monitoring_interval=1).work(logging_level="WARNING")


def schedule() -> None:
    """Put jobs into the queue when they are due."""
    scheduler = RQScheduler([QUEUE], connection=connection, interval=1)
    scheduler.acquire_locks()
    scheduler.work()


def main() -> None:
    """Do what is asked."""
    import hand

    hand.serve(put, cancel, stop, requeue, counts, overdue_s, entered_s, held, recover)
