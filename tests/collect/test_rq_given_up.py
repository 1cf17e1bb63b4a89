"""Jobs that RQ's clean-up gives up, long after a real worker died with them: before it began one, or at work."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from rq import Retry, SimpleWorker
from rq.job import Job

from collect.rq_jobs import ENQUEUED, FAILED, RETRIED, STARTED, Rq, Watch, while_running, work
from headway.collect.rq.stuck_jobs import StuckJobs

CLEANED_UP_AFTER_S = 300.0  # RQ's workers do so each ten minutes


def enqueue_long_ago(rq: Rq, retry: Retry | None = None) -> Job:
    job = rq.queue().enqueue(work, retry=retry)
    job.enqueued_at = datetime.now(UTC) - timedelta(seconds=CLEANED_UP_AFTER_S)
    job.save()
    return job


def take_and_die(rq: Rq) -> None:
    """What RQ's worker does first with a job; this one dies then."""
    queue = rq.queue()
    rq.redis.lmove(queue.key, queue.intermediate_queue_key)


def clean_up(rq: Rq, job: Job) -> None:
    """RQ's own, by which the job has been in the intermediate queue for more than a minute."""
    queue = rq.queue()
    stuck = queue.intermediate_queue
    rq.redis.set(stuck.get_first_seen_key(job.id), time.time() - 61.0)
    stuck.cleanup(SimpleWorker([queue], connection=rq.redis), queue)


@pytest.mark.parametrize("is_seen_waiting", [False, True])
def test_a_job_that_was_stuck_in_the_intermediate_queue_has_failed(rq: Rq, watch: Watch, is_seen_waiting: bool) -> None:
    """Field B7. An idle worker takes a job before a poll sees it wait, and its record shows neither start nor end."""
    watch.poll_once(later_s=-60.0)
    job = enqueue_long_ago(rq)
    if is_seen_waiting:
        watch.poll_once()
    take_and_die(rq)
    watch.poll_once()
    clean_up(rq, job)
    noticed_s = watch.poll_once().at_s
    watch.poll_once()
    assert watch.reported() == [ENQUEUED, FAILED]
    failed = watch.of(FAILED)
    assert (failed.at_s, failed.started_at_s) == (noticed_s, None)


def test_a_job_that_was_taken_by_a_worker_that_died_is_in_flight_until_it_is_given_up(rq: Rq, watch: Watch) -> None:
    """Nothing waited and nothing ran: the pool went to zero, and RQ's clean-up needs a worker that runs."""
    job = enqueue_long_ago(rq)
    take_and_die(rq)
    for later_s in (0.0, 59.0):
        (sample,) = watch.poll_once(later_s=later_s).samples
        assert (sample.waiting_jobs, sample.in_flight_jobs, sample.oldest_age_s) == (0, 1, 0.0)
    clean_up(rq, job)
    (sample,) = watch.poll_once(later_s=60.0).samples
    assert (sample.waiting_jobs, sample.in_flight_jobs) == (0, 0)


def test_a_job_that_stays_taken_for_a_minute_is_named_once(caplog: pytest.LogCaptureFixture) -> None:
    """Of a busy queue there is always one that was taken and has not begun, and never the same."""
    stuck = StuckJobs()
    stuck.see({"redis/mail": ["a", "b"], "redis/news": ["x"]}, at_s=100.0)
    stuck.see({"redis/mail": ["a", "b"], "redis/news": ["y"]}, at_s=160.0)
    assert caplog.text == ""
    for at_s in (161.0, 170.0):
        stuck.see({"redis/mail": ["a", "b"], "redis/news": ["y"]}, at_s=at_s)
    assert [record.getMessage().partition(":")[0] for record in caplog.records] == [
        "job stuck queue=redis/mail job=a jobs=2"
    ]
    stuck.see({"redis/mail": ["b"], "redis/news": []}, at_s=180.0)
    stuck.see({"redis/mail": ["b"]}, at_s=241.0)
    assert caplog.text.count("job stuck") == 2


def test_a_job_that_begins_is_in_flight_once(rq: Rq, watch: Watch) -> None:
    """RQ marks it as begun before it takes it out of its intermediate queue."""
    rq.queue().enqueue(work)
    seen: list[int | None] = []

    def poll_meanwhile() -> None:
        (job_id,) = rq.queue().started_job_registry.get_job_ids()
        rq.redis.rpush(rq.queue().intermediate_queue_key, job_id)
        seen.extend(sample.in_flight_jobs for sample in watch.poll_once().samples)
        rq.redis.delete(rq.queue().intermediate_queue_key)

    while_running.append(poll_meanwhile)
    rq.run()
    assert seen == [1]


@pytest.mark.parametrize("always_restarts", [False, True])
def test_a_stuck_job_that_failed_before_the_first_poll_is_no_news(rq: Rq, always_restarts: bool) -> None:
    job = enqueue_long_ago(rq)
    take_and_die(rq)
    clean_up(rq, job)
    watch = Watch(rq.url, always_restarts=always_restarts)
    for _ in range(2):
        watch.poll_once(later_s=1.0)  # the registry has whole seconds
    assert watch.reported() == []


def test_a_stuck_job_that_rq_retries_is_a_retried_attempt(rq: Rq, watch: Watch) -> None:
    watch.poll_once()
    job = enqueue_long_ago(rq, Retry(max=1))
    watch.poll_once()
    take_and_die(rq)
    watch.poll_once()
    clean_up(rq, job)
    watch.poll_once()
    watch.poll_once()
    assert watch.reported() == [ENQUEUED, FAILED, RETRIED, ENQUEUED]
    assert watch.of(FAILED).started_at_s is None
    assert [event.attempt for event in watch.events if event.kind is ENQUEUED] == [None, 2]


@contextmanager
def rq_worker(rq: Rq) -> Iterator[subprocess.Popen[bytes]]:
    program = str(Path(sys.executable).with_name("rq"))
    worker = subprocess.Popen([program, "worker", "--quiet", "--url", rq.url, "mail"], start_new_session=True)
    try:
        yield worker
    finally:
        kill_with_horse(worker)


def kill_with_horse(worker: subprocess.Popen[bytes]) -> None:
    """The worker and the process that it forked for the job, which is in a process group of its own."""
    children = Path(f"/proc/{worker.pid}/task/{worker.pid}/children")
    horses = [int(pid) for pid in children.read_text().split()] if worker.poll() is None else []
    for pid in [*([worker.pid] if worker.poll() is None else []), *horses]:
        os.kill(pid, signal.SIGKILL)
    worker.wait()


def test_a_job_whose_worker_was_killed_has_no_service_time(rq: Rq, watch: Watch) -> None:
    """Field D5: RQ gives it up minutes later, and until then it would seem to have run."""
    watch.poll_once()
    job = rq.queue().enqueue(time.sleep, 600)
    with rq_worker(rq) as worker:
        ends_s = time.monotonic() + 60.0
        while STARTED not in watch.reported() and time.monotonic() < ends_s:
            watch.poll_once()
        kill_with_horse(worker)
    rq.queue().started_job_registry.cleanup(timestamp=time.time() + CLEANED_UP_AFTER_S + 600.0)
    assert rq.job(job.id).is_failed
    watch.poll_once(later_s=CLEANED_UP_AFTER_S)
    assert watch.reported() == [ENQUEUED, STARTED, FAILED]
    assert watch.of(FAILED).started_at_s is None
