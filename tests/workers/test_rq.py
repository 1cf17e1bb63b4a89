import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redis
from rq import Queue, Worker
from rq.job import Job

from headway.store.embedded import ensure_valkey
from headway.workers.rq import DrainingWorker


class StoppedInBetween(Queue):
    """A queue whose worker gets its signal just when it has taken a job."""

    is_armed = False

    @classmethod
    def dequeue_any(cls, *args, **kwargs):
        taken = super().dequeue_any(*args, **kwargs)
        if cls.is_armed and taken:
            os.kill(os.getpid(), signal.SIGTERM)
        return taken


@pytest.fixture
def stops() -> Iterator[None]:
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    StoppedInBetween.is_armed = True
    yield
    StoppedInBetween.is_armed = False
    for number, handler in handlers.items():
        signal.signal(number, handler)


@pytest.fixture
def queue(valkey_url: str) -> Queue:
    return Queue("mail", connection=redis.Redis.from_url(valkey_url))


def two_jobs(queue: Queue) -> list[Job]:
    return [queue.enqueue("time.sleep", 0.01) for _ in range(2)]


def statuses(jobs: list[Job]) -> list[str]:
    return [str(job.get_status(refresh=True).value) for job in jobs]


@pytest.mark.usefixtures("stops")
@pytest.mark.parametrize(
    ("worker_class", "left"),
    [
        (DrainingWorker, ["finished", "queued"]),
        (Worker, ["queued", "queued"]),  # RQ's own: the first is in no queue any more, and runs nowhere
    ],
)
def test_a_stop_just_as_a_job_is_taken_loses_it_only_to_rqs_own_worker(
    worker_class: type[Worker], left: list[str], queue: Queue
) -> None:
    jobs = two_jobs(queue)
    worker_class(["mail"], connection=queue.connection, queue_class=StoppedInBetween).work(logging_level="ERROR")
    assert statuses(jobs) == left
    assert queue.job_ids == [jobs[1].id]


def test_a_burst_worker_ends_when_the_queue_is_empty(queue: Queue) -> None:
    jobs = two_jobs(queue)
    assert DrainingWorker(["mail"], connection=queue.connection).work(burst=True, logging_level="ERROR")
    assert statuses(jobs) == ["finished", "finished"]


def test_a_worker_that_shall_not_idle_for_long_ends(queue: Queue) -> None:
    DrainingWorker(["mail"], connection=queue.connection).work(max_idle_time=1, logging_level="ERROR")
    assert Worker.count(connection=queue.connection) == 0


def test_asked_again_and_again_it_still_finishes_its_job(queue: Queue, valkey_url: str) -> None:
    words = ["worker", "--url", valkey_url, "--worker-class", "headway.workers.rq.DrainingWorker", "mail"]
    job = queue.enqueue("time.sleep", 2.5)
    with subprocess.Popen([sys.executable, "-m", "rq.cli", *words]) as worker:
        _until(lambda: job.get_status() == "started")
        for _ in range(20):  # a second: not until its very end, when Python no longer listens
            worker.terminate()
            time.sleep(0.05)
        assert worker.wait(60) == 0
    assert statuses([job]) == ["finished"]


@pytest.mark.parametrize("is_asked_to_stop", [False, True])
@pytest.mark.parametrize("failing", [("set_state", 1), ("heartbeat", 1), ("heartbeat", 2)])
def test_a_report_about_a_poll_that_redis_does_not_take_costs_neither_the_worker_nor_its_job(
    failing: tuple[str, int], is_asked_to_stop: bool, queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RQ's own worker quits on each: the state is set, and the last heartbeat sent, outside of its tries."""
    [job, _] = two_jobs(queue)
    report, failing_call = failing
    own, calls = getattr(Worker, report), 0

    def once_away(worker: DrainingWorker, *args: object, **kwargs: object) -> None:
        nonlocal calls
        calls += worker._is_polling
        if worker._is_polling and calls == failing_call:
            worker._stop_requested = is_asked_to_stop and worker._has_taken
            raise redis.ConnectionError("away")
        own(worker, *args, **kwargs)

    monkeypatch.setattr(Worker, report, once_away)
    worker = DrainingWorker(["mail"], connection=queue.connection)
    worker.work(burst=True, max_jobs=1, logging_level="ERROR")
    assert calls >= failing_call
    assert statuses([job]) == ["finished"]


def test_a_worker_asked_to_stop_while_redis_is_away_does_not_wait_for_it(tmp_path: Path) -> None:
    server, log = ensure_valkey(tmp_path / "valkey"), tmp_path / "worker.log"
    words = ["worker", "--url", server.url, "--worker-class", "headway.workers.rq.DrainingWorker", "mail"]
    with (
        log.open("w") as output,
        subprocess.Popen([sys.executable, "-m", "rq.cli", *words], stdout=output, stderr=output) as worker,
    ):
        try:
            connection = redis.Redis.from_url(server.url)
            _until(lambda: any(each.get_state() == "idle" for each in Worker.all(connection=connection)))
            assert server.wait_stopped()
            _until(lambda: "could not connect to Redis" in log.read_text() or worker.poll() is not None)
            assert worker.poll() is None, log.read_text()
            worker.terminate()
            worker.wait(60)
        finally:
            worker.kill()


def _until(condition: Callable[[], object]) -> None:
    until_s = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < until_s
        time.sleep(0.01)
