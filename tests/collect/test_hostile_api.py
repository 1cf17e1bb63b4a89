"""A management API that is not RabbitMQ's, or no longer: whatever it answers is read or refused."""

import http.server
import threading
from collections.abc import Iterator
from http import HTTPStatus

import pytest

from headway.collect.rabbitmq.management_api import ManagementApi
from headway.connections import Connection
from headway.errors import Unavailable

HUGE = b"9" * 4_000  # JSON has no greatest number


class Answers(http.server.ThreadingHTTPServer):
    """An API that gives one answer to everything."""

    daemon_threads = True
    body = b"[]"


class _Handler(http.server.BaseHTTPRequestHandler):
    server: Answers

    def do_GET(self) -> None:
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Length", str(len(self.server.body)))
        self.end_headers()
        self.wfile.write(self.server.body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def answers() -> Iterator[Answers]:
    with Answers(("127.0.0.1", 0), _Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture
def api(answers: Answers) -> Iterator[ManagementApi]:
    url = f"http://127.0.0.1:{answers.server_port}"
    api = ManagementApi(Connection(name="r", library="rabbitmq", url="amqp://u:p@127.0.0.1/", management_url=url))
    yield api
    api.close()


def test_a_number_beyond_every_count_is_unknown(answers: Answers, api: ManagementApi) -> None:
    """No float takes it: ``head_time_s`` raised ``OverflowError``."""
    answers.body = (
        b'[{"name":"q","messages_ready":%b,"messages_unacknowledged":-1},{"name":"r","messages_ready":2}]' % HUGE
    )
    assert [(each.name, each.ready_jobs, each.unacked_jobs) for each in api.queues()] == [
        ("q", None, None),
        ("r", 2, None),
    ]
    answers.body = b'{"head_message_timestamp":%b}' % HUGE
    assert api.head_time_s("q") is None


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 500_000,
        b'[{"name":"q","type":' + b"[" * 500_000,
        b'{"a":1}',
        b"[1e999",
        b"\xff\xfe",
        b'[{"name":' + HUGE * 2,
    ],
)
def test_what_is_no_list_of_queues_is_refused(answers: Answers, api: ManagementApi, body: bytes) -> None:
    answers.body = body
    for _ in range(2):
        with pytest.raises(Unavailable, match="management API"):
            api.queues()
