"""The demo's jobs and worker with a real Valkey and RQ's own code."""

import os
import signal
import subprocess
import sys
import time

import pytest
from redis import Redis
from rq import Queue

from headway.cli.demo.libraries.rq_jobs import RqJobs
from headway.cli.demo.libraries.rq_worker import DrainingWorker
from headway.simulate.replay import RecordedJob

MAIL, REPORTS = QUEUES = ("mail", "reports")


@pytest.fixture
def connection(valkey_url):
    with Redis.from_url(valkey_url) as connection:
        yield connection


@pytest.fixture
def jobs(valkey_url):
    jobs = RqJobs(valkey_url, QUEUES, wait=lambda _: False)
    yield jobs
    jobs.close()


def job(service_s: float) -> RecordedJob:
    return RecordedJob(at_s=0, service_s=service_s)


def test_a_sent_job_is_done_by_a_worker_and_its_times_are_read_back(jobs, connection):
    before_s = time.time()
    for index in range(2):
        jobs.send(MAIL, index, job(0.05))
    assert (jobs.sent, jobs.waiting(), jobs.ended()) == (2, 2, 0)
    DrainingWorker([MAIL], connection=connection).work(burst=True, logging_level="ERROR", max_jobs=1)
    assert (jobs.waiting(), jobs.ended()) == (1, 1)

    done, waiting = jobs.records()
    assert done.is_done
    assert (done.queue, done.starts, waiting.starts) == (MAIL, 1, 0)
    assert before_s - 1 <= done.enqueued_at_s <= done.started_at_s < done.ended_at_s <= time.time()
    assert done.ended_at_s - done.started_at_s >= 0.049
    assert (waiting.status, waiting.started_at_s, waiting.ended_at_s) == ("queued", None, None)


def test_a_job_is_sent_once_also_when_the_answer_to_the_first_try_was_lost(jobs):
    jobs.send(MAIL, 0, job(1))
    jobs.send(MAIL, 0, job(1))
    assert jobs.waiting() == 1


def test_jobs_of_several_queues_are_reported_apart_and_counted_together(jobs, connection):
    jobs.send(MAIL, 0, job(0.01))
    jobs.send(REPORTS, 0, job(0.01))
    assert (jobs.sent, jobs.waiting()) == (2, 2)
    DrainingWorker([REPORTS], connection=connection).work(burst=True, logging_level="ERROR")
    assert (jobs.waiting(), jobs.ended()) == (1, 1)
    assert [(record.queue, record.status) for record in jobs.records()] == [(MAIL, "queued"), (REPORTS, "finished")]


def test_a_job_that_is_begun_again_is_counted(jobs, connection):
    jobs.send(MAIL, 0, job(0.01))
    for _ in range(2):
        DrainingWorker([MAIL], connection=connection).work(burst=True, logging_level="ERROR")
        Queue(MAIL, connection=connection).push_job_id(jobs.records()[0].job_id)
    assert jobs.records()[0].starts == 2


def test_a_job_that_the_broker_has_lost_is_reported_as_gone(jobs):
    jobs.send(MAIL, 0, job(1))
    jobs.clear()
    assert [record.status for record in jobs.records()] == ["gone"]


def test_without_a_broker_nothing_is_known_and_sending_ends_when_asked(tmp_path):
    waits = []
    jobs = RqJobs(f"unix://{tmp_path}/none.sock", QUEUES, wait=lambda seconds: waits.append(seconds) or len(waits) == 3)
    assert (jobs.waiting(), jobs.ended()) == (None, None)
    jobs.send(MAIL, 0, job(1))
    assert (jobs.sent, len(waits)) == (0, 3)


class StoppedInBetween(Queue):
    """A queue whose worker gets its signal just when it has taken a job: where RQ's own worker loses it."""

    worker = None

    @classmethod
    def dequeue_any(cls, *args, **kwargs):
        taken = super().dequeue_any(*args, **kwargs)
        if cls.worker:
            os.kill(os.getpid(), signal.SIGTERM)
        return taken


def test_a_worker_that_is_stopped_just_as_it_takes_a_job_does_the_job_and_no_other(jobs, connection):
    for index in range(2):
        jobs.send(MAIL, index, job(0.01))
    worker = DrainingWorker([MAIL], connection=connection, queue_class=StoppedInBetween)
    StoppedInBetween.worker = worker
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        worker.work(logging_level="ERROR")
    finally:
        StoppedInBetween.worker = None
        for number, handler in handlers.items():
            signal.signal(number, handler)
    assert [record.status for record in jobs.records()] == ["finished", "queued"]


def test_an_idle_worker_ends_soon_when_asked_and_says_when_it_is_ready(valkey_url):
    argv = [
        sys.executable,
        "-m",
        "rq.cli",
        "worker",
        "--url",
        valkey_url,
        "-w",
        "headway.cli.demo.libraries.rq_worker.DrainingWorker",
    ]
    worker = subprocess.Popen([*argv, MAIL], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert any("Listening on" in line for line in worker.stdout)
    worker.terminate()
    worker.communicate(timeout=60)  # RQ waits for a job for minutes
    assert worker.returncode in {0, -signal.SIGTERM}  # the latter: before RQ has installed its handlers
