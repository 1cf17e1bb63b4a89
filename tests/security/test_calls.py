"""The gRPC port against callers who mean no good: with a credential, without one, and with bytes that say nothing."""

import socket
import time
from collections import Counter
from collections.abc import Iterator

import grpc
import pytest

from headway.wire.v1 import agent_pb2
from headway.wire.v1.agent_pb2_grpc import AgentServiceStub
from security.fuzz import DEFECTS, METHODS, SHOWN, fuzzed
from security.hosts import Host
from security.other_address import relay_from_other_address
from security.planes import ANSWER_S, Plane

pytestmark = pytest.mark.e2e

ENROL, _, POLL, INGEST = METHODS
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\x04\0\0\0\0\0"


@pytest.fixture
def plane(shared_plane: Plane) -> Plane:
    return shared_plane


@pytest.fixture
def channel(plane: Plane) -> Iterator[grpc.Channel]:
    with plane.channel() as channel:
        yield channel


def status(channel: grpc.Channel, method: str, message: bytes, shown=SHOWN) -> grpc.StatusCode:
    try:
        channel.unary_unary(method)(message, metadata=shown, timeout=ANSWER_S)
    except grpc.RpcError as error:
        return error.code()
    return grpc.StatusCode.OK


def test_bytes_that_are_no_message_are_an_invalid_argument_and_leave_no_trace(
    plane: Plane, channel: grpc.Channel
) -> None:
    """They were UNKNOWN, and each left a trace in the log: 1.3 MB a second."""
    before = len(plane.said)
    for method in METHODS:
        for _ in range(25):
            assert status(channel, method, b"\xff\xff\xff\xff") is grpc.StatusCode.INVALID_ARGUMENT
            assert status(channel, ENROL, b"\x0a\xff", shown=()) is grpc.StatusCode.INVALID_ARGUMENT
    assert len(plane.said) - before <= len(METHODS)


def test_a_wait_that_is_no_number_is_an_invalid_argument(channel: grpc.Channel) -> None:
    message = agent_pb2.PollRequest(host_id="h", max_wait_s=float("nan"))
    assert status(channel, POLL, message.SerializeToString()) is grpc.StatusCode.INVALID_ARGUMENT


def test_whatever_is_called_the_answer_is_no_defect_of_ours(plane: Plane) -> None:
    before = len(plane.said)
    found = fuzzed(plane, calls=600, seed=13)
    assert not DEFECTS & found.keys(), found
    assert not [line for line in plane.said[before:] if "Traceback" in line]


def half_open(channel: grpc.Channel, method: str, shown=()) -> grpc.Future:
    """A call that never brings its message, and its end."""

    def never() -> Iterator[bytes]:
        time.sleep(ANSWER_S)
        yield b""

    return channel.stream_unary(method).future(never(), metadata=shown, timeout=ANSWER_S)


@pytest.mark.parametrize(
    ("method", "shown", "ended_as"),
    [
        (INGEST, (), grpc.StatusCode.UNAUTHENTICATED),
        (INGEST, (("authorization", "Bearer hwt_x"),), grpc.StatusCode.UNAUTHENTICATED),
        (ENROL, (), grpc.StatusCode.INVALID_ARGUMENT),
        (INGEST, SHOWN, grpc.StatusCode.INVALID_ARGUMENT),
    ],
)
def test_a_call_that_brings_no_message_is_ended(
    channel: grpc.Channel, method: str, shown: tuple[tuple[str, str], ...], ended_as: grpc.StatusCode
) -> None:
    """40,000 of them, 0.6 MB on the wire, took 0.8 GB for as long as the attacker liked."""
    call = half_open(channel, method, shown)
    assert call.code() is ended_as


def test_enrolments_that_bring_nothing_leave_room_for_one_that_does(plane: Plane) -> None:
    """From another address. From the flood's own, connections without a credential are ended as long as it lasts."""
    floods = [plane.channel() for _ in range(2)]
    calls = [half_open(flood, ENROL) for flood in floods for _ in range(60)]
    message = agent_pb2.EnrolRequest(host_name="late", boot_id="b", agent_id="a")
    with relay_from_other_address(plane.grpc) as there, grpc.insecure_channel(there) as channel:
        assert status(channel, ENROL, message.SerializeToString(), shown=()) is grpc.StatusCode.UNAUTHENTICATED
    # Some are refused, and then both connections are ended.
    assert {call.code() for call in calls} <= {
        grpc.StatusCode.INVALID_ARGUMENT,
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        grpc.StatusCode.UNAVAILABLE,
    }
    for flood in floods:
        flood.close()


def test_polls_of_one_host_are_bounded(plane: Plane, channel: grpc.Channel) -> None:
    stub = AgentServiceStub(channel)
    host = Host(stub, "polls")
    shown = (("authorization", f"Bearer {host.known.credential}"),)
    request = agent_pb2.PollRequest(cluster_id=host.known.cluster_id, host_id=host.known.host_id, max_wait_s=3.0)
    calls = [stub.Poll.future(request, metadata=shown, timeout=ANSWER_S) for _ in range(20)]
    codes = Counter(call.code() for call in calls)
    assert codes[grpc.StatusCode.RESOURCE_EXHAUSTED] == 12
    assert codes[grpc.StatusCode.OK] == 8


def test_the_end_of_a_hosts_connection_is_shown_long_before_its_next_report(plane: Plane) -> None:
    with plane.channel() as channel, plane.client() as people:

        def ended() -> float | None:
            (row,) = [row for row in people.get("/v1/hosts").json()["hosts"] if row["name"] == "cut"]
            return row["hung_up_s"]

        host = Host(AgentServiceStub(channel), "cut")
        host.report()
        shown = (("authorization", f"Bearer {host.known.credential}"),)
        request = agent_pb2.PollRequest(cluster_id=host.known.cluster_id, host_id=host.known.host_id, max_wait_s=60.0)
        assert ended() is None
        ends_by_s, held_s = time.monotonic() + ANSWER_S, 0.2
        while ended() is None:
            assert time.monotonic() < ends_by_s, "nobody has noticed"
            with plane.channel() as own:
                poll = AgentServiceStub(own).Poll.future(request, metadata=shown, timeout=60.0)
                time.sleep(held_s)  # a poll that has not arrived when its connection ends says nothing
                if poll.done():  # there was a newer assignment: the next poll has it, and is held
                    request.epoch, request.revision = poll.result().epoch, poll.result().revision
                    continue
            held_s *= 2
            until_s = time.monotonic() + 5.0
            while ended() is None and time.monotonic() < until_s:
                time.sleep(0.2)
        host.report()
        assert ended() is None


def test_one_connection_has_bounded_calls_at_once_and_a_silent_one_is_closed(plane: Plane) -> None:
    host, port = plane.grpc.rsplit(":", 1)
    with (
        socket.create_connection((host, int(port)), timeout=ANSWER_S) as silent,
        socket.create_connection((host, int(port)), timeout=ANSWER_S) as speaking,
    ):
        speaking.sendall(PREFACE)
        settings = speaking.recv(4096)
        pairs = {settings[n : n + 2]: settings[n + 2 : n + 6] for n in range(9, 9 + int.from_bytes(settings[:3]), 6)}
        assert int.from_bytes(pairs[b"\0\x03"]) == 1_000, "SETTINGS_MAX_CONCURRENT_STREAMS"
        began_s = time.monotonic()
        while silent.recv(4096):  # gRPC's own settings; then the end
            pass
        assert time.monotonic() - began_s < ANSWER_S
