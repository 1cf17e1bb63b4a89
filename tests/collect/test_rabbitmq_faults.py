"""What a collector of RabbitMQ reports while its broker fails: no zero that is none, and one log line a change."""

import http.server
import json
import logging
import ssl
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from collect.rabbit_shop import QUORUM, Shop
from headway.collect.collector_loop import Collector
from headway.collect.rabbitmq.management_api import ManagementApi
from headway.collect.rabbitmq.rabbitmq_source import RABBITMQ, RabbitmqSource
from headway.control.auth.pki import make_ca, make_server
from headway.emit.outbox import Outbox
from headway.errors import Misconfigured, Unavailable
from headway.scaling.model import QueueSample, TelemetryBatch
from support.faulty_proxy import FaultyProxy
from support.ports import free_port

pytestmark = pytest.mark.e2e

BACK_WITHIN_S = 5.0
SLACK_S = 15.0  # of a machine that has much else to do


class Watched:
    """A collector of a virtual host with two queues, behind a proxy for AMQP and one for the management API."""

    def __init__(self, shop: Shop, folder: Path) -> None:
        self.shop = shop
        for queue, more in (("mail", {}), ("quorum", {"arguments": QUORUM})):
            shop.declare(queue, **more)
            shop.publish(queue, 3)
        self.amqp, self.api = FaultyProxy(shop.server.port), FaultyProxy(shop.server.management_port)
        connection = shop.connection(
            url=shop.url.replace(f":{shop.server.port}", f":{self.amqp.port}"),
            management_url=f"http://127.0.0.1:{self.api.port}",
            every_s=0.1,
        )
        self.sent: list[QueueSample] = []
        outbox = Outbox(folder / "shop.json", name="collect-shop", send=self._take, clock=time.time)
        self.collector = Collector(connection, RABBITMQ, outbox)
        self.pause_s = 0.0

    def turns(self, *, for_s: float) -> list[tuple[str, int, int | None]]:
        """Let it work; what it sends meanwhile: queue, waiting, in flight."""
        self.sent.clear()
        until_s = time.monotonic() + for_s
        while time.monotonic() < until_s:
            self.pause_s = self.collector.turn()
            time.sleep(min(self.pause_s, 0.2))
        return [(each.queue.removeprefix("shop/"), each.waiting_jobs, each.in_flight_jobs) for each in self.sent]

    def is_back(self) -> bool:
        """Whether everything is known again in time. A turn may begin just before the fault has ended."""
        self.sent.clear()
        until_s = time.monotonic() + BACK_WITHIN_S + SLACK_S
        while time.monotonic() < until_s:
            time.sleep(min(self.collector.turn(), BACK_WITHIN_S))
            newest = {each.queue: (each.waiting_jobs, each.in_flight_jobs) for each in self.sent}
            if newest == {"shop/mail": (3, 0), "shop/quorum": (3, 0)}:
                return True
        return False

    def close(self) -> None:
        self.collector.close()
        self.amqp.close()
        self.api.close()

    def _take(self, batch: TelemetryBatch) -> None:
        self.sent += batch.samples


@pytest.fixture
def watched(shop: Shop, tmp_path: Path) -> Iterator[Watched]:
    watched = Watched(shop, tmp_path)
    yield watched
    watched.close()


def test_while_the_management_api_hangs_what_is_in_flight_is_unknown_and_waiting_jobs_are_not(
    watched: Watched, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="headway.collect")
    assert set(watched.turns(for_s=0.5)) == {("mail", 3, 0), ("quorum", 3, 0)}
    watched.api.is_silent = True
    watched.api.hang_up()
    assert set(watched.turns(for_s=6.0)) == {("mail", 3, None), ("quorum", 3, None)}
    watched.api.is_silent = False
    watched.api.hang_up()
    assert watched.is_back()
    lines = [record.message for record in caplog.records if "API" in record.message]
    assert len(lines) == 2, lines
    assert lines[0].startswith("management API lost connection=shop: management API http://127.0.0.1:")
    assert lines[0].endswith("jobs in flight are unknown")
    assert lines[1] == "management API back connection=shop"


@pytest.mark.proof
def test_an_api_that_answers_byte_by_byte_is_given_up_in_time(watched: Watched) -> None:
    assert watched.turns(for_s=0.3)
    watched.api.byte_s = 0.1
    began_s = time.monotonic()
    watched.collector.turn()
    assert 3.0 < time.monotonic() - began_s < 4.0 + SLACK_S
    assert ("mail", 3, None) in watched.turns(for_s=1.0)
    watched.api.byte_s = None
    assert watched.is_back()


@pytest.mark.proof
def test_without_amqp_quorum_queues_are_read_with_a_lag_and_with_neither_nothing_is_reported(
    watched: Watched, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="headway.collect")
    assert watched.turns(for_s=0.3)
    watched.amqp.is_silent = True
    watched.amqp.hang_up()
    assert {queue for queue, *_ in watched.turns(for_s=5.0)} == {"mail", "quorum"}
    assert ("mail", 0) not in {(queue, waiting) for queue, waiting, _ in watched.turns(for_s=0.5)}
    watched.api.late_s = 10.0
    watched.api.hang_up()
    watched.collector.turn()
    assert watched.turns(for_s=5.0) == []
    watched.api.late_s, watched.amqp.is_silent = 0.0, False
    watched.api.hang_up()
    watched.amqp.hang_up()
    assert watched.is_back()
    lines = [record.message.split(" connection=")[0] for record in caplog.records]
    assert {line: lines.count(line) for line in ("AMQP lost", "AMQP back", "broker lost", "broker back")} == {
        "AMQP lost": 1,
        "AMQP back": 1,
        "broker lost": 1,
        "broker back": 1,
    }


@pytest.mark.parametrize(
    ("login", "tags", "is_permitted", "vhost", "expected"),
    [
        ("app:wrong", "management", True, None, r"refuses the login .*: check its user and password"),
        ("app:right", "management", True, "none", r"refuses the virtual host .*: check the end of url"),
        ("app:right", "management", False, None, r"refuses the virtual host .*: check the end of url"),
    ],
    ids=["wrong password", "no such virtual host", "no permission there"],
)
def test_a_login_that_is_refused_is_a_sentence_without_the_password(
    shop: Shop, login: str, tags: str, is_permitted: bool, vhost: str | None, expected: str
) -> None:
    shop.declare("mail")
    shop.server.api("PUT", "users/app", {"password": "right", "tags": tags})
    if is_permitted:
        shop.server.permit(shop.vhost, "app", "")
    url = shop.server.make_url(vhost or shop.vhost, login)
    source = RabbitmqSource(shop.connection(url=url, queues=("mail",)), None)
    with pytest.raises(Unavailable, match=expected) as caught:
        source.poll(1.0)
    assert login.partition(":")[2] not in str(caught.value)
    shop.server.api("DELETE", "users/app")


def test_a_login_without_the_tag_counts_what_waits(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    shop.declare("mail")
    shop.publish("mail", 2)
    shop.server.api("PUT", "users/app", {"password": "right", "tags": ""})
    shop.server.permit(shop.vhost, "app", "")
    url = shop.server.make_url(shop.vhost, "app:right")
    source = RabbitmqSource(shop.connection(url=url, queues=("mail", "m-*")), None)
    for _ in range(2):
        assert shop.counts(source=source) == {"mail": (2, None)}
    (line,) = [record.message for record in caplog.records]
    assert "the user needs the tag 'management'" in line
    source.close()
    unnamed = RabbitmqSource(shop.connection(url=url), None)
    with pytest.raises(Unavailable, match="no queue is known without it"):
        unnamed.poll(1.0)
    unnamed.close()
    shop.server.api("DELETE", "users/app")


def test_without_the_plugin_what_waits_is_counted_and_what_was_deleted_is_empty(shop: Shop) -> None:
    shop.declare("mail")
    shop.declare("news")
    shop.publish("mail", 2)
    known = shop.source
    assert shop.counts() == {"mail": (2, 0), "news": (0, 0)}
    away = RabbitmqSource(shop.connection(management_url=f"http://127.0.0.1:{free_port()}"), known.cursor())
    assert shop.counts(source=away) == {"mail": (2, None), "news": (0, None)}
    shop.channel.queue_delete("mail")
    assert shop.counts(source=away) == {"mail": (0, 0), "news": (0, None)}
    shop.declare("mail")
    shop.publish("mail")
    assert shop.counts(source=away) == {"mail": (1, None), "news": (0, None)}
    assert [queue.name for queue in away.discover()] == ["mail", "news"]
    away.close()


def test_while_the_api_is_away_a_single_active_consumer_is_known(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """A queue cannot change it. Forgotten, a pool would get workers that only wait."""

    def useful(source: RabbitmqSource) -> dict[str, int | None]:
        return {name: each.useful_workers for name, each in shop.samples(source=source).items()}

    shop.declare("mail", arguments={"x-single-active-consumer": True})
    shop.declare("news")
    for name in ("mail", "news"):
        shop.publish(name)
    assert useful(shop.source) == {"mail": 1, "news": None}
    away = RabbitmqSource(
        shop.connection(management_url=f"http://127.0.0.1:{free_port()}"), json.loads(json.dumps(shop.source.cursor()))
    )
    assert useful(away) == {"mail": 1, "news": None}
    monkeypatch.setattr(ManagementApi, "queues", lambda _: ())  # it begins, and lists none yet
    assert useful(away) == useful(shop.source) == {"mail": 1, "news": None}
    monkeypatch.undo()
    shop.channel.queue_delete("mail")
    shop.declare("mail")
    assert useful(shop.source) == {"mail": None, "news": None}
    away.close()


def test_a_queue_that_the_api_leaves_out_is_not_empty_because_a_declare_says_so(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of a quorum queue whose leader is away: in test_faults.py it is."""
    shop.declare("mail", arguments=QUORUM)
    assert shop.counts() == {"mail": (0, 0)}
    monkeypatch.setattr(ManagementApi, "queues", lambda _: ())
    assert shop.counts() == {}
    shop.publish("mail")
    assert shop.counts() == {"mail": (1, None)}


def test_a_certificate_that_is_not_trusted_is_refused_and_one_that_is_serves(shop: Shop, tmp_path: Path) -> None:
    ca = make_ca("test")
    pair = make_server(ca, ["broker"])  # and of this machine
    for name, text in (("ca.crt", ca.certificate), ("a.crt", pair.certificate), ("a.key", pair.key)):
        (tmp_path / name).write_bytes(text)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(tmp_path / "a.crt", tmp_path / "a.key")
    amqp, api = (FaultyProxy(each, tls=context) for each in (shop.server.port, shop.server.management_port))
    shop.declare("mail", arguments=QUORUM)
    shop.publish("mail", 2)
    url = shop.url.replace("amqp://", "amqps://").replace(f":{shop.server.port}", f":{amqp.port}")
    given: dict[str, Any] = {"url": url, "management_url": f"https://127.0.0.1:{api.port}"}
    trusting = RabbitmqSource(shop.connection(**given, ca_file=tmp_path / "ca.crt"), None)
    assert shop.counts(source=trusting)["mail"][0] == 2
    untrusting = RabbitmqSource(shop.connection(**given), trusting.cursor())
    with pytest.raises(Unavailable, match="certificate verify failed"):
        untrusting.poll(1.0)
    (tmp_path / "ca.crt").write_text("no certificate")
    with pytest.raises(Unavailable, match="cannot be reached"):
        RabbitmqSource(shop.connection(**given, ca_file=tmp_path / "ca.crt"), None).poll(1.0)
    for each in (trusting, untrusting, amqp, api):
        each.close()


@pytest.mark.parametrize("body", [b"{", b'{"a": 1}', b"\xff", b"[" * 5_000])
def test_an_api_that_says_something_else_is_no_api(shop: Shop, body: bytes) -> None:
    class Other(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Nothing."""

    shop.declare("mail")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Other) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/rabbit"
        source = RabbitmqSource(shop.connection(management_url=url, queues=("mail",)), None)
        assert shop.counts(source=source) == {"mail": (0, None)}
        source.close()
        server.shutdown()


def test_a_password_file_that_is_not_there_is_a_mistake_at_the_start(shop: Shop, tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match=r"password_file .* cannot be read"):
        RabbitmqSource(shop.connection(password_file=tmp_path / "none"), None)
