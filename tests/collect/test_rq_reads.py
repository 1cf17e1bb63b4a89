"""What a poll costs the broker, what it may touch there, and what it makes of things that are not as they should be."""

import os
import socket
import time
from pathlib import Path

import pytest
import redis
from rq import Retry

from collect.rq_jobs import Rq, Watch, fail, while_running, work
from headway.collect.rq import queue_commands
from headway.collect.rq import rq_source as module
from headway.collect.source import Reading
from headway.errors import Unavailable
from headway.scaling.model import EventKind, QueueSample, Redelivery, Suspension, WorkerActivity

READING = {
    *("SMEMBERS", "LLEN", "LRANGE", "ZRANGE", "ZCARD", "ZCOUNT", "ZRANGEBYSCORE", "ZRANDMEMBER", "ZSCORE"),
    *("HMGET", "EXISTS"),
    *("CLIENT", "SELECT"),  # what redis-py says when it connects
}


def commands(rq: Rq, watch: Watch) -> list[list[str]]:
    """The commands of one poll, as the broker saw them."""
    with redis.Redis.from_url(rq.url, decode_responses=True).monitor() as monitor:
        watch.poll_once()
        rq.redis.ping()
        seen = []
        while (command := monitor.next_command()["command"].split(" "))[0] != "PING":
            seen.append([command[0].upper(), *command[1:]])
    return seen


def entered(rq: Rq, jobs: int, *, queue: str = "mail", age_s: float = 0.0) -> None:
    """As many jobs in the queue as RQ itself would take long to write."""
    at = time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime(time.time() - age_s))
    first = rq.redis.llen(f"rq:queue:{queue}")
    with rq.redis.pipeline() as pipe:
        pipe.sadd("rq:queues", f"rq:queue:{queue}")
        for number in range(first, first + jobs):
            pipe.hset(f"rq:job:{queue}-{number}", mapping={"status": "queued", "enqueued_at": at, "data": "x"})
            pipe.rpush(f"rq:queue:{queue}", f"{queue}-{number}")
        pipe.execute()


def waiting(reading: Reading) -> dict[str, int]:
    """Queue -> jobs that wait, of all that were sampled."""
    return {sample.queue: sample.waiting_jobs for sample in reading.samples}


def test_nothing_is_written_and_no_payload_is_read(rq: Rq, watch: Watch) -> None:
    """In every state of a job: waiting, running, finished, failed, retried, late."""
    seen = []
    while_running.append(lambda: seen.extend(commands(rq, watch)))
    rq.queue().enqueue(work, b"secret")
    rq.queue().enqueue(fail)
    seen += commands(rq, watch)
    rq.run()
    seen += commands(rq, watch)
    assert watch.reported().count(EventKind.FINISHED) == watch.reported().count(EventKind.FAILED) == 1
    assert {command[0] for command in seen} <= READING
    read = {(key.split(":")[1], *fields) for name, key, *fields in (each for each in seen if each[0] == "HMGET")}
    assert read == {
        (
            *("job", "status", "created_at", "enqueued_at", "started_at", "ended_at"),
            *("retries_left", "number_of_retries", "repeats_left"),
        ),
        (
            *("worker", "state", "pid", "hostname", "current_job", "queues", "birth"),
            *("successful_job_count", "failed_job_count"),
        ),
    }


def test_a_poll_is_few_round_trips_however_many_queues_there_are(
    rq: Rq, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(30):
        entered(rq, 3, queue=f"queue-{number}")
    watch.poll_once()
    entered(rq, 3, queue="queue-7")
    trips = []
    send = redis.UnixDomainSocketConnection.send_packed_command
    monkeypatch.setattr(
        redis.UnixDomainSocketConnection,
        "send_packed_command",
        lambda connection, packed, **more: trips.append(packed) or send(connection, packed, **more),
    )
    watch.poll_once()  # which may have had to connect
    trips.clear()
    assert len(watch.source.poll(time.time()).samples) == 30
    assert len(trips) == 2  # the keys, and of each queue the job that waits longest
    entered(rq, 3, queue="queue-8")
    trips.clear()
    assert len(watch.source.poll(time.time()).events) == 3
    assert len(trips) == 2


def test_a_queue_at_rest_costs_three_commands_and_no_others(rq: Rq, watch: Watch) -> None:
    """Whether anything of it is there, and what has ended: by both registries."""
    for number in range(40):
        entered(rq, 1, queue=f"queue-{number}")
        rq.redis.delete(f"rq:queue:queue-{number}", f"rq:job:queue-{number}-0")
    watch.poll_once()
    watch.poll_once()
    entered(rq, 1, queue="queue-7")
    of_queue = {}
    for name, *words in commands(rq, watch):
        queue = words[0].rpartition(":")[2] if words else ""
        if name != "ZRANDMEMBER":  # now and then, of some
            of_queue.setdefault(queue, []).append(name)
    assert of_queue["queue-8"] == of_queue["queue-39"] == ["EXISTS", "ZRANGEBYSCORE", "ZRANGEBYSCORE"]
    assert {"LLEN", "LRANGE", "ZRANGE", "ZCARD"} <= set(of_queue["queue-7"])


def test_a_job_that_is_enqueued_and_ends_between_two_polls_of_a_queue_at_rest_is_reported(rq: Rq, watch: Watch) -> None:
    entered(rq, 1)
    rq.redis.delete("rq:queue:mail", "rq:job:mail-0")
    for _ in range(2):
        watch.poll_once()
    rq.queue().enqueue(work)
    rq.run("mail")
    watch.poll_once()
    assert watch.reported() == [EventKind.ENQUEUED, EventKind.STARTED, EventKind.FINISHED]


def test_a_deep_queue_costs_no_more_than_what_is_new_in_it(rq: Rq, watch: Watch) -> None:
    entered(rq, 5_000)
    polls = [watch.poll_once()]
    while polls[-1].has_more:
        polls.append(watch.poll_once())
    assert len(watch.events) == 5_000
    assert max(len(poll_once.events) for poll_once in polls) <= module.RECORDS_MAX
    entered(rq, 10)
    rq.redis.ltrim("rq:queue:mail", 2_500, -1)  # taken, by workers that left no trace
    for _ in range(3):
        watch.poll_once()
    seen = commands(rq, watch)
    assert sum(command[0] == "HMGET" for command in seen) < 20
    assert len(watch.events) == 5_010


def test_of_a_deep_queue_only_the_newest_entries_are_reported_at_the_beginning(rq: Rq, valkey_url: str) -> None:
    entered(rq, 3_000)
    watch = Watch(valkey_url)
    while watch.poll_once().has_more:
        pass
    assert len(watch.events) == 2_000
    assert {event.job_id for event in watch.events} == {f"mail-{number}" for number in range(1_000, 3_000)}


def test_jobs_before_those_that_a_server_lost_are_not_reported_again(rq: Rq, watch: Watch) -> None:
    """A replica became master before it had the last jobs: more wait than are remembered one by one."""
    entered(rq, 2_400)
    reported = 0
    while reported < len(watch.poll_once().events) + reported:
        reported = len(watch.events)
    assert reported == 2_400
    rq.redis.ltrim("rq:queue:mail", 0, -21)
    last = rq.queue().enqueue(work)
    watch.poll_once()
    watch.poll_once()
    assert [event.job_id for event in watch.events[2_400:]] == [last.id]


def test_what_is_too_old_for_the_stream_is_not_reported(rq: Rq, watch: Watch) -> None:
    began_s = time.time() // 1  # entered to the second
    entered(rq, 2, age_s=700.0)
    (sample,) = watch.poll_once().samples
    assert watch.events == []
    assert 700.0 <= sample.oldest_age_s <= 700.0 + time.time() - began_s
    entered(rq, 1)
    watch.poll_once()
    assert watch.reported() == [EventKind.ENQUEUED]


def test_the_oldest_age_survives_jobs_that_cut_in_line(rq: Rq, watch: Watch) -> None:
    began_s = time.time() // 1  # entered to the second
    entered(rq, 1, age_s=100.0)
    for _ in range(queue_commands.HEAD_JOBS + 1):
        rq.queue().enqueue(work, at_front=True)
    (sample,) = watch.poll_once().samples
    assert 100.0 <= sample.oldest_age_s <= 100.0 + time.time() - began_s


@pytest.mark.parametrize("jobs", [1, 2, 5, 8])
def test_the_oldest_age_is_of_no_time_before_a_job_ran_and_came_back(rq: Rq, watch: Watch, jobs: int) -> None:
    for _ in range(jobs):
        job = rq.queue().enqueue(fail, retry=Retry(max=1))
        rq.redis.hset(job.key, "enqueued_at", "2026-01-01T00:00:00.000000Z")
    watch.poll_once()
    rq.run(jobs=jobs)
    (sample,) = watch.poll_once().samples
    entered_s = [rq.job(job_id).enqueued_at.timestamp() for job_id in rq.queue().get_job_ids()]
    assert len(entered_s) == jobs
    assert sample.oldest_age_s == pytest.approx(watch.at_s - min(entered_s), abs=1e-3)


def test_of_a_queue_that_waits_one_record_is_read_however_long_it_is(rq: Rq, watch: Watch) -> None:
    for jobs in (1, 2, 1_000):
        entered(rq, jobs)
        watch.poll_once()
        assert [command[0] for command in commands(rq, watch)].count("HMGET") == 1
    assert not watch.poll_once().has_more


def test_a_wait_of_unknown_age_is_unknown(rq: Rq, watch: Watch) -> None:
    entered(rq, 1)
    rq.redis.delete("rq:job:mail-0")
    (sample,) = watch.poll_once().samples
    assert (sample.waiting_jobs, sample.oldest_age_s) == (1, None)
    assert watch.events == []


def test_workers_are_reported_by_host_and_pid_with_what_they_do(rq: Rq, watch: Watch) -> None:
    job = rq.queue().enqueue(work)
    seen, started_at = [], []
    while_running.append(lambda: started_at.append(rq.job(job.id).started_at))
    while_running.append(lambda: seen.append(watch.poll_once().activities))
    rq.run()
    ((activity,),) = seen
    assert activity == WorkerActivity(
        host=socket.gethostname(),
        pid=os.getpid(),
        is_busy=True,
        busy_since_s=started_at[0].timestamp(),
        ended_jobs=0,
        busy_queue="redis/mail",
    )
    assert watch.poll_once().activities == ()
    rq.redis.sadd("rq:workers", "rq:worker:gone")  # died without a goodbye: its key has expired
    rq.redis.sadd("rq:workers", "rq:worker:idle")
    rq.redis.hset("rq:worker:idle", mapping={"state": "idle", "pid": "7", "hostname": "b"})
    assert watch.poll_once().activities == (WorkerActivity(host="b", pid=7, is_busy=False, ended_jobs=0),)
    rq.redis.hset("rq:worker:idle", mapping={"successful_job_count": "4", "failed_job_count": "1"})
    assert watch.poll_once().activities == (WorkerActivity(host="b", pid=7, is_busy=False, ended_jobs=5),)


@pytest.mark.parametrize("first", ["old", "new"])
def test_a_killed_workers_record_says_nothing_of_the_worker_that_has_its_process_id(
    rq: Rq, watch: Watch, first: str
) -> None:
    """A container that is started again has its name, and the same process ids; RQ keeps records for minutes."""
    records = {
        "old": {"state": "idle", "birth": "2026-11-29T10:00:00.000001Z", "successful_job_count": "9"},
        "new": {"state": "busy", "birth": "2026-11-29T10:05:00.000001Z"},
    }
    for name, about in (("a", records[first]), ("b", records["new" if first == "old" else "old"])):
        rq.redis.sadd("rq:workers", f"rq:worker:{name}")
        rq.redis.hset(f"rq:worker:{name}", mapping={"pid": "7", "hostname": "pod", **about})
    assert watch.poll_once().activities == (WorkerActivity(host="pod", pid=7, is_busy=True, ended_jobs=0),)


@pytest.mark.parametrize("field", ["pid", "successful_job_count"])
@pytest.mark.parametrize("digits", [30, 5_000])
def test_a_number_that_no_number_type_takes_hides_no_queue(rq: Rq, watch: Watch, field: str, digits: int) -> None:
    """Of more than 4,300 digits Python makes no number: one such worker ended each poll of its broker."""
    entered(rq, 1)
    rq.redis.sadd("rq:workers", "rq:worker:odd")
    worker = {"state": "idle", "pid": "7", "hostname": "b", "failed_job_count": "1", field: "9" * digits}
    rq.redis.hset("rq:worker:odd", mapping=worker)
    reading = watch.poll_once()
    assert [sample.waiting_jobs for sample in reading.samples] == [1]
    assert [each.ended_jobs for each in reading.activities] == [] if field == "pid" else [1]


def test_one_queue_that_cannot_be_read_does_not_hide_the_others(
    rq: Rq, watch: Watch, caplog: pytest.LogCaptureFixture
) -> None:
    entered(rq, 1, queue="bad")
    entered(rq, 1, queue="good")
    rq.redis.delete("rq:queue:bad")
    rq.redis.set("rq:queue:bad", "no list")
    for _ in range(2):
        assert [sample.queue for sample in watch.poll_once().samples] == ["redis/good"]
    assert "queue unreadable queue=redis/bad: WRONGTYPE" in caplog.text


def test_queues_that_a_flush_took_are_known_to_be_empty_and_stay_so(rq: Rq, watch: Watch) -> None:
    """The broker answers, and they are not there: that is no silence, in which nothing would be known."""
    entered(rq, 3)
    entered(rq, 1, queue="news")
    watch.poll_once()
    rq.redis.flushall()
    for _ in range(3):
        assert {sample.queue: sample for sample in watch.poll_once().samples} == {
            name: QueueSample(
                queue=name,
                at_s=watch.at_s,
                waiting_jobs=0,
                redelivery=Redelivery.CLEAN_UP,
                in_flight_jobs=0,
                delayed_jobs=0,
                oldest_age_s=0.0,
                listed_workers=0,
                suspension=Suspension.NONE,
            )
            for name in ("redis/mail", "redis/news")
        }
    assert watch.reported() == [EventKind.ENQUEUED] * 4


def test_one_queue_that_was_deleted_is_empty_beside_the_others(rq: Rq, watch: Watch) -> None:
    entered(rq, 2)
    entered(rq, 1, queue="news")
    watch.poll_once()
    rq.queue().delete(delete_jobs=True)
    for _ in range(2):
        assert waiting(watch.poll_once()) == {"redis/mail": 0, "redis/news": 1}
    entered(rq, 1)  # somebody uses it again
    assert waiting(watch.poll_once()) == {"redis/mail": 1, "redis/news": 1}
    assert watch.reported() == [EventKind.ENQUEUED] * 4


def test_a_deleted_queue_whose_job_still_runs_is_not_empty_before_its_end(rq: Rq, watch: Watch) -> None:
    rq.queue().enqueue(work)
    watch.poll_once()
    seen = []
    while_running.append(lambda: rq.redis.srem("rq:queues", "rq:queue:mail"))
    while_running.append(lambda: seen.append([sample.in_flight_jobs for sample in watch.poll_once().samples]))
    rq.run()
    assert seen == [[1]]
    assert waiting(watch.poll_once()) == {"redis/mail": 0}
    assert watch.reported() == [EventKind.ENQUEUED, EventKind.STARTED, EventKind.FINISHED]


def test_while_the_broker_is_away_nothing_is_known_to_be_empty(rq: Rq, watch: Watch) -> None:
    entered(rq, 1)
    watch.poll_once()
    rq.redis.flushall()
    watch.poll_once()
    watch.move(rq.url.replace("valkey.sock", "nobody.sock"))
    with pytest.raises(Unavailable):
        watch.poll_once()
    watch.move(rq.url)
    assert waiting(watch.poll_once()) == {"redis/mail": 0}


def test_of_queues_that_come_and_go_without_end_the_last_are_remembered(
    rq: Rq, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "GONE_MAX", 2)
    for name in ("a", "b", "c"):
        entered(rq, 1, queue=name)
        watch.poll_once()
        rq.redis.flushall()
        watch.poll_once()
    assert waiting(watch.poll_once()) == {"redis/b": 0, "redis/c": 0}


def test_ids_and_names_that_are_no_text_do_not_stop_anything(rq: Rq, watch: Watch) -> None:
    rq.redis.sadd("rq:queues", b"rq:queue:\xff")
    rq.redis.hset(b"rq:job:\xfe", mapping={"status": "queued", "enqueued_at": "2999-01-01T00:00:00.000000Z"})
    rq.redis.hset("rq:job:", mapping={"status": "queued", "enqueued_at": "2999-01-01T00:00:00.000000Z"})
    rq.redis.rpush(b"rq:queue:\xff", b"\xfe", "")
    (sample,) = watch.poll_once().samples
    assert (sample.queue, sample.waiting_jobs, sample.oldest_age_s) == ("redis/?", 2, 0.0)
    assert [(event.queue, event.job_id) for event in watch.events] == [("redis/?", "?")] * 2


def test_a_broker_that_is_away_is_no_news_of_its_queues(valkey_url: str) -> None:
    watch = Watch(valkey_url.replace("valkey.sock", "nobody.sock"))
    with pytest.raises(Unavailable, match=r"broker unix://.*nobody\.sock\?db=0 cannot be reached"):
        watch.poll_once()


def test_a_login_that_may_only_read_rqs_keys_is_enough(rq: Rq, caplog: pytest.LogCaptureFixture) -> None:
    lines = (Path(__file__).parents[2] / "docs" / "how-to" / "collect-rq.md").read_text().splitlines()
    (command,) = [line for line in lines if line.startswith("ACL SETUSER headway")]
    rq.redis.execute_command(*command.split())
    watch = Watch(rq.url.replace("?", "?username=headway&password=PASSWORD&"))
    watch.poll_once()
    while_running.append(watch.poll_once)
    rq.queue().enqueue(work)
    watch.poll_once()
    rq.run()
    watch.poll_once()
    assert watch.reported() == [EventKind.ENQUEUED, EventKind.STARTED, EventKind.FINISHED]
    assert caplog.records == []
    rq.redis.acl_deluser("headway")


def test_a_broker_that_refuses_a_command_says_nothing_of_its_jobs(
    rq: Rq, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A running job whose record may not be read has not finished."""
    rq.queue().enqueue(work)
    while_running.append(watch.poll_once)
    rq.run()
    rq.redis.acl_setuser("limited", enabled=True, nopass=True, keys=["*"], commands=["+@all", "-hmget"])
    limited = redis.Redis.from_url(rq.url, decode_responses=True, username="limited", password="any")
    monkeypatch.setattr(watch.source, "_client", limited)
    with pytest.raises(Unavailable, match=r"refuses a command .*permissions"):
        watch.source.poll(time.time())
    assert watch.reported() == [EventKind.ENQUEUED, EventKind.STARTED]
    rq.redis.acl_deluser("limited")


def test_the_workers_of_a_queue_are_those_that_registered_for_it(rq: Rq, watch: Watch) -> None:
    entered(rq, 1)
    entered(rq, 1, queue="news")
    for name, queues in (("a", "mail,news"), ("b", "mail"), ("c", "other")):
        rq.redis.sadd("rq:workers", f"rq:worker:{name}")
        rq.redis.hset(f"rq:worker:{name}", mapping={"state": "idle", "pid": "7", "hostname": name, "queues": queues})
    rq.redis.sadd("rq:workers", "rq:worker:gone")
    listed = {sample.queue: sample.listed_workers for sample in watch.poll_once().samples}
    assert listed == {"redis/mail": 2, "redis/news": 1}
