"""Connections that ask for nothing: neither port may end for them, nor keep those waiting who ask."""

import re
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from headway.wire.v1 import agent_pb2
from security.planes import ANSWER_S, TOKEN, Plane, serving

FLOOD = 700
LIMIT = 1024
ENDED = re.compile(r'^headway_http_ended_connections_total\{reason="(\w+)"\} (\d+)', re.MULTILINE)


@pytest.fixture
def plane(migrated_url: str, tmp_path: Path) -> Iterator[Plane]:
    with serving(migrated_url, tmp_path, open_files=LIMIT) as plane:
        yield plane


def opened(stack: ExitStack, address: str, sent: bytes) -> list[socket.socket]:
    """Connections that have sent this, as many as get through."""
    host, port = address.removeprefix("http://").rsplit(":", 1)
    found = []
    for _ in range(FLOOD):
        with suppress(OSError):
            each = stack.enter_context(socket.create_connection((host, int(port)), timeout=ANSWER_S))
            each.sendall(sent)
            found.append(each)
    return found


def ended(each: socket.socket) -> bool:
    try:
        while each.recv(65_536):
            pass
    except ConnectionError:
        pass
    except TimeoutError:
        return False
    return True


def test_both_ports_serve_while_somebody_takes_every_connection_and_slow_ones_end(plane: Plane) -> None:
    """1,024 descriptors, taken at either port, ended the work of both."""
    with ExitStack() as stack:
        slow = opened(stack, plane.http, b"GET /v1/health HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ")
        opened(stack, plane.grpc, b"PRI * HTTP/2.0\r\n")
        with plane.client() as client:
            assert client.get("/v1/profiles").status_code == 200
            assert client.post("/v1/telemetry", json={"producer": "p", "sequence": 1, "sent_at_s": 1.0}).is_success
            assert all(ended(each) for each in slow[-20:])
            counts = {why: int(count) for why, count in ENDED.findall(client.get("/metrics").text)}
        assert counts.keys() == {"room", "headers", "body"}
        assert counts["room"] > 0
        assert counts["headers"] >= 20
        assert sum(counts.values()) <= FLOOD
    assert any("only 1024 descriptors" in line for line in plane.said)
    assert not [line for line in plane.said if "Traceback" in line or "Too many open files" in line]
    with plane.channel() as channel:
        call = channel.unary_unary("/headway.wire.v1.AgentService/Enrol")
        message = agent_pb2.EnrolRequest(host_name="a", boot_id="b", agent_id="a").SerializeToString()
        assert call(message, metadata=(("authorization", f"Bearer {TOKEN}"),), timeout=ANSWER_S, wait_for_ready=True)


def test_a_client_that_goes_on_asking_is_never_ended(plane: Plane) -> None:
    with plane.client() as client:
        until_s = time.monotonic() + 12.0
        while time.monotonic() < until_s:
            assert client.get("/v1/health/live").status_code == 200
            time.sleep(0.4)  # the pause between two requests of a person
