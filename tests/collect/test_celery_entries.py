"""Which jobs entered between two polls of Celery's lists, with messages that the real Celery sends."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
import redis
from celery import Celery
from kombu import pools

from headway.collect.celery import queue_bindings
from headway.collect.celery.celery_source import CelerySource
from headway.collect.celery.lists import entered_jobs, list_turns
from headway.collect.celery.queue_bindings import SEPARATOR
from headway.connections import Connection
from headway.scaling.model import BrokerPoll, PolledQueue
from support.waiting import eventually

pytestmark = pytest.mark.e2e

FIRST_S = 1_000.0


class Lists:
    """An application that sends, a hand that takes as a worker does, and what a collector reads."""

    def __init__(self, url: str) -> None:
        self.redis = redis.Redis.from_url(url, decode_responses=True)
        self.app = Celery("shop", broker=f"redis+socket://{url.removeprefix('unix://')}?virtual_host=0")
        self.source = CelerySource(Connection(name="shop", url=url, library="celery"), None)
        self.at_s = FIRST_S

    def send(self, *names: str, queue: str = "mail", **options: Any) -> None:
        for name in names:
            self.app.send_task("work", (name,), queue=queue, task_id=name, **options)

    def take(self, jobs: int = 1, *, key: str = "mail") -> list[str]:
        return [self.redis.rpop(key) or "" for _ in range(jobs)]

    def put_back(self, text: str) -> None:
        """As kombu does."""
        message = json.loads(text)
        message["headers"]["redelivered"] = True
        message["properties"]["delivery_info"]["redelivered"] = True
        self.redis.rpush("mail", json.dumps(message))

    def poll(self) -> BrokerPoll:
        self.at_s += 0.5
        poll = self.source.poll(self.at_s).poll
        assert poll is not None
        assert poll.at_s == self.at_s <= poll.until_s < self.at_s + 5.0
        assert poll.connection == "shop"
        return poll

    def row(self, queue: str = "mail") -> PolledQueue | None:
        return next((row for row in self.poll().queues if row.queue == f"shop/{queue}"), None)

    def found(self) -> tuple[list[str], bool]:
        """The jobs that the next poll names, in their order, and whether each that waits was named by then."""
        row = self.row()
        assert row is not None
        return [job.job_id for job in row.entered], row.is_complete


@pytest.fixture
def lists(valkey_url: str) -> Iterator[Lists]:
    pools.reset()
    lists = Lists(valkey_url)
    lists.send("first")
    lists.take()
    lists.poll()
    yield lists
    lists.source.close()
    lists.app.close()


def test_each_job_is_named_by_the_first_poll_that_finds_it(lists: Lists) -> None:
    assert lists.row() is None, "of an empty queue nothing is said"
    lists.send("a", "b")
    assert sorted(lists.found()[0]) == ["a", "b"]
    assert lists.found() == ([], True)
    lists.send("c")
    assert lists.found() == (["c"], True)
    lists.take(2)
    assert lists.found() == ([], True)
    lists.take()
    assert lists.row() is None


def test_a_poll_says_which_one_came_before(lists: Lists) -> None:
    assert lists.poll().after_s == FIRST_S + 0.5
    other = CelerySource(Connection(name="shop", url=lists.source._connection.url, library="celery"), None)
    first = other.poll(50.0).poll
    assert first is not None
    assert first.after_s is None
    other.close()


def test_a_list_that_was_emptied_and_filled_between_polls_is_read_whole(lists: Lists) -> None:
    lists.send("a", "b")
    lists.poll()
    lists.take(2)
    lists.send("c", "d")
    assert (sorted(lists.found()[0]), lists.found()[1]) == (["c", "d"], True)


def test_lists_of_priorities_are_lists_of_the_queue(lists: Lists) -> None:
    for priority in (0, 3, 6, 9):
        lists.send(f"p{priority}", priority=priority)
    assert (sorted(lists.found()[0]), lists.found()[1]) == (["p0", "p3", "p6", "p9"], True)
    assert lists.take(key=f"mail{SEPARATOR}9")[0]
    lists.send("again", priority=9)
    assert lists.found() == (["again"], True)


def test_a_retry_is_another_attempt_and_a_delayed_job_a_job(lists: Lists) -> None:
    lists.send("a", retries=2)
    lists.send("later", countdown=600)
    row = lists.row()
    assert row is not None
    assert {job.job_id: job.attempt for job in row.entered} == {"a": 3, "later": 1}


def test_what_a_worker_put_back_is_not_new(lists: Lists) -> None:
    lists.send("a", "b", "c")
    (text,) = lists.take()
    lists.put_back(text)
    assert sorted(lists.found()[0]) == ["b", "c"]
    lists.take(3)
    lists.put_back(text)
    assert lists.found() == ([], True)


def test_a_poll_reads_no_more_than_its_bound_and_says_so(lists: Lists, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entered_jobs, "NAMED_MAX", 5)
    lists.send(*(f"j{number}" for number in range(8)))
    names, is_complete = lists.found()
    assert (sorted(names), is_complete) == (["j3", "j4", "j5", "j6", "j7"], False)
    assert lists.found() == ([], False), "three are unread"
    lists.take(2)
    lists.send("new")
    assert lists.found() == (["new"], False)
    lists.take()
    assert lists.found() == ([], True), "the last of them has left"


def test_large_messages_are_read_to_a_bound_of_bytes(lists: Lists, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entered_jobs, "READ_BYTES_MAX", 50_000)
    read: list[int] = []
    real = list_turns.message_from
    monkeypatch.setattr(list_turns, "message_from", lambda text: read.append(len(text)) or real(text))
    for number in range(10):
        lists.app.send_task("work", ("x" * 9_000,), queue="mail", task_id=f"large{number}")
    names, is_complete = lists.found()
    assert 1 <= len(names) < 10
    assert not is_complete
    assert sum(read) <= 50_000


def test_a_message_larger_than_any_mark_is_recognized(lists: Lists) -> None:
    lists.app.send_task("work", ("x" * 100_000,), queue="mail", task_id="huge")
    assert lists.found() == (["huge"], True)
    assert lists.found() == ([], True)


@pytest.mark.parametrize("text", ["no json", "[]", '{"headers": {"id": "a"}}', '{"properties": {"delivery_tag": "t"}}'])
def test_a_message_without_an_id_leaves_the_list_incomplete_until_it_has_left(lists: Lists, text: str) -> None:
    lists.send("a")
    lists.redis.lpush("mail", text)
    lists.send("b")
    assert (sorted(lists.found()[0]), lists.found()[1]) == (["a", "b"], False)
    lists.take(2)
    assert lists.found() == ([], True)


def test_a_queue_that_is_no_list_is_not_complete(lists: Lists) -> None:
    lists.redis.set("mail", "no list")
    assert lists.row() == PolledQueue(queue="shop/mail", waiting_jobs=0)


def test_what_workers_hold_is_counted_by_queue(lists: Lists) -> None:
    lists.send("a")
    message = json.loads(lists.take()[0])
    lists.redis.hset("unacked", "t", json.dumps([message, "", "mail"]))
    lists.redis.zadd("unacked_index", {"t": 1.0})
    row = lists.row()
    assert row is not None
    assert (row.waiting_jobs, row.held_jobs, row.is_complete) == (0, 1, True)
    lists.redis.hset("unacked", "u", "no message")
    lists.redis.zadd("unacked_index", {"u": 1.0})
    unknown = lists.row()
    assert unknown is not None
    assert unknown.held_jobs is None, "of which queue the other one is, nobody can know"


def test_another_server_may_have_had_other_jobs(lists: Lists) -> None:
    lists.send("a")
    lists.poll()
    lists.redis.client_kill_filter(_type="normal", skipme=True)
    polls = [lists.poll() for _ in range(2)]
    assert polls[0].after_s is None
    assert [job.job_id for row in polls[0].queues for job in row.entered] == ["a"], "it is named anew"
    assert polls[1].after_s == polls[0].at_s


def test_a_queue_that_is_found_late_may_have_had_its_jobs_before(lists: Lists, monkeypatch: pytest.MonkeyPatch) -> None:
    """Among many keys, a poll scans some of them only."""
    monkeypatch.setattr(queue_bindings, "SCANNED_KEYS", 1)
    lists.redis.mset({f"key{number}": "x" for number in range(500)})
    lists.poll()
    lists.send("a", queue="news")
    row = eventually(lambda: lists.row("news"))
    assert row == PolledQueue(queue="shop/news", waiting_jobs=1, held_jobs=0)
    lists.send("b", queue="news")
    later = lists.row("news")
    assert later is not None
    assert [job.job_id for job in later.entered] == ["b"]
