"""Queues of a real RabbitMQ, counted without taking, declaring or binding anything."""

import itertools
import json
import shlex
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from collect.rabbit_shop import QUORUM, Shop
from headway.collect.libraries import Libraries
from headway.collect.rabbitmq import broker_reader
from headway.collect.rabbitmq.broker_reader import CONSUMERS_EVERY_S, CONSUMERS_HOLD_S, CONSUMERS_MAX
from headway.collect.rabbitmq.management_api import ManagementApi
from headway.collect.rabbitmq.rabbitmq_source import RABBITMQ, RabbitmqSource
from headway.collect.source import Figure
from headway.connection_tables import as_toml, connections_from
from headway.connections import Connection
from headway.errors import Unavailable
from headway.scaling.model import Suspension
from support.ports import free_port
from support.tree import ROOT
from support.waiting import eventually

pytestmark = pytest.mark.e2e


def test_what_waits_and_what_consumers_hold_is_counted_at_once(shop: Shop) -> None:
    shop.declare("mail")
    shop.declare("news")
    shop.publish("mail", 5)
    assert shop.counts() == {"mail": (5, 0), "news": (0, 0)}
    held = [shop.channel.basic_get("mail") for _ in range(2)]
    assert shop.counts()["mail"] == (3, 2)
    shop.channel.basic_ack(held[0].delivery_tag)
    shop.channel.basic_reject(held[1].delivery_tag, requeue=True)
    eventually(lambda: shop.counts()["mail"] == (4, 0))
    assert shop.samples()["news"].oldest_age_s == 0.0
    mail = shop.samples()["mail"]
    assert (mail.delayed_jobs, mail.reserved_jobs, mail.oldest_age_s) == (None, None, None)
    # That nothing was reported is no zero. Where a program reports events, ingest knows.
    assert (mail.reports_arrivals, mail.reports_starts, mail.reports_ends) == (False, False, False)


def test_ready_messages_of_a_quorum_queue_are_counted_at_once(shop: Shop) -> None:
    """The management API says 0 for 5 s."""
    shop.declare("mail", arguments=QUORUM)
    shop.publish("mail", 5)
    assert shop.counts()["mail"][0] == 5
    shop.channel.basic_get("mail")
    assert shop.counts()["mail"][0] == 4
    eventually(lambda: shop.counts() == {"mail": (4, 1)})
    shop.channel.queue_delete("mail")
    assert shop.counts() == {"mail": (0, 0)}


@pytest.mark.parametrize("is_policy", [False, True])
def test_a_queue_that_expires_while_it_is_unused_expires_while_it_is_read(shop: Shop, *, is_policy: bool) -> None:
    """Passive declares, which count consumers, are a use of it: a queue per customer stayed in the broker for ever."""
    if is_policy:
        body = {"pattern": "^basket$", "definition": {"expires": 12_000}, "apply-to": "queues"}
        shop.server.api("PUT", f"policies/{shop.vhost}/short", body)
        shop.declare("basket")
    else:
        shop.declare("basket", arguments={"x-expires": 12_000})
    shop.declare("mail")
    shop.publish("basket", 2)
    found = shop.samples()
    assert (found["basket"].waiting_jobs, found["basket"].listed_workers) == (2, None)
    assert found["mail"].listed_workers == 0
    at_s = itertools.count(time.time(), CONSUMERS_EVERY_S)
    eventually(lambda: shop.samples(next(at_s))["basket"].waiting_jobs == 0)


@pytest.mark.parametrize("kind", [{}, QUORUM])
def test_how_long_a_message_may_wait_is_known_from_arguments_and_policies(shop: Shop, kind: dict[str, str]) -> None:
    """The broker drops it then, which no worker reports: a backlog that expired paged as a flushed broker."""
    body = {"pattern": "^(news|both)$", "definition": {"message-ttl": 30_000}, "apply-to": "queues"}
    shop.server.api("PUT", f"policies/{shop.vhost}/short", body)
    shop.declare("mail", arguments={"x-message-ttl": 1_500, **kind})
    shop.declare("news", arguments=kind)
    shop.declare("both", arguments={"x-message-ttl": 90_000, **kind})
    shop.declare("long", arguments={"x-max-length": 5, **kind})  # the oldest go, one for each that comes
    for queue in ("mail", "news", "both", "long"):
        shop.publish(queue, 8)
    ttls_s = {"mail": 1.5, "news": 30.0, "both": 30.0, "long": None}
    eventually(lambda: ttls(shop.source) == ttls_s)
    eventually(lambda: shop.samples()["mail"].waiting_jobs == 0)
    assert shop.samples()["long"].waiting_jobs == 5
    away = shop.connection(management_url=f"http://127.0.0.1:{free_port()}")
    source = RabbitmqSource(away, json.loads(json.dumps(shop.source.cursor())))
    assert ttls(source) == ttls_s
    source.close()


def ttls(source: RabbitmqSource) -> dict[str, float | None]:
    return {each.queue.removeprefix("shop/"): each.message_ttl_s for each in source.poll(time.time()).samples}


def declare_as_dramatiq(shop: Shop, queue: str) -> None:
    """As version 2.2 does, in workers and where messages are sent."""
    to_dead = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": f"{queue}.XQ"}
    shop.declare(queue, arguments=to_dead)
    shop.declare(f"{queue}.DQ", arguments=to_dead)
    shop.declare(f"{queue}.XQ", arguments={"x-message-ttl": 604_800_000})


@pytest.mark.parametrize("queues", [(), ("mail",)])
def test_delayed_messages_of_dramatiq_wait_for_a_worker_that_takes_them(shop: Shop, queues: tuple[str, ...]) -> None:
    """A pool at zero never woke for them, and a worker that had taken them left before they were due."""
    declare_as_dramatiq(shop, "mail")
    source = RabbitmqSource(shop.connection(queues=queues), None)
    assert shop.counts(source=source) == {"mail": (0, 0)}
    shop.publish("mail.DQ", 3)
    shop.publish("mail.XQ", 5)  # failed for good: no worker takes any
    assert [each.name for each in source.discover()] == ["mail"]
    left = shop.samples(source=source)
    assert left.keys() == {"mail"}
    mail = left["mail"]
    assert (mail.waiting_jobs, mail.waiting_min_jobs, mail.in_flight_jobs, mail.delayed_jobs) == (None, 1, 0, None)
    assert mail.oldest_age_s is None
    shop.publish("mail", 2)
    eventually(lambda: shop.samples(source=source)["mail"].waiting_min_jobs == 3)
    shop.channel.basic_qos(0, 2, a_global=False)
    shop.channel.basic_consume("mail.DQ")
    eventually(lambda: shop.samples(time.time() + 5.0, source=source)["mail"].delayed_jobs == 3)
    mail = shop.samples(time.time() + 5.0, source=source)["mail"]
    # Two are held. What no worker has taken beside them is delayed, too.
    assert (mail.waiting_jobs, mail.in_flight_jobs, mail.in_flight_min_jobs) == (2, None, 1)
    source.close()


def test_a_queue_of_delayed_messages_that_is_named_is_a_queue_of_its_own(shop: Shop) -> None:
    declare_as_dramatiq(shop, "mail")
    shop.declare("news.DQ")  # not of Dramatiq: the others are missing
    shop.publish("mail.DQ", 3)
    source = RabbitmqSource(shop.connection(queues=("mail*", "news*", "mail.DQ")), None)
    assert shop.counts(source=source) == {"mail": (0, 0), "mail.DQ": (3, 0), "news.DQ": (0, 0)}
    source.close()


@pytest.mark.parametrize("kind", [{}, QUORUM])
def test_one_worker_is_of_use_to_a_queue_with_a_single_active_consumer(shop: Shop, kind: dict[str, str]) -> None:
    shop.declare("mail", arguments={"x-single-active-consumer": True, **kind})
    shop.declare("news", arguments=kind)
    useful = {name: sample.useful_workers for name, sample in shop.samples().items()}
    assert useful == {"mail": 1, "news": None}


def test_queues_that_go_with_their_last_consumer_and_streams_are_left_out(shop: Shop) -> None:
    shop.declare("mail")
    shop.declare("reply", auto_delete=True)
    shop.declare("mine", durable=False, exclusive=True)
    shop.declare("log", arguments={"x-queue-type": "stream"})
    assert shop.counts().keys() == {"mail"}
    assert [queue.name for queue in shop.source.discover()] == ["mail"]
    named = RabbitmqSource(shop.connection(queues=("reply", "m*"), exclude=("mine",)), None)
    assert shop.counts(source=named).keys() == {"mail", "reply"}
    named.close()


def test_a_deleted_queue_is_empty_for_a_day_and_one_that_is_made_again_counts(shop: Shop) -> None:
    shop.declare("mail")
    shop.declare("news")
    shop.publish("mail", 2)
    at_s = time.time()
    assert shop.samples(at_s)["mail"].waiting_jobs == 2
    shop.channel.queue_delete("mail")
    gone = shop.samples(at_s + 1)["mail"]
    assert (gone.waiting_jobs, gone.in_flight_jobs, gone.oldest_age_s) == (0, 0, 0.0)
    again = RabbitmqSource(shop.connection(), json.loads(json.dumps(shop.source.cursor())))
    assert shop.samples(at_s + 2, source=again)["mail"].waiting_jobs == 0
    shop.declare("mail")
    shop.publish("mail")
    assert shop.samples(at_s + 3, source=again)["mail"].waiting_jobs == 1
    shop.channel.queue_delete("mail")
    assert shop.samples(at_s + 4, source=again)["mail"].waiting_jobs == 0
    assert "mail" in shop.samples(at_s + 86_000, source=again)
    shop.samples(at_s + 86_500, source=again)
    assert shop.samples(at_s + 86_501, source=again).keys() == {"news"}
    again.close()


def test_consumers_of_many_queues_are_counted_in_turn(shop: Shop) -> None:
    names = [f"q-{number}" for number in range(2 * CONSUMERS_MAX)]
    for name in names:
        shop.declare(name)
    at_s = time.time()
    polled = [shop.samples(at_s + offset_s) for offset_s in (0.0, 1.0, CONSUMERS_HOLD_S - 1.0, CONSUMERS_HOLD_S + 0.5)]
    known = [{name for name, sample in each.items() if sample.listed_workers is not None} for each in polled]
    assert len(known[0]) == CONSUMERS_MAX
    assert known[1:] == 3 * [set(names)]  # in time for those that were asked longest ago


def test_consumers_are_counted_however_many_queues_lag(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of quorum queues the management API counts late what is ready: they are asked at each poll."""
    monkeypatch.setattr(broker_reader, "DECLARED_MAX", 3)
    monkeypatch.setattr(broker_reader, "CONSUMERS_MAX", 1)
    for number in range(4):
        shop.declare(f"q-{number}", arguments=QUORUM)
    for number in range(3):
        shop.declare(f"c-{number}")
    at_s = time.time()
    for poll in range(10):
        samples = shop.samples(at_s + poll)
    assert {name for name, each in samples.items() if each.listed_workers is None} == set()


def test_a_queue_whose_workers_fetch_jobs_one_by_one_lacks_no_consumers(shop: Shop) -> None:
    """``basic.get`` makes no consumer. Where consumers were cancelled, their last jobs are held as well."""
    shop.declare("mail")
    shop.publish("mail", 3)
    assert shop.samples()["mail"].suspension is Suspension.NO_CONSUMERS
    held = shop.channel.basic_get("mail")
    eventually(lambda: shop.counts()["mail"] == (2, 1))
    assert shop.samples()["mail"].suspension is None
    shop.channel.basic_ack(held.delivery_tag)
    eventually(lambda: shop.counts()["mail"] == (2, 0))
    assert shop.samples()["mail"].suspension is None
    consumer = shop.channel.basic_consume("mail", callback=lambda _: None)
    eventually(lambda: shop.samples(time.time() + 5.0)["mail"].suspension is Suspension.NONE)
    shop.channel.basic_cancel(consumer)
    eventually(lambda: shop.samples(time.time() + 10.0)["mail"].suspension is Suspension.NO_CONSUMERS)


def test_a_queue_that_the_management_api_leaves_out_is_not_gone_for_that(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its list may be a moment old, and is not whole while a broker starts."""
    shop.declare("mail")
    shop.publish("mail", 2)
    assert shop.counts() == {"mail": (2, 0)}
    monkeypatch.setattr(ManagementApi, "queues", lambda _: ())
    assert shop.counts() == {"mail": (2, None)}
    monkeypatch.undo()
    assert shop.counts() == {"mail": (2, 0)}


def test_the_head_of_a_queue_with_timestamps_gives_the_age(shop: Shop) -> None:
    shop.declare("mail")
    sent_s = int(time.time()) - 300
    shop.publish("mail", 2, timestamp=sent_s)
    begins_s = time.time()
    offset_s = iter(range(0, 10_000, 10))  # the source's own clock: it need not wait to ask again

    def sample() -> object:
        return shop.samples(time.time() + next(offset_s))["mail"]

    found = eventually(lambda: (each := sample()).oldest_age_s is not None and each)
    assert found.oldest_age_s <= found.at_s - sent_s <= found.oldest_age_max_s + 1e-3
    assert found.oldest_age_max_s - found.oldest_age_s == pytest.approx(1.0)
    # The broker names the oldest that is ready or held. While some are held, that is no age of what waits.
    shop.channel.basic_get("mail")
    held = sample()
    assert (held.waiting_jobs, held.in_flight_jobs, held.oldest_age_s, held.oldest_age_max_s) == (1, 1, None, None)
    assert time.time() - begins_s < 60


def test_a_timestamp_from_before_the_queue_was_empty_is_no_age(shop: Shop) -> None:
    """A publisher's own idea of time, as the day that an invoice is of, would start workers for nothing."""
    shop.declare("mail")
    shop.samples(time.time())
    shop.publish("mail", timestamp=1_000_000_000)
    eventually(lambda: shop.server.head_time_s(shop.vhost, "mail") == 1_000_000_000)
    for step in range(4):
        assert shop.samples(time.time() + 10 * step)["mail"].oldest_age_s is None


def test_a_login_without_any_right_is_enough_and_so_nothing_can_be_taken_or_made(shop: Shop) -> None:
    """The broker itself refuses what the page's login may not do: to declare, bind, publish, consume and get."""
    page = (ROOT / "docs" / "how-to" / "collect-rabbitmq.md").read_text()
    commands = [shlex.split(line) for line in page.splitlines() if line.startswith("rabbitmqctl ")]
    assert len(commands) == 3
    for _, *words in commands:
        shop.server.ctl(*(shop.vhost if word == "shop" else word for word in words))
    shop.declare("mail")
    shop.declare("quorum", arguments=QUORUM)
    shop.publish("mail", 3)
    shop.publish("quorum", 3)
    before = _definitions(shop)
    source = RabbitmqSource(shop.connection(url=shop.server.make_url(shop.vhost, "headway:PASSWORD")), None)
    for _ in range(3):
        assert {name: each[0] for name, each in shop.counts(source=source).items()} == {"mail": 3, "quorum": 3}
    assert _definitions(shop) == before
    source.close()
    message = shop.channel.basic_get("mail")
    assert not message.delivery_info["redelivered"]


def _definitions(shop: Shop) -> object:
    return [
        sorted(each["name"] if "name" in each else each["routing_key"] for each in shop.server.api("GET", path))
        for path in (f"{kind}/{shop.vhost}" for kind in ("queues", "exchanges", "bindings", "policies"))
    ]


def test_a_password_comes_from_a_file_and_a_changed_one_serves(shop: Shop, tmp_path: Path) -> None:
    shop.declare("mail", arguments=QUORUM)
    file = tmp_path / "password"
    file.write_text("first\n")
    shop.server.api("PUT", "users/app", {"password": "first", "tags": "management"})
    shop.server.permit(shop.vhost, "app", "")
    source = RabbitmqSource(shop.connection(url=shop.server.make_url(shop.vhost, "app"), password_file=file), None)
    assert shop.counts(source=source) == {"mail": (0, 0)}
    shop.server.api("PUT", "users/app", {"password": "second", "tags": "management"})
    file.write_text("second")
    eventually(lambda: _is_answered(lambda: shop.counts(source=source) == {"mail": (0, 0)}))
    source.close()
    file.write_text("third")
    source = RabbitmqSource(
        shop.connection(url=shop.server.make_url(shop.vhost, "app"), password_file=file), source.cursor()
    )
    with pytest.raises(Unavailable, match="refuses the login") as caught:
        source.poll(1.0)
    assert "third" not in str(caught.value)
    file.unlink()
    with pytest.raises(Unavailable, match=r"password_file .* cannot be read"):
        source.poll(2.0)


def _is_answered(poll: Callable[[], bool]) -> bool:
    try:
        return poll()
    except Unavailable:
        return False


def test_a_url_of_rabbitmq_alone_means_any_of_its_queues() -> None:
    library = Libraries().of(Connection(name="a", url="amqp://h"))
    assert library is RABBITMQ
    assert library.accuracy.keys() == set(Figure)


def test_every_mistake_of_a_connection_is_named_before_anything_is_opened() -> None:
    values = {
        "a": {"url": "amqp://h", "management_url": "http://user:se-cret@h:1"},
        "b": {"url": "redis://h", "management_url": "http://h:1"},
        "c": {"url": "amqp://h", "management_url": "h:15672"},
        "d": {"url": "amqp://h", "management_url": "https://h:1/rabbit"},
    }
    breaches: list[str] = []
    (read,) = connections_from(values, breaches, where="brokers")
    assert breaches == [
        "brokers: a: management_url: expected http://HOST:PORT or https://HOST:PORT, without user and password",
        "brokers: b: management_url needs a URL that begins with amqp:// or amqps://",
        "brokers: c: management_url: expected http://HOST:PORT or https://HOST:PORT, without user and password",
    ]
    assert as_toml([read]) == '"d" = {url = "amqp://h", management_url = "https://h:1/rabbit"}'
    wrong = {
        "amqp://one;amqp://two": "several brokers in url: expected one host, which may be a load balancer's name",
        "amqp:///shop": "broker URL 'amqp:///shop': expected amqp://USER@HOST:PORT/VHOST or amqps://…",
    }
    for url, breach in wrong.items():
        assert Libraries().breaches([Connection(name="a", url=url)]) == [f"connection 'a': {breach}"]
    (prefix, ca_file) = Libraries().breaches([Connection(name="a", url="amqp://h", prefix="x", ca_file=Path(__file__))])
    assert prefix == "connection 'a': prefix: RabbitMQ has none; name the virtual host at the end of url"
    assert ca_file.startswith("connection 'a': ca_file needs a URL that begins with amqps://")
