"""RQ's queues read from a real broker that the real RQ writes."""

import socket
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path

import pytest
from rq import Retry
from rq.job import Job, JobStatus
from rq.registry import StartedJobRegistry
from rq.repeat import Repeat

from collect.rq_jobs import ENQUEUED, FAILED, FINISHED, RETRIED, STARTED, Rq, Watch, fail, while_running, work
from headway.collect.rq.rq_source import RqSource
from headway.connections import Connection


def test_depths_and_the_oldest_age_are_those_of_rqs_own_api(rq: Rq, watch: Watch) -> None:
    queue = rq.queue()
    first = queue.enqueue(work)
    queue.enqueue(work)
    queue.enqueue_in(timedelta(hours=1), work)
    (sample,) = watch.poll_once().samples
    assert sample.queue == "redis/mail"
    assert sample.waiting_jobs == queue.count == 2
    assert sample.in_flight_jobs == queue.started_job_registry.count == 0
    assert sample.delayed_jobs == queue.scheduled_job_registry.count == 1
    assert sample.oldest_age_s == pytest.approx(sample.at_s - first.enqueued_at.timestamp(), abs=1e-3)
    seen = []
    while_running.append(lambda: seen.append((watch.poll_once().samples[0], queue.started_job_registry.count)))
    rq.run()
    assert [(sample.waiting_jobs, sample.in_flight_jobs, count) for sample, count in seen] == [(1, 1, 1), (0, 1, 1)]
    (sample,) = watch.poll_once().samples
    assert (sample.waiting_jobs, sample.in_flight_jobs, sample.oldest_age_s) == (0, 0, 0.0)


def test_when_scheduled_jobs_are_due_is_known(rq: Rq, watch: Watch) -> None:
    queue = rq.queue()
    for seconds in (3, 7, 8, 200, 90_000):
        queue.enqueue_in(timedelta(seconds=seconds), work)
    (sample,) = watch.poll_once().samples
    assert (sample.waiting_jobs, sample.delayed_jobs, sample.oldest_age_s) == (0, 5, 0.0)
    known = {each.within_s: each.jobs for each in sample.due}
    assert [known[within_s] for within_s in (5.0, 10.0, 180.0, 240.0, 3600.0)] == [1, 3, 3, 4, 4]


def test_what_is_due_and_was_not_moved_waits(rq: Rq, watch: Watch) -> None:
    """Without a worker that has RQ's scheduler nobody moves it: it is as late there as in the list."""
    queue = rq.queue()
    job = queue.enqueue_in(timedelta(seconds=3), work)
    queue.enqueue_in(timedelta(seconds=60), work)
    due_s = queue.scheduled_job_registry.get_scheduled_time(job).timestamp()
    (sample,) = watch.poll_once(later_s=20.0).samples
    assert (sample.waiting_jobs, sample.overdue_jobs, sample.delayed_jobs) == (1, 1, 1)
    assert sample.oldest_age_s == pytest.approx(watch.at_s - due_s)
    entered = queue.enqueue(work)
    (sample,) = watch.poll_once(later_s=20.0).samples
    assert (sample.waiting_jobs, sample.overdue_jobs) == (2, 1)
    assert sample.oldest_age_s == pytest.approx(watch.at_s - entered.enqueued_at.timestamp())  # before that one was due


def test_a_retry_and_a_repeat_with_an_interval_are_due_by_time(rq: Rq, watch: Watch) -> None:
    rq.queue().enqueue(fail, retry=Retry(max=1, interval=30))
    rq.queue().enqueue(work, repeat=Repeat(times=1, interval=100))
    rq.run()
    (sample,) = watch.poll_once().samples
    assert (sample.waiting_jobs, sample.delayed_jobs) == (0, 2)
    known = {each.within_s: each.jobs for each in sample.due}
    assert [known[within_s] for within_s in (20.0, 30.0, 90.0, 100.0)] == [0, 1, 1, 2]


def test_a_job_is_reported_step_by_step_at_rqs_own_times(rq: Rq, watch: Watch) -> None:
    job = rq.queue().enqueue(work)
    watch.poll_once()
    assert watch.reported() == [ENQUEUED]
    started_at = []
    while_running.extend([lambda: started_at.append(rq.job(job.id).started_at), watch.poll_once])  # RQ stamps it again
    rq.run()
    assert watch.reported() == [ENQUEUED, STARTED]
    watch.poll_once()
    watch.poll_once()
    assert watch.reported() == [ENQUEUED, STARTED, FINISHED]
    done = rq.job(job.id)
    assert {event.job_id for event in watch.events} == {job.id}
    assert watch.of(ENQUEUED).at_s == done.enqueued_at.timestamp()
    assert watch.of(STARTED).enqueued_at_s == done.enqueued_at.timestamp()
    assert [watch.of(STARTED).at_s] == [at.timestamp() for at in started_at]
    assert watch.of(FINISHED).at_s == done.ended_at.timestamp()
    assert watch.of(FINISHED).started_at_s == done.started_at.timestamp()
    assert watch.of(FINISHED).enqueued_at_s == done.enqueued_at.timestamp()


def test_delayed_jobs_are_unknown_while_rq_scheduler_has_some(rq: Rq, watch: Watch) -> None:
    """The package keeps jobs of all queues in one set of its own, which is not read: none seemed to be delayed."""
    queue, in_an_hour = rq.queue(), timedelta(hours=1)
    rq.queue("news").enqueue(work)
    rq.run("news")
    queue.enqueue_in(in_an_hour, work)
    assert {each.delayed_jobs for each in watch.poll_once().samples} == {0, 1}
    job = Job.create(work, connection=rq.redis, origin="mail")
    job.save()
    rq.redis.zadd("rq:scheduler:scheduled_jobs", {job.id: time.time() + 3600.0})
    assert {each.delayed_jobs for each in watch.poll_once().samples} == {None}
    rq.redis.zrem("rq:scheduler:scheduled_jobs", job.id)
    assert {each.delayed_jobs for each in watch.poll_once().samples} == {0, 1}


@pytest.mark.parametrize("kept_s", [None, 500, 86_400])
def test_jobs_that_come_and_go_between_two_polls_are_reported_whole(rq: Rq, watch: Watch, kept_s: int | None) -> None:
    """However long RQ keeps them: the place of the new ones in the registry is learnt."""
    for _ in range(3):
        rq.queue().enqueue(work, result_ttl=kept_s)
        rq.queue("news").enqueue(fail, failure_ttl=kept_s)  # a queue that was never seen before
        rq.run("mail", "news")
        for _ in range(21):  # the place is found by lot each so many looks
            watch.poll_once()
    assert watch.reported().count(FINISHED) == watch.reported().count(FAILED) == 3
    assert watch.reported().count(ENQUEUED) == watch.reported().count(STARTED) == 6
    assert {event.queue for event in watch.events if event.kind is FAILED} == {"redis/news"}


def test_a_job_that_is_kept_for_ever_is_reported_if_it_was_seen_before_its_end(rq: Rq, watch: Watch) -> None:
    rq.queue().enqueue(work, result_ttl=-1)
    rq.queue().enqueue(fail, failure_ttl=-1)
    watch.poll_once()
    rq.run()
    for _ in range(3):
        watch.poll_once()
    assert watch.reported() == [ENQUEUED, ENQUEUED, STARTED, FINISHED, STARTED, FAILED]


def test_jobs_of_rqs_own_worker_process_are_reported_while_they_run(rq: Rq, watch: Watch) -> None:
    """`rq worker`, which forks a process for each job."""
    jobs = [rq.queue().enqueue(time.sleep, 0.3) for _ in range(3)]
    program = str(Path(sys.executable).with_name("rq"))
    worker = subprocess.Popen([program, "worker", "--burst", "--quiet", "--url", rq.url, "mail"])
    busy = set()
    while worker.poll() is None:
        busy.update((each.host, each.pid) for each in watch.poll_once().activities if each.is_busy)
    watch.poll_once()
    assert worker.returncode == 0
    assert busy == {(socket.gethostname(), worker.pid)}
    for job in jobs:
        assert watch.reported(job.id) == [ENQUEUED, STARTED, FINISHED]
        (finished,) = [event for event in watch.events if event.job_id == job.id and event.kind is FINISHED]
        assert 0.299 <= finished.at_s - finished.started_at_s < 60.0


def test_what_ended_before_the_first_poll_is_not_reported_but_what_waits_is(rq: Rq, valkey_url: str) -> None:
    rq.queue().enqueue(work)
    rq.run()
    waiting = rq.queue().enqueue(work)
    watch = Watch(valkey_url)
    watch.poll_once()
    watch.poll_once()
    assert [(event.kind, event.job_id) for event in watch.events] == [(ENQUEUED, waiting.id)]


def test_a_job_that_fails_is_reported_with_its_times(rq: Rq, watch: Watch) -> None:
    job = rq.queue().enqueue(fail)
    rq.run()
    watch.poll_once()
    assert watch.reported() == [ENQUEUED, STARTED, FAILED]
    assert watch.of(FAILED).at_s == rq.job(job.id).ended_at.timestamp()


def test_a_retry_is_a_failure_and_a_new_entry(rq: Rq, watch: Watch) -> None:
    job = rq.queue().enqueue(fail, retry=Retry(max=1))
    while_running.append(watch.poll_once)
    rq.run()
    watch.poll_once()
    assert watch.reported() == [ENQUEUED, STARTED, FAILED, RETRIED, ENQUEUED, STARTED, FAILED]
    assert attempts(watch) == [None, 2]
    first, second = [event for event in watch.events if event.kind is FAILED]
    assert first.at_s < second.started_at_s < second.at_s
    assert second.at_s == rq.job(job.id).ended_at.timestamp()


def test_a_retry_that_has_to_wait_enters_when_it_is_due(rq: Rq, watch: Watch) -> None:
    job = rq.queue().enqueue(fail, retry=Retry(max=1, interval=60))
    while_running.append(watch.poll_once)
    rq.run()
    (sample,) = watch.poll_once().samples
    assert sample.delayed_jobs == 1
    assert watch.reported() == [ENQUEUED, STARTED, FAILED, RETRIED]
    assert watch.of(RETRIED).at_s == watch.of(FAILED).at_s
    again = rq.job(job.id)
    rq.queue().scheduled_job_registry.remove(again)
    rq.queue()._enqueue_job(again)  # what RQ's scheduler does
    rq.run()
    watch.poll_once(later_s=300.0)  # long after what ended is remembered one by one
    assert watch.reported()[4:] == [ENQUEUED, STARTED, FAILED]
    assert attempts(watch) == [None, 2]


def test_retries_that_wait_are_reported_as_such_however_late_they_come(rq: Rq, watch: Watch) -> None:
    """What ended well is forgotten within a minute; what waits for its retry is not."""
    jobs = [rq.queue().enqueue(fail, retry=Retry(max=2, interval=[60, 60])) for _ in range(3)]
    watch.poll_once()
    for later_s in (0.0, 100.0, 200.0):
        rq.run()
        watch.poll_once(later_s=later_s)
        watch.poll_once(later_s=later_s + 90.0)
        for job in jobs:
            again = rq.job(job.id)
            if again.get_status() == "scheduled":
                rq.queue().scheduled_job_registry.remove(again)
                rq.queue()._enqueue_job(again)
        watch.poll_once(later_s=later_s + 95.0)
    assert sorted(attempts(watch), key=str) == [2, 2, 2, 3, 3, 3, None, None, None]


def test_of_a_job_that_fails_and_comes_back_between_two_polls_one_entry_is_fresh(rq: Rq, watch: Watch) -> None:
    rq.queue().enqueue(fail, retry=Retry(max=3))
    rq.run(jobs=2)  # it waits for its third attempt, and nobody has looked
    watch.poll_once()
    assert attempts(watch) == [None]
    rq.run()
    watch.poll_once()
    assert attempts(watch)[0] is None
    assert all(attempt and attempt > 1 for attempt in attempts(watch)[1:])


def test_a_job_that_asks_to_be_tried_again_is_counted(rq: Rq, watch: Watch) -> None:
    rq.queue().enqueue(work, Retry(max=2))
    while_running.append(watch.poll_once)
    rq.run()
    watch.poll_once()
    assert attempts(watch) == [None, 2, 3]


def test_a_repeated_job_finishes_each_time(rq: Rq, watch: Watch) -> None:
    rq.queue().enqueue(work, repeat=Repeat(times=2, interval=0))
    while_running.append(watch.poll_once)
    rq.run()
    watch.poll_once()
    assert watch.reported() == [ENQUEUED, STARTED, FINISHED] * 3
    assert attempts(watch) == [None] * 3


def attempts(watch: Watch) -> list[int | None]:
    """Of the entries that were reported."""
    return [event.attempt for event in watch.events if event.kind is ENQUEUED]


def test_a_failed_job_put_back_by_hand_is_a_new_entry(rq: Rq, watch: Watch) -> None:
    job = rq.queue().enqueue(fail)
    rq.run()
    watch.poll_once()
    rq.queue().failed_job_registry.requeue(job)
    watch.poll_once()
    rq.run()
    watch.poll_once()
    assert watch.reported() == [ENQUEUED, STARTED, FAILED] * 2
    assert attempts(watch) == [None, 2]


def test_a_failed_job_put_back_by_hand_before_it_is_seen_has_failed(rq: Rq, watch: Watch) -> None:
    """RQ takes start and end out of the record then, as a record has that is new."""
    job = rq.queue().enqueue(fail)
    while_running.append(watch.poll_once)
    rq.run()
    rq.queue().failed_job_registry.requeue(job)
    watch.poll_once()
    assert watch.reported() == [ENQUEUED, STARTED, FAILED, RETRIED, ENQUEUED]


def test_a_failed_job_whose_id_is_put_again_before_it_is_seen_has_failed(rq: Rq, watch: Watch) -> None:
    job = rq.queue().enqueue(fail)
    while_running.append(watch.poll_once)
    rq.run()
    rq.queue().enqueue(work, job_id=job.id)
    watch.poll_once()
    assert watch.reported() == [ENQUEUED, STARTED, FAILED, RETRIED, ENQUEUED]


def test_an_id_used_again_at_once_is_a_new_job(rq: Rq, watch: Watch) -> None:
    for _ in range(3):
        rq.queue().enqueue(work, job_id="nightly")
        watch.poll_once()
        rq.run()
        watch.poll_once()
    assert watch.reported("nightly") == [ENQUEUED, STARTED, FINISHED] * 3


def test_an_id_that_waits_twice_runs_twice_for_a_collector_that_was_restarted(rq: Rq, watch: Watch) -> None:
    for _ in range(2):
        rq.queue().enqueue(work, job_id="again")
    watch.poll_once()
    rq.run(jobs=1)
    watch.poll_once()
    watch.restart()
    while_running.append(watch.poll_once)
    rq.run(jobs=1)
    watch.poll_once()
    assert watch.reported() == [ENQUEUED, STARTED, FINISHED, STARTED, FINISHED]


def test_a_running_job_that_leaves_no_record_has_finished(rq: Rq, watch: Watch) -> None:
    rq.queue().enqueue(work, result_ttl=0)
    while_running.append(watch.poll_once)
    rq.run()
    noticed_s = watch.poll_once().at_s
    watch.poll_once()
    assert watch.reported() == [ENQUEUED, STARTED, FINISHED]
    assert watch.of(FINISHED).at_s == noticed_s


def test_of_a_waiting_job_that_leaves_no_record_nothing_more_is_known(rq: Rq, watch: Watch) -> None:
    rq.queue().enqueue(work, result_ttl=0)
    rq.queue().enqueue(work)
    watch.poll_once()
    rq.run(jobs=1)
    rq.queue().empty()  # deletes the other
    watch.poll_once()
    assert watch.reported() == [ENQUEUED, ENQUEUED]


def test_jobs_that_leave_no_record_have_run_where_their_worker_counts_them(rq: Rq, watch: Watch) -> None:
    """A hundred short jobs with `result_ttl=0` that a poll saw wait were taken for lost, and none for started."""
    for queue in ("mail", "news"):
        for number in range(3):
            rq.queue(queue).enqueue(work, job_id=f"{queue}-{number}", result_ttl=0)
    with rq.worker("mail") as run:
        watch.poll_once()
        run(2)
        rq.queue().enqueue(work, job_id="kept")
        rq.queue().remove("mail-2")
        run(1)
        rq.job("mail-2").delete()
        rq.queue("news").empty()
        watch.poll_once()
    for job_id in ("mail-0", "mail-1"):
        assert watch.reported(job_id) == [ENQUEUED, STARTED, FINISHED]
    assert watch.reported("kept") == [ENQUEUED, STARTED, FINISHED]
    assert watch.reported("mail-2") == watch.reported("news-0") == [ENQUEUED]
    assert {each.at_s for each in watch.events if each.job_id == "mail-0" and each.kind is not ENQUEUED} == {watch.at_s}
    assert {each.started_at_s for each in watch.events if each.job_id == "mail-0"} == {None}


def test_ends_of_jobs_that_no_poll_has_seen_explain_no_later_deletion(rq: Rq, watch: Watch) -> None:
    with rq.worker("mail") as run:
        watch.poll_once()
        rq.queue().enqueue(work, result_ttl=0)
        run(1)
        watch.poll_once()
        rq.queue().enqueue(work, job_id="deleted")
        watch.poll_once()
        rq.queue().empty()
        watch.poll_once()
    assert watch.reported("deleted") == [ENQUEUED]


def test_a_deleted_queue_is_empty_for_a_day_and_one_that_is_made_again_counts(rq: Rq, watch: Watch) -> None:
    def waiting(later_s: float) -> dict[str, int]:
        return {each.queue: each.waiting_jobs for each in watch.poll_once(later_s=later_s).samples}

    rq.queue().enqueue(work)
    assert waiting(0) == {"redis/mail": 1}
    rq.queue().delete(delete_jobs=True)
    assert waiting(1) == {"redis/mail": 0}
    watch.restart()
    rq.queue().enqueue(work)
    assert waiting(2) == {"redis/mail": 1}
    rq.queue().delete(delete_jobs=True)
    assert waiting(3) == waiting(86_000) == {"redis/mail": 0}
    watch.restart()
    assert waiting(86_500) == {}


def test_a_deleted_queue_of_an_earlier_cursor_is_empty_for_a_day_of_its_last_poll(rq: Rq, watch: Watch) -> None:
    earlier = {"looked_at_s": 1_000.0, "queues": {}, "gone": ["mail", "news"]}
    source = RqSource(Connection(name="redis", url=rq.url), earlier)
    assert len(source.poll(87_000.0).samples) == 2
    assert source.poll(87_500.0).samples == ()
    source.close()
    named = RqSource(Connection(name="redis", url=rq.url, queues=("mail", "n*")), earlier)
    assert [each.queue for each in named.poll(87_500.0).samples] == ["redis/mail"]  # what somebody named is waited for
    named.close()


def test_a_cancelled_job_ends_without_a_word(rq: Rq, watch: Watch) -> None:
    job = rq.queue().enqueue(work)
    watch.poll_once()
    job.cancel()
    (sample,) = watch.poll_once().samples
    assert sample.waiting_jobs == 0
    assert watch.reported() == [ENQUEUED]
    rq.queue().enqueue_job(rq.job(job.id))
    rq.run()
    watch.poll_once()
    assert watch.reported() == [ENQUEUED, ENQUEUED, STARTED, FINISHED]


def test_a_job_that_was_put_twice_and_cancelled_once_runs_once(rq: Rq, watch: Watch) -> None:
    """RQ takes one of its two places in line, and writes that the job is cancelled; a worker runs the other."""
    job = rq.queue().enqueue(work)
    watch.poll_once()
    rq.queue().enqueue(work, job_id=job.id)
    rq.job(job.id).cancel()
    (sample,) = watch.poll_once().samples
    assert sample.waiting_jobs == 1
    rq.run()
    watch.poll_once()
    watch.poll_once()
    assert watch.reported() == [ENQUEUED, STARTED, FINISHED]


def test_a_job_given_up_because_its_worker_died_has_failed_when_that_is_seen(rq: Rq, watch: Watch) -> None:
    registry, _ = die_at_work(rq, watch)
    registry.cleanup(timestamp=time.time() + 10_000)
    noticed_s = watch.poll_once().at_s
    watch.poll_once()
    assert watch.reported() == [ENQUEUED, STARTED, FAILED]
    assert watch.of(FAILED).at_s == noticed_s
    assert watch.of(FAILED).started_at_s is None, "RQ's clean-up comes minutes after the end of the job"


def test_a_retried_job_whose_worker_died_has_no_service_time(rq: Rq, watch: Watch) -> None:
    """RQ's clean-up puts it into the queue again, minutes after its end."""
    registry, job_id = die_at_work(rq, watch)
    rq.redis.hset(f"rq:job:{job_id}", "retries_left", 1)
    registry.cleanup(timestamp=time.time() + 10_000)
    watch.poll_once()
    assert watch.reported() == [ENQUEUED, STARTED, FAILED, RETRIED, ENQUEUED]
    assert watch.of(FAILED).started_at_s is None


def die_at_work(rq: Rq, watch: Watch) -> tuple[StartedJobRegistry, str]:
    """A job is registered as started, without an end, as a killed worker leaves it. Returns the registry and its id."""
    job = rq.queue().enqueue(work)

    def worker_dies() -> None:
        watch.poll_once()
        raise SystemExit

    while_running.append(worker_dies)
    registry = rq.queue().started_job_registry
    member = {}
    while_running.insert(0, lambda: member.update(rq.redis.zrange(registry.key, 0, -1, withscores=True)))
    rq.run()
    rq.redis.zadd(registry.key, member)
    rq.redis.hset(f"rq:job:{job.id}", mapping={"status": JobStatus.STARTED, "ended_at": ""})
    rq.redis.zrem(rq.queue().failed_job_registry.key, job.id)
    (sample,) = watch.poll_once().samples
    assert sample.in_flight_jobs == 1
    assert watch.reported() == [ENQUEUED, STARTED]
    return registry, job.id
