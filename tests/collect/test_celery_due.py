"""When Celery's tasks in Redis are due that have an ETA: in lists, and in what workers hold."""

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
import redis
from celery import Celery
from celery.utils.time import maybe_iso8601, maybe_make_aware
from kombu import pools

from headway.collect import reply_bounds
from headway.collect.celery import celery_source, held_index, held_messages
from headway.collect.celery.celery_source import CelerySource
from headway.collect.celery.lists import entered_jobs, list_turns, message_sizes
from headway.collect.celery.queue_bindings import SEPARATOR
from headway.connections import Connection
from headway.errors import Unavailable
from headway.scaling.model import QueueSample
from support.waiting import eventually

pytestmark = pytest.mark.e2e

SMALL: dict[Any, dict[str, int]] = {
    list_turns: {"CHUNK_MESSAGES": 7},
    held_index: {"BLOCK_TAGS": 4, "NEWEST_MAX": 30, "BLOCKS_MAX": 2, "ASKED_BY_NAME_MAX": 3},
    held_messages: {"ENVELOPES_MAX": 20, "MOVED_SINGLY_MAX": 3},
}
NOW_S = 1_800_000_000.0
LISTS = ("mail", *(f"mail{SEPARATOR}{priority}" for priority in (3, 6, 9)))
APP = """
import os
from celery import Celery
app = Celery("shop", broker=os.environ["BROKER_URL"])
app.conf.update(broker_connection_retry_on_startup=True, worker_hijack_root_logger=False)
@app.task(name="work")
def work(name):
    pass
"""


class Broker:
    """Messages as the real Celery writes them, hands that move them as kombu does, and what a collector reads."""

    def __init__(self, url: str) -> None:
        self.redis = redis.Redis.from_url(url, decode_responses=True)
        self.url = f"redis+socket://{url.removeprefix('unix://')}?virtual_host=0"
        self.app = Celery("shop", broker=self.url)
        self.app.send_task("work", ("a",), queue="mail", countdown=60, expires=10**9)
        self._message = json.loads(self.redis.lpop("mail") or "")
        self.source = CelerySource(Connection(name="shop", url=url, library="celery"), None)
        self.sent = self.taken = 0

    def text(self, due_s: float | None = None, *, expires_s: float | None = None, padding: str = "") -> str:
        """A message that is due at ``due_s``; ``None``: at once."""
        self.sent += 1
        message = json.loads(json.dumps(self._message))
        message["headers"] |= {"id": f"job-{self.sent}", "eta": _iso(due_s), "expires": _iso(expires_s)}
        message["properties"]["delivery_tag"] = f"tag-{self.sent}"
        message["body"] += padding
        return json.dumps(message)

    def fill(self, dues_s: "list[float | None]", *, key: str = "mail") -> None:
        with self.redis.pipeline(transaction=False) as pipe:
            for due_s in dues_s:
                pipe.lpush(key, self.text(due_s))
            pipe.execute()

    def take(self, count: int = 1, *, key: str = "mail", at_s: float = NOW_S) -> None:
        """Hold the next messages of a list, as a worker does."""
        texts = self.redis.rpop(key, count) or []
        with self.redis.pipeline() as pipe:
            for text in texts:
                self.taken += 1
                message = json.loads(text)
                tag, delivery = message["properties"]["delivery_tag"], message["properties"]["delivery_info"]
                pipe.hset("unacked", tag, json.dumps([message, delivery["exchange"], delivery["routing_key"]]))
                pipe.zadd("unacked_index", {tag: at_s + self.taken * 1e-5})
            pipe.execute()

    def put_back(self, tags: "list[str] | None" = None, *, key: str = "mail", is_next: bool = True) -> None:
        """Give back what workers hold, as one does that ends; or, as a rejected one, at the newest end."""
        for tag in self.held() if tags is None else tags:
            message = json.loads(self.redis.hget("unacked", tag) or "")[0]
            message["headers"]["redelivered"] = True
            message["properties"]["delivery_info"]["redelivered"] = True
            self.end(tag)
            (self.redis.rpush if is_next else self.redis.lpush)(key, json.dumps(message))

    def end(self, tag: str) -> None:
        """Acknowledge what a worker holds."""
        self.redis.hdel("unacked", tag)
        self.redis.zrem("unacked_index", tag)

    def held(self) -> list[str]:
        return [str(tag) for tag in self.redis.zrange("unacked_index", 0, -1)]

    def sample(self, at_s: float = NOW_S, *, queue: str = "mail") -> QueueSample:
        (sample,) = [each for each in self.source.poll(at_s).samples if each.queue == f"shop/{queue}"]
        return sample

    def sample_of_all(self, at_s: float = NOW_S) -> QueueSample:
        """The first that has read everything, in lists and of what workers hold."""
        for _ in range(50):
            reading = self.source.poll(at_s)
            (sample,) = reading.samples
            assert reading.poll is not None
            if sample.waiting_jobs is not None and all(each.held_jobs is not None for each in reading.poll.queues):
                return sample
        raise AssertionError("not everything was read in 50 polls")

    def sent_bytes(self) -> int:
        """What the server has sent so far."""
        return int(self.redis.info("stats")["total_net_output_bytes"])

    def due_s(self, *, at_s: float) -> tuple[list[float], list[float], int]:
        """What is there: when those are due that are due later, in lists and held; how many others are in lists."""
        listed = [_due_s(json.loads(text)) for key in LISTS for text in self.redis.lrange(key, 0, -1)]
        held = [_due_s(json.loads(text)[0]) for text in self.redis.hvals("unacked")]
        later = [[due_s for due_s in each if due_s > at_s] for each in (listed, held)]
        return later[0], later[1], len(listed) - len(later[0])


@pytest.fixture
def broker(valkey_url: str) -> Iterator[Broker]:
    pools.reset()
    broker = Broker(valkey_url)
    yield broker
    broker.source.close()
    broker.app.close()


def test_of_20000_tasks_with_an_eta_each_is_delayed_and_known_by_its_time(broker: Broker) -> None:
    broker.fill([NOW_S + 30.0 if number % 2 else NOW_S + 900.0 for number in range(20_000)])
    first = broker.sample()
    assert (first.waiting_jobs, first.waiting_min_jobs) == (None, 0), "what was not read yet is not said to wait"
    found = broker.sample_of_all()
    assert (found.waiting_jobs, found.delayed_jobs) == (0, 20_000)
    assert {each.within_s: each.jobs for each in found.due if each.within_s in (25.0, 30.0, 600.0, 900.0)} == {
        25.0: 0,
        30.0: 10_000,
        600.0: 10_000,
        900.0: 20_000,
    }
    assert found.oldest_age_s == 0.0
    due = broker.sample(NOW_S + 31.0)
    assert (due.waiting_jobs, due.delayed_jobs, due.oldest_age_s) == (10_000, 10_000, 1.0)


def test_delayed_jobs_that_were_not_all_read_are_a_number_to_no_one(broker: Broker) -> None:
    """After a restart of the collector 94,000 of 100,000 seemed to have come, and standing workers left."""
    broker.fill([NOW_S + 60.0] * 9_000)
    found = broker.sample()
    assert (found.waiting_jobs, found.delayed_jobs) == (None, None)
    assert 1_000 < found.due[-1].jobs < 9_000, "those that were read are due all the same"
    assert broker.sample_of_all().delayed_jobs == 9_000
    broker.take(5_000)
    found = broker.sample()
    assert (found.waiting_jobs, found.delayed_jobs) == (0, None), "of those that workers took some were not read"
    assert 4_000 < found.due[-1].jobs < 9_000
    assert broker.sample_of_all().delayed_jobs == 9_000


def test_each_message_is_read_once(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    real = list_turns.message_from
    monkeypatch.setattr(list_turns, "message_from", lambda text: read.append(len(text)) or real(text))
    broker.fill([NOW_S + 60.0] * 9_000)
    broker.sample()
    assert sum(read) <= list_turns.READ_BYTES_MAX
    broker.sample_of_all()
    for _ in range(20):
        broker.take(50)
        broker.fill([NOW_S + 90.0] * 20)
        assert broker.sample().delayed_jobs is not None
    assert 9_400 <= len(read) <= 9_400 + 100, "and at most one of each piece once more, to go on at the right place"


def test_jobs_that_are_due_behind_many_that_are_not_wait(broker: Broker) -> None:
    broker.sample()
    broker.fill([NOW_S + 600.0] * 100)
    broker.fill([None])
    broker.fill([NOW_S + 600.0] * 100)
    broker.sample(NOW_S + 1.0)
    found = broker.sample(NOW_S + 9.0)
    assert (found.waiting_jobs, found.delayed_jobs) == (1, 200)
    assert found.oldest_age_s <= 9.0 <= found.oldest_age_max_s


def test_a_job_that_became_due_amid_a_list_counts_from_then(broker: Broker) -> None:
    broker.fill([*[NOW_S + 600.0] * 50, NOW_S - 40.0, *[NOW_S + 600.0] * 50])
    found = broker.sample()
    assert (found.waiting_jobs, found.oldest_age_s) == (1, 40.0)


def test_a_job_that_expires_before_it_is_due_is_never_due(broker: Broker) -> None:
    broker.redis.lpush("mail", broker.text(NOW_S + 20.0, expires_s=NOW_S + 10.0))
    broker.redis.lpush("mail", broker.text(NOW_S + 20.0, expires_s=NOW_S + 30.0))
    found = broker.sample()
    assert (found.waiting_jobs, found.delayed_jobs, found.due[-1].jobs) == (0, 2, 1)


def test_what_a_worker_puts_back_is_due_when_it_was(broker: Broker) -> None:
    """A worker that ends gives back hundreds, in any order, before and among which others were taken."""
    broker.fill([NOW_S + 60.0 if number % 3 else None for number in range(900)])
    assert broker.sample().delayed_jobs == 600
    broker.take(400)
    broker.sample()
    held = broker.held()
    random.Random(1).shuffle(held)
    broker.put_back(held)
    found = broker.sample_of_all()
    assert (found.waiting_jobs, found.delayed_jobs) == (300, 600)
    broker.take(100)
    later, held_later, waiting = broker.due_s(at_s=NOW_S)
    found = broker.sample_of_all()
    assert (found.waiting_jobs, found.delayed_jobs) == (waiting, len(later) + len(held_later))


def test_a_real_worker_holds_what_is_due_later_and_gives_it_back(broker: Broker, tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(APP)
    for number in range(60):
        broker.app.send_task("work", (f"{number}",), queue="mail", countdown=600)
    for _ in range(2):
        argv = [sys.executable, "-m", "celery", "-A", "shop", "worker", "-Q", "mail", "-c", "1", "--without-mingle"]
        with (tmp_path / "worker.log").open("ab") as log:
            env = {**os.environ, "BROKER_URL": broker.url}
            worker = subprocess.Popen(argv, cwd=tmp_path, env=env, stdout=log, stderr=log)
        try:
            eventually(lambda: broker.redis.zcard("unacked_index") == 60)
            found = eventually(lambda: (each := broker.sample(time.time())).in_flight_jobs == 0 and each)
            assert (found.waiting_jobs, found.reserved_jobs, found.delayed_jobs) == (0, 0, 60)
            assert [each.jobs for each in found.due if each.within_s >= 600.0] == [60]
        finally:
            worker.terminate()
            worker.wait(60)
        assert broker.redis.llen("mail") == 60
        found = broker.sample_of_all(time.time())
        assert (found.waiting_jobs, found.delayed_jobs, found.due[-1].jobs) == (0, 60, 60)


def test_an_eta_without_a_zone_is_in_utc_as_workers_take_it(broker: Broker) -> None:
    """Whatever ``timezone`` says, Celery's worker takes it so."""
    eta = datetime.fromtimestamp(NOW_S + 600.0, UTC).replace(tzinfo=None).isoformat()
    assert maybe_make_aware(maybe_iso8601(eta), ZoneInfo("Europe/Berlin")).timestamp() == NOW_S + 600.0
    broker.sample()
    message = json.loads(broker.text())
    message["headers"]["eta"] = eta
    broker.redis.lpush("mail", json.dumps(message))
    found = broker.sample()
    assert (found.waiting_jobs, [each.jobs for each in found.due if each.within_s >= 600.0]) == (0, [1])


@pytest.mark.parametrize("headers", [{}, {"trace": "of a library that adds its own"}])
def test_what_workers_hold_of_the_first_task_protocol_may_be_due_later(broker: Broker, headers: dict[str, str]) -> None:
    """Its ETA is in the body: held for an hour until it was due, it was reserved, and waited ever longer."""
    cursor = {"acknowledges_early": True, "queues": ["mail"]}
    broker.source.close()
    broker.source = CelerySource(broker.source._connection, cursor)
    broker.sample(NOW_S - 1.0)
    with Celery("old", broker=broker.url) as app:
        app.conf.task_protocol = 1
        app.send_task("work", ("a",), queue="mail", countdown=600, headers=headers)
    assert broker.sample().waiting_jobs == 1, "in a list, it waits for a worker in any case"
    broker.take()
    found = broker.sample(NOW_S + 60.0)
    assert (found.waiting_jobs, found.reserved_jobs, found.oldest_age_s, found.delayed_jobs) == (0, None, None, None)
    assert (found.in_flight_jobs, found.in_flight_min_jobs) == (None, 1), "its worker stays"
    broker.fill([None, None])
    broker.take(2)
    found = broker.sample(NOW_S + 61.0)
    assert (found.reserved_jobs, found.in_flight_min_jobs) == (None, 3)
    broker.end(broker.held()[0])
    found = broker.sample(NOW_S + 62.0)
    assert (found.reserved_jobs, found.delayed_jobs) == (2, 0)


def test_a_list_that_is_purged_flushed_trimmed_or_filled_anew_is_read_as_it_is(broker: Broker) -> None:
    for emptied in ("mail", None):
        broker.fill([NOW_S + 60.0] * 300)
        assert broker.sample_of_all().delayed_jobs == 300
        broker.redis.delete(emptied) if emptied else broker.redis.flushall()
        assert (broker.sample().waiting_jobs, broker.sample().delayed_jobs) == (0, 0)
    broker.fill([NOW_S + 60.0] * 200 + [None] * 200)
    broker.sample_of_all()
    broker.redis.ltrim("mail", 100, -101)  # at both ends
    found = broker.sample_of_all()
    assert (found.waiting_jobs, found.delayed_jobs) == (100, 100)
    broker.redis.delete("mail")
    broker.fill([None] * 150 + [NOW_S + 60.0] * 150)
    found = broker.sample_of_all()
    assert (found.waiting_jobs, found.delayed_jobs) == (150, 150)


def test_a_message_that_stands_twice_in_a_list_hides_no_other(broker: Broker) -> None:
    """Whoever copies or moves messages by hand writes the same tag again."""
    broker.fill([None] * 20 + [NOW_S + 60.0] * 20)
    broker.sample_of_all()
    broker.redis.lpush("mail", broker.redis.lindex("mail", 10) or "")
    for _ in range(2):
        found = broker.sample_of_all()
        assert (found.waiting_jobs, found.delayed_jobs) == (20, 21)


def test_a_message_larger_than_a_poll_may_read_wakes_its_queue_and_hides_no_other(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was never read: at least 0 jobs waited, whatever entered or left, and no worker started for it."""
    monkeypatch.setattr(entered_jobs, "READ_BYTES_MAX", 50_000)
    broker.redis.lpush("mail", broker.text(padding="x" * 60_000))
    found = broker.sample()
    assert (found.waiting_jobs, found.delayed_jobs) == (1, 0)
    broker.fill([NOW_S + 60.0] * 30)
    broker.redis.lpush("mail", broker.text(padding="x" * 60_000))
    broker.fill([None] * 30)
    found = broker.sample_of_all()
    assert (found.waiting_jobs, found.delayed_jobs) == (32, 30)
    broker.take(45)
    found = broker.sample_of_all()
    assert (found.waiting_jobs, found.delayed_jobs) == (17, 30)


def test_each_list_whose_messages_are_too_large_gets_its_turn(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of them enters the first list before each poll."""
    monkeypatch.setattr(entered_jobs, "READ_BYTES_MAX", 50_000)
    broker.sample()
    broker.redis.lpush(LISTS[-1], broker.text(padding="x" * 60_000))
    named: set[str] = set()
    for _ in range(2):
        broker.redis.lpush(LISTS[0], broker.text(padding="x" * 60_000))
        poll = broker.source.poll(NOW_S).poll
        assert poll is not None
        named |= {job.job_id for each in poll.queues for job in each.entered}
    assert "job-1" in named


def test_a_list_that_was_not_read_has_no_more_jobs_than_its_length(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker.fill([None] * 40)
    assert broker.sample().waiting_jobs == 40
    monkeypatch.setattr(list_turns, "CHUNK_MESSAGES", 0)
    broker.take(38)
    broker.fill([None])
    assert broker.sample().waiting_min_jobs <= 3


def test_a_large_message_that_has_left_slows_no_reading(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entered_jobs, "READ_BYTES_MAX", 50_000)
    broker.fill([None])
    broker.redis.lpush("mail", broker.text(padding="x" * 60_000))
    broker.sample_of_all()
    broker.fill([None] * 20)
    broker.take(2)
    for _ in range(8):
        broker.fill([None])
        broker.sample_of_all()
    broker.fill([None] * 20)
    assert broker.sample().waiting_jobs == 48


def test_lists_of_large_messages_make_no_reply_too_long(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twenty of 5 MB were read at the end of each list: of two such lists more than a reply may be, for all queues."""
    monkeypatch.setattr(reply_bounds, "REPLIES_BYTES_MAX", 1_000_000)
    monkeypatch.setattr(entered_jobs, "READ_BYTES_MAX", 50_000)
    monkeypatch.setattr(celery_source, "HEADS_CHARS_MAX", 50_000)
    monkeypatch.setattr(message_sizes, "DOUBTED_CHARS", 50_000)
    for key in LISTS:
        broker.redis.lpush(key, *(broker.text(padding="x" * 30_000) for _ in range(10)))
    broker.source.close()
    broker.source = CelerySource(broker.source._connection, {"queues": ["mail"]})
    with pytest.raises(Unavailable):  # how long they are, nothing has shown
        broker.sample()
    before = broker.sent_bytes()
    broker.sample()
    assert broker.sent_bytes() - before < 700_000
    found = broker.sample_of_all()
    assert found.waiting_jobs == 10 * len(LISTS)


def test_messages_that_turn_out_large_while_they_are_read_make_no_reply_too_long_twice(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reply_bounds, "REPLIES_BYTES_MAX", 1_000_000)
    monkeypatch.setattr(entered_jobs, "READ_BYTES_MAX", 50_000)
    monkeypatch.setattr(message_sizes, "DOUBTED_CHARS", 50_000)
    broker.fill([None] * 30)
    broker.redis.lpush("mail", *(broker.text(padding="x" * 30_000) for _ in range(40)))
    broker.fill([None])
    with pytest.raises(Unavailable):
        broker.sample()
    found = broker.sample_of_all()
    assert found.waiting_jobs == 71


def test_large_messages_that_workers_hold_make_no_reply_too_long_twice(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reply_bounds, "REPLIES_BYTES_MAX", 1_000_000)
    broker.redis.lpush("mail", *(broker.text(padding="x" * 100_000) for _ in range(12)))
    broker.take(12)
    with pytest.raises(Unavailable):
        broker.sample()
    assert broker.sample_of_all().in_flight_min_jobs == 12


def test_each_task_of_many_that_workers_hold_is_known_by_its_time_and_read_once(broker: Broker) -> None:
    count = 30_000
    for first in range(0, count, 1_000):
        broker.fill([NOW_S + 60.0 + (first + number) % 600 for number in range(1_000)])
        broker.take(1_000, at_s=NOW_S - 100.0 + first / 1_000)
    first_found = broker.sample()
    assert (first_found.in_flight_jobs, first_found.reserved_jobs) == (None, None)
    found = broker.sample_of_all()
    assert (found.waiting_jobs, found.in_flight_min_jobs, found.delayed_jobs) == (0, 0, count)
    assert [each.jobs for each in found.due if each.within_s in (60.0, 90.0)] == [count // 600, 31 * count // 600]
    before = broker.sent_bytes()
    broker.sample()
    assert broker.sent_bytes() - before < 150_000, "as much as a few of the 30,000"
    # Those that are due begin, wherever they stand among what was taken.
    for tag in broker.held()[::600]:
        broker.end(tag)
    before = broker.sent_bytes()
    found = broker.sample_of_all(NOW_S + 61.0)
    assert broker.sent_bytes() - before < 150_000
    assert (found.reserved_jobs, found.in_flight_min_jobs) == (None, count // 600)
    assert found.delayed_jobs == count - 2 * count // 600
    broker.redis.delete("unacked", "unacked_index")
    assert broker.sample().delayed_jobs == 0


def test_what_a_worker_with_a_slow_clock_takes_while_others_end_is_found(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It stands among what was taken before, and as many are held there as before."""
    monkeypatch.setattr(held_index, "BLOCK_TAGS", 4)
    broker.fill([NOW_S + 600.0] * 40)
    broker.take(40)
    assert broker.sample_of_all().delayed_jobs == 40
    for tag in broker.held()[:3]:
        broker.end(tag)
    broker.fill([NOW_S + 60.0] * 3)
    broker.take(3, at_s=NOW_S - 5.0)
    eventually(lambda: [each.jobs for each in broker.sample().due if each.within_s in (60.0, 600.0)] == [3, 40])


@pytest.mark.parametrize("seed", range(16))
def test_whatever_moves_messages_their_counts_come_right(
    broker: Broker, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """A poll that claims to know says what is there; and one poll after the last change, it knows."""
    for module, bounds in SMALL.items():
        for name, bound in bounds.items():
            monkeypatch.setattr(module, name, bound)
    chance = random.Random(seed)
    at_s = NOW_S
    for step in range(60):
        for _ in range(chance.randrange(4)):
            move(broker, chance, at_s=at_s)
        at_s += chance.choice((0.5, 5.0))
        found = broker.sample(at_s)
        listed, held, waiting = broker.due_s(at_s=at_s)
        if found.waiting_jobs is None:
            assert found.waiting_min_jobs <= len(listed) + waiting
        else:
            assert found.waiting_jobs == waiting, f"step {step}"
        found = broker.sample_of_all(at_s)
        later = sorted([*listed, *held])
        assert (found.waiting_jobs, found.delayed_jobs) == (waiting, len(later)), f"step {step}"
        assert {each.within_s: each.jobs for each in found.due} == {
            each.within_s: sum(due_s <= at_s + each.within_s for due_s in later) for each in found.due
        }


def move(broker: Broker, chance: random.Random, *, at_s: float) -> None:
    """Do what an application, a worker or an operator does."""
    key = chance.choice(LISTS)
    held = broker.held()
    what = chance.choice(("send", "send", "take", "take", "end", "put back", "put back", "reject", "rare"))
    if what == "send":
        dues_s = [None, at_s + 3.0, at_s + 30.0, at_s + 4_000.0]
        broker.fill([chance.choice(dues_s) for _ in range(chance.choice((1, 5, 60)))], key=key)
    elif what == "take":
        broker.take(chance.choice((1, 10, 50)), key=key, at_s=at_s)
    elif what == "end" and held:
        for tag in chance.sample(held, chance.randrange(len(held) + 1)):
            broker.end(tag)
    elif what in ("put back", "reject") and held:
        tags = chance.sample(held, chance.choice((1, len(held))))
        broker.put_back(tags, key=key, is_next=what == "put back")
    elif what == "rare":
        rare(broker, chance, key)


def rare(broker: Broker, chance: random.Random, key: str) -> None:
    texts = broker.redis.lrange(key, 0, -1)
    what = chance.choice(("remove", "duplicate", "trim", "delete"))
    if what == "remove" and texts:
        for text in chance.sample(texts, min(len(texts), 3)):
            broker.redis.lrem(key, 1, text)
    elif what == "duplicate" and texts:
        (broker.redis.rpush if chance.random() < 0.5 else broker.redis.lpush)(key, chance.choice(texts))
    elif what == "trim":
        broker.redis.ltrim(key, chance.randrange(5), -1 - chance.randrange(5))
    elif what == "delete":
        broker.redis.delete(key)


def _iso(at_s: float | None) -> str | None:
    return None if at_s is None else datetime.fromtimestamp(at_s, UTC).isoformat()


def _due_s(message: dict[str, Any]) -> float:
    eta = message["headers"]["eta"]
    return datetime.fromisoformat(eta).timestamp() if eta else 0.0
