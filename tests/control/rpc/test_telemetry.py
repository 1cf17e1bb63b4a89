"""TelemetryService from a client's side: real channel, real Postgres, real log."""

import asyncio
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TypeAlias

import grpc
import grpc.aio
import pytest

from control.telemetry import batch, hot_jobs, ingesting, sample
from headway.control.rpc.grpc_server import serve
from headway.control.rpc.telemetry_servicer import TelemetryServicer
from headway.scaling.model import TelemetryBatch
from headway.settings import Address
from headway.wire import codec
from headway.wire.v1 import telemetry_pb2, telemetry_pb2_grpc

BOUND_S = 60.0
ANSWER_S = 20.0
Stub: TypeAlias = "telemetry_pb2_grpc.TelemetryServiceAsyncStub"  # the type checker alone knows it


@pytest.fixture
async def stub(migrated_url: str, tmp_path: Path) -> AsyncIterator[Stub]:
    async with ingesting(migrated_url, tmp_path) as ingest:
        server = await serve([TelemetryServicer(ingest)], address=Address(host="127.0.0.1", port=0), token=None)
        async with grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
            yield telemetry_pb2_grpc.TelemetryServiceStub(channel)
        await server.stop(0)


async def test_a_batch_sent_twice_is_in_the_log_once(stub: Stub, tmp_path: Path) -> None:
    message = codec.batch_to_message(batch(1, events=2, samples=(sample("redis/news", 3),)))
    first = await stub.Ingest(message, timeout=BOUND_S)
    again = await stub.Ingest(message, timeout=BOUND_S)
    assert first == telemetry_pb2.IngestResponse(accepted_events=2, accepted_samples=1)
    assert again == telemetry_pb2.IngestResponse(is_duplicate=True)
    assert hot_jobs(tmp_path) == ["app-1-0", "app-1-1", "redis/news"]


@pytest.mark.parametrize(
    ("message", "says"),
    [
        (telemetry_pb2.IngestRequest(), "producer is empty"),
        (
            telemetry_pb2.IngestRequest(
                producer="app", events=[telemetry_pb2.JobEvent(queue="q", job_id="a", at_s=1.0)]
            ),
            "event of job 'a' in queue 'q': kind 0 is not known",
        ),
        (
            telemetry_pb2.IngestRequest(
                producer="app",
                events=[telemetry_pb2.JobEvent(queue="q", job_id="a", kind=telemetry_pb2.EVENT_KIND_STARTED)],
            ),
            "event of job 'a' in queue 'q': at_s=0.0 is no Unix time in seconds",
        ),
    ],
)
async def test_a_wrong_batch_is_the_callers_fault_and_named(
    stub: Stub, message: telemetry_pb2.IngestRequest, says: str
) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await stub.Ingest(message, timeout=BOUND_S)
    assert (refused.value.code(), refused.value.details()) == (grpc.StatusCode.INVALID_ARGUMENT, says)


async def test_the_largest_batch_fits_into_one_call(stub: Stub, tmp_path: Path) -> None:
    answer = await stub.Ingest(codec.batch_to_message(batch(1, events=10_000)), timeout=BOUND_S)
    assert answer.accepted_events == len(hot_jobs(tmp_path)) == 10_000


async def test_a_large_batch_is_decoded_beside_the_loop(stub: Stub, monkeypatch: pytest.MonkeyPatch) -> None:
    """10,000 items took 40 ms in which no evaluation, poll or renewal of the lease could run."""
    begun, decode, decoded = threading.Event(), threading.Event(), codec.batch_from_message

    def waiting(message: telemetry_pb2.IngestRequest) -> TelemetryBatch:
        begun.set()
        assert decode.wait(ANSWER_S), "nothing else ran meanwhile"
        return decoded(message)

    monkeypatch.setattr(codec, "batch_from_message", waiting)
    call = stub.Ingest(codec.batch_to_message(batch(1, events=10_000)), timeout=BOUND_S)
    assert await asyncio.to_thread(begun.wait, ANSWER_S)
    decode.set()
    assert (await call).accepted_events == 10_000


async def test_items_are_counted_before_anything_is_made_of_them(stub: Stub) -> None:
    """8 MB may hold 1.6 million of them, and each became a value before the batch was refused."""
    message = telemetry_pb2.IngestRequest(producer="app", events=[telemetry_pb2.JobEvent()] * 10_001)
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await stub.Ingest(message, timeout=BOUND_S)
    assert refused.value.details() == "batch of producer 'app': 10001 items, at most 10000 are taken: split it"
