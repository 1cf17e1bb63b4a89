"""What each flood costs those who mean well: latency of healthy clients and memory of the control plane, side by side.

    python benchmarks/hostile.py [--seconds 8] [--only NAME]

Starts a control plane on an embedded Postgres, on loopback. Every flood is bounded in count and time. A healthy agent
reports and a healthy producer sends ten times a second; their p99 alone and during each flood is printed, with the
growth of the resident memory, evaluations that were late, and how the flood was answered.
"""

import argparse
import asyncio
import os
import socket
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import grpc
import grpc.aio

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from headway.store.embedded import ensure_postgres
from headway.wire.v1 import agent_pb2, telemetry_pb2
from headway.wire.v1.agent_pb2_grpc import AgentServiceStub
from headway.wire.v1.telemetry_pb2_grpc import TelemetryServiceStub
from security.planes import TOKEN, Plane, serving
from security.test_reports import Host

SHOWN = (("authorization", f"Bearer {TOKEN}"),)
EACH_S = 0.1
ANSWER_S = 60.0
SOCKETS = 2_000
HALF_OPEN = 40_000
LOCAL = [("grpc.use_local_subchannel_pool", 1)]


@dataclass
class Measured:
    """What one span of time showed."""

    report_s: list[float] = field(default_factory=list)
    ingest_s: list[float] = field(default_factory=list)
    failed: int = 0
    rss_mb: list[float] = field(default_factory=list)


def p99_ms(values_s: list[float]) -> float:
    return sorted(values_s)[min(len(values_s) - 1, int(len(values_s) * 0.99))] * 1e3 if values_s else float("nan")


class Healthy:
    """A host and a producer that do what they should."""

    def __init__(self, plane: Plane) -> None:
        self._channel = plane.channel()
        self._host = Host(AgentServiceStub(self._channel), "healthy")
        self._ingest = TelemetryServiceStub(self._channel)
        self._sequence = 0

    def once(self, into: Measured) -> None:
        for call, times in ((self._report, into.report_s), (self._send, into.ingest_s)):
            began_s = time.perf_counter()
            try:
                call()
            except grpc.RpcError:
                into.failed += 1
            times.append(time.perf_counter() - began_s)

    def _report(self) -> None:
        worker = agent_pb2.Worker(worker_id="w", pool="p", template="t", state=agent_pb2.WORKER_STATE_RUNNING)
        self._host.report(workers=[worker])

    def _send(self) -> None:
        self._sequence += 1
        sample = telemetry_pb2.QueueSample(queue="healthy/q", at_s=time.time(), waiting_jobs=self._sequence)
        request = telemetry_pb2.IngestRequest(
            producer="healthy", sequence=self._sequence, sent_at_s=time.time(), samples=[sample]
        )
        self._ingest.Ingest(request, metadata=SHOWN, timeout=ANSWER_S)


def measured(plane: Plane, healthy: Healthy, *, seconds: float) -> Measured:
    """``seconds`` of the healthy."""
    found, until_s = Measured(), time.monotonic() + seconds
    while time.monotonic() < until_s:
        healthy.once(found)
        found.rss_mb.append(plane.rss_mb)
        time.sleep(EACH_S)
    return found


# --- floods: each goes on until it is told to stop, and no further than its own bound -------------------------------

Flood = Callable[[Plane, threading.Event, Counter[str]], None]


def names(plane: Plane, stop: threading.Event, answers: Counter[str]) -> None:
    """300,000 queue names of one ingest token."""
    with plane.client(plane.token("ingest", "flood")) as client:
        for number in range(60):
            if stop.is_set():
                return
            samples = [{"queue": f"f/{number}-{n}", "at_s": 1.8e9, "waiting_jobs": 1} for n in range(5_000)]
            body = {"producer": "flood", "sequence": number, "sent_at_s": 1.8e9, "samples": samples}
            answers[str(client.post("/v1/telemetry", json=body).status_code)] += 1


def reports(plane: Plane, stop: threading.Event, answers: Counter[str]) -> None:
    """30,000 start-ups of as many templates in one report, again and again."""
    start_ups = [agent_pb2.StartUp(template=f"t{n}", start_up_s=1.0) for n in range(30_000)]
    with plane.channel() as channel:
        host = Host(AgentServiceStub(channel), "hostile")
        for _ in range(200):
            if stop.is_set():
                return
            try:
                host.report(start_ups=start_ups)
                answers["OK"] += 1
            except grpc.RpcError as error:
                answers[error.code().name] += 1


def half_open(plane: Plane, stop: threading.Event, answers: Counter[str]) -> None:
    """40,000 calls without a credential and without a message."""

    async def opened() -> None:
        channels = [grpc.aio.insecure_channel(plane.grpc, LOCAL) for _ in range(20)]
        calls = []
        for number in range(HALF_OPEN):
            if stop.is_set():
                break
            channel = channels[number % len(channels)]
            calls.append(channel.stream_unary("/headway.wire.v1.AgentService/Enrol")(timeout=ANSWER_S))
            await asyncio.sleep(0 if number % 100 else 0.01)
        await asyncio.to_thread(stop.wait, ANSWER_S)
        for call in calls:
            if call.done():
                answers[(await call.code()).name] += 1
            else:
                call.cancel()
        for channel in channels:
            await channel.close()

    asyncio.run(opened())


def garbage(plane: Plane, stop: threading.Event, answers: Counter[str]) -> None:
    """Enrolments that are no messages, 20,000 at most."""
    with plane.channel() as channel:
        enrol = channel.unary_unary("/headway.wire.v1.AgentService/Enrol")
        for _ in range(20_000):
            if stop.is_set():
                return
            try:
                enrol(b"\x0a\xff", timeout=ANSWER_S)
            except grpc.RpcError as error:
                answers[error.code().name] += 1


def guesses(plane: Plane, stop: threading.Event, answers: Counter[str]) -> None:
    """Guesses at HEADWAY_TOKEN, 20,000 at most."""
    with plane.client(None) as client:
        for number in range(20_000):
            if stop.is_set():
                return
            shown = {"Authorization": f"Bearer guess-{number}"}
            answers[str(client.get("/v1/profiles", headers=shown).status_code)] += 1


def slow_headers(plane: Plane, stop: threading.Event, answers: Counter[str]) -> None:
    """2,000 connections at the HTTP port that never end their headers."""
    _silent(plane.http.removeprefix("http://"), b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: ", stop, answers)


def silent_grpc(plane: Plane, stop: threading.Event, answers: Counter[str]) -> None:
    """2,000 connections at the gRPC port that never finish their greeting."""
    _silent(plane.grpc, b"PRI * HTTP", stop, answers)


def _silent(address: str, sent: bytes, stop: threading.Event, answers: Counter[str]) -> None:
    host, port = address.rsplit(":", 1)
    with ExitStack() as stack:
        for _ in range(SOCKETS):
            if stop.is_set():
                return
            with suppress(OSError):
                stack.enter_context(socket.create_connection((host, int(port)), timeout=5.0)).sendall(sent)
                answers["connected"] += 1
        stop.wait(ANSWER_S)


FLOODS: dict[str, Flood] = {
    each.__name__: each for each in (names, reports, half_open, garbage, guesses, slow_headers, silent_grpc)
}


@contextmanager
def flooding(flood: Flood, plane: Plane, answers: Counter[str]) -> Iterator[None]:
    stop = threading.Event()
    thread = threading.Thread(target=flood, args=(plane, stop, answers), daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(ANSWER_S)


def late(plane: Plane, lines: int) -> int:
    """Lines of the log since then that tell of evaluations that were not on time."""
    return sum("tick missed" in line or "nobody looked" in line or "tick failed" in line for line in plane.said[lines:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=8.0, help="of each flood")
    parser.add_argument("--only", choices=FLOODS, action="append", help="this flood, and others so named")
    options = parser.parse_args()
    print(f"load {os.getloadavg()[0]:.1f}, {os.cpu_count()} processors, {options.seconds:g} s each")
    print(f"{'flood':<14}{'report p99':>12}{'ingest p99':>12}{'failed':>8}{'RSS':>9}{'grown':>9}{'late':>6}  answers")
    for name in options.only or FLOODS:
        with tempfile.TemporaryDirectory(prefix="headway-hostile-") as folder:
            Path(folder).chmod(0o711)
            server = ensure_postgres(Path(folder) / "postgres", is_durable=False)
            try:
                with serving(server.url, Path(folder)) as plane:
                    _compare(name, plane, seconds=options.seconds)
            finally:
                server.wait_stopped()


def _compare(name: str, plane: Plane, *, seconds: float) -> None:
    healthy = Healthy(plane)
    measured(plane, healthy, seconds=2.0)  # the first calls connect
    alone = measured(plane, healthy, seconds=seconds)
    before_mb, lines, answers = plane.rss_mb, len(plane.said), Counter[str]()
    with flooding(FLOODS[name], plane, answers):
        during = measured(plane, healthy, seconds=seconds)
    for label, span in (("  alone", alone), (name, during)):
        is_flood = span is during
        told = ", ".join(f"{count} × {what}" for what, count in answers.most_common(3)) if is_flood else ""
        print(
            f"{label:<14}{p99_ms(span.report_s):>9.0f} ms{p99_ms(span.ingest_s):>9.0f} ms{span.failed:>8}"
            f"{max(span.rss_mb):>6.0f} MB{max(span.rss_mb) - before_mb if is_flood else 0:>6.0f} MB"
            f"{late(plane, lines) if is_flood else 0:>6}  {told}",
            flush=True,
        )


if __name__ == "__main__":
    main()
