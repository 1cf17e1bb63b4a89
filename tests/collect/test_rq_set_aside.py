"""Jobs of RQ that run, fail and wait for their next attempt between two polls: only their place in line has changed."""

import random
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

import pytest
from rq import Retry
from rq.job import Job, JobStatus
from rq.repeat import Repeat

from collect.rq_jobs import ENQUEUED, FAILED, FINISHED, RETRIED, STARTED, Rq, Watch, fail, work
from headway.collect import job_memory
from headway.collect.rq import rq_source, scheduled_jobs
from headway.scaling.model import EventKind

RETRY = Retry(max=3, interval=[5, 10, 15])


def move_due(rq: Rq, jobs: Iterable[Job]) -> None:
    """Put those of ``jobs`` that wait for their attempt into the queue, as RQ's scheduler does once they are due."""
    for job in jobs:
        again = rq.job(job.id)
        if again.get_status() == JobStatus.SCHEDULED:
            rq.queue().scheduled_job_registry.remove(again)
            rq.queue()._enqueue_job(again)


def run_again(rq: Rq, jobs: Iterable[Job]) -> None:
    move_due(rq, jobs)
    rq.run()


def poll_all(watch: Watch) -> None:
    """Poll until nothing more is known to be new."""
    polls = 1
    while watch.poll_once().has_more:
        polls += 1
        assert polls < 100, "there is always more"


def attempts(watch: Watch, job: Job) -> list[int | None]:
    return [each.attempt for each in watch.events if each.kind is ENQUEUED and each.job_id == job.id]


@pytest.mark.parametrize("always_restarts", [False, True])
@pytest.mark.parametrize("sees_it_wait", [True, False])
def test_each_attempt_of_a_job_that_fails_at_once_is_reported(
    rq: Rq, valkey_url: str, *, always_restarts: bool, sees_it_wait: bool
) -> None:
    watch = Watch(valkey_url, always_restarts=always_restarts)
    watch.poll_once()
    jobs = [rq.queue().enqueue(fail, retry=RETRY) for _ in range(4)]
    if sees_it_wait:
        watch.poll_once()
    times = {job.id: [] for job in jobs}
    for attempt in range(4):
        run_again(rq, jobs) if attempt else rq.run()
        for job in jobs:
            record = rq.job(job.id)
            times[job.id] += [record.enqueued_at, record.started_at, record.ended_at]
        watch.poll_once()
        watch.poll_once()
    for job in jobs:
        assert watch.reported(job.id) == [ENQUEUED, STARTED, FAILED, RETRIED] * 3 + [ENQUEUED, STARTED, FAILED]
        assert attempts(watch, job) == [None, 2, 3, 4]
        at_s = [each.at_s for each in watch.events if each.job_id == job.id and each.kind is not RETRIED]
        assert at_s == [each.timestamp() for each in times[job.id]]


def test_a_scheduled_job_that_fails_as_it_is_due_is_reported(rq: Rq, watch: Watch) -> None:
    job = rq.queue().enqueue_in(timedelta(seconds=30), fail, retry=RETRY)
    watch.poll_once()
    for _ in range(2):
        run_again(rq, [job])
        watch.poll_once()
    assert watch.reported() == [ENQUEUED, STARTED, FAILED, RETRIED] * 2
    assert attempts(watch, job) == [None, 2]


def test_each_repetition_of_a_short_job_is_reported(rq: Rq, watch: Watch) -> None:
    job = rq.queue().enqueue(work, repeat=Repeat(times=2, interval=30))
    rq.run()
    watch.poll_once()
    for _ in range(2):
        run_again(rq, [job])
        watch.poll_once()
    assert watch.reported() == [ENQUEUED, STARTED, FINISHED] * 3
    assert attempts(watch, job) == [None] * 3


def test_what_was_set_aside_before_the_first_poll_is_not_reported_but_its_retry_is(rq: Rq, valkey_url: str) -> None:
    job = rq.queue().enqueue(fail, retry=RETRY)
    rq.run()
    watch = Watch(valkey_url)
    watch.poll_once()
    assert watch.events == []
    run_again(rq, [job])
    watch.poll_once()
    assert watch.reported() == [ENQUEUED, STARTED, FAILED, RETRIED]
    assert attempts(watch, job) == [2]


def test_a_job_that_is_only_given_another_time_has_not_run(rq: Rq, watch: Watch) -> None:
    job = rq.queue().enqueue(fail, retry=RETRY)
    later = rq.queue().enqueue_in(timedelta(seconds=30), work)
    rq.run()
    watch.poll_once()
    for each in (job, later):
        rq.queue().scheduled_job_registry.schedule(rq.job(each.id), datetime.now(UTC) + timedelta(seconds=90))
    watch.poll_once()
    watch.poll_once()
    assert watch.reported() == [ENQUEUED, STARTED, FAILED, RETRIED]


def test_an_id_that_is_scheduled_anew_long_after_its_run_has_not_run_again(rq: Rq, watch: Watch) -> None:
    """RQ leaves the start and the end of the run before in the record."""
    rq.queue().enqueue(work, job_id="nightly")
    rq.run()
    watch.poll_once()
    watch.poll_once(later_s=200.0)
    rq.queue().enqueue_in(timedelta(seconds=30), work, job_id="nightly")
    watch.poll_once(later_s=201.0)
    assert watch.reported() == [ENQUEUED, STARTED, FINISHED]


@pytest.mark.parametrize("goes_far", [False, True])
def test_of_many_scheduled_jobs_those_that_are_due_first_are_compared(
    rq: Rq, watch: Watch, monkeypatch: pytest.MonkeyPatch, *, goes_far: bool
) -> None:
    """Where a job goes behind all that are compared, its place among them is empty."""
    monkeypatch.setattr(scheduled_jobs, "COMPARED_MAX", 2)
    job = rq.queue().enqueue(fail, retry=Retry(max=2, interval=[5, 5_000 if goes_far else 10]))
    watch.poll_once()
    rq.run()
    for _ in range(8):
        rq.queue().enqueue_in(timedelta(seconds=1_000), work)
    watch.poll_once()
    run_again(rq, [job])
    watch.poll_once()
    watch.poll_once()
    assert watch.reported(job.id) == [ENQUEUED, STARTED, FAILED, RETRIED] * 2


def test_a_record_that_finds_no_room_is_read_at_the_next_poll(
    rq: Rq, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rq_source, "RECORDS_MAX", 3)
    watch.poll_once()
    jobs = [rq.queue().enqueue(fail, retry=RETRY) for _ in range(7)]
    rq.run()
    poll_all(watch)
    for job in jobs:
        assert watch.reported(job.id) == [ENQUEUED, STARTED, FAILED, RETRIED]


def test_what_is_read_of_scheduled_jobs_is_bounded_over_all_queues() -> None:
    assert scheduled_jobs.compared_jobs(1) == scheduled_jobs.COMPARED_MAX
    assert scheduled_jobs.compared_jobs(100) * 100 <= scheduled_jobs.COMPARED_IN_ALL_MAX
    assert scheduled_jobs.compared_jobs(1_000_000) == 1


@pytest.mark.parametrize("is_tight", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_every_attempt_is_reported_once_whatever_comes_between(
    rq: Rq, valkey_url: str, monkeypatch: pytest.MonkeyPatch, seed: int, *, is_tight: bool
) -> None:
    """Jobs come, fail and are due by chance, at most one attempt of each between two polls; the collector restarts."""
    if is_tight:
        monkeypatch.setattr(rq_source, "RECORDS_MAX", 4)
        monkeypatch.setattr(job_memory, "ASIDE_KEPT", 2)
    chance, jobs, due = random.Random(seed), list[Job](), Counter[tuple[str, EventKind]]()
    watch = Watch(valkey_url)
    watch.poll_once()
    may_move = False
    for _ in range(60):
        match chance.choice(["enter", "enter", "move", "run", "look", "look", "restart"]):
            case "enter":
                jobs.append(rq.queue().enqueue(chance.choice([fail, fail, work]), retry=RETRY))
                due[jobs[-1].id, ENQUEUED] += 1
            case "move" if may_move:
                moved = [job for job in jobs if rq.job(job.id).is_scheduled and chance.random() < 0.6]
                move_due(rq, moved)
                due.update((job.id, ENQUEUED) for job in moved)
            case "run":
                ran = [rq.job(job_id) for job_id in rq.queue().get_job_ids()]
                rq.run()
                for job in ran:
                    status = job.get_status()
                    due[job.id, STARTED] += 1
                    due[job.id, FINISHED if status == JobStatus.FINISHED else FAILED] += 1
                    due[job.id, RETRIED] += status == JobStatus.SCHEDULED
                may_move = False
            case "look":
                poll_all(watch)
                may_move = True
            case "restart":
                watch.restart()
    poll_all(watch)
    assert Counter((each.job_id, each.kind) for each in watch.events) == +due
