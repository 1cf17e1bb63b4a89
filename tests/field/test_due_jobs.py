"""Jobs that are due later, of a pool at zero: a worker is there when they are due, and none is started before."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.init_shops import Row, Shop
from e2e.running_up import running_up
from support.rabbitmq import RabbitServer
from support.valkeys import Valkey

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

JOBS, DUE_IN_S = 12, 60.0
TARGET_S = 10.0  # of the files that `init` writes
EARLY_S = 10.0  # beside the start-up, the most that a worker may be there before
START_UP_S = 15.0  # of a worker, the longest on two cores with everything else beside it
RQ = """
import os
from datetime import timedelta
import redis, rq
from ledger import done

def send(first, jobs, seconds, due_in_s=0):
    queue = rq.Queue("mail", connection=redis.Redis.from_url(os.environ["RQ_REDIS_URL"]))
    for job in range(first, first + jobs):
        if due_in_s:
            queue.enqueue_in(timedelta(seconds=due_in_s), done, job, seconds)
        else:
            queue.enqueue(done, job, seconds)
"""
CELERY = """
from celery import Celery
from ledger import done

app = Celery("shop")  # its broker is CELERY_BROKER_URL
app.conf.update(broker_connection_retry_on_startup=True)

@app.task
def work(job, seconds):
    done(job, seconds)

def send(first, jobs, seconds, due_in_s=0):
    for job in range(first, first + jobs):
        work.apply_async((job, seconds), countdown=due_in_s or None)
"""
# Else what was sent last may never arrive: the process that sends ends at once, and its socket is reset.
RABBITMQ = f"{CELERY}app.conf.update(broker_transport_options={{'confirm_publish': True}})\n"
QUORUM = f"{RABBITMQ}app.conf.update(task_default_queue_type='quorum', task_default_exchange_type='topic')\n"
CELERY_WORDS = ("celery", "-A", "shop", "worker", "-l", "INFO", "-c", "1")
ROWS = {
    "RQ": Row(text=RQ, words=("rq", "worker", "--with-scheduler", "mail"), url_variable="RQ_REDIS_URL"),
    "Celery on Redis": Row(text=CELERY, words=CELERY_WORDS, url_variable="CELERY_BROKER_URL", may_begin_twice=True),
    "Celery on RabbitMQ": Row(
        text=RABBITMQ, words=CELERY_WORDS, url_variable="CELERY_BROKER_URL", is_on_rabbitmq=True, may_begin_twice=True
    ),
    "Celery on quorum queues": Row(
        text=QUORUM, words=CELERY_WORDS, url_variable="CELERY_BROKER_URL", is_on_rabbitmq=True, may_begin_twice=True
    ),
}
UNREAD_UNTIL_TAKEN = {"Celery on RabbitMQ"}
"""Of a classic queue nobody sees when its jobs are due until workers have taken them, which then hold them."""
SEEN_BY_LEVELS = {"Celery on quorum queues"}
"""Of a delay of several bits, RabbitMQ shows the next only: one worker may be there for each of them."""
FIELD = ("RQ",)


@pytest.fixture
def broker(name: str, tmp_path: Path) -> Iterator[Valkey | RabbitServer]:
    folder = tmp_path / "broker"
    folder.mkdir()
    if ROWS[name].is_on_rabbitmq:
        broker: Valkey | RabbitServer = RabbitServer(folder)
        broker.start()
    else:
        broker = Valkey(folder)
    try:
        yield broker
    finally:
        broker.close()


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.field if name in FIELD else pytest.mark.proof) for name in ROWS]
)
def test_workers_are_there_when_jobs_are_due_and_not_before(
    name: str, broker: Valkey | RabbitServer, tmp_path: Path
) -> None:
    folder = tmp_path / "shop"
    folder.mkdir()
    shop = Shop(ROWS[name], folder, broker)
    said = shop.headway_init_beside_a_worker()
    with running_up(folder, shop.env) as up:
        (pool,) = [each["pool"] for each in up.ask("/v1/pools")["pools"]]
        assert not up.workers(pool), said
        sending_s = time.time()
        shop.send(JOBS, 0.2, due_in_s=DUE_IN_S)
        sent_s = time.time()
        due_s = sent_s + DUE_IN_S
        came_s: dict[int, float] = {}
        while shop.count("end").total() < JOBS + 1:
            assert came_s or time.time() < due_s + TARGET_S, "a pool at zero sleeps through the due time"
            assert time.time() < due_s + 60.0
            for pid in up.workers(pool):
                came_s.setdefault(pid, time.time())
            time.sleep(0.2)
    started_s = shop.times_s("start")
    taken_s = sent_s + START_UP_S if name in UNREAD_UNTIL_TAKEN else 0.0
    early = [at_s for at_s in came_s.values() if taken_s < at_s < due_s - START_UP_S - EARLY_S]
    assert len(early) <= (name in SEEN_BY_LEVELS)
    late_s = [started_s[str(job)] - due_s for job in range(1, JOBS + 1)]
    assert min(late_s) >= sending_s - sent_s - 1.0  # RQ counts whole seconds
    assert max(late_s) <= TARGET_S
    assert set(shop.count("start").values()) == {1}
