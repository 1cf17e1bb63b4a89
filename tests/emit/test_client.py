"""The telemetry client against a real gRPC server."""

import threading

import grpc
import pytest

from emit.service import Service, serving
from headway.emit.client import TelemetryClient
from headway.errors import Forbidden, Invalid, Misconfigured, NotFound, Overloaded, Unauthenticated, Unavailable
from headway.scaling.model import EventKind, JobEvent, Receipt, TelemetryBatch

BATCH = TelemetryBatch(
    producer="test",
    sequence=1,
    sent_at_s=1.0,
    events=(JobEvent(queue="redis/mail", job_id="a", kind=EventKind.STARTED, at_s=1.0, enqueued_at_s=0.5),),
)


@pytest.fixture
def service():
    with serving(Service()) as service:
        yield service


@pytest.fixture
def client(service: Service):
    client = TelemetryClient(service.address, token="secret")
    yield client
    client.close()


def test_a_batch_arrives_as_it_was_sent_and_its_receipt_comes_back(service: Service, client: TelemetryClient) -> None:
    assert client.send(BATCH) == Receipt(is_duplicate=False, accepted_events=1)
    assert client.send(BATCH) == Receipt(is_duplicate=True, accepted_events=1)
    assert service.calls == [BATCH, BATCH]
    assert service.metadata["authorization"] == "Bearer secret"


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (grpc.StatusCode.INVALID_ARGUMENT, Invalid),
        (grpc.StatusCode.NOT_FOUND, NotFound),
        (grpc.StatusCode.UNAUTHENTICATED, Unauthenticated),
        (grpc.StatusCode.PERMISSION_DENIED, Forbidden),
        (grpc.StatusCode.UNIMPLEMENTED, Misconfigured),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, Overloaded),
        (grpc.StatusCode.CANCELLED, Unavailable),
        (grpc.StatusCode.UNAVAILABLE, Unavailable),
        (grpc.StatusCode.INTERNAL, Unavailable),
    ],
)
def test_a_status_becomes_the_error_that_says_what_can_be_done(
    service: Service, client: TelemetryClient, status: grpc.StatusCode, error: type[Exception]
) -> None:
    service.fails_with = status
    with pytest.raises(error, match=f"^control plane at {service.address}: as asked$") as raised:
        client.send(BATCH)
    assert type(raised.value) is error


def test_no_answer_in_time_is_unavailable(service: Service) -> None:
    client = TelemetryClient(service.address, token=None, deadline_s=0.1)
    service.forgets_to_answer.set()
    with pytest.raises(Unavailable, match=r"no answer within 0\.1 s$"):
        client.send(BATCH)
    client.close()


def test_of_several_control_planes_the_next_is_called_when_one_does_not_answer(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its batch goes there when the outbox tries again, and is counted once wherever it goes."""
    monkeypatch.setattr("headway.wire.lines.random.randrange", lambda _: 0)
    client = TelemetryClient("127.0.0.1:1", service.address, token=None)
    with pytest.raises(Unavailable, match=r"control plane at 127\.0\.0\.1:1: nothing answers there"):
        client.send(BATCH)
    assert [client.send(BATCH).is_duplicate for _ in range(2)] == [False, True]
    client.close()


def test_nobody_there_is_unavailable_and_says_so() -> None:
    client = TelemetryClient("127.0.0.1:1", token=None)
    with pytest.raises(Unavailable, match="nothing answers there; is `headway control` running"):
        client.send(BATCH)
    client.close()


def test_closing_ends_a_call_under_way(service: Service) -> None:
    client = TelemetryClient(service.address, token=None)
    service.forgets_to_answer.set()
    errors = []

    def send() -> None:
        try:
            client.send(BATCH)
        except Unavailable as error:
            errors.append(error)

    thread = threading.Thread(target=send)
    thread.start()
    while not service.calls:
        thread.join(0.01)
    client.close()
    thread.join(60.0)
    assert len(errors) == 1
    with pytest.raises(Unavailable, match="closed"):
        client.send(BATCH)
