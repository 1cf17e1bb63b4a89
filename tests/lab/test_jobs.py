"""What a lab does with jobs that RQ calls failed."""

import random
from pathlib import Path
from typing import Any

import pytest
import redis
from rq import SimpleWorker

from lab.jobs import Traffic
from support.waiting import eventually

QUEUE = "letters"


class WithoutBroker(SimpleWorker):
    """Loses the broker as it is about to begin a job."""

    def prepare_job_execution(self, *_: Any, **__: Any) -> None:
        raise redis.ConnectionError("Error 113 connecting to 10.213.2.3:6379. No route to host.")


class BrokerLostAfterwards(SimpleWorker):
    """Loses the broker as it is about to report a job's end."""

    def handle_job_success(self, *_: Any, **__: Any) -> None:
        raise redis.TimeoutError("Timeout reading from socket")


class Flawed(SimpleWorker):
    def prepare_job_execution(self, *_: Any, **__: Any) -> None:
        raise OSError("redis.exceptions are not at fault")


@pytest.fixture
def traffic(valkey_url: str, tmp_path: Path) -> Traffic:
    traffic = Traffic(valkey_url, {QUEUE: 1.0}, tmp_path / "jobs.txt", per_s=50.0, rng=random.Random(1))
    traffic.start()
    eventually(lambda: traffic.sent)
    traffic.end()
    return traffic


def work(url: str, workers: type[SimpleWorker]) -> None:
    with redis.Redis.from_url(url) as connection:
        workers([QUEUE], connection=connection).work(burst=True)


def test_a_job_that_did_not_begin_for_want_of_the_broker_is_requeued_and_done_once(
    traffic: Traffic, valkey_url: str
) -> None:
    work(valkey_url, WithoutBroker)
    assert len(traffic.failures()) == len(traffic.sent)
    traffic.requeue()
    assert (traffic.requeued, traffic.failures()) == (set(traffic.sent), [])
    work(valkey_url, SimpleWorker)
    assert (traffic.left(), traffic.counts().doubled) == ([], 0)


@pytest.mark.parametrize("workers", [BrokerLostAfterwards, Flawed])
def test_no_other_failed_job_is_begun_again(traffic: Traffic, valkey_url: str, workers: type[SimpleWorker]) -> None:
    work(valkey_url, workers)
    traffic.requeue()
    assert (traffic.requeued, len(traffic.failures())) == (set(), len(traffic.sent))
