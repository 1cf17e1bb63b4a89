"""What each flood costs those who mean well: latency of healthy clients and memory of the control plane, side by side.

    python benchmarks/hostile.py [--seconds 10] [--only NAME] [--before PYTHON] [--page FILE]
    python benchmarks/hostile.py --only half_calls --only half_calls_again [--connections 1000] [--calls 100]

Starts a control plane on an embedded Postgres, on loopback. Every flood is bounded in count and time. A healthy agent
reports, a healthy producer sends and somebody reads the health some ten times a second each; their p99 is printed
alone, beside a program that only computes, and during each flood, with the growth of the resident memory, the longest
times between two evaluations and since the leader renewed its lease, and how the flood was answered. ``--before`` names
the Python of another tree, whose control plane is measured beside this one's.

An operator sets another count of a pool's workers each second, so that every evaluation stores a decision: the times of
these are those of the evaluations.

A flood is a process of its own at nice 19: on a machine of its own it would take no processor of the control plane's,
and here it takes what the others leave. That alone makes the healthy slower on two cores, whatever the control plane
does. The program that only computes takes the same, and connects to nothing: it shows how much.
"""

import argparse
import asyncio
import json
import math
import os
import platform
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from operator import attrgetter
from pathlib import Path

import grpc
import grpc.aio
import httpx

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from half_calls import HalfCalls

from headway.store.embedded import ensure_postgres
from headway.wire.v1 import agent_pb2, telemetry_pb2
from headway.wire.v1.agent_pb2_grpc import AgentServiceStub
from headway.wire.v1.telemetry_pb2_grpc import TelemetryServiceStub
from security.hosts import Host
from security.planes import TOKEN, Plane, serving

SHOWN = (("authorization", f"Bearer {TOKEN}"),)
EACH_S = 0.05
SET_EACH_S = 1.0
POOL = "healthy"
ROOM = agent_pb2.HostCapacity(cpu_cores=1e5, memory_bytes=1 << 50)
PROFILE = {"queues": ["healthy/q"], "template": "t", "workers_max": 10_000}
ANSWER_S = 60.0
STARTS_S = 2.0  # for the flood's process to begin
EVALUATED_MAX_S = 6.0  # every 5 s
RENEWED_MAX_S = 6.0  # every 2 s, while evaluations come to their end
TIMES_MAX = 2.0
RSS_MAX_MB = 300.0
INTRODUCTION = """# Floods

What the healthy see while somebody floods the control plane: a host that reports, a producer that sends and somebody
who reads the health, each at most twenty times a second. Times are p99 in ms over the whole span.

- *alone*: nothing else of this benchmark runs.
- *beside*: beside a program at nice 19 that computes on one core, and connects to nothing. A flood that comes from the
  same machine takes at least a part of that, whatever the control plane does.
- *flood*: during the flood, also at nice 19. In parentheses is how many times the greater of the two p99 before it
  that is. The goal is 2 × at most.

*calls* is how many calls of each of the three the p99 of *flood* is of: reports, batches and reads of the health.
*failed* counts calls of the healthy that got no answer or a refusal. *RSS* is what the control plane's resident memory
has grown by at most, in MB: 300 at most is the goal. *evaluations* is the longest time without an evaluation of a
pool during the flood, in s: one is due every 5 s, and 6 at most is the goal. *lease* is the longest time since the
leader renewed its lease, in s: every 2 s, and not while evaluations do not end. 6 at most is the goal, and after 8
another control plane takes over. *before* is commit `16ea745`, which has no bounds. **Bold** is what misses its goal.
Written by `benchmarks/hostile.py --before PYTHON --page docs/proofs/floods.md`.

"""
SOCKETS = 2_000
HALF_OPEN = 40_000
LOCAL = [("grpc.use_local_subchannel_pool", 1)]


@dataclass
class Measured:
    """What one span of time showed."""

    report_s: list[float] = field(default_factory=list)
    ingest_s: list[float] = field(default_factory=list)
    read_s: list[float] = field(default_factory=list)
    failed: int = 0
    rss_mb: list[float] = field(default_factory=list)
    renewed_ago_s: list[float] = field(default_factory=list)
    evaluated_each_s: float = math.nan
    """The longest time without an evaluation."""


def p99_ms(values_s: list[float]) -> float:
    return sorted(values_s)[math.ceil(len(values_s) * 0.99) - 1] * 1e3 if values_s else math.nan


class Healthy:
    """A host, a producer, a reader and an operator that do what they should."""

    def __init__(self, plane: Plane) -> None:
        self._plane = plane
        self._channel = plane.channel()
        self._host = Host(AgentServiceStub(self._channel), "healthy")
        self._ingest = TelemetryServiceStub(plane.channel())
        self._client = plane.client()
        self._sequence = 0
        self._set_workers = 0
        with plane.client() as client:
            client.put(f"/v1/profiles/{POOL}", json=PROFILE).raise_for_status()

    def measured(self, *, seconds: float) -> Measured:
        """``seconds`` of all four."""
        found, until_s, began_at_s = Measured(), time.monotonic() + seconds, time.time()
        threads = [
            threading.Thread(target=self._go_on, args=(call, times, found, pause_s, until_s))
            for call, times, pause_s in (
                (self._report, found.report_s, EACH_S),
                (self._send, found.ingest_s, EACH_S),
                (partial(self._read, found), found.read_s, EACH_S),
                (self._set, [], SET_EACH_S),
            )
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        found.evaluated_each_s = self._evaluated_each_s(since_s=began_at_s)
        return found

    def _evaluated_each_s(self, *, since_s: float) -> float:
        """The longest time without an evaluation from ``since_s`` until now."""
        answer = self._client.get("/v1/decisions", params={"pool": POOL, "limit": 50}).raise_for_status()
        times_s = sorted(decision["decided_at_s"] for decision in answer.json()["decisions"])
        counted_s = [since_s, *(at_s for at_s in times_s if at_s > since_s), time.time()]
        return max(after - before for before, after in pairwise(counted_s))

    def _go_on(
        self, call: Callable[[], None], times: list[float], found: Measured, pause_s: float, until_s: float
    ) -> None:
        while time.monotonic() < until_s:
            began_s = time.perf_counter()
            try:
                call()
            except (grpc.RpcError, httpx.HTTPError):
                found.failed += 1
            times.append(time.perf_counter() - began_s)
            time.sleep(pause_s)

    def _report(self) -> None:
        worker = agent_pb2.Worker(worker_id="w", pool="p", template="t", state=agent_pb2.WORKER_STATE_RUNNING)
        # It has room for every count that the operator sets: what has no place would change no decision.
        template = agent_pb2.Template(name="t", content_hash="h", slots=1)
        self._host.report(workers=[worker], capacity=ROOM, templates=[template])

    def _send(self) -> None:
        self._sequence += 1
        sample = telemetry_pb2.QueueSample(queue="healthy/q", at_s=time.time(), waiting_jobs=self._sequence)
        request = telemetry_pb2.IngestRequest(
            producer="healthy", sequence=self._sequence, sent_at_s=time.time(), samples=[sample]
        )
        self._ingest.Ingest(request, metadata=SHOWN, timeout=ANSWER_S)

    def _read(self, found: Measured) -> None:
        found.rss_mb.append(self._plane.rss_mb)
        health = self._client.get("/v1/health").raise_for_status().json()
        found.renewed_ago_s.append(health["leader_age_s"])

    def _set(self) -> None:
        self._set_workers += 1
        body = {"workers": self._set_workers, "until_s": time.time() + 600.0, "reason": "each evaluation has its news"}
        self._client.put(f"/v1/pools/{POOL}/override", json=body).raise_for_status()


# --- floods: each goes on until it is asked to stop, and no further than its own bound -------------------------------

Flood = Callable[["Target", threading.Event, Counter[str]], None]


def names(target: "Target", stop: threading.Event, answers: Counter[str]) -> None:
    """300,000 queue names of one ingest token."""
    with target.client(target.secret) as client:
        for number in range(1_000):
            if stop.is_set():
                return
            samples = [{"queue": f"f/{number % 60}-{n}", "at_s": 1.8e9, "waiting_jobs": 1} for n in range(5_000)]
            body = {"producer": "flood", "sequence": number, "sent_at_s": 1.8e9, "samples": samples}
            answers[str(client.post("/v1/telemetry", json=body).status_code)] += 1


def reports(target: "Target", stop: threading.Event, answers: Counter[str]) -> None:
    """30,000 start-ups of as many templates in one report, again and again."""
    start_ups = [agent_pb2.StartUp(template=f"t{n}", start_up_s=1.0) for n in range(30_000)]
    with target.channel() as channel:
        host = Host(AgentServiceStub(channel), "hostile")
        for _ in range(4_000):
            if stop.is_set():
                return
            try:
                host.report(start_ups=start_ups)
                answers["OK"] += 1
            except grpc.RpcError as error:
                answers[error.code().name] += 1


def half_open(target: "Target", stop: threading.Event, answers: Counter[str]) -> None:
    """40,000 calls without a credential and without a message."""

    async def opened() -> None:
        channels = [grpc.aio.insecure_channel(target.grpc, LOCAL) for _ in range(20)]
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


def half_calls(target: "Target", stop: threading.Event, answers: Counter[str]) -> None:
    """1,000 connections with 100 calls without a credential and without a message each, or as many as asked for."""
    _half_calls(target, stop, answers, reopens=False)


def half_calls_again(target: "Target", stop: threading.Event, answers: Counter[str]) -> None:
    """The same, and each connection that is ended is opened again at once."""
    _half_calls(target, stop, answers, reopens=True)


def _half_calls(target: "Target", stop: threading.Event, answers: Counter[str], *, reopens: bool) -> None:
    sizes = {"connections": target.connections, "calls": target.calls}
    flood = HalfCalls(target.grpc, path="/headway.wire.v1.AgentService/Enrol", reopens=reopens, **sizes)
    stop.wait(STARTS_S)  # its worst moment is the first one, and shall be measured
    flood.go_on(stop.is_set, answers)


def garbage(target: "Target", stop: threading.Event, answers: Counter[str]) -> None:
    """Enrolments that are no messages, 60,000 at most."""
    with target.channel() as channel:
        enrol = channel.unary_unary("/headway.wire.v1.AgentService/Enrol")
        for _ in range(60_000):
            if stop.is_set():
                return
            try:
                enrol(b"\x0a\xff", timeout=ANSWER_S)
            except grpc.RpcError as error:
                answers[error.code().name] += 1


def guesses(target: "Target", stop: threading.Event, answers: Counter[str]) -> None:
    """Guesses at HEADWAY_TOKEN, 60,000 at most."""
    with target.client(None) as client:
        for number in range(60_000):
            if stop.is_set():
                return
            shown = {"Authorization": f"Bearer guess-{number}"}
            answers[str(client.get("/v1/profiles", headers=shown).status_code)] += 1


def slow_headers(target: "Target", stop: threading.Event, answers: Counter[str]) -> None:
    """2,000 connections at the HTTP port that never end their headers."""
    _silent(target.http.removeprefix("http://"), b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: ", stop, answers)


def silent_grpc(target: "Target", stop: threading.Event, answers: Counter[str]) -> None:
    """2,000 connections at the gRPC port that never finish their greeting."""
    _silent(target.grpc, b"PRI * HTTP", stop, answers)


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


def burner(_target: "Target", stop: threading.Event, _answers: Counter[str]) -> None:
    """Nothing but computing: what a flood takes from this machine without a connection."""
    while not stop.is_set():
        sum(range(10_000))


BURNER = burner.__name__
FLOODS: dict[str, Flood] = {
    each.__name__: each
    for each in (
        *(names, reports, half_open, half_calls, half_calls_again, garbage, guesses, slow_headers, silent_grpc),
    )
}


NICE = 19


@dataclass(frozen=True)
class Target:
    """A control plane as a flood knows it."""

    http: str
    grpc: str
    secret: str
    """Of an ingest token."""
    connections: int
    calls: int
    """Of each connection."""

    def client(self, token: str | None) -> httpx.Client:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        return httpx.Client(base_url=self.http, headers=headers, timeout=ANSWER_S, trust_env=False)

    def channel(self) -> grpc.Channel:
        return grpc.insecure_channel(self.grpc, options=LOCAL)


def flood(name: str, target: Target) -> None:
    """Flood until standard input ends, then print the answers as JSON."""
    os.nice(NICE)
    stop, answers = threading.Event(), Counter[str]()
    thread = threading.Thread(target={**FLOODS, BURNER: burner}[name], args=(target, stop, answers), daemon=True)
    thread.start()
    sys.stdin.read()
    stop.set()
    thread.join(5.0)
    print(json.dumps(answers), flush=True)
    os._exit(0)  # what waits for an answer waits no more


@dataclass(frozen=True, kw_only=True)
class Size:
    """How much a flood of connections is."""

    connections: int
    calls: int


@contextmanager
def flooding(name: str, plane: Plane, answers: Counter[str], size: Size) -> Iterator[None]:
    target = [plane.http, plane.grpc, plane.token("ingest", f"{name} flood")]
    sizes = ["--connections", str(size.connections), "--calls", str(size.calls)]
    words = [sys.executable, __file__, "--flood", name, "--target", *target, *sizes]
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        time.sleep(STARTS_S)
        yield
    finally:
        try:
            said, _ = process.communicate("", timeout=ANSWER_S)
            answers.update(json.loads(said))
        finally:
            process.kill()


@dataclass(frozen=True)
class Row:
    """One flood on one tree."""

    flood: str
    tree: str
    alone: Measured
    beside: Measured
    during: Measured
    grown_mb: float
    answers: Counter[str]

    def cells(self) -> list[str]:
        answered = ", ".join(f"{count:,} × {what}" for what, count in self.answers.most_common(3))
        waits = [
            cell
            for of in (attrgetter("report_s"), attrgetter("ingest_s"), attrgetter("read_s"))
            for cell in self._waits(of(self.alone), of(self.beside), of(self.during))
        ]
        renewed_s = max(self.during.renewed_ago_s, default=math.nan)
        calls = ", ".join(str(len(each)) for each in (self.during.report_s, self.during.ingest_s, self.during.read_s))
        evaluated_s = self.during.evaluated_each_s
        return [
            self.flood,
            self.tree,
            *waits,
            calls,
            bold(f"{self.during.failed}", is_met=self.during.failed == 0),
            bold(f"{self.grown_mb:+.0f}", is_met=self.grown_mb <= RSS_MAX_MB),
            bold(f"{evaluated_s:.1f}", is_met=evaluated_s <= EVALUATED_MAX_S),
            bold(f"{renewed_s:.1f}", is_met=renewed_s <= RENEWED_MAX_S),
            answered or "none",
        ]

    @staticmethod
    def _waits(alone_s: list[float], beside_s: list[float], during_s: list[float]) -> list[str]:
        alone, beside, during = p99_ms(alone_s), p99_ms(beside_s), p99_ms(during_s)
        times = during / max(alone, beside)
        return [f"{alone:.0f}", f"{beside:.0f}", bold(f"{during:.0f} ({times:.1f} ×)", is_met=times <= TIMES_MAX)]


def bold(text: str, *, is_met: bool) -> str:
    return text if is_met else f"**{text}**"


HEADS = [
    *("flood", "tree"),
    *(f"{who} {when}" for who in ("report", "ingest", "health") for when in ("alone", "beside", "flood")),
    *("calls", "failed", "RSS", "evaluations", "lease", "answers to the flood"),
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=10.0, help="of each flood")
    parser.add_argument("--only", choices=FLOODS, action="append", help="this flood, and others so named")
    parser.add_argument("--before", metavar="PYTHON", help="of a tree to compare with")
    parser.add_argument("--page", type=Path, help="write the table there, too")
    parser.add_argument("--connections", type=int, default=1_000, help="of the floods half_calls")
    parser.add_argument("--calls", type=int, default=100, help="of each of these connections")
    parser.add_argument("--flood", choices=[*FLOODS, BURNER], help=argparse.SUPPRESS)
    parser.add_argument("--target", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.flood:
        flood(options.flood, Target(*options.target, connections=options.connections, calls=options.calls))
    size = Size(connections=options.connections, calls=options.calls)
    began = (
        f"{os.cpu_count()} processors, Python {platform.python_version()}, load {os.getloadavg()[0]:.1f} before, "
        f"{options.seconds:g} s each, floods at nice {NICE}"
    )
    print(began, " | ".join(HEADS), sep="\n", flush=True)
    rows = []
    for name in options.only or FLOODS:
        for tree, python in (("before", options.before), ("now", sys.executable)):
            if python:
                rows.append(_compared(name, tree, python, seconds=options.seconds, size=size).cells())
                print(" | ".join(rows[-1]), flush=True)
    if options.page:
        lines = [HEADS, ["---"] * len(HEADS), *rows]
        table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
        options.page.write_text(f"{INTRODUCTION}{began}, load {os.getloadavg()[0]:.1f} after.\n\n{table}\n")


def _compared(name: str, tree: str, python: str, *, seconds: float, size: Size) -> Row:
    with tempfile.TemporaryDirectory(prefix="headway-hostile-") as folder:
        Path(folder).chmod(0o711)
        server = ensure_postgres(Path(folder) / "postgres", is_durable=False)
        try:
            with serving(server.url, Path(folder), python=python) as plane:
                return _measure(name, tree, plane, seconds=seconds, size=size)
        finally:
            server.wait_stopped()


def _measure(name: str, tree: str, plane: Plane, *, seconds: float, size: Size) -> Row:
    healthy, answers = Healthy(plane), Counter[str]()
    healthy.measured(seconds=2.0)  # the first calls connect
    alone = healthy.measured(seconds=seconds)
    with flooding(BURNER, plane, Counter[str](), size):
        beside = healthy.measured(seconds=seconds)
    before_mb = plane.rss_mb
    with flooding(name, plane, answers, size):
        during = healthy.measured(seconds=seconds)
    return Row(name, tree, alone, beside, during, max(during.rss_mb) - before_mb, answers)


if __name__ == "__main__":
    main()
