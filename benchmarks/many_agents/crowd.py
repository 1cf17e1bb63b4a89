"""Agents as a control plane knows them: their calls, waits and back-off, in a process of their own."""

import asyncio
import gc
import logging
import random
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any

import uvloop
from grpc import StatusCode

from headway.agent.controlplane import client, retry, rpc, session
from headway.errors import Unavailable
from headway.scaling.model import Assignment, HostCapacity, Template, Worker, WorkerState
from headway.wire import codec
from headway.wire.v1 import agent_pb2
from many_agents.http2 import Channel, Failed

AGENTS_A_CHANNEL = 100
ENROLLING_AT_ONCE = 200
ENROL_TIMEOUT_S = 60.0
WORKERS_A_HOST = 4
SERVICE = "/headway.wire.v1.AgentService/"
TEMPLATES = tuple(
    Template(name=name, content_hash=name * 10, slots=1, cpu_cores=0.1, memory_bytes=128_000_000)
    for name in ("mail", "video")
)


@dataclass
class Agent:
    """One agent as the control plane knows it."""

    name: str
    channel: Channel
    report: bytes = b""
    """What it reports each time; its sequence is put behind, where the last one counts."""
    sequence: int = 1
    cluster_id: str = ""
    host_id: str = ""
    epoch: int = 0
    revision: int = 0
    received_at_s: float = 0.0
    tasks: list[asyncio.Task[None]] = field(default_factory=list)

    @property
    def poll(self) -> bytes:
        """The request that asks for what comes after what it has."""
        return agent_pb2.PollRequest(
            cluster_id=self.cluster_id,
            host_id=self.host_id,
            epoch=self.epoch,
            revision=self.revision,
            max_wait_s=client.POLL_WAIT_S,
        ).SerializeToString()


class Crowd:
    """All agents, and what became of their calls."""

    def __init__(self, address: str, count: int) -> None:
        channels = [Channel(address) for _ in range(-(-count // AGENTS_A_CHANNEL))]
        self.agents = [Agent(f"host-{n:05d}", channels[n // AGENTS_A_CHANNEL]) for n in range(count)]
        self.by_id: dict[str, Agent] = {}
        self.failures: Counter[str] = Counter()
        self.failed_for_good: list[str] = []
        self.polls = self.reports = 0
        self.report_s: list[float] = []
        self._left: set[str] = set()
        self._all_received = asyncio.Event()
        self._wanted: Mapping[str, int] = {}

    async def enrol(self) -> list[str]:
        """Make every host known, and report it once. Returns their ids."""
        gate = asyncio.Semaphore(ENROLLING_AT_ONCE)
        await asyncio.gather(*(self._enrol(agent, gate) for agent in self.agents))
        self.by_id = {agent.host_id: agent for agent in self.agents}
        return list(self.by_id)

    def poll(self) -> None:
        """Poll from now on, all of them."""
        for agent in self.agents:
            agent.tasks.append(asyncio.create_task(self._poll(agent)))

    def report(self) -> None:
        """Report from now on, all of them."""
        for agent in self.agents:
            agent.tasks.append(asyncio.create_task(self._report(agent)))

    def close(self) -> None:
        """End all of it."""
        for agent in self.agents:
            for task in agent.tasks:
                task.cancel()
            agent.channel.close()

    async def until_all_have(self, revisions: Mapping[str, int], wait_max_s: float) -> list[float]:
        """When each of these hosts received its revision, once all of them did; fewer if some do not in time."""
        self._wanted = revisions
        self._left = {host_id for host_id, revision in revisions.items() if self.by_id[host_id].revision < revision}
        self._all_received.clear()
        if self._left:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._all_received.wait(), wait_max_s)
        return [self.by_id[host_id].received_at_s for host_id in revisions if host_id not in self._left]

    def seen(self) -> dict[str, Any]:
        """What happened so far, and what it has cost this process."""
        report_s, self.report_s = self.report_s, []
        return {
            "polls": self.polls,
            "reports": self.reports,
            "report_s": report_s,
            "failures": dict(self.failures),
            "failed_for_good": self.failed_for_good,
            "cpu_s": time.process_time(),
        }

    async def _enrol(self, agent: Agent, gate: asyncio.Semaphore) -> None:
        request = agent_pb2.EnrolRequest(host_name=agent.name, boot_id="boot", agent_version="benchmark")
        async with gate:
            body = await agent.channel.call(f"{SERVICE}Enrol", request.SerializeToString(), timeout_s=ENROL_TIMEOUT_S)
            answer = agent_pb2.EnrolResponse.FromString(body)
            agent.cluster_id, agent.host_id = answer.cluster_id, answer.host_id
            agent.report = _report_of(agent).SerializeToString()
            await agent.channel.call(f"{SERVICE}Report", agent.report, timeout_s=ENROL_TIMEOUT_S)

    async def _poll(self, agent: Agent) -> None:
        conversation = retry.RetryState("poll")
        request = agent.poll
        while True:
            try:
                body = await agent.channel.call(f"{SERVICE}Poll", request, timeout_s=client.POLL_TIMEOUT_S)
            except Failed as error:
                await asyncio.sleep(self._failed("poll", error, conversation))
                continue
            conversation.succeeded()
            self.polls += 1
            answer = agent_pb2.PollResponse.FromString(body)
            if (answer.epoch, answer.revision) > (agent.epoch, agent.revision):
                for each in answer.assignments:
                    codec.value_of(Assignment, each, host_id=agent.host_id)
                agent.epoch, agent.revision, agent.received_at_s = answer.epoch, answer.revision, time.monotonic()
                self._note_received(agent)
                request = agent.poll

    def _note_received(self, agent: Agent) -> None:
        if agent.host_id in self._left and agent.revision >= self._wanted[agent.host_id]:
            self._left.discard(agent.host_id)
            if not self._left:
                self._all_received.set()

    async def _report(self, agent: Agent) -> None:
        conversation = retry.RetryState("report")
        await asyncio.sleep(random.uniform(0, session.REPORT_EVERY_S))
        while True:
            agent.sequence += 1
            newer = agent_pb2.ReportRequest(sequence=agent.sequence, epoch_seen=agent.epoch).SerializeToString()
            began_s = time.monotonic()
            try:
                await agent.channel.call(f"{SERVICE}Report", agent.report + newer, timeout_s=rpc.CALL_TIMEOUT_S)
            except Failed as error:
                await asyncio.sleep(self._failed("report", error, conversation))
                continue
            conversation.succeeded()
            self.reports += 1
            self.report_s.append(time.monotonic() - began_s)
            jitter = random.uniform(1 - session.REPORT_JITTER, 1 + session.REPORT_JITTER)
            await asyncio.sleep(session.REPORT_EVERY_S * jitter)

    def _failed(self, call: str, error: Failed, conversation: retry.RetryState) -> float:
        """Seconds until the next try, by the agent's own rule."""
        self.failures[f"{call} {error.code.name}"] += 1
        if error.code not in rpc.RETRYABLE:
            self.failed_for_good.append(f"{call}: {error}"[:300])
        is_late = error.code is StatusCode.DEADLINE_EXCEEDED
        return conversation.failed(retry.Unanswered("late") if is_late else Unavailable("cut off"))


def run(commands: Connection, address: str, count: int) -> None:
    """Be a crowd that does what comes over ``commands`` until that says ``None``, and answers each with the result."""
    logging.disable()  # ten thousand agents say that they are cut off
    uvloop.run(_obey(commands, address, count))


async def _obey(commands: Connection, address: str, count: int) -> None:
    crowd = Crowd(address, count)
    # What is here stays; to walk through it time and again would cost this process more than its calls.
    gc.freeze()
    gc.set_threshold(200_000, 50, 1_000)
    while (command := await asyncio.to_thread(commands.recv)) is not None:
        name, arguments = command
        result = getattr(crowd, name)(*arguments)
        commands.send(await result if asyncio.iscoroutine(result) else result)
    crowd.close()


class CrowdProcess:
    """The crowd, from outside."""

    def __init__(self, commands: Connection) -> None:
        self._commands = commands

    async def enrol(self) -> list[str]:
        """See ``Crowd.enrol``."""
        ids: list[str] = await self._ask("enrol")
        return ids

    async def poll(self) -> None:
        """See ``Crowd.poll``."""
        await self._ask("poll")

    async def report(self) -> None:
        """See ``Crowd.report``."""
        await self._ask("report")

    async def until_all_have(self, revisions: Mapping[str, int], wait_max_s: float) -> list[float]:
        """See ``Crowd.until_all_have``."""
        received: list[float] = await self._ask("until_all_have", revisions, wait_max_s)
        return received

    async def seen(self) -> dict[str, Any]:
        """See ``Crowd.seen``."""
        seen: dict[str, Any] = await self._ask("seen")
        return seen

    async def _ask(self, name: str, *arguments: Any) -> Any:
        self._commands.send((name, arguments))
        return await asyncio.to_thread(self._commands.recv)


def _report_of(agent: Agent) -> agent_pb2.ReportRequest:
    capacity = HostCapacity(cpu_cores=8.0, memory_bytes=32_000_000_000, cpu_pressure=0.01, memory_pressure=0.0)
    workers: Sequence[Worker] = [
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
        capacity=codec.message_of(agent_pb2.HostCapacity, capacity),
        templates=[codec.message_of(agent_pb2.Template, template) for template in TEMPLATES],
        workers=[codec.worker_to_message(worker, now_s=60.0) for worker in workers],
        labels={"zone": agent.name[-1]},
    )
