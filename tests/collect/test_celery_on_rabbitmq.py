"""Celery's queues in a real RabbitMQ, as the real Celery and its real workers leave them."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from celery import Celery
from kombu import Exchange, Producer, Queue
from kombu.transport import native_delayed_delivery as delays

from collect.rabbit_shop import QUORUM, Shop
from headway.collect.celery.celery_on_rabbitmq import CELERY_ON_RABBITMQ, CeleryOnRabbitmq
from headway.collect.celery.delay_routes import ROUTES_EVERY_S
from headway.collect.libraries import Libraries
from headway.collect.source import Figure
from headway.connections import Connection
from headway.scaling.model import PolledQueue, QueueSample, Suspension
from headway.scaling.model.due_jobs import delayed_from
from support.waiting import eventually

pytestmark = pytest.mark.e2e

APP = """
import os, time
from pathlib import Path
from celery import Celery
from kombu import Exchange, Queue
here = Path(__file__).parent
app = Celery("shop", broker=os.environ["BROKER_URL"])
app.conf.update(worker_hijack_root_logger=False, task_default_queue="mail", broker_connection_retry_on_startup=True)
if os.environ.get("QUORUM"):
    arguments = {"x-queue-type": "quorum"}
    queue = Queue("mail", Exchange("mail", type="topic"), routing_key="mail", queue_arguments=arguments)
    app.conf.update(task_queues=[queue], broker_transport_options={"confirm_publish": True})
def work(name):
    (here / f"began-{name}").touch()
    while not (here / "go").exists():
        time.sleep(0.01)
app.task(name="early")(work)
app.task(name="late", acks_late=True)(work)
"""


class App:
    """An application, its workers, and what a collector reads."""

    def __init__(self, shop: Shop, folder: Path) -> None:
        self.shop, self.folder = shop, folder
        (folder / "shop.py").write_text(APP)
        self.celery = Celery("shop", broker=shop.url)
        self.celery.conf.task_default_queue = "mail"
        self.source = CeleryOnRabbitmq(shop.connection(library="celery"), None)
        self.workers: list[subprocess.Popen[bytes]] = []

    def send(self, task: str, count: int = 1, **options: object) -> None:
        for number in range(count):
            self.celery.send_task(task, (f"{task}-{number}",), **{"queue": "mail"} | options)

    def work(self, *words: str, **env: str) -> None:
        argv = [sys.executable, "-m", "celery", "-A", "shop", "worker", "-Q", "mail", "--without-mingle", *words]
        with (self.folder / "worker.log").open("ab") as log:
            everything = {**os.environ, "BROKER_URL": self.shop.url, **env}
            self.workers.append(
                subprocess.Popen(argv, cwd=self.folder, env=everything, stdout=log, stderr=log, start_new_session=True)
            )

    def delays_in_broker(self) -> bool:
        """Whether a worker has made the queues in which jobs for later wait."""
        bindings = self.shop.server.api("GET", f"bindings/{self.shop.vhost}")
        return any(each["source"] == "celery_delayed_delivery" for each in bindings)

    def go(self) -> None:
        """Let every task end."""
        (self.folder / "go").touch()

    def sample(self, queue: str = "mail") -> QueueSample:
        samples = {each.queue: each for each in self.source.poll(time.time()).samples}
        return samples[f"shop/{queue}"]

    def restarted(self, **more: Any) -> CeleryOnRabbitmq:
        """Another collector, which goes on where this one is."""
        cursor = json.loads(json.dumps(self.source.cursor()))
        return CeleryOnRabbitmq(self.shop.connection(library="celery", **more), cursor)

    def comes_to(self, waiting: int, held: int, delayed: int | None = None) -> None:
        """Poll until it is so, and stays so. What workers hold is a lower bound of what is in flight."""
        seen: list[tuple[int | None, ...]] = []

        def is_so() -> bool:
            samples = {each.queue: each for each in self.source.poll(time.time()).samples}
            mail = samples.get("shop/mail")
            seen.append((mail.waiting_jobs, mail.in_flight_min_jobs, mail.delayed_jobs) if mail is not None else ())
            return seen[-3:] == 3 * [(waiting, held, delayed)]

        try:
            eventually(is_so)
        except AssertionError:
            log = (self.folder / "worker.log").read_text()[-2000:] if self.workers else ""
            raise AssertionError(f"expected {(waiting, held, delayed)}, saw {seen[-3:]}\n{log}") from None

    def is_own_answer(self, **counts: int) -> bool:
        """Whether Celery's own inspection comes to say so of its worker."""
        inspect = self.celery.control.inspect(timeout=1.0)
        return eventually(
            lambda: all(
                sum(len(each) for each in (getattr(inspect, kind)() or {}).values()) == count
                for kind, count in counts.items()
            )
        )


@pytest.fixture
def app(shop: Shop, tmp_path: Path) -> Iterator[App]:
    app = App(shop, tmp_path)
    yield app
    for worker in app.workers:
        os.killpg(worker.pid, 9)
        worker.wait()
    app.source.close()
    app.celery.close()


def test_consumers_that_are_cancelled_show_until_they_are_added_again(app: App) -> None:
    app.send("early")
    app.work("-c", "1")
    app.go()
    eventually(lambda: app.sample().suspension is Suspension.NONE)
    app.celery.control.cancel_consumer("mail")
    eventually(lambda: app.sample().suspension is Suspension.NO_CONSUMERS)
    app.celery.control.add_consumer("mail")
    eventually(lambda: app.sample().suspension is Suspension.NONE)


def test_late_acknowledgements_count_what_runs_and_what_is_reserved(app: App) -> None:
    app.send("late", 12)
    app.comes_to(12, 0)  # they are published without a confirmation
    app.work("-c", "2", "--prefetch-multiplier", "2")
    app.comes_to(8, 4)
    assert app.sample().in_flight_jobs is None  # the broker cannot tell that these are all
    assert app.is_own_answer(active=2, reserved=2)
    found = {queue.name: (queue.waiting_jobs, queue.workers) for queue in app.source.discover()}
    assert found == {"mail": (8, 1)}  # none of the queues with which workers are controlled
    app.go()
    app.comes_to(0, 0)


def test_early_acknowledgements_count_what_is_reserved_and_jobs_for_later_as_well(app: App) -> None:
    """What runs has left the broker: workers report it themselves."""
    app.send("early", 16)
    app.work("-c", "2")
    app.comes_to(6, 8)
    assert app.sample().in_flight_jobs is None  # ten are
    assert app.is_own_answer(active=2, reserved=8)
    app.go()
    app.comes_to(0, 0)
    app.send("early", 3, countdown=600)
    app.comes_to(0, 3)
    assert app.is_own_answer(active=0, scheduled=3)


def test_jobs_for_later_of_a_quorum_queue_are_delayed_until_they_are_due(app: App) -> None:
    mail = Queue("mail", Exchange("mail", type="topic"), routing_key="mail", queue_arguments=QUORUM)
    app.celery.conf.update(task_queues=[mail], broker_transport_options={"confirm_publish": True})
    app.work("-c", "1", "--prefetch-multiplier", "1", QUORUM="yes")
    app.comes_to(0, 0, None)  # a worker may hold some, as of an exchange that is none of topics
    eventually(app.delays_in_broker)
    app.send("late", 4, countdown=600)
    app.comes_to(0, 0, 4)
    # 600 s are 512 + 64 + 16 + 8: they wait at level 9, for 512 s at least from when they entered it.
    (delayed,) = delayed_from(app.sample().due)
    assert delayed.jobs == 4
    assert 400.0 < delayed.due_in_s < 512.0
    again = app.restarted()
    (sample,) = again.poll(time.time() + 300.0).samples
    again.close()
    (later,) = delayed_from(sample.due)
    assert later.jobs == 4
    assert delayed.due_in_s - 360.0 < later.due_in_s <= delayed.due_in_s - 300.0, (
        "time goes on, for another collector, too"
    )
    app.send("late", countdown=3)
    app.comes_to(0, 1, 4)  # due, and begun
    app.send("late", 2)
    app.comes_to(2, 1, 4)
    # Celery delays no job of a queue that no worker serves, as of one of dead letters.
    app.shop.declare("dead", arguments=QUORUM)
    app.shop.channel.exchange_declare("dlx", "topic", durable=True, auto_delete=False)
    app.shop.channel.queue_bind("dead", "dlx", "#")
    app.comes_to(2, 1, 4)
    assert app.sample("dead").delayed_jobs is None
    # Of a second queue, the broker does not say to which one they go: not of one that is not read, either.
    news = Queue("news", Exchange("news", type="topic"), routing_key="news", queue_arguments=QUORUM)
    with app.celery.connection() as connection:
        news(connection).declare()
        delays.bind_queue_to_native_delayed_delivery_exchange(connection, news)
    eventually(lambda: app.sample("news").delayed_jobs is None)
    assert app.sample().delayed_jobs is None
    one = app.restarted(queues=("mail",))
    assert {each.queue: each.delayed_jobs for each in one.poll(time.time()).samples} == {"shop/mail": None}
    app.shop.channel.queue_delete("news")
    (sample,) = one.poll(time.time() + ROUTES_EVERY_S).samples
    assert sample.delayed_jobs == 4
    one.close()


def test_jobs_for_later_are_counted_in_the_chain_of_each_prefix(app: App) -> None:
    mail = Queue("mail", Exchange("mail", type="topic"), routing_key="mail", queue_arguments=QUORUM)
    with app.celery.connection() as connection:
        mail(connection).declare()
        for prefix, jobs in ((None, 1), ("eu", 2), ("us_celery_delayed_1", 3)):
            delays.declare_native_delayed_delivery_exchanges_and_queues(connection, "classic", prefix)
            delays.bind_queue_to_native_delayed_delivery_exchange(connection, mail, prefix)
            entrance = Exchange(delays.level_name(delays.MAX_LEVEL, prefix), type="topic")
            producer = Producer(connection, exchange=entrance)
            for _ in range(jobs):
                producer.publish("x", routing_key=delays.calculate_routing_key(600, "mail"))
    app.comes_to(0, 0, 1 + 2 + 3)
    assert sum(each.jobs for each in delayed_from(app.sample().due)) == 6
    assert [each.name for each in app.source.discover()] == ["mail"]
    again = app.restarted(management_url="http://127.0.0.1:9")  # without the management API, which shows arguments
    counts: list[int | None] = []

    def is_whole() -> bool:
        samples = again.poll(time.time()).samples
        assert {each.queue for each in samples} <= {"shop/mail"}
        counts.extend(each.delayed_jobs for each in samples)
        return counts[-1:] == [6]

    eventually(is_whole)
    assert set(counts) <= {None, 6}, "of 85 queues, one poll asks 50"
    again.close()


def test_a_library_has_a_collector_for_each_of_its_brokers() -> None:
    libraries = Libraries()
    assert libraries.of(Connection(name="a", url="amqp://h", library="celery")) is CELERY_ON_RABBITMQ
    assert libraries.of(Connection(name="a", url="pyamqp://h", library="celery")) is CELERY_ON_RABBITMQ
    assert libraries.of(Connection(name="a", url="redis://h", library="celery")).title == "Celery"
    assert libraries.names == ("celery", "rabbitmq", "rq")
    assert CELERY_ON_RABBITMQ.accuracy.keys() == set(Figure)


def polled(app: App) -> dict[str, PolledQueue]:
    """What a poll says of each queue that it names."""
    poll = app.source.poll(time.time()).poll
    assert poll is not None
    return {row.queue.partition("/")[2]: row for row in poll.queues}


def test_a_poll_says_how_many_wait_are_held_and_consume(app: App) -> None:
    app.send("early", 7)
    eventually(lambda: polled(app) == {"mail": row(waiting_jobs=7, held_jobs=0, consumers=0)})
    app.work("-c", "1", "-P", "threads", "--prefetch-multiplier", "2")
    eventually(lambda: polled(app) == {"mail": row(waiting_jobs=4, held_jobs=2, consumers=1)})
    app.go()
    eventually(lambda: polled(app) == {}, within_s=20.0)


def row(**figures: int) -> PolledQueue:
    return PolledQueue(queue="shop/mail", is_ordered=True, **figures)


@pytest.mark.parametrize(
    "arguments",
    [{"x-max-priority": 5}, {"x-message-ttl": 60_000}, {"x-max-length": 10}, {"x-max-length-bytes": 10_000}],
)
def test_a_queue_out_of_which_jobs_leave_elsewhere_is_not_ordered(app: App, arguments: dict[str, int]) -> None:
    app.shop.declare("odd", arguments=arguments)
    app.shop.publish("odd")
    eventually(lambda: "odd" in polled(app))
    assert not polled(app)["odd"].is_ordered


def test_a_quorum_queue_is_not_ordered_because_its_figures_are_old(app: App) -> None:
    app.shop.declare("slow", arguments=QUORUM)
    eventually(lambda: "slow" in polled(app))
    assert not polled(app)["slow"].is_ordered


def test_under_a_policy_a_queue_is_not_ordered(app: App) -> None:
    """The policy may drop jobs, and its definition is for administrators."""
    app.send("early")
    app.shop.server.api("PUT", f"policies/{app.shop.vhost}/short", {"pattern": "mail", "definition": {"max-length": 3}})
    eventually(lambda: "mail" in polled(app) and not polled(app)["mail"].is_ordered)
