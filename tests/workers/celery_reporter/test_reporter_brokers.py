"""Workers on RabbitMQ report as those on Redis do, and what they do while either broker is away."""

from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from kombu import Connection, Exchange, Queue

from headway.store.embedded import ensure_valkey
from support.rabbitmq import RabbitServer
from support.waiting import eventually
from workers.celery_reporter.reporting import FINISHED, POOLS, reporting, unreported

pytestmark = pytest.mark.e2e

RECONNECTED_WITHIN_S = 180.0  # Celery's pauses grow by 2 s
Restart = tuple[str, Callable[[], object], Callable[[], object]]


@pytest.fixture(scope="module")
def rabbitmq(data_folder: Path) -> Iterator[RabbitServer]:
    server = RabbitServer(data_folder / "rabbitmq-of-reporters")
    try:
        server.start()
        yield server
    finally:
        server.close()


@pytest.fixture
def restarted(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Restart]:
    """The URL of a broker of the kind that the test asks for, and what stops and starts it."""
    if request.param == "rabbitmq":
        server: RabbitServer = request.getfixturevalue("rabbitmq")
        yield server.url, server.kill, server.start
        return
    claims = [ensure_valkey(tmp_path / "valkey")]
    url = f"redis+socket://{urlsplit(claims[0].url).path}"
    yield url, lambda: claims.pop().wait_stopped(), lambda: claims.append(ensure_valkey(tmp_path / "valkey"))
    assert all(claim.wait_stopped() for claim in claims)


@pytest.mark.parametrize(
    ("pool", "acks"),
    [("prefork", "early"), ("prefork", "late"), ("threads", "late"), ("solo", "early"), ("gevent", "late")],
)
def test_jobs_from_rabbitmq_are_reported_with_their_queues(
    pool: str, acks: str, rabbitmq: RabbitServer, tmp_path: Path
) -> None:
    """Also those of an exchange that the application does not know, since the worker has one queue only."""
    name = f"{pool} {acks}"
    queue = Queue(name, Exchange("of others", type="headers"), binding_arguments={"to": name, "x-match": "all"})
    with Connection(rabbitmq.url) as connection:
        queue(connection.default_channel).declare()
    environment = {"ACKS_LATE": "1"} if acks == "late" else {}
    with reporting(tmp_path, rabbitmq.url, (*POOLS[pool], f"--queues={name}"), environment) as worker:
        names = [f"job {number}" for number in range(10)]
        for each in names:
            worker.send(
                "works", 0.5, job_id=each, queue=None, exchange="of others", routing_key="any", headers={"to": name}
            )
        eventually(lambda: all(worker.life(each) == FINISHED for each in names))
        assert {line["queue"] for line in worker.lines if line["t"] != "beat"} == {name}
        beat = worker.next_beat()
        assert (beat["queues"], beat["begun"], beat["ended"], beat["running"]) == ([name], 10, 10, [])
        assert not unreported(worker)
        assert worker.stop() == 0


def test_a_job_that_rabbitmq_delays_is_of_its_queue(rabbitmq: RabbitServer, tmp_path: Path) -> None:
    """Celery's delayed delivery puts the bits of the delay in front of the key, and loses the exchange."""
    with reporting(tmp_path, rabbitmq.url, (*POOLS["solo"], "--queues=soon,later"), {"QUORUM": "1"}) as worker:
        worker.send("sends", "later", 2, queue=None, exchange="soon", routing_key="soon")
        eventually(lambda: worker.life("sent later") == FINISHED)
        begun = worker.events("sent later")[1]
        assert begun["at_s"] - worker.events("sends")[1]["at_s"] > 1.0
        assert {line["queue"] for line in worker.events("sent later")} == {"later"}


@pytest.mark.parametrize(
    ("restarted", "strategy", "order", "queues"),
    [
        ("redis", "", "in_turn", None),  # Celery's default
        ("redis", "round_robin", "in_turn", None),
        ("redis", "sorted", "strict", ["bulk", "urgent"]),
        ("redis", "priority", "strict", ["urgent", "bulk"]),
        ("rabbitmq", "", "by_arrival", None),
    ],
    indirect=["restarted"],
)
def test_a_worker_reports_in_what_order_it_takes_from_its_queues(
    strategy: str, order: str, queues: list[str] | None, restarted: Restart, tmp_path: Path
) -> None:
    url, _, _ = restarted
    words = (*POOLS["solo"], "--queues=urgent,bulk")
    with reporting(tmp_path, url, words, {"QUEUE_ORDER_STRATEGY": strategy}) as worker:
        eventually(lambda: worker.next_beat()["connected"])
        beat = worker.next_beat()
        assert beat["order"] == order
        assert sorted(beat["queues"]) == ["bulk", "urgent"]
        assert queues is None or beat["queues"] == queues


@pytest.mark.parametrize(
    ("restarted", "pool"),
    [("rabbitmq", "prefork"), ("redis", "prefork"), ("redis", "gevent")],
    indirect=["restarted"],
)
def test_a_job_is_running_also_while_the_broker_is_away(pool: str, restarted: Restart, tmp_path: Path) -> None:
    url, stop, start = restarted
    with reporting(tmp_path, url, POOLS[pool]) as worker:
        worker.send("works", 12.0)
        eventually(lambda: worker.beats[-1]["running"])
        stop()
        eventually(lambda: not worker.beats[-1]["connected"])
        away = worker.next_beat()
        assert [job[0] for job in away["running"]] == ["works"]
        assert away["queues"] == ["celery"]
        start()
        eventually(lambda: worker.beats[-1]["connected"], within_s=RECONNECTED_WITHIN_S)
        back = worker.next_beat()
        eventually(lambda: worker.beats[-1]["loop"] > back["loop"])
        eventually(lambda: worker.life("works")[:3] == FINISHED)
        worker.send("works", job_id="next")
        eventually(lambda: worker.life("next") == FINISHED)
        assert not unreported(worker)
