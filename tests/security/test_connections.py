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
from support.sockets import is_ended

pytestmark = pytest.mark.e2e

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


def test_both_ports_serve_while_somebody_takes_every_connection_and_slow_ones_end(plane: Plane) -> None:
    """1,024 descriptors, taken at either port, ended the work of both."""
    with ExitStack() as stack:
        slow = opened(stack, plane.http, b"GET /v1/health HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ")
        opened(stack, plane.grpc, b"PRI * HTTP/2.0\r\n")
        with plane.client() as client:
            assert client.get("/v1/profiles").status_code == 200
            assert client.post("/v1/telemetry", json={"producer": "p", "sequence": 1, "sent_at_s": 1.0}).is_success
            assert all(is_ended(each) for each in slow[-20:])
            counts = {why: int(count) for why, count in ENDED.findall(client.get("/metrics").text)}
        assert counts.keys() == {"room", "headers", "body", "answer"}
        assert counts["room"] > 0
        assert counts["headers"] >= 20
        assert sum(counts.values()) <= FLOOD
    assert any("only 1024 descriptors" in line for line in plane.said)
    assert not [line for line in plane.said if "Traceback" in line or "Too many open files" in line]
    with plane.channel() as channel:
        call = channel.unary_unary("/headway.wire.v1.AgentService/Enrol")
        message = agent_pb2.EnrolRequest(host_name="a", boot_id="b", agent_id="a").SerializeToString()
        assert call(message, metadata=(("authorization", f"Bearer {TOKEN}"),), timeout=ANSWER_S, wait_for_ready=True)


def said_at(address: str, sent: bytes) -> bytes:
    """What the port says to these bytes before it ends the connection, or to whoever hangs up after them."""
    host, port = address.removeprefix("http://").rsplit(":", 1)
    with socket.create_connection((host, int(port)), timeout=ANSWER_S) as each:
        each.sendall(sent)
        each.shutdown(socket.SHUT_WR)
        said = b""
        with suppress(ConnectionError):
            while more := each.recv(65_536):
                said += more
    return said


def test_bytes_that_are_no_request_and_bodies_that_break_off_leave_a_line_and_no_trace(plane: Plane) -> None:
    """Each left a line of its own, or a trace of 60: whoever could reach the port filled the disk."""
    before = len(plane.said)
    head = f"POST /v1/telemetry HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer {TOKEN}\r\nContent-Length: 900\r\n\r\n{{"
    for _ in range(20):
        assert b"400 Bad Request" in said_at(plane.http, b"\x16\x03\x01\x02\x00\r\n\r\n")
        said_at(plane.http, head.encode())
        said_at(plane.grpc, b"\x16\x03\x01\x02\x00\r\n\r\n")
    with plane.client() as client:
        assert client.get("/v1/profiles").status_code == 200
    (line,) = (line for line in plane.said[before:] if " INFO " not in line)
    assert line.endswith("WARNING uvicorn.error Invalid HTTP request received.")


def test_a_request_of_two_lengths_hides_no_other(shared_plane: Plane) -> None:
    """The hidden one was answered: behind a proxy that goes by the other length, to somebody else."""
    shown = f"Host: h\r\nAuthorization: Bearer {TOKEN}\r\n"
    hidden = f"GET /v1/tokens HTTP/1.1\r\n{shown}\r\n"
    lengths = f"Content-Length: {5 + len(hidden)}\r\nTransfer-Encoding: chunked\r\n"
    said = said_at(shared_plane.http, f"POST /v1/telemetry HTTP/1.1\r\n{shown}{lengths}\r\n0\r\n\r\n{hidden}".encode())
    assert said.count(b"HTTP/1.1 ") == 1
    assert said.startswith(b"HTTP/1.1 400 ")
    assert b"connection: close" in said.lower()


LINES = {
    "head": "GET /v1/profiles HTTP/1.1\nHost: h\n{shown}\n\n",
    "value": "GET /v1/profiles HTTP/1.1\r\nHost: h\r\nX-Note: a\n{shown}\r\n\r\n",
    "trailers": "POST /v1/telemetry HTTP/1.1\r\nHost: h\r\n{shown}\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{{}}\r\n"
    "0\r\nX-Note: a\n\nGET /v1/profiles HTTP/1.1\r\nHost: h\r\n{shown}\r\n\r\n",
    "blank line before": "\nGET /v1/profiles HTTP/1.1\r\nHost: h\r\n{shown}\r\n\r\n",
}


def test_a_line_that_ends_in_lf_alone_is_refused(shared_plane: Plane) -> None:
    """A proxy may take the LF for a part of a value: what it passes on as one request was two, or of another length."""
    for name, sent in LINES.items():
        said = said_at(shared_plane.http, sent.format(shown=f"Authorization: Bearer {TOKEN}").encode())
        assert re.findall(rb"HTTP/1.1 (\d+)", said) == [b"400"], (name, said)


def test_a_body_that_breaks_after_the_answer_began_leaves_no_trace(shared_plane: Plane) -> None:
    """Without a credential, each left a trace of 25 lines: `LocalProtocolError`."""
    host, port = shared_plane.http.removeprefix("http://").rsplit(":", 1)
    for line in ("POST /v1/telemetry HTTP/1.1", f"GET /v1/events HTTP/1.1\r\nAuthorization: Bearer {TOKEN}"):
        with socket.create_connection((host, int(port)), timeout=ANSWER_S) as each:
            each.sendall(f"{line}\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
            assert each.recv(65_536).startswith(b"HTTP/1.1 ")
            each.sendall(b"no chunk\r\n")
            assert is_ended(each)
    with shared_plane.client() as client:
        assert client.get("/v1/health/live").status_code == 200
    assert not [line for line in shared_plane.said if "Traceback" in line]


def test_a_client_that_goes_on_asking_is_never_ended(shared_plane: Plane) -> None:
    with shared_plane.client() as client:
        until_s = time.monotonic() + 12.0
        while time.monotonic() < until_s:
            assert client.get("/v1/health/live").status_code == 200
            time.sleep(0.4)  # the pause between two requests of a person
