"""An application as its developer has it, the files that `headway init` writes for it, and `headway up`: a burst.

From no worker to the burst's peak and back to none, or to the fewer that slow start-ups keep. The jobs keep a log of
their own: each that was sent has ended, and none that began was cut off.
"""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.init_shops import Row, Shop
from e2e.running_up import ASKS_EACH_S, RunningUp, running_up
from support.rabbitmq import RabbitServer
from support.valkeys import Valkey
from support.waiting import eventually

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

WITHIN_S = 400.0
CELERY = """
from celery import Celery
from ledger import done

app = Celery("shop")  # its broker is CELERY_BROKER_URL
app.conf.update(task_acks_late={is_late}, broker_connection_retry_on_startup=True)

@app.task
def work(job, seconds):
    done(job, seconds)

def send(first, jobs, seconds):
    with app.producer_pool.acquire() as producer:
        for job in range(first, first + jobs):
            work.apply_async((job, seconds), producer=producer)
"""
RQ = """
import os
import redis, rq
from ledger import done

def send(first, jobs, seconds):
    queue = rq.Queue("mail", connection=redis.Redis.from_url(os.environ["RQ_REDIS_URL"]))
    for job in range(first, first + jobs):
        queue.enqueue(done, job, seconds)
"""
RQ3 = ("rq==3.0.0", "redis==8.1.0")


def celery(*words: str, is_late: bool = False, is_on_rabbitmq: bool = False) -> Row:
    return Row(
        text=CELERY.format(is_late=is_late),
        words=("celery", "-A", "shop", "worker", "-l", "INFO", "-c", "4", *words),
        url_variable="CELERY_BROKER_URL",
        is_on_rabbitmq=is_on_rabbitmq,
        may_begin_twice=True,
    )


ROWS = {
    "Celery, prefork, early": celery(),
    "Celery, prefork, late": celery(is_late=True),
    "Celery, threads, early": celery("-P", "threads"),
    "Celery, threads, late": celery("-P", "threads", is_late=True),
    "Celery on RabbitMQ, early": celery(is_on_rabbitmq=True),
    "Celery on RabbitMQ, late": celery(is_late=True, is_on_rabbitmq=True),
    "RQ 2": Row(text=RQ, words=("rq", "worker", "mail"), url_variable="RQ_REDIS_URL"),
    "RQ 3": Row(text=RQ, words=("rq", "worker", "mail"), url_variable="RQ_REDIS_URL", requirements=RQ3),
}
IN_CI = "Celery, prefork, early"


@pytest.fixture
def broker(name: str, tmp_path: Path) -> Iterator[Valkey | RabbitServer]:
    """Of the row's own kind."""
    folder = tmp_path / "broker"
    folder.mkdir()
    broker = RabbitServer(folder) if ROWS[name].is_on_rabbitmq else Valkey(folder)
    try:
        if isinstance(broker, RabbitServer):
            broker.start()
        yield broker
    finally:
        broker.close()


@pytest.mark.parametrize(
    ("name", "jobs", "seconds"),
    [
        pytest.param(IN_CI, 200, 1.0, id=f"{IN_CI}, 200 jobs"),
        *(pytest.param(name, 10_000, 0.1, id=f"{name}, 10000 jobs", marks=pytest.mark.proof) for name in ROWS),
    ],
)
def test_a_burst_is_done_by_workers_that_come_and_go_with_the_files_that_init_wrote(
    name: str, jobs: int, seconds: float, broker: Valkey | RabbitServer, tmp_path: Path
) -> None:
    folder = tmp_path / "shop"
    folder.mkdir()
    row = ROWS[name]
    shop = Shop(row, folder, broker)
    said = shop.headway_init_beside_a_worker()
    with running_up(folder, shop.env) as up:
        (pool,) = [each["pool"] for each in up.ask("/v1/pools")["pools"]]
        assert not up.workers(pool), said
        shop.send(jobs, seconds)
        peak = _until_done(up, pool, shop)
        eventually(lambda: len(up.workers(pool)) <= _kept_workers(up, pool) < peak, within_s=WITHIN_S)
    begun, ended = shop.count("start"), shop.count("end")
    assert set(ended) == {str(job) for job in range(shop.sent)}, "none is lost"
    assert begun == ended, "none is killed while it runs"
    assert row.may_begin_twice or set(begun.values()) == {1}
    assert peak >= 2, "there were more jobs than one worker does in time"


def _kept_workers(up: RunningUp, pool: str) -> int:
    """As many as must be pre-warmed where the decision says that workers start too slowly; else none.

    On two cores, sixteen workers of Celery that start together take 5 s. See docs/how-to/collect-celery.md.
    """
    newest = up.decision(pool)
    return int(newest["target_workers"]) if newest["binding"] == "standing" else 0


def _until_done(up: RunningUp, pool: str, shop: Shop) -> int:
    """Wait for the end of all jobs. Returns the most workers that there were at once."""
    until_s, peak = time.monotonic() + WITHIN_S, 0
    while len(shop.count("end")) < shop.sent:
        assert time.monotonic() < until_s, f"{len(shop.count('end'))} of {shop.sent} are done"
        peak = max(peak, len(up.workers(pool)))
        time.sleep(ASKS_EACH_S)
    return peak
