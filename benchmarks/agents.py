"""Many agents on one control plane: held polls, reports every 15 s, changes to one and to all, a storm after a crash.

The agents speak with the real agent's messages, codec, waits and back-off, many of them over one channel: what is
measured is a real `headway control`, a process beside its embedded Postgres. This program leads in its place and writes
assignments as a tick does, so that the control plane under test answers agents and decides nothing; what its own ticks
cost with so many hosts is measured last.

    python benchmarks/agents.py --agents 1000 10000 --seconds 60
"""

import argparse
import asyncio
import contextlib
import json
import logging
import os
import random
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc.aio
import psutil
import uvloop

from headway.agent import calls as agent_calls
from headway.agent import client as agent_client
from headway.agent import link
from headway.control.reports import HINTED_WAIT_S
from headway.errors import Unavailable
from headway.scaling.model import Assignment, HostCapacity, Template, Worker, WorkerState
from headway.store.deciding import Gathered, News, apply
from headway.store.embedded import ensure_postgres
from headway.store.engine import Engine, create_engine
from headway.store.leadership import LeaderSession
from headway.store.migrate import upgrade
from headway.wire import codec
from headway.wire.v1 import agent_pb2, agent_pb2_grpc

AGENTS_A_CHANNEL = 100
WORKERS_A_HOST = 4
CHANGES_TO_ONE = 200
CHANGES_TO_ALL = 3
RENEW_S = 2.0
WAIT_MAX_S = 120.0
TEMPLATES = tuple(
    Template(name=name, content_hash=name * 10, slots=1, cpu_cores=0.1, memory_bytes=128_000_000)
    for name in ("mail", "video")
)


# --- the agents ------------------------------------------------------------------------------------------------------


@dataclass
class Agent:
    """One agent as the control plane knows it."""

    name: str
    stub: Any
    report: agent_pb2.ReportRequest = field(default_factory=agent_pb2.ReportRequest)
    cluster_id: str = ""
    host_id: str = ""
    epoch: int = 0
    revision: int = 0
    heard_at_s: float = 0.0
    tasks: list[asyncio.Task[None]] = field(default_factory=list)


class Crowd:
    """All agents, and what became of their calls."""

    def __init__(self, address: str, count: int) -> None:
        # Without pools of their own the channels would share one connection.
        options = (*agent_calls.OPTIONS, ("grpc.use_local_subchannel_pool", 1))
        self.channels = [grpc.aio.insecure_channel(address, options=options) for _ in range(-(-count // 100))]
        stubs = [agent_pb2_grpc.AgentServiceStub(channel) for channel in self.channels]
        self.agents = [Agent(f"host-{n:05d}", stubs[n // AGENTS_A_CHANNEL]) for n in range(count)]
        self.failures: Counter[str] = Counter()
        self.polls = self.reports = 0
        self.report_s: list[float] = []

    async def enrol(self) -> None:
        """Make every host known, and tell of it once."""
        gate = asyncio.Semaphore(200)

        async def one(agent: Agent) -> None:
            async with gate:
                request = agent_pb2.EnrolRequest(host_name=agent.name, boot_id="boot", agent_version="benchmark")
                answer = await agent.stub.Enrol(request, timeout=60)
                agent.cluster_id, agent.host_id = answer.cluster_id, answer.host_id
                agent.report = _report_of(agent)
                await agent.stub.Report(agent.report, timeout=60)

        await asyncio.gather(*(one(agent) for agent in self.agents))

    def poll(self) -> None:
        """Poll from now on, all of them."""
        for agent in self.agents:
            agent.tasks.append(asyncio.create_task(self._poll(agent)))

    def tell(self) -> None:
        """Report from now on, all of them."""
        for agent in self.agents:
            agent.tasks.append(asyncio.create_task(self._report(agent)))

    async def close(self) -> None:
        for agent in self.agents:
            for task in agent.tasks:
                task.cancel()
        await asyncio.gather(*(channel.close() for channel in self.channels))

    async def until_all_have(self, revisions: dict[str, int]) -> list[float]:
        """When each of these hosts heard of its revision, once all of them did."""
        until_s = time.monotonic() + WAIT_MAX_S
        asked = [agent for agent in self.agents if agent.host_id in revisions]
        while any(agent.revision < revisions[agent.host_id] for agent in asked):
            if time.monotonic() > until_s:
                left = [agent for agent in asked if agent.revision < revisions[agent.host_id]]
                raise SystemExit(f"{len(left)} agents never heard of it: {left[:2]}; {self.failures}")
            await asyncio.sleep(0.005)
        return [agent.heard_at_s for agent in asked]

    async def _poll(self, agent: Agent) -> None:
        talk = link.Talk("poll")
        while True:
            request = agent_pb2.PollRequest(
                cluster_id=agent.cluster_id,
                host_id=agent.host_id,
                epoch=agent.epoch,
                revision=agent.revision,
                max_wait_s=agent_client.POLL_WAIT_S,
            )
            try:
                answer = await agent.stub.Poll(request, timeout=agent_client.POLL_TIMEOUT_S)
            except grpc.aio.AioRpcError as error:
                await asyncio.sleep(self._failed("poll", error, talk))
                continue
            talk.succeeded()
            self.polls += 1
            if (answer.epoch, answer.revision) > (agent.epoch, agent.revision):
                codec.assignments_from_messages(answer.assignments, host_id=agent.host_id)
                agent.epoch, agent.revision, agent.heard_at_s = answer.epoch, answer.revision, time.monotonic()

    async def _report(self, agent: Agent) -> None:
        talk = link.Talk("report")
        await asyncio.sleep(random.uniform(0, link.REPORT_EVERY_S))
        while True:
            agent.report.sequence += 1
            agent.report.epoch_seen = agent.epoch
            for worker in agent.report.workers:
                worker.age_s += link.REPORT_EVERY_S
            began_s = time.monotonic()
            try:
                await agent.stub.Report(agent.report, timeout=agent_calls.CALL_TIMEOUT_S)
            except grpc.aio.AioRpcError as error:
                await asyncio.sleep(self._failed("report", error, talk))
                continue
            talk.succeeded()
            self.reports += 1
            self.report_s.append(time.monotonic() - began_s)
            jitter = random.uniform(1 - link.REPORT_JITTER, 1 + link.REPORT_JITTER)
            await asyncio.sleep(link.REPORT_EVERY_S * jitter)

    def _failed(self, call: str, error: grpc.aio.AioRpcError, talk: link.Talk) -> float:
        """Seconds until the next try, by the agent's own rule."""
        self.failures[f"{call} {error.code().name}"] += 1
        if error.code() not in agent_calls.RETRYABLE:
            raise SystemExit(f"failed for good: {error.code().name}: {error.details()}")
        return talk.failed(Unavailable("cut off"))


def _report_of(agent: Agent) -> agent_pb2.ReportRequest:
    capacity = HostCapacity(cpu_cores=8.0, memory_bytes=32_000_000_000, cpu_pressure=0.01, memory_pressure=0.0)
    workers = [
        Worker(
            worker_id=f"{agent.host_id}-{n}",
            pool="mail",
            template="mail",
            pid=1000 + n,
            state=WorkerState.RUNNING,
            started_at_s=0.0,
            is_busy=bool(n % 2),
            template_hash=TEMPLATES[0].content_hash,
            memory_bytes=100_000_000,
        )
        for n in range(WORKERS_A_HOST)
    ]
    return agent_pb2.ReportRequest(
        cluster_id=agent.cluster_id,
        host_id=agent.host_id,
        host_name=agent.name,
        boot_id="boot",
        sequence=1,
        capacity=codec.capacity_to_message(capacity),
        templates=[codec.template_to_message(template) for template in TEMPLATES],
        workers=[codec.worker_to_message(worker, now_s=60.0) for worker in workers],
        labels={"zone": agent.name[-1]},
    )


# --- the control plane and its database ------------------------------------------------------------------------------


class Control:
    """`headway control` as a process."""

    def __init__(self, folder: Path, database_url: str) -> None:
        (pid_file,) = (folder / "postgres").rglob("postmaster.pid")
        self.postmaster = psutil.Process(int(pid_file.read_text().split()[0]))
        self.address, self._http = (f"127.0.0.1:{port}" for port in _free_ports(2))
        self._log = folder / "control.log"
        self._environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("HEADWAY_")},
            "HEADWAY_DATABASE_URL": database_url,
            "HEADWAY_EVENT_LOG": str(folder / "events"),
            "HEADWAY_GRPC_ADDRESS": self.address,
            "HEADWAY_HTTP_ADDRESS": self._http,
        }

    async def start(self) -> None:
        self._spawn()
        host, port = self.address.split(":")
        for _ in range(3000):
            with contextlib.suppress(OSError):
                _, writer = await asyncio.open_connection(host, int(port))
                writer.close()
                return
            if self.process.poll() is not None:
                raise SystemExit(self._log.read_text())
            await asyncio.sleep(0.01)
        raise SystemExit("the control plane did not start")

    def _spawn(self) -> None:
        with self._log.open("ab") as log:
            argv = [sys.executable, "-m", "headway", "control"]
            self.process = subprocess.Popen(argv, env=self._environment, stdout=log, stderr=log)
        self.watched = psutil.Process(self.process.pid)

    def end(self, number: int = signal.SIGTERM) -> None:
        self.process.send_signal(number)
        self.process.wait(30)

    def log_lines(self) -> list[str]:
        return self._log.read_text().splitlines()


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [int(each.getsockname()[1]) for each in sockets]


@dataclass(frozen=True)
class Used:
    """Seconds of processor that were used until a moment."""

    at_s: float
    control_s: float
    postgres_s: float

    @classmethod
    def until_now(cls, control: Control) -> "Used":
        seconds = 0.0
        for process in [control.postmaster, *control.postmaster.children()]:
            with contextlib.suppress(psutil.Error):
                seconds += sum(process.cpu_times()[:2])
        return cls(time.monotonic(), sum(control.watched.cpu_times()[:2]), seconds)

    def cores_since(self, before: "Used") -> dict[str, float]:
        span_s = self.at_s - before.at_s
        return {
            "control_cores": round((self.control_s - before.control_s) / span_s, 4),
            "postgres_cores": round((self.postgres_s - before.postgres_s) / span_s, 4),
            "span_s": round(span_s, 1),
        }


class Leader:
    """Leads in the place of the control plane, and changes assignments as a tick does."""

    def __init__(self, engine: Engine, database_url: str) -> None:
        self._engine = engine
        self._url = database_url
        self.rows: dict[str, Assignment] = {}
        self._revisions: Counter[str] = Counter()

    @contextlib.asynccontextmanager
    async def leading(self) -> AsyncIterator[None]:
        session = await LeaderSession.open(self._url)
        epoch = await session.try_lead("benchmark")
        assert epoch is not None
        self._epoch = epoch

        async def renew() -> None:
            while True:
                await asyncio.sleep(RENEW_S)
                await session.renew(epoch)

        renewing = asyncio.create_task(renew())
        try:
            yield
        finally:
            renewing.cancel()
            await session.close()

    async def change(self, host_ids: Sequence[str]) -> tuple[float, dict[str, int]]:
        """Another number of workers for each of these hosts: when it was committed, and their new revisions."""
        before = list(self.rows.values())
        for host_id in host_ids:
            row = self.rows.get(host_id)
            count = row.base_workers % 4 + 1 if row else 4
            self.rows[host_id] = Assignment(pool="mail", host_id=host_id, template="mail", base_workers=count)
            self._revisions[host_id] += 1
        gathered = Gathered(
            revision=0,
            buckets=(),
            profiles={},
            states={},
            hosts=(),
            assignments=tuple(before),
            direct={},
            worker_hours_today={},
        )
        news = News(remembered=(), decisions=(), assignments=tuple(self.rows.values()))
        await apply(self._engine, news, gathered, epoch=self._epoch)
        return time.monotonic(), {host_id: self._revisions[host_id] for host_id in host_ids}


# --- what is measured ------------------------------------------------------------------------------------------------


async def measured(count: int, *, seconds: float, folder: Path) -> dict[str, Any]:
    """The figures for ``count`` agents."""
    server = ensure_postgres(folder / "postgres")
    engine = create_engine(server.url)
    control = Control(folder, server.url)
    leader = Leader(engine, server.url)
    figures: dict[str, Any] = {"agents": count, "workers_a_host": WORKERS_A_HOST, "load_before": os.getloadavg()}
    try:
        upgrade_s = time.monotonic()
        await asyncio.to_thread(upgrade, server.url)
        figures["migrated_s"] = round(time.monotonic() - upgrade_s, 1)
        async with leader.leading():
            await control.start()
            figures["rss_alone_mb"] = _rss_mb(control)
            crowd = Crowd(control.address, count)
            figures |= await _phases(crowd, control, leader, seconds=seconds)
        figures["with_its_own_ticks"] = await _over(control, seconds, crowd)
        figures["failures_after"] = dict(crowd.failures)
        await crowd.close()
    finally:
        control.end()
        await engine.dispose()
        server.wait_stopped(30.0)
        figures["errors_logged"] = Counter(
            line.split(" ", 3)[-1][:80] for line in control.log_lines() if " ERROR " in line or "Traceback" in line
        ).most_common(5)
    figures["load_after"] = os.getloadavg()
    return figures


async def _phases(crowd: Crowd, control: Control, leader: Leader, *, seconds: float) -> dict[str, Any]:
    figures: dict[str, Any] = {}
    began_s = time.monotonic()
    await crowd.enrol()
    figures["enrolled_and_reported_s"] = round(time.monotonic() - began_s, 2)
    everybody = [agent.host_id for agent in crowd.agents]
    _, revisions = await leader.change(everybody)
    began_s = time.monotonic()
    crowd.poll()
    await crowd.until_all_have(revisions)
    figures["polls_answered_s"] = round(time.monotonic() - began_s, 2)
    await _settled(control)
    _say("polls held")
    figures["held_alone"] = await _over(control, seconds, crowd)
    figures["to_one_ms_held_alone"] = await _changes_to_one(crowd, leader)
    crowd.tell()
    await asyncio.sleep(20)
    crowd.report_s.clear()
    _say(f"reports: control plane is pid {control.process.pid}")
    figures["with_reports"] = await _over(control, seconds, crowd)
    figures["report_ms"] = _percentiles([each * 1000 for each in crowd.report_s])
    figures["to_one_ms"] = await _changes_to_one(crowd, leader)
    figures["to_all_s"] = [await _change_to_all(crowd, leader, everybody) for _ in range(CHANGES_TO_ALL)]
    figures["failures_before_the_storm"] = dict(crowd.failures)
    _say("storm")
    figures["storm"] = await _storm(crowd, control, leader, everybody)
    figures["rss_max_mb"] = _rss_mb(control)
    return figures


async def _settled(control: Control) -> None:
    """Return once nobody has anything left to do that came of what went before."""
    await asyncio.sleep(HINTED_WAIT_S + 1.0)  # the first wait after a change is short
    while True:
        before_s = sum(control.watched.cpu_times()[:2])
        await asyncio.sleep(3)
        if sum(control.watched.cpu_times()[:2]) - before_s < 0.1:
            return


async def _over(control: Control, seconds: float, crowd: Crowd) -> dict[str, Any]:
    before, polls, reports = Used.until_now(control), crowd.polls, crowd.reports
    own_s = time.process_time()
    await asyncio.sleep(seconds)
    used = Used.until_now(control).cores_since(before)
    return {
        **used,
        "rss_mb": _rss_mb(control),
        "polls_per_s": round((crowd.polls - polls) / used["span_s"], 1),
        "reports_per_s": round((crowd.reports - reports) / used["span_s"], 1),
        "agents_cores": round((time.process_time() - own_s) / used["span_s"], 3),
        "load": os.getloadavg()[0],
    }


async def _changes_to_one(crowd: Crowd, leader: Leader) -> dict[str, float]:
    took_ms = []
    for _ in range(CHANGES_TO_ONE):
        agent = random.choice(crowd.agents)
        committed_s, revisions = await leader.change([agent.host_id])
        while agent.revision < revisions[agent.host_id]:  # noqa: ASYNC110 - it is the poll's own time that counts
            await asyncio.sleep(0.0005)
        took_ms.append(max(0.0, agent.heard_at_s - committed_s) * 1000)
        await asyncio.sleep(0.02)
    return _percentiles(took_ms)


async def _change_to_all(crowd: Crowd, leader: Leader, everybody: list[str]) -> dict[str, float]:
    began_s = time.monotonic()
    committed_s, revisions = await leader.change(everybody)
    heard_at_s = await crowd.until_all_have(revisions)
    await asyncio.sleep(5)
    took = _percentiles([each - committed_s for each in heard_at_s])
    return {"written_s": round(committed_s - began_s, 2), **took}


async def _storm(crowd: Crowd, control: Control, leader: Leader, everybody: list[str]) -> dict[str, Any]:
    """The control plane is killed and started again; every agent is served anew."""
    before = Counter(crowd.failures)
    control.end(signal.SIGKILL)
    _, revisions = await leader.change(everybody)
    began_s = time.monotonic()
    await control.start()
    open_s = time.monotonic()
    heard_at_s = await crowd.until_all_have(revisions)
    return {
        "started_s": round(open_s - began_s, 2),
        "from_open_door_s": _percentiles([max(0.0, each - open_s) for each in heard_at_s]),
        "never_served": 0,
        "tries_that_failed": dict(crowd.failures - before),
        "control_cpu_s": round(sum(control.watched.cpu_times()[:2]), 2),
    }


def _say(what: str) -> None:
    print(f"-- {what}", file=sys.stderr, flush=True)


def _percentiles(values: Sequence[float]) -> dict[str, float]:
    ordered = sorted(values)
    at = {"p50": statistics.median(ordered), "p99": ordered[min(len(ordered) - 1, int(0.99 * len(ordered)))]}
    return {name: round(value, 3) for name, value in {**at, "max": ordered[-1]}.items()}


def _rss_mb(control: Control) -> dict[str, float]:
    """Resident memory, and what of it is this process's own: libraries on disk count in the former."""
    memory = control.watched.memory_full_info()
    return {"resident": round(memory.rss / 1e6, 1), "own": round(memory.uss / 1e6, 1)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--agents", type=int, nargs="+", default=[1_000, 10_000])
    parser.add_argument("--seconds", type=float, default=60.0, help="how long processor time is taken for")
    parser.add_argument("--json", type=Path, help="write the figures there")
    args = parser.parse_args()
    logging.disable()  # ten thousand agents say that they are cut off
    found = []
    for count in args.agents:
        with _folder() as folder:
            found.append(uvloop.run(measured(count, seconds=args.seconds, folder=folder)))
        print(json.dumps(found[-1], indent=1), flush=True)
    if args.json:
        args.json.write_text(json.dumps(found, indent=1) + "\n")
    return 0


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="headway-agents-") as folder:
        Path(folder).chmod(0o711)  # for root, whose Postgres runs as nobody
        yield Path(folder)


if __name__ == "__main__":
    sys.exit(main())
