"""RQ 3, whose workers, keys and rate limits differ from RQ 2's, in an environment of its own."""

import os
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
import redis

from headway.collect.rq.rq_source import RqSource
from headway.connections import Connection
from headway.scaling.model import EventKind, JobEvent
from support.environments import python_with
from support.waiting import eventually

RQ3 = ("rq==3.0.0", "redis==8.1.0")
JOBS = """
import os, redis
broker = lambda: redis.Redis(unix_socket_path=os.environ["SOCKET"], db=int(os.environ["DB"]))
def work(name="free"):
    broker().rpush("began", name)
    broker().blpop(f"go-{name}", 60)
def fail():
    raise RuntimeError("as asked")
"""
SENDING = """
import sys, jobs
from rq import Queue, Retry
from rq.rate_limit import RateLimit
queue = Queue("mail", connection=jobs.broker())
"""
WORKING = """
import jobs
from rq import Queue, SimpleWorker
connection = jobs.broker()
SimpleWorker([Queue("mail", connection=connection)], connection=connection).work(burst=True, logging_level="ERROR")
"""


class Rq3:
    """RQ 3 on a broker, and what a collector reports of it."""

    def __init__(self, url: str, folder: Path, *, prefix: str | None = None) -> None:
        parts = urlsplit(url)
        self.redis = redis.Redis.from_url(url, decode_responses=True)
        (folder / "jobs.py").write_text(JOBS)
        self._env = {
            **os.environ,
            "SOCKET": parts.path,
            "DB": parse_qs(parts.query)["db"][0],
            "PYTHONPATH": str(folder),
        }
        if prefix is not None:
            self._env["RQ_KEY_PREFIX"] = prefix
        self._python = python_with(*RQ3)
        self._source = RqSource(Connection(name="redis", url=url, prefix=prefix), None)
        self.events: list[JobEvent] = []
        self.now_s = float(self.redis.time()[0])
        self.poll()

    def start(self, code: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen([self._python, "-c", code], env=self._env)

    def run(self, code: str) -> None:
        assert self.start(code).wait(60.0) == 0

    def poll(self):
        seconds, micros = self.redis.time()
        reading = self._source.poll(seconds + micros / 1e6)
        self.events += reading.events
        return reading

    @property
    def reported(self) -> Counter[tuple[str, EventKind]]:
        return Counter((event.job_id, event.kind) for event in self.events)


@pytest.fixture
def rq3(valkey_url: str, tmp_path: Path) -> Callable[..., Rq3]:
    return lambda prefix=None: Rq3(valkey_url, tmp_path, prefix=prefix)


@pytest.fixture
def worker() -> Iterator[list[subprocess.Popen[bytes]]]:
    """Workers that end with the test."""
    started: list[subprocess.Popen[bytes]] = []
    yield started
    for each in started:
        each.kill()
        each.wait()


def life(job_id: str, ended: EventKind = EventKind.FINISHED) -> list[tuple[str, EventKind]]:
    return [(job_id, EventKind.ENQUEUED), (job_id, EventKind.STARTED), (job_id, ended)]


@pytest.mark.parametrize("prefix", [None, "acme:{1}"])
def test_depths_workers_and_lives_of_rq_3_are_read(rq3, worker: list, prefix: str | None) -> None:
    rq = rq3(prefix)
    rq.run(f"{SENDING}queue.enqueue('jobs.work', 'a', job_id='a'); queue.enqueue('jobs.fail', job_id='b')")
    (sample,) = rq.poll().samples
    assert (sample.queue, sample.waiting_jobs, sample.in_flight_jobs) == ("redis/mail", 2, 0)
    worker.append(rq.start(WORKING))
    assert rq.redis.blpop("began", 60)
    reading = rq.poll()
    assert (reading.samples[0].waiting_jobs, reading.samples[0].in_flight_jobs) == (1, 1)
    (activity,) = reading.activities
    (started,) = (event for event in rq.events if event.kind is EventKind.STARTED)
    assert (activity.pid, activity.is_busy, activity.ended_jobs) == (worker[0].pid, True, 0)
    assert activity.busy_since_s == pytest.approx(started.at_s, abs=0.1)  # RQ stamps it again as the job begins
    rq.redis.rpush("go-a", "1")
    assert worker[0].wait(60.0) == 0
    rq.poll()
    assert rq.reported == Counter([*life("a"), *life("b", EventKind.FAILED)])
    assert rq.poll().activities == ()


def test_a_job_that_its_rate_limit_holds_back_does_not_wait_for_a_worker(rq3, worker: list) -> None:
    rq = rq3()
    limited = "queue.enqueue('jobs.work', '{0}', job_id='{0}', rate_limit=RateLimit('k', 1));"
    rq.run(f"{SENDING}{limited.format('a')}{limited.format('b')}")
    (sample,) = rq.poll().samples
    assert (sample.waiting_jobs, sample.in_flight_jobs, sample.delayed_jobs) == (1, 0, 0)
    assert rq.reported == Counter([("a", EventKind.ENQUEUED)])
    worker.append(rq.start(WORKING))
    for name in ("a", "b"):
        eventually(lambda name=name: rq.redis.lpos("began", name) is not None)
        rq.poll()
        rq.redis.rpush(f"go-{name}", "1")
    assert worker[0].wait(60.0) == 0
    rq.poll()
    assert rq.reported == Counter([*life("a"), *life("b")])
    entered_s = next(event.at_s for event in rq.events if event.job_id == "b" and event.kind is EventKind.ENQUEUED)
    ended_s = next(event.at_s for event in rq.events if event.job_id == "a" and event.kind is EventKind.FINISHED)
    assert entered_s >= ended_s - 0.1  # it entered when the limit let it, and not when it was sent
