"""An application that knows nothing of Headway; its jobs write their own beginning and end into a log."""

import os
import signal
import time
from pathlib import Path

from celery import Celery, Task
from celery.backends.base import DisabledBackend
from celery.exceptions import Ignore, Reject
from kombu import Exchange, Queue

app = Celery("shop", broker=os.environ["BROKER"])
if strategy := os.environ.get("QUEUE_ORDER_STRATEGY"):
    app.conf.broker_transport_options = {"queue_order_strategy": strategy}
app.conf.task_acks_late = bool(os.environ.get("ACKS_LATE"))
if os.environ.get("QUORUM"):
    app.conf.task_default_queue_type = "quorum"
    app.conf.task_queues = [
        Queue(each, Exchange(each, type="topic"), routing_key=each, queue_arguments={"x-queue-type": "quorum"})
        for each in ("soon", "later")
    ]


@app.task(name="works", bind=True)
def works(self, for_s=0.05):
    with (Path(os.environ["LOG"]) / "jobs.log").open("a") as log:
        log.write(f"{self.request.id} begins\n")
        log.flush()
        time.sleep(for_s)
        log.write(f"{self.request.id} ends\n")


class Batched(Task):
    """As a task of celery-batches: what the pool runs is no request of Celery's."""

    def Strategy(self, _task, _app, consumer):  # noqa: N802 - Celery's name
        def handle(message, *_, **__):
            message.ack()
            consumer.pool.apply_async(
                time.sleep, (5.0,), accept_callback=lambda _pid, _at_s: None, callback=lambda _result: None
            )

        return handle


@app.task(name="batched", base=Batched)
def batched():
    pass


@app.task(name="fails")
def fails():
    raise ValueError


class Away(DisabledBackend):
    """As where the store of results is away when a job begins."""

    def store_result(self, _task_id, _result, state, *_, **__):
        if state == "STARTED":
            raise ConnectionError


@app.task(name="unstored", track_started=True)
def unstored():
    pass


unstored.backend = Away(app)


@app.task(name="retries", bind=True)
def retries(self):
    if not self.request.retries:
        raise self.retry(countdown=0.1)


@app.task(name="ignored")
def ignored():
    raise Ignore


@app.task(name="rejected", acks_late=True)
def rejected():
    raise Reject("for good", requeue=False)


@app.task(name="put back", bind=True, acks_late=True)
def put_back(self):
    if not self.request.delivery_info["redelivered"]:
        raise Reject("for now", requeue=True)


@app.task(name="calls")
def calls():
    works.apply((0,), task_id="called here")
    works(0)


@app.task(name="sends")
def sends(queue, countdown):
    works.apply_async((), queue=queue, countdown=countdown, task_id=f"sent {queue}")


@app.task(name="killed", acks_late=False)
def killed():
    # Celery gives a job to another process whose own dies before it heard that the job had begun there.
    time.sleep(1.0)
    os.kill(os.getpid(), signal.SIGKILL)


@app.task(name="lost", acks_late=True, reject_on_worker_lost=True, bind=True)
def lost(self):
    if not self.request.delivery_info["redelivered"]:
        os.kill(os.getpid(), signal.SIGKILL)


@app.task(name="late", time_limit=1)
def late():
    time.sleep(60)


@app.task(name="softly late", soft_time_limit=1)
def softly_late():
    time.sleep(60)


@app.task(name="leaves")
def leaves():
    raise SystemExit(3)


@app.task(name="terminated", bind=True)
def terminated(self):
    app.control.revoke(self.request.id, terminate=True)
    time.sleep(60)


@app.task(name="lingers", bind=True)
def lingers(self, for_s):
    """Terminated, it still cleans up for a while."""
    try:
        app.control.revoke(self.request.id, terminate=True)  # the signal may come before this returns
        time.sleep(60)
    finally:
        time.sleep(for_s)


@app.task(name="spins")
def spins(for_s):
    """Keeps the interpreter, and with it the event loop of a greenlet pool, busy."""
    until_s = time.monotonic() + for_s
    while time.monotonic() < until_s:
        sum(range(1000))


@app.task(name="reopens")
def reopens():
    """Closes the reporter's pipe, and opens files of its own."""
    pipes = [path for path in Path("/proc/self/fd").iterdir() if path.is_symlink() and ".pipe" in str(path.readlink())]
    os.close(int(pipes[0].name))
    for number in range(8):
        os.open(Path(os.environ["LOG"]) / f"own {number}", os.O_CREAT | os.O_WRONLY)
