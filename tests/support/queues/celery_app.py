"""The application of the tests with Celery, and what one does to it with Celery's own means."""

import os
from contextlib import suppress
from typing import Any

import job_runs
from celery import Celery, Task, signals
from celery.exceptions import Ignore, Reject

QUEUE = "mail"
IS_LATE = os.environ["ACKS"] == "late"
VISIBILITY_S = 60.0  # longer than a story holds anything: ``recover`` says when it is over

app = Celery("shop", broker=os.environ["BROKER"])
IS_ON_REDIS = app.connection_for_write().transport_cls.startswith("redis")
app.conf.update(
    task_default_queue=QUEUE,
    task_acks_late=IS_LATE,
    task_reject_on_worker_lost=IS_LATE,
    broker_connection_retry_on_startup=True,
    broker_transport_options={"visibility_timeout": VISIBILITY_S} if IS_ON_REDIS else {},
    task_queue_max_priority=None if IS_ON_REDIS else 10,
    worker_hijack_root_logger=False,
)


@app.task(name="work", bind=True, max_retries=None)
def work(self: Task, plan: list[job_runs.Step], retry_s: float = 0.0) -> None:
    match job_runs.run(self.request.id, plan, attempt=self.request.retries + 1):
        case "fail":
            raise RuntimeError("as asked")
        case "retry":
            raise self.retry(countdown=retry_s)
        case "ignore":
            raise Ignore
        case "reject":
            raise Reject("as asked", requeue=False)
        case "requeue":
            raise Reject("as asked", requeue=True)


def put(job_id: str, plan: list[job_runs.Step], *, is_silent: bool = False, **options: Any) -> None:
    """Send a task; silently as a process does that does not import our emitter."""
    from headway.emit import celery as emit

    retry_s = options.pop("retry_s", 0.0)
    if is_silent:
        signals.before_task_publish.disconnect(emit._sending)
    try:
        work.apply_async((plan, retry_s), task_id=job_id, **options)
    finally:
        if is_silent:
            signals.before_task_publish.connect(emit._sending, weak=False)


def cancel(job_id: str) -> None:
    app.control.revoke(job_id)


def stop(job_id: str) -> None:
    """End a task that runs."""
    app.control.revoke(job_id, terminate=True, signal="SIGTERM")


def depth() -> int:
    """Messages in the queue, as Celery's own ``inspect`` of a broker has them."""
    with app.connection_for_read() as connection, suppress(connection.channel_errors):
        return int(connection.default_channel.queue_declare(QUEUE, passive=True).message_count)
    return 0


def inspected(workers: int) -> dict[str, list[str]]:
    """The tasks that workers have, by what they do with them."""
    inspect = app.control.inspect(limit=workers, timeout=5.0)
    found: dict[str, list[str]] = {}
    for name in ("active", "reserved", "scheduled"):
        answers = getattr(inspect, name)() or {}
        tasks = [task for of_worker in answers.values() for task in of_worker]
        found[name] = [task.get("request", task)["id"] for task in tasks]
    return found


def recover() -> None:
    """Put back what nobody acknowledges any more, as a worker does after the visibility timeout."""
    with app.connection_for_write() as connection:
        channel = connection.default_channel
        channel.qos.visibility_timeout = 0
        channel.qos.restore_visible(num=10_000)


def main() -> None:
    """Do what is asked; what is sent is reported."""
    import hand

    import headway.emit.celery  # noqa: F401

    hand.serve(put, cancel, stop, depth, inspected, recover)
