"""Jobs that are due later, of a pool at zero: a worker is there when they are due, and none is started before."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.init_shops import Row, Shop
from e2e.running_up import running_up
from support.valkeys import Valkey
from support.waiting import eventually

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
CELERY_WORDS = ("celery", "-A", "shop", "worker", "-l", "INFO", "-c", "1")
ROWS = {
    "RQ": Row(text=RQ, words=("rq", "worker", "--with-scheduler", "mail"), url_variable="RQ_REDIS_URL"),
    "Celery on Redis": Row(text=CELERY, words=CELERY_WORDS, url_variable="CELERY_BROKER_URL", may_begin_twice=True),
}


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Valkey]:
    folder = tmp_path / "broker"
    folder.mkdir()
    broker = Valkey(folder)
    try:
        yield broker
    finally:
        broker.close()


@pytest.mark.parametrize(
    "name", [pytest.param("RQ", marks=pytest.mark.field), pytest.param("Celery on Redis", marks=pytest.mark.proof)]
)
def test_workers_are_there_when_jobs_are_due_and_not_before(name: str, broker: Valkey, tmp_path: Path) -> None:
    folder = tmp_path / "shop"
    folder.mkdir()
    shop = Shop(ROWS[name], folder, broker)
    said = shop.headway_init_beside_a_worker()
    with running_up(folder, shop.env) as up:
        (pool,) = [each["pool"] for each in up.ask("/v1/pools")["pools"]]
        assert not up.workers(pool), said
        shop.send(JOBS, 0.2, due_in_s=DUE_IN_S)
        due_s = time.time() + DUE_IN_S
        while not up.workers(pool):
            assert time.time() < due_s + TARGET_S, "a pool at zero sleeps through the due time"
            time.sleep(0.2)
        came_s = time.time()
        eventually(lambda: shop.count("end").total() == JOBS + 1, within_s=60.0)
    started_s = shop.times_s("start")
    assert came_s >= due_s - START_UP_S - EARLY_S
    late_s = [started_s[str(job)] - due_s for job in range(1, JOBS + 1)]
    assert min(late_s) >= -1.0  # RQ counts whole seconds
    assert max(late_s) <= TARGET_S
    assert set(shop.count("start").values()) == {1}
