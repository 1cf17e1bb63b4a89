"""Celery's queues read from a real broker that the real Celery writes, and from its real workers."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import redis
from celery import Celery
from kombu import Exchange, Queue, pools
from kombu.common import Broadcast
from kombu.pidbox import Mailbox

from headway.collect.celery import held_messages
from headway.collect.celery.acknowledgements import SHOWN_AFTER_S
from headway.collect.celery.celery_source import CELERY, HEAD_JOBS, CelerySource
from headway.collect.celery.queue_bindings import OTHERS_HOLD_S
from headway.collect.libraries import Libraries
from headway.collect.source import Figure
from headway.connections import Connection
from headway.errors import Unavailable
from headway.scaling.model import QueueSample
from support.waiting import eventually

pytestmark = pytest.mark.e2e

APP = """
import os, redis
from celery import Celery
from kombu import pools
app = Celery("shop", broker=os.environ["BROKER_URL"])
app.conf.update(broker_connection_retry_on_startup=True, worker_hijack_root_logger=False)
@app.task(name="work", acks_late=os.environ["LATE"] == "yes")
def work(name):
    client = redis.Redis(unix_socket_path=os.environ["SOCKET"])
    client.rpush("began", name)
    client.blpop("go", 60)
"""


class Shop:
    """An application, its workers, and what a collector reads."""

    def __init__(self, url: str, folder: Path) -> None:
        self.socket = urlsplit(url).path
        self.url = url
        self.redis = redis.Redis.from_url(url, decode_responses=True)
        self.broker = f"redis+socket://{self.socket}?virtual_host=0"
        self.app = Celery("shop", broker=self.broker)
        (folder / "shop.py").write_text(APP)
        self._folder = folder
        self.source = CelerySource(Connection(name="shop", url=url, library="celery"), None)
        self.workers: list[subprocess.Popen[bytes]] = []

    def send(self, name: str = "a", *, queue: "str | Queue" = "mail", **options: object) -> None:
        self.app.send_task("work", (name,), queue=queue, **options)

    def work(self, *words: str, late: bool = False) -> subprocess.Popen[bytes]:
        env = {**os.environ, "BROKER_URL": self.broker, "SOCKET": self.socket, "LATE": "yes" if late else "no"}
        argv = [sys.executable, "-m", "celery", "-A", "shop", "worker", "-Q", "mail", "--without-mingle", *words]
        with (self._folder / "worker.log").open("ab") as log:
            self.workers.append(subprocess.Popen(argv, cwd=self._folder, env=env, stdout=log, stderr=log))
        return self.workers[-1]

    def samples(self, at_s: float | None = None) -> dict[str, QueueSample]:
        reading = self.source.poll(time.time() if at_s is None else at_s)
        return {sample.queue.removeprefix("shop/"): sample for sample in reading.samples}

    def take(self, key: str, *, at_s: float) -> None:
        """Hold the next message of a list, as a worker does."""
        message = json.loads(self.redis.rpop(key))
        tag, delivery = message["properties"]["delivery_tag"], message["properties"]["delivery_info"]
        self.redis.hset("unacked", tag, json.dumps([message, delivery["exchange"], delivery["routing_key"]]))
        self.redis.zadd("unacked_index", {tag: at_s})

    def restart(self, *, acknowledges_early: bool) -> None:
        """Read with another source, which goes on from what was learned."""
        self.source.close()
        cursor = {"acknowledges_early": acknowledges_early, "queues": ["mail"]}
        self.source = CelerySource(Connection(name="shop", url=self.url, library="celery"), cursor)

    def counts(self, queue: str = "mail") -> tuple[int | str | None, ...]:
        """Waiting, in flight ("2+": at least two), of these reserved, delayed."""
        sample = self.samples()[queue]
        in_flight = f"{sample.in_flight_min_jobs}+" if sample.in_flight_jobs is None else sample.in_flight_jobs
        return sample.waiting_jobs, in_flight, sample.reserved_jobs, sample.delayed_jobs

    def comes_to(self, *counts: int | str) -> None:
        """Poll until it is so, as a collector does."""
        seen = []

        def is_so() -> bool:
            seen.append(self.counts())
            return seen[-1] == counts

        try:
            eventually(is_so)
        except AssertionError:
            raise AssertionError(f"expected {counts}, saw {seen[-3:]}") from None


@pytest.fixture
def shop(valkey_url: str, tmp_path: Path) -> Iterator[Shop]:
    pools.reset()  # they remember which queues were declared in a broker that has been emptied since
    shop = Shop(valkey_url, tmp_path)
    yield shop
    for worker in shop.workers:
        worker.kill()
        worker.wait()
    shop.source.close()
    shop.app.close()


def test_lists_of_every_priority_and_jobs_due_later_are_counted_apart(shop: Shop) -> None:
    for priority in (0, 3, 6, 9, 9):
        shop.send(priority=priority)
    shop.send(countdown=600)
    shop.send("b", queue="news", countdown=600)
    samples = shop.samples()
    assert {name: (each.waiting_jobs, each.delayed_jobs) for name, each in samples.items()} == {
        "mail": (5, 1),
        "news": (0, 1),
    }
    assert samples["news"].oldest_age_s == 0.0
    mail = samples["mail"]
    # That nothing was reported is no zero. Where the workers report events, ingest knows.
    assert (mail.reports_arrivals, mail.reports_starts, mail.reports_ends) == (False, False, False)
    later = shop.samples(time.time() + 700)
    assert (later["news"].waiting_jobs, later["news"].delayed_jobs) == (1, 0)
    assert 99 <= later["news"].oldest_age_s <= 101
    assert later["news"].oldest_age_max_s == later["news"].oldest_age_s  # it counts from when it was due, exactly


def test_a_job_with_a_time_of_its_own_makes_none_behind_it_older(shop: Shop) -> None:
    shop.send("now")
    shop.redis.delete("mail")
    base_s = time.time()
    shop.samples(base_s)
    shop.send("later", countdown=5)
    shop.samples(base_s + 1)
    shop.send("now")
    mail = shop.samples(base_s + 4)["mail"]
    assert (mail.waiting_jobs, mail.delayed_jobs) == (1, 1)
    assert mail.oldest_age_s <= 1 <= mail.oldest_age_max_s


def test_a_job_that_was_put_back_before_older_ones_hides_no_age(shop: Shop) -> None:
    """kombu puts what a dead worker held where it is taken next, before jobs that have waited for longer."""
    shop.send()
    shop.redis.delete("mail")
    sent_s = time.time()
    shop.samples(sent_s)
    shop.send("old")
    shop.samples(time.time())
    shop.send("later", countdown=5)
    shop.redis.rpush("mail", shop.redis.lpop("mail"))
    mail = shop.samples(sent_s + 60)["mail"]
    assert (mail.waiting_jobs, mail.delayed_jobs) == (2, 0)
    assert mail.oldest_age_s >= 59  # and not the 55 of the one before it
    assert mail.oldest_age_max_s >= 60


def test_what_a_worker_that_ends_puts_back_youngest_first_hides_no_age(shop: Shop) -> None:
    """kombu puts back what was taken first, so that what was taken last is the next one: before older ones."""
    shop.send()
    shop.redis.delete("mail")
    base_s = time.time()
    shop.samples(base_s)
    for number, name in enumerate(("old", "young")):
        shop.send(name)
        shop.samples(base_s + 10 * number + 1)
        shop.take("mail", at_s=base_s + 10 * number + 2)
        shop.samples(base_s + 10 * number + 3)
    shop.send("youngest")
    shop.samples(base_s + 20)
    for text in shop.redis.hvals("unacked"):
        shop.redis.rpush("mail", json.dumps(json.loads(text)[0]))
    shop.redis.delete("unacked", "unacked_index")
    mail = shop.samples(base_s + 60)["mail"]
    assert mail.waiting_jobs == 3
    assert 58 <= mail.oldest_age_s <= 60 <= mail.oldest_age_max_s


def test_what_was_taken_and_put_back_between_two_polls_is_no_younger(shop: Shop) -> None:
    """kombu writes into a message that it was put back: the mark of it is gone, and it has not left."""
    shop.send()
    shop.redis.delete("mail")
    base_s = time.time()
    shop.samples(base_s)
    shop.send()
    shop.samples(base_s + 1)
    message = json.loads(shop.redis.rpop("mail"))
    message["headers"]["redelivered"] = True
    shop.redis.rpush("mail", json.dumps(message))
    for at_s in (40, 60):
        mail = shop.samples(base_s + at_s)["mail"]
        assert mail.oldest_age_s <= at_s <= mail.oldest_age_max_s
    shop.take("mail", at_s=base_s + 61)
    shop.samples(base_s + 62)
    shop.redis.rpush("mail", json.dumps(message))
    shop.redis.delete("unacked", "unacked_index")
    assert shop.samples(base_s + 70)["mail"].oldest_age_max_s >= 70


def test_behind_many_that_were_put_back_the_oldest_is_unknown_until_few_are_left(shop: Shop) -> None:
    shop.send()
    shop.redis.delete("mail")
    base_s = time.time()
    shop.samples(base_s)
    for _ in range(HEAD_JOBS + 1):
        shop.send()
        shop.take("mail", at_s=base_s)
    shop.samples(base_s + 1)
    for text in shop.redis.hvals("unacked"):
        shop.redis.rpush("mail", json.dumps(json.loads(text)[0]))
    shop.redis.delete("unacked", "unacked_index")
    assert shop.samples(base_s + 60)["mail"].oldest_age_s is None
    shop.redis.rpop("mail")
    mail = shop.samples(base_s + 61)["mail"]
    assert mail.waiting_jobs == HEAD_JOBS
    assert 59 <= mail.oldest_age_s <= 61 <= mail.oldest_age_max_s


def test_what_a_worker_took_and_did_not_begin_is_reserved(shop: Shop) -> None:
    """Early acknowledgements: what runs is nowhere in the broker, which is not known before more run than are held.

    Until then what is seen is a lower bound: ten are in flight, and eight are held.
    """
    for number in range(16):
        shop.send(f"{number}")
    worker = shop.work("-c", "2")
    shop.comes_to(6, "8+", 6, 0)  # two run, 4 × 2 more were taken, six wait for whoever comes
    reading = shop.source.poll(time.time())
    ((host, pid, is_busy, ended),) = [
        (each.host, each.pid, each.is_busy, each.ended_jobs) for each in reading.activities
    ]
    assert (host, pid, is_busy, ended) == (os.uname().nodename, worker.pid, True, 0)
    shop.redis.rpush("go", *range(14))
    shop.comes_to(0, 2, 0, 0)
    eventually(lambda: shop.counts() and shop.source.cursor()["acknowledges_early"])
    for number in range(14):
        shop.send(f"more-{number}")
    shop.comes_to(6, 10, 8, 0)
    shop.redis.rpush("go", *range(16))
    shop.comes_to(0, 0, 0, 0)
    (activity,) = shop.source.poll(time.time()).activities
    assert (activity.is_busy, activity.running_jobs, activity.ended_jobs) == (False, 0, 30)


def test_what_a_worker_took_of_a_topic_exchange_is_in_flight(shop: Shop) -> None:
    feeds = Queue("mail", Exchange("feeds", type="topic"), routing_key="feed.#")
    for key in ("feed.import", "feed.import.deep"):
        shop.send(queue=feeds, routing_key=key)
    assert shop.counts() == (2, "0+", None, 0)
    shop.take("mail", at_s=time.time())
    assert shop.counts() == (1, "1+", None, 0)
    shop.take("mail", at_s=time.time())
    assert shop.counts() == (0, "2+", None, 0)


def test_late_acknowledgements_count_no_running_job_twice(shop: Shop) -> None:
    for number in range(6):
        shop.send(f"{number}")
    shop.work("-c", "2", "--prefetch-multiplier", "1", late=True)
    eventually(lambda: shop.redis.llen("began") == 2)
    shop.comes_to(4, "2+", 0, 0)
    shop.redis.rpush("go", *range(6))
    shop.comes_to(0, 0, 0, 0)


def test_late_acknowledgements_show_where_jobs_end_and_none_begins(shop: Shop) -> None:
    """Then so many fewer are held; from then on what is held is what is in flight."""
    shop.work("-c", "2", "--prefetch-multiplier", "1", late=True)
    for number in range(2):
        shop.send(f"{number}")
    shop.comes_to(0, "2+", 0, 0)
    settled_s = time.monotonic() + SHOWN_AFTER_S + 2.5  # a heartbeat before, and one poll after
    eventually(lambda: shop.counts() == (0, "2+", 0, 0) and time.monotonic() > settled_s)
    shop.redis.rpush("go", 0)
    eventually(lambda: shop.counts() and shop.source.cursor()["acknowledges_late"])
    shop.comes_to(0, 1, 0, 0)
    shop.redis.rpush("go", 1)
    shop.comes_to(0, 0, 0, 0)


def test_what_workers_without_heartbeats_run_is_not_known(shop: Shop) -> None:
    shop.send()
    shop.work("-c", "1", "--without-heartbeat")
    eventually(lambda: shop.redis.llen("began") == 1)
    shop.comes_to(0, "0+", None, 0)
    assert shop.source.poll(time.time() + 60.0).activities == ()
    shop.redis.rpush("go", 0)


def test_of_several_queues_nobody_knows_what_runs_in_which(shop: Shop) -> None:
    shop.send(queue="news")
    shop.send()
    shop.work("-c", "1")
    eventually(lambda: shop.redis.llen("began") == 1)
    shop.comes_to(0, "0+", None, 0)
    eventually(lambda: [each.running_jobs for each in shop.source.poll(time.time()).activities] == [1])
    shop.redis.rpush("go", 0)


def test_of_several_queues_jobs_that_workers_hold_may_wait_so_that_the_longest_wait_is_not_known(shop: Shop) -> None:
    shop.send(queue="news")
    for number in range(2):
        shop.send(f"{number}")
    shop.work("-c", "1", "--prefetch-multiplier", "1")
    shop.comes_to(0, "1+", None, 0)  # acknowledged early: one runs and is nowhere, one is held and has not begun
    held = shop.samples()["mail"]
    assert (held.oldest_age_s, held.oldest_age_max_s) == (None, None)
    shop.redis.rpush("go", *range(2))
    shop.comes_to(0, "0+", None, 0)
    assert shop.samples()["mail"].oldest_age_s == 0.0


@pytest.mark.parametrize(
    ("names", "bound"),
    [
        ({"queues": ("mail",)}, None),
        ({"exclude": ("bulk",)}, None),
        ({}, "no separator shows"),  # it is the binding of some queue, so that the broker has another one
    ],
)
def test_what_runs_in_a_queue_that_is_not_read_is_not_in_flight_in_the_only_one_that_is(
    shop: Shop, names: dict[str, tuple[str, ...]], bound: str | None
) -> None:
    """Eight workers were started for an empty queue, as eight tasks of another one ran."""
    connection = Connection(name="shop", url=shop.url, library="celery", **names)
    shop.source.close()
    shop.source = CelerySource(connection, None)
    for queue in ("mail", "bulk") if bound is None else ("mail",):
        shop.send(queue=queue)
        shop.redis.delete(queue)
    if bound is not None:
        shop.redis.sadd("_kombu.binding.odd", bound)
    assert_running_jobs_are_of_no_queue(shop, at_s=1000)
    cursor = json.loads(json.dumps(shop.source.cursor()))
    shop.redis.flushall()  # then no producer that runs binds either queue again
    shop.source.close()
    shop.source = CelerySource(connection, cursor)
    assert_running_jobs_are_of_no_queue(shop, at_s=1100)
    day_later_s = 1100.0 + OTHERS_HOLD_S
    published(shop, "a", active=8)
    eventually(lambda: shop.source.poll(day_later_s).activities)
    assert shop.samples(day_later_s + 1.0)["mail"].listed_workers == 1, "the other queue is forgotten"


def test_queues_that_celery_makes_for_one_process_are_no_queues_of_jobs(shop: Shop) -> None:
    """Each start of a worker left another ``bcast.…`` behind, and what ran was unknown beside it."""
    shop.send()
    shop.redis.delete("mail")
    shop.app.conf.update(control_exchange="shop-control", event_exchange="shop-events", event_queue_prefix="shop-event")
    with shop.app.connection_for_write() as connection:
        channel = connection.channel()
        mailbox = Mailbox("shop-control", type="fanout")
        Broadcast("reload")(channel).declare()
        mailbox.get_queue("worker-1@host")(channel).declare()
        mailbox(connection).get_reply_queue()(channel).declare()
        for routing_key in ("#", "worker.#"):  # of a monitor, and of a worker's gossip
            shop.app.events.Receiver(channel, routing_key=routing_key).queue(channel).declare()
        assert len(shop.redis.keys("_kombu.binding.*")) == 5
        assert shop.redis.scard("_kombu.binding.shop-events") == 2
        assert [each.name for each in shop.source.discover()] == ["mail"]
        assert shop.samples().keys() == {"mail"}
        assert shop.samples(time.time() + 3.0)["mail"].in_flight_jobs is None
        published(shop, "a", active=1)
        shop.comes_to(0, 1, 0, 0)
        cursor = shop.source.cursor()
    assert cursor["other_queues_at_s"] is None
    shop.source.close()
    learned_before = {**cursor, "queues": ["mail", "worker-1@host.shop-control.pidbox"]}
    shop.source = CelerySource(Connection(name="shop", url=shop.url, library="celery"), learned_before)
    assert shop.samples().keys() == {"mail"}


def assert_running_jobs_are_of_no_queue(shop: Shop, *, at_s: int) -> None:
    shop.samples(float(at_s))
    for later_s in range(at_s, at_s + 12, 2):
        published(shop, "a", active=8)
        eventually(lambda later_s=later_s: shop.source.poll(float(later_s)).activities)
    found = shop.samples(at_s + 11.0)["mail"]
    assert (found.waiting_jobs, found.in_flight_jobs, found.in_flight_min_jobs) == (0, None, 0)
    assert (found.reserved_jobs, found.listed_workers) == (None, None)
    assert not shop.source.cursor()["acknowledges_early"]


def test_a_worker_whose_heartbeat_is_overdue_is_not_said_to_be_idle(shop: Shop) -> None:
    """One whose only thread runs a task publishes none meanwhile."""
    shop.samples(1000.0)
    published(shop, "a", active=0)
    published(shop, "b", active=1)
    eventually(lambda: len(shop.source.poll(1000.0).activities) == 2)
    assert {each.host: each.is_busy for each in shop.source.poll(1002.0).activities} == {"a": False, "b": True}
    assert {each.host: each.is_busy for each in shop.source.poll(1002.5).activities} == {"b": True}


def test_what_runs_is_unknown_while_a_heartbeat_is_overdue_and_the_worker_is_still_listed(shop: Shop) -> None:
    """A solo worker published that it was idle, took a task, and publishes nothing until that has ended."""
    shop.send()
    shop.redis.delete("mail")
    shop.samples(1000.0)
    published(shop, "a", active=0)
    eventually(lambda: shop.source.poll(1002.0).activities)
    found = {at_s: shop.samples(at_s)["mail"] for at_s in (1003.0, 1005.0, 1006.0, 1008.0)}
    assert {at_s: each.in_flight_jobs for at_s, each in found.items()} == {
        1003.0: 0,
        1005.0: 0,
        1006.0: None,
        1008.0: None,
    }
    assert found[1006.0].listed_workers == 1


@pytest.mark.parametrize(("active", "reserved_jobs"), [(2, 1), (0, 2)])
def test_an_overdue_heartbeat_makes_no_reserved_job_run(shop: Shop, active: int, reserved_jobs: int) -> None:
    """Jobs that are acknowledged late are held while they run: 12 of 16 seemed to run, and three workers were started.

    One that publishes nothing runs at least one: a solo worker published before that it was idle.
    """
    shop.source.close()
    cursor = {"acknowledges_late": True, "queues": ["mail"]}
    shop.source = CelerySource(Connection(name="shop", url=shop.url, library="celery"), cursor)
    shop.samples(1000.0)
    for _ in range(3):
        shop.send()
        shop.take("mail", at_s=1000.0)
    published(shop, "a", active=active)
    eventually(lambda: shop.source.poll(1002.0).activities)
    sample = shop.samples(1006.0)["mail"]
    assert (sample.in_flight_jobs, sample.reserved_jobs) == (3, reserved_jobs)


def test_what_is_held_and_was_not_read_yet_shows_no_early_acknowledgement(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 100,000 tasks with an ETA that workers hold, it takes a while to see which of the others run."""
    monkeypatch.setattr(held_messages, "ENVELOPES_MAX", 0)
    for _ in range(3):
        shop.send()
        shop.take("mail", at_s=1000.0)
    shop.source.poll(1000.0)
    for at_s in range(1000, 1012, 2):
        published(shop, "a", active=2)
        eventually(lambda at_s=at_s: shop.source.poll(float(at_s)).activities)
    assert not shop.source.cursor()["acknowledges_early"]
    sample = shop.samples(1012.0)["mail"]
    assert (sample.in_flight_jobs, sample.reserved_jobs) == (None, None)


def test_workers_of_one_host_that_share_a_name_count_apart(shop: Shop) -> None:
    """Celery calls each of them celery@HOST where nobody gives them names: that is how Headway starts several."""
    workers = [shop.work("-c", "1", "--prefetch-multiplier", "1", late=True) for _ in range(2)]
    for number in range(3):
        shop.send(f"{number}")
    shop.comes_to(1, "2+", 0, 0)
    activities = shop.source.poll(time.time()).activities
    assert {each.pid: each.running_jobs for each in activities} == {worker.pid: 1 for worker in workers}
    workers[0].terminate()  # it has a job to finish, and says that it is off when it has
    shop.redis.rpush("go", *range(3))
    workers[0].wait(60)
    eventually(lambda: [each.pid for each in shop.source.poll(time.time()).activities] == [workers[1].pid])


def test_what_a_worker_holds_until_it_is_due_is_delayed(shop: Shop) -> None:
    shop.send(countdown=600)
    shop.work("-c", "1", "--pool", "solo")
    eventually(lambda: shop.redis.hlen("unacked") == 1)
    shop.comes_to(0, 0, 0, 1)
    assert shop.samples()["mail"].oldest_age_s == 0.0


def test_the_true_age_lies_between_both_bounds(shop: Shop) -> None:
    """One poll a second; jobs enter between two polls and leave at the other end, in bursts and one by one."""
    shop.send()
    shop.redis.delete("mail")
    entered: list[float] = []
    widths: list[float] = []
    shop.samples(1000.0)
    for step in range(1, 400):
        at_s = 1000.0 + step
        if step % 100 < 60:
            for _ in range(1 + 4 * (step % 7 == 0)):
                shop.send(f"{step}")
                entered.append(at_s - 0.5)
        for _ in range((step * 7) % 3 if step % 50 < 40 else 0):
            if entered:
                shop.redis.rpop("mail")
                entered.pop(0)
        sample = shop.samples(at_s)["mail"]
        true_s = at_s - entered[0] if entered else 0.0
        assert sample.waiting_jobs == len(entered)
        assert sample.oldest_age_s - 0.2 <= true_s
        if entered:
            assert true_s <= sample.oldest_age_max_s
            widths.append(sample.oldest_age_max_s - sample.oldest_age_s)
        else:
            assert (sample.oldest_age_s, sample.oldest_age_max_s) == (0.0, None)
    widths.sort()
    assert widths[len(widths) // 2] <= 1.2
    assert widths[-1] <= 5.0


def test_what_is_held_waits_from_the_first_poll_on_where_workers_acknowledge_early(shop: Shop) -> None:
    shop.send()
    shop.send(queue="news")
    shop.take("mail", at_s=time.time())
    shop.restart(acknowledges_early=True)
    sample = shop.samples()["mail"]
    assert (sample.waiting_jobs, sample.in_flight_jobs, sample.reserved_jobs) == (0, None, 1)
    assert sample.in_flight_min_jobs == 1
    assert sample.oldest_age_s is None  # and not 0: it was there before


def test_what_is_taken_from_the_list_of_a_low_priority_may_be_older_than_what_waits(shop: Shop) -> None:
    shop.restart(acknowledges_early=True)
    shop.send(queue="mail", priority=0)
    shop.take("mail", at_s=999.0)  # so that the queue is there
    shop.redis.delete("unacked", "unacked_index")
    shop.samples(1000.0)
    shop.send(priority=9)
    shop.samples(1001.0)
    shop.samples(1010.0)
    shop.send(priority=0)
    shop.samples(1011.0)
    shop.take("mail\x06\x169", at_s=1011.5)
    sample = shop.samples(1012.0)["mail"]
    assert (sample.waiting_jobs, sample.reserved_jobs) == (1, 1)
    assert sample.oldest_age_s <= 11.5 <= sample.oldest_age_max_s


def test_what_is_taken_of_a_backlog_that_was_there_before_has_no_age(shop: Shop) -> None:
    shop.send()
    shop.send()
    shop.restart(acknowledges_early=True)
    shop.samples(1000.0)
    shop.take("mail", at_s=1000.5)
    shop.redis.delete("mail")
    assert shop.samples(1001.0)["mail"].oldest_age_s is None


def test_of_a_backlog_that_was_there_before_the_age_is_unknown(shop: Shop) -> None:
    shop.send()
    sample = shop.samples()["mail"]
    assert (sample.waiting_jobs, sample.oldest_age_s, sample.oldest_age_max_s) == (1, None, None)


def test_flushed_queues_are_empty_and_a_broker_that_is_away_is_unknown(shop: Shop) -> None:
    shop.send()
    assert shop.counts() == (1, "0+", None, 0)
    shop.redis.flushall()
    assert shop.samples()["mail"].waiting_jobs == 0
    again = CelerySource(Connection(name="shop", url=shop.url), json.loads(json.dumps(shop.source.cursor())))
    assert [sample.queue for sample in again.poll(time.time()).samples] == ["shop/mail"]
    again.close()
    away = CelerySource(Connection(name="shop", url=shop.url.replace("valkey.sock", "nobody.sock")), None)
    with pytest.raises(Unavailable, match="cannot be reached"):
        away.poll(1.0)


def test_marks_that_a_server_lost_show_nothing(shop: Shop) -> None:
    """A replica became master before it had the last jobs: that they are gone does not make the others younger."""
    shop.send()
    shop.redis.delete("mail")
    shop.samples(1000.0)
    for at_s in range(1010, 1100, 10):
        shop.send("one")
        shop.send("marked")
        shop.samples(at_s)
    shop.redis.ltrim("mail", 9, -1)  # of those of 1050 the first is left, which no mark shows
    shop.redis.client_kill_filter(_type="normal", skipme=True)
    for taken, entered_s in ((0, 1010), (7, 1040), (1, 1050)):
        for _ in range(taken):
            shop.redis.rpop("mail")
        sample = shop.samples(1200.0)["mail"]
        assert sample.oldest_age_s <= 1200 - entered_s <= sample.oldest_age_max_s
    shop.redis.delete("mail")
    shop.send("late")
    sample = shop.samples(1300.0)["mail"]
    assert sample.oldest_age_s <= 1.0


def published(shop: Shop, worker: str, *, active: int) -> None:
    event = {"type": "worker-heartbeat", "hostname": f"celery@{worker}", "pid": 7, "active": active, "processed": 9}
    message = {"body": json.dumps(event), "content-type": "application/json", "properties": {}}
    shop.redis.publish("/0.celeryev/worker.heartbeat", json.dumps(message))


def test_after_a_broker_was_away_what_runs_is_unknown_until_its_workers_are_back(shop: Shop) -> None:
    """With early acknowledgements it is nowhere in the broker, and workers take their time to connect again."""
    shop.send()
    shop.redis.delete("mail")
    shop.source.poll(1000.0)
    for at_s in range(1000, 1012, 2):
        for worker in ("a", "b"):
            published(shop, worker, active=2)
        eventually(lambda at_s=at_s: len(shop.source.poll(float(at_s)).activities) == 2)
    assert shop.source.cursor()["acknowledges_early"]
    assert shop.samples(1012.0)["mail"].in_flight_jobs == 4
    shop.redis.client_kill_filter(_type="pubsub", skipme=True)
    with pytest.raises(Unavailable):
        shop.source.poll(1013.0)
    assert shop.samples(1014.0)["mail"].in_flight_jobs is None
    published(shop, "a", active=2)
    eventually(lambda: shop.source.poll(1020.0).activities)
    assert shop.samples(1020.0)["mail"].in_flight_jobs is None
    published(shop, "b", active=1)
    eventually(lambda: len(shop.source.poll(1021.0).activities) == 2)
    assert shop.samples(1021.0)["mail"].in_flight_jobs == 3


def test_one_queue_that_cannot_be_read_does_not_hide_the_others(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    shop.send(queue="bad")
    shop.send()
    shop.redis.delete("bad")
    shop.redis.set("bad", "no list")
    for _ in range(2):
        assert shop.samples().keys() == {"mail"}
    assert [record.message.split(":")[0] for record in caplog.records] == ["queue unreadable queue=shop/bad"]


def test_messages_that_are_none_wait_like_others(shop: Shop) -> None:
    shop.send()
    for text in ("{", "[1]", "7", '{"headers": 1, "properties": {"delivery_tag": 7}}', '{"headers": {"eta": "x"}}'):
        shop.redis.rpush("mail", text)
    shop.redis.rpush("mail", b"\xff")
    shop.redis.hset("unacked", mapping={"a": "{", "b": '[1, "mail"]', "c": '[[], 7, "mail"]'})
    shop.redis.zadd("unacked_index", {"a": 1, "b": 2, "c": 3, "d": 4})
    shop.redis.lpush("mail", b"\xfe")
    for _ in range(2):  # the second time, what came last is looked for by its bytes
        assert shop.counts() == (8, "0+", None, 0)
    shop.redis.publish("/0.celeryev/worker.heartbeat", "{")
    shop.redis.publish("/0.celeryev/worker.heartbeat", '{"body": "x", "properties": {"body_encoding": "base64"}}')
    assert shop.counts()[0] == 8


def test_heartbeats_come_for_longer_than_a_reply_may_take(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever subscribes asks for nothing more: every 20 s the broker was lost, and no worker known for 30 s."""
    monkeypatch.setattr("headway.collect.reply_bounds.REPLIES_S_MAX", 0.3)
    began_s = time.monotonic()
    while time.monotonic() - began_s < 1.0:
        shop.samples()
        published(shop, "a", active=1)
        time.sleep(0.02)
    assert [each.pid for each in shop.source.poll(time.time()).activities] == [7]


def test_workers_that_are_made_up_take_no_memory_without_end(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headway.collect.celery.worker_heartbeats.WORKERS_MAX", 3, raising=False)
    shop.samples()
    for number in range(9):
        published(shop, f"host-{number}", active=1)
    assert len(shop.source.poll(time.time()).activities) == 3


def test_nothing_is_written_and_the_login_of_the_page_is_enough(shop: Shop) -> None:
    lines = (Path(__file__).parents[2] / "docs" / "how-to" / "collect-celery.md").read_text().splitlines()
    (command,) = [line for line in lines if line.startswith("ACL SETUSER headway")]
    shop.redis.execute_command(*command.split())
    shop.send()
    url = shop.url.replace("?", "?username=headway&password=PASSWORD&")
    source = CelerySource(Connection(name="shop", url=url), None)
    with redis.Redis.from_url(shop.url, decode_responses=True).monitor() as monitor:
        for _ in range(2):
            (sample,) = source.poll(time.time()).samples
        shop.redis.ping()
        seen = set()
        while (name := monitor.next_command()["command"].split(" ")[0].upper()) != "PING":
            seen.add(name)
    source.close()
    assert sample.waiting_jobs == 1
    assert seen <= {
        "CLIENT",
        "SELECT",
        "AUTH",
        "SCAN",
        "SMEMBERS",
        "EXISTS",
        "LLEN",
        "ZRANGE",
        "ZCARD",
        "ZCOUNT",
        "ZMSCORE",
        "LRANGE",
        "LPOS",
        "HMGET",
        "SUBSCRIBE",
    }
    shop.redis.acl_deluser("headway")


def test_other_libraries_keys_are_no_queues(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.send()
    with shop.redis.pipeline() as pipe:
        for number in range(5_000):
            pipe.set(f"foreign-{number}", "x")
        pipe.execute()
    assert [queue.name for queue in shop.source.discover()] == ["mail"]
    shop.send(queue="news")
    eventually(lambda: shop.samples().keys() == {"mail", "news"})


def test_a_redis_url_alone_means_rq_and_celery_is_named() -> None:
    libraries: Callable[[Connection], object] = Libraries().of
    assert libraries(Connection(name="a", url="redis://h")).name == "rq"
    assert libraries(Connection(name="a", url="redis://h", library="celery")) is CELERY
    assert CELERY.accuracy.keys() == set(Figure)
