"""Celery's lists for priorities, as the real Celery writes them with any ``priority_steps`` and any ``sep``."""

import json
import logging
import time
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
import redis
from celery import Celery
from kombu import Exchange, Queue, pools

from headway.collect.celery import priority_lists, queue_bindings
from headway.collect.celery.celery_source import CelerySource
from headway.collect.prepared_commands import prepared
from headway.connections import Connection
from headway.scaling.model import PolledQueue, QueueSample
from support.waiting import eventually

TEN = {"priority_steps": list(range(10))}


class Shop:
    """Applications on one broker, each with transport options of its own, and what a collector reads of them."""

    def __init__(self, url: str, **connection: Any) -> None:
        self.redis = redis.Redis.from_url(url, decode_responses=True)
        self._broker = f"redis+socket://{urlsplit(url).path}?virtual_host=0"
        self._connection = Connection(name="shop", url=url, **connection)
        self.source = CelerySource(self._connection, None)

    def send(self, *priorities: int, queue: "str | Queue" = "mail", options: dict[str, Any] = TEN, **more: Any) -> None:
        app = Celery("shop", broker=self._broker)
        app.conf.broker_transport_options = options
        for number, priority in enumerate(priorities):
            app.send_task("work", (number,), queue=queue, priority=priority, **more)
        app.close()
        pools.reset()

    def samples(self, at_s: float | None = None) -> dict[str, QueueSample]:
        reading = self.source.poll(time.time() if at_s is None else at_s)
        return {sample.queue.removeprefix("shop/"): sample for sample in reading.samples}

    def waiting(self) -> dict[str, int | None]:
        return {queue: sample.waiting_jobs for queue, sample in self.samples().items()}

    def row(self, queue: str = "mail") -> PolledQueue | None:
        poll = self.source.poll(time.time()).poll
        assert poll is not None
        return next((row for row in poll.queues if row.queue == f"shop/{queue}"), None)

    def restart(self) -> None:
        cursor = json.loads(json.dumps(self.source.cursor()))
        self.source.close()
        self.source = CelerySource(self._connection, cursor)


@pytest.fixture
def opened(valkey_url: str) -> Iterator[Callable[..., Shop]]:
    pools.reset()  # they remember which queues were declared in a broker that has been emptied since
    shops: list[Shop] = []

    def made(**connection: Any) -> Shop:
        shops.append(Shop(valkey_url, **connection))
        return shops[-1]

    yield made
    for shop in shops:
        shop.source.close()


@pytest.fixture
def shop(opened: Callable[..., Shop]) -> Shop:
    return opened()


@pytest.mark.parametrize("options", [TEN, {**TEN, "sep": ":"}, {"sep": "::"}, {"priority_steps": [0, 40, 200]}])
def test_every_priority_is_counted(shop: Shop, options: dict[str, Any]) -> None:
    shop.send(*range(10), *[4] * 20, 200, options=options)
    assert shop.waiting() == {"mail": 31}
    assert [(queue.name, queue.waiting_jobs) for queue in shop.source.discover()] == [("mail", 31)]


def test_a_hundred_tasks_at_one_priority_wait_as_long_as_they_do(shop: Shop) -> None:
    """B3: depth 0, green for a quarter of an hour."""
    shop.send(0)
    shop.redis.delete("mail")
    empty_s = time.time()
    assert shop.waiting() == {"mail": 0}
    shop.send(*[4] * 100)
    sent_s = time.time()
    for later_s in (0.0, 60.0):
        sample = shop.samples(sent_s + later_s)["mail"]
        assert sample.waiting_jobs == 100
        assert sample.oldest_age_s is not None
        assert sample.oldest_age_max_s is not None
        assert sample.oldest_age_s <= later_s + sent_s - empty_s
        assert later_s <= sample.oldest_age_max_s <= later_s + sent_s - empty_s
    row = shop.row()
    assert row is not None
    assert (row.waiting_jobs, row.is_complete) == (100, True)


def test_tasks_for_later_are_delayed_at_any_priority(shop: Shop) -> None:
    shop.send(7, 7, countdown=3_600)
    shop.send(7)
    sample = shop.samples()["mail"]
    assert (sample.waiting_jobs, sample.delayed_jobs) == (1, 2)


def test_a_prefix_stands_before_every_list(opened: Callable[..., Shop]) -> None:
    options = {**TEN, "global_keyprefix": "sh[o]p*:"}
    shop, other = opened(prefix="sh[o]p*:"), opened(prefix="other:")
    shop.send(4, 4, 5, options=options)
    other.send(8, options={**TEN, "global_keyprefix": "other:"})
    assert (shop.waiting(), other.waiting()) == ({"mail": 3}, {"mail": 1})


def test_a_queue_that_is_called_like_a_list_of_another_has_its_own_jobs(shop: Shop) -> None:
    options = {**TEN, "sep": ":"}
    for queue in ("mail", "mail:4", "mail:x"):
        shop.send(0, 5, queue=queue, options=options)
    shop.send(4, 4, queue="mail:x", options=options)
    assert shop.waiting() == {"mail": 2, "mail:4": 2, "mail:x": 4}


def test_applications_of_one_broker_may_have_separators_of_their_own(shop: Shop) -> None:
    shop.send(4, queue="mail", options={**TEN, "sep": "|"})
    shop.send(4, 4, queue="news", options=TEN)
    shop.send(6, queue="mail", options=TEN)
    assert shop.waiting() == {"mail": 2, "news": 2}


def test_a_topic_exchange_is_no_obstacle(shop: Shop) -> None:
    topic = Queue("inbox", Exchange("shop", type="topic"), routing_key="mail.#")
    shop.send(4, queue=topic, options={**TEN, "sep": ":"}, routing_key="mail.now")
    assert shop.waiting() == {"inbox": 1}


def test_other_lists_are_nobodys_jobs(shop: Shop) -> None:
    for key in ("mail4", "mail:4", "mail-archive-2024", "user:17", "mail\x06\x16a4", "\x06\x164"):
        shop.redis.rpush(key, "x")
    shop.send(4)
    assert shop.waiting() == {"mail": 1}


def test_the_separator_of_one_application_is_none_of_anothers(shop: Shop) -> None:
    shop.send(4, queue="news", options={**TEN, "sep": ":"})
    shop.send(4, queue="mail")
    shop.redis.rpush("mail:5", "x")
    assert shop.waiting() == {"news": 1, "mail": 1}


def test_a_list_may_be_scanned_before_its_queue_is_bound(shop: Shop) -> None:
    shop.send(0)
    shop.redis.rpush("news\x06\x164", "{}")
    assert shop.waiting() == {"mail": 1}
    shop.send(0, 4, queue="news")
    assert shop.waiting() == {"mail": 1, "news": 3}


def test_a_list_that_no_binding_explains_is_named(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    shop.send(0)
    shop.redis.rpush("gone\x06\x164", "x")
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            shop.samples()
    said = [each.getMessage() for each in caplog.records if "list unread" in each.getMessage()]
    assert said == ["list unread list='gone\\x06\\x164': no binding names its queue, so its jobs are not counted"]


def test_of_more_lists_than_are_read_there_is_a_lower_bound(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(priority_lists, "LISTS_MAX", 2)
    shop.send(0, 1, 2, 4, 5, 7)
    with caplog.at_level(logging.WARNING):
        sample = shop.samples()["mail"]
    assert (sample.waiting_jobs, sample.waiting_min_jobs) == (None, 3)
    assert "it has more than 2 for priorities, so more jobs wait than are counted" in caplog.text
    row = shop.row()
    assert row is not None
    assert not row.is_complete


def test_what_was_found_is_known_to_the_next_collector(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where nothing waits at the moment, so that no list is there to be found, and nobody binds again."""
    options = {**TEN, "sep": ":"}
    shop.send(4, options=options)
    assert shop.waiting() == {"mail": 1}
    shop.redis.delete("mail:4")
    assert shop.waiting() == {"mail": 0}
    shop.restart()
    monkeypatch.setattr(queue_bindings, "SCANNED_KEYS", 1)
    shop.redis.mset({f"key{number}": "x" for number in range(500)})
    assert shop.waiting() == {"mail": 0}
    shop.send(4, options=options)
    assert shop.waiting() == {"mail": 1}


def test_a_list_that_is_found_late_may_have_had_its_jobs_before(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Among many keys, a poll scans some of them only: how long its jobs wait, and when they came, is not known."""
    monkeypatch.setattr(queue_bindings, "SCANNED_KEYS", 1)
    shop.redis.mset({f"key{number}": "x" for number in range(300)})
    shop.send()
    shop.send(0)
    assert shop.waiting() == {"mail": 1}
    shop.redis.rpop("mail")
    assert shop.waiting() == {"mail": 0}
    shop.send(4)
    seen: list[PolledQueue] = []

    def is_found() -> bool:
        row = shop.row()
        seen.extend([row] if row is not None and row.waiting_jobs else [])
        return bool(seen)

    eventually(is_found)
    assert (seen[0].waiting_jobs, seen[0].entered, seen[0].is_complete) == (1, (), False)
    assert shop.samples()["mail"].oldest_age_s is None


def test_a_server_that_cannot_name_its_lists_is_read_as_before(
    shop: Shop, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before Redis 6: its SCAN knows no TYPE."""
    monkeypatch.setattr(
        queue_bindings, "prepared", lambda *words: prepared(*("TYP" if each == "TYPE" else each for each in words))
    )
    shop.send(0, 3, 4)
    with caplog.at_level(logging.WARNING):
        assert [shop.waiting() for _ in range(3)] == [{"mail": 2}] * 3
    assert caplog.text.count("priorities unread connection=shop") == 1
