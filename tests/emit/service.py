"""A telemetry service small enough for a test: keeps what it takes, counts a batch once, and fails as configured."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import grpc

from headway.scaling.model import JobEvent, TelemetryBatch
from headway.wire import codec
from headway.wire.v1 import telemetry_pb2, telemetry_pb2_grpc


class Service(telemetry_pb2_grpc.TelemetryServiceServicer):
    """One that takes everything, unless ``fails_with`` or ``forgets_to_answer`` say otherwise."""

    def __init__(self) -> None:
        self.calls: list[TelemetryBatch] = []
        self.taken: dict[tuple[str, int], TelemetryBatch] = {}
        self.metadata: dict[str, str] = {}
        self.fails_with: grpc.StatusCode | None = None
        self.forgets_to_answer = threading.Event()
        """Batches are taken, and no answer is sent until it is cleared or the caller gives up."""
        self.left_s: list[float] = []
        """What was left of a caller's time each time it gave up such a call."""
        self.address = ""

    def Ingest(self, request, context):  # noqa: N802 - the name in the .proto file
        batch = codec.batch_from_message(request)
        self.calls.append(batch)
        self.metadata = dict(context.invocation_metadata())
        if self.fails_with is not None:
            context.abort(self.fails_with, "as asked")
        is_duplicate = (batch.producer, batch.sequence) in self.taken
        self.taken.setdefault((batch.producer, batch.sequence), batch)
        while self.forgets_to_answer.is_set() and context.is_active():
            threading.Event().wait(0.01)
        if not context.is_active():
            self.left_s.append(context.time_remaining())
        return telemetry_pb2.IngestResponse(is_duplicate=is_duplicate, accepted_events=len(batch.events))

    @property
    def events(self) -> list[JobEvent]:
        """What the control plane would know: the events of each batch once."""
        return [event for batch in self.taken.values() for event in batch.events]


@contextmanager
def serving(service: Service, address: str = "127.0.0.1:0") -> Iterator[Service]:
    server = grpc.server(ThreadPoolExecutor(max_workers=8), options=[("grpc.so_reuseport", 0)])
    telemetry_pb2_grpc.add_TelemetryServiceServicer_to_server(service, server)
    port = server.add_insecure_port(address)
    service.address = f"127.0.0.1:{port}"
    server.start()
    try:
        yield service
    finally:
        service.forgets_to_answer.clear()
        server.stop(0).wait()
