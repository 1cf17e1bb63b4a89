"""Jobs that are due later, of a pool at zero: a worker is there when they are due, and none is started before."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from e2e.init_shops import Row, Shop
from e2e.running_up import running_up
from support.rabbitmq import RabbitServer
from support.valkeys import Valkey

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

JOBS, JOB_S, DUE_IN_S = 12, 0.2, 60.0
MANY, SHORT_S, DUE_LATER_IN_S = 50, 0.05, 150.0  # one worker that holds them all can start them in time
TARGET_S = 10.0  # of the files that `init` writes
EARLY_S = 10.0  # beside the start-up, the most that a worker may be there before
START_UP_S = 15.0  # of a worker, the longest on two cores with everything else beside it
RQ = """
import os
from datetime import timedelta
import redis, rq
from ledger import done, note

def send(first, jobs, seconds, due_in_s=0):
    queue = rq.Queue("mail", connection=redis.Redis.from_url(os.environ["RQ_REDIS_URL"]))
    for job in range(first, first + jobs):
        note("sent", job)
        if due_in_s:
            queue.enqueue_in(timedelta(seconds=due_in_s), done, job, seconds)
        else:
            queue.enqueue(done, job, seconds)
"""
CELERY = """
from celery import Celery
from ledger import done, note

app = Celery("shop")  # its broker is CELERY_BROKER_URL
app.conf.update(broker_connection_retry_on_startup=True)

@app.task
def work(job, seconds):
    done(job, seconds)

def send(first, jobs, seconds, due_in_s=0):
    for job in range(first, first + jobs):
        note("sent", job)
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


@pytest.fixture
def shop(name: str, broker: Valkey | RabbitServer, tmp_path: Path) -> Shop:
    folder = tmp_path / "shop"
    folder.mkdir()
    return Shop(ROWS[name], folder, broker)


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """What the application's log and the list of workers say of jobs that a pool at zero got all at once."""

    late_s: tuple[float, ...]
    """How long after its due time each job began."""
    early_s: tuple[float, ...]
    """When workers were started for which it was too soon, by what could be known of the jobs."""


def played(name: str, shop: Shop, *, jobs: int, seconds: float, due_in_s: float) -> Played:
    """Send the jobs under a `headway up`, and wait until all have ended."""
    said = shop.headway_init_beside_a_worker()
    with running_up(shop.folder, shop.env) as up:
        (pool,) = [each["pool"] for each in up.ask("/v1/pools")["pools"]]
        assert not up.workers(pool), said
        shop.send(jobs, seconds, due_in_s=due_in_s)
        sent_s = [shop.times_s("sent")[str(job)] for job in range(1, jobs + 1)]
        due_s = max(sent_s) + due_in_s
        started_s: dict[int, float] = {}
        waited_until_s = max(sent_s)
        while shop.count("end").total() < jobs + 1:
            assert started_s or time.time() < due_s + TARGET_S, "a pool at zero sleeps through the due time"
            assert time.time() < due_s + 60.0
            started_s |= up.starts_s(pool)
            (shown,) = up.ask("/v1/pools")["pools"]
            if shown["metrics"]["waiting_jobs"]:
                waited_until_s = time.time()
            time.sleep(0.5)
    # What was requested while they waited is started by then: the agent makes few starts at a time.
    taken_s = waited_until_s + START_UP_S if name in UNREAD_UNTIL_TAKEN else 0.0
    soon_s = min(sent_s) + due_in_s - START_UP_S - EARLY_S
    assert taken_s < soon_s, "nobody has taken them"
    begun_s = shop.times_s("start")
    assert set(shop.count("start").values()) == {1}
    return Played(
        late_s=tuple(begun_s[str(job)] - at_s - due_in_s for job, at_s in enumerate(sent_s, 1)),
        early_s=tuple(at_s for at_s in started_s.values() if taken_s < at_s < soon_s),
    )


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.field if name in FIELD else pytest.mark.proof) for name in ROWS]
)
def test_workers_are_there_when_jobs_are_due_and_not_before(name: str, shop: Shop) -> None:
    seen = played(name, shop, jobs=JOBS, seconds=JOB_S, due_in_s=DUE_IN_S)
    assert len(seen.early_s) <= (name in SEEN_BY_LEVELS)
    assert min(seen.late_s) >= -1.0  # RQ counts whole seconds
    assert max(seen.late_s) <= TARGET_S


@pytest.mark.proof
@pytest.mark.parametrize("name", ["Celery on Redis", "Celery on RabbitMQ"])
def test_one_worker_at_most_holds_fifty_jobs_until_they_are_due(name: str, shop: Shop) -> None:
    seen = played(name, shop, jobs=MANY, seconds=SHORT_S, due_in_s=DUE_LATER_IN_S)
    assert len(seen.early_s) <= 1
    assert min(seen.late_s) >= 0.0
    assert sum(each_s <= TARGET_S for each_s in seen.late_s) >= 0.99 * MANY
