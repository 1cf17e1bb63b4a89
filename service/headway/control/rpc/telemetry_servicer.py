"""TelemetryService over gRPC."""

import asyncio
from typing import Any

import grpc.aio

from headway.control.ingest.batch_validation import check_size
from headway.control.ingest.ingest import Ingest
from headway.control.rpc.call_permissions import CALLER
from headway.control.rpc.grpc_errors import with_status
from headway.wire import codec
from headway.wire.v1 import telemetry_pb2, telemetry_pb2_grpc

DECODED_BESIDE_ITEMS = 1_000  # more take milliseconds, for which evaluations and polls should not wait


class TelemetryServicer(telemetry_pb2_grpc.TelemetryServiceServicer):
    """Hands each batch to ingest and answers with its receipt."""

    def __init__(self, ingest: Ingest) -> None:
        self._ingest = ingest

    def add_to(self, server: grpc.aio.Server) -> None:
        """Make ``server`` route the service's calls here."""
        telemetry_pb2_grpc.add_TelemetryServiceServicer_to_server(self, server)

    @with_status
    async def Ingest(  # noqa: N802 - the name in the .proto file
        self, request: telemetry_pb2.IngestRequest, _context: Any
    ) -> telemetry_pb2.IngestResponse:
        """Accept one batch."""
        count = len(request.events) + len(request.samples) + len(request.activities) + len(request.counts)
        check_size(count, producer=request.producer)
        if count <= DECODED_BESIDE_ITEMS:
            batch = codec.batch_from_message(request)
        else:
            batch = await asyncio.to_thread(codec.batch_from_message, request)
        return codec.message_of(telemetry_pb2.IngestResponse, await self._ingest.accept(batch, CALLER.get()))
