"""Telemetry over gRPC, from the side that sends it. One attempt a call; when to try again is the outbox's business."""

from collections.abc import Callable

import grpc

from headway.errors import HeadwayError, Unavailable
from headway.scaling.model import Receipt, TelemetryBatch
from headway.wire import codec
from headway.wire.channel import Tls, handshake_failure
from headway.wire.lines import Line, Lines
from headway.wire.statuses import ERRORS
from headway.wire.v1 import telemetry_pb2
from headway.wire.v1.telemetry_pb2_grpc import TelemetryServiceStub

DEADLINE_S = 5.0  # a batch is durable within some 20 ms; seconds only where the control plane is flooded

_OPTIONS = (
    # gRPC's own pause between two connects grows to two minutes; ours is the outbox's, and shorter.
    ("grpc.initial_reconnect_backoff_ms", 200),
    ("grpc.max_reconnect_backoff_ms", 2_000),
    # A control plane that vanished without a word is noticed within a minute.
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 15_000),
    ("grpc.http2.ping_timeout_ms", 15_000),
    # A proxy set up for the web has no way to the control plane, and loopback needs none.
    ("grpc.enable_http_proxy", 0),
)


class TelemetryClient:
    """A connection to one of the control planes at ``addresses``, made at the first call and again when it is lost.

    Threads may share it. A batch is known by its producer and number to all of them. ``tls`` is asked for each
    connection.
    """

    def __init__(
        self,
        *addresses: str,
        token: str | None,
        deadline_s: float = DEADLINE_S,
        tls: Callable[[], Tls | None] = lambda: None,
    ) -> None:
        self._deadline_s = deadline_s
        self._metadata = (("authorization", f"Bearer {token}"),) if token else ()
        self._lines = Lines(addresses, stub=TelemetryServiceStub, options=_OPTIONS, tls=tls)

    def send(self, batch: TelemetryBatch) -> Receipt:
        """Send ``batch`` once; return when it can no longer be lost.

        Raises:
            Refused: repeating it cannot help: the batch or the token is wrong (``Invalid``, ``Unauthenticated``, …).
            Unavailable: no answer, or one that asks to retry later. The batch may have been taken all the same.
        """
        line = self._lines.now
        try:
            answer: telemetry_pb2.IngestResponse = line.stub.Ingest(
                codec.batch_to_message(batch), timeout=self._deadline_s, metadata=self._metadata
            )
        except grpc.RpcError as error:
            self._lines.failed(line, error)
            raise self._failure(line, error) from error
        except ValueError as error:  # gRPC's error for a closed channel
            raise Unavailable(f"control plane at {line.address}: this client is closed") from error
        self._lines.answered(line)
        return codec.value_of(Receipt, answer)

    def close(self) -> None:
        """Let the connection go. A call under way in another thread ends at once, as ``Unavailable``."""
        self._lines.close()

    def _failure(self, line: Line[TelemetryServiceStub], error: grpc.RpcError) -> HeadwayError:
        status, details = error.code(), error.details() or ""
        kind = ERRORS.get(status, Unavailable)  # of any other the batch may be right, the moment is not
        if status is grpc.StatusCode.DEADLINE_EXCEEDED:
            details = f"no answer within {self._deadline_s:g} s"
        elif (failure := handshake_failure(details)) is not None:
            return kind(f"the control plane at {line.address} {failure}")
        elif details.startswith("failed to connect"):
            details = "nothing answers there; is `headway control` running?"
        return kind(f"control plane at {line.address}: {details or status.name}")
