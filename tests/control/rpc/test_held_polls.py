"""Polls of many hosts over one connection, as a proxy passes them on, and the reports beside them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import grpc
import grpc.aio
import pytest

from headway.control.agents.agent_service import AgentService
from headway.control.agents.host_authorization import HostAuthorization
from headway.control.auth.authenticator import Authenticator
from headway.control.bounds import DEFAULT, Bounds
from headway.control.rpc.agent_servicer import AgentServicer
from headway.control.rpc.grpc_server import serve
from headway.settings import Address
from headway.wire.v1 import agent_pb2
from headway.wire.v1.agent_pb2_grpc import AgentServiceStub
from support.engines import engine_to
from support.waiting import eventually_of

TOKEN = "k7Qm2vX9tL4pZ8sR3wN6yB1c"
SHOWN = (("authorization", f"Bearer {TOKEN}"),)
BOUND_S = 60.0
REPORT_S = 10.0  # what an agent waits for


class Proxied:
    """Hosts whose calls come over one connection."""

    def __init__(self, channel: grpc.aio.Channel, reports: AgentService) -> None:
        self._stub = AgentServiceStub(channel)
        self._reports = reports
        self.polls: list[grpc.aio.UnaryUnaryCall] = []

    async def enrolled(self, count: int) -> list[agent_pb2.EnrolResponse]:
        names = [f"h{number}" for number in range(count)]
        requests = [agent_pb2.EnrolRequest(host_name=name, boot_id=name, agent_id=name) for name in names]
        return list(await asyncio.gather(*(self._stub.Enrol(request, metadata=SHOWN) for request in requests)))

    def poll(self, host: agent_pb2.EnrolResponse) -> grpc.aio.UnaryUnaryCall:
        request = agent_pb2.PollRequest(cluster_id=host.cluster_id, host_id=host.host_id, max_wait_s=BOUND_S)
        self.polls.append(self._stub.Poll(request, metadata=SHOWN, timeout=2 * BOUND_S))
        return self.polls[-1]

    async def holding(self, count: int) -> None:
        """Return once so many polls are held."""
        await eventually_of(lambda: len(self._reports._held) == count)

    async def report(self, host: agent_pb2.EnrolResponse) -> agent_pb2.ReportResponse:
        request = agent_pb2.ReportRequest(
            cluster_id=host.cluster_id,
            host_id=host.host_id,
            boot_id="boot",
            sequence=1,
            capacity=agent_pb2.HostCapacity(cpu_cores=1.0, memory_bytes=1),
        )
        return await self._stub.Report(request, metadata=SHOWN, timeout=REPORT_S)


@asynccontextmanager
async def proxied(url: str, bounds: Bounds) -> AsyncIterator[Proxied]:
    engine = engine_to(url)
    reports = AgentService(engine=engine, bounds=bounds)
    callers = Authenticator(token=TOKEN, engine=engine)
    servicer = AgentServicer(reports, HostAuthorization(engine=engine, callers=callers), bounds)
    address = Address(host="127.0.0.1", port=0)
    server = await serve([servicer], address=address, token=TOKEN, callers=callers, bounds=bounds)
    try:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
            here = Proxied(channel, reports)
            yield here
            for poll in here.polls:
                poll.cancel()
    finally:
        await server.stop(0)
        await engine.dispose()


async def test_hosts_behind_one_connection_report_while_all_of_them_poll(migrated_url: str) -> None:
    """With a hundred calls of a connection, the polls of a hundred hosts left none: reports waited for ever."""
    async with proxied(migrated_url, DEFAULT) as here:
        hosts = await here.enrolled(120)
        for host in hosts:
            here.poll(host)
        await here.holding(120)
        assert (await here.report(hosts[-1])).lease_s > 0


async def test_a_poll_that_would_leave_no_call_for_reports_is_refused_with_a_sentence(migrated_url: str) -> None:
    async with proxied(migrated_url, Bounds(grpc_calls_per_connection_max=20)) as here:
        hosts = await here.enrolled(19)
        for host in hosts[:18]:
            here.poll(host)
        await here.holding(18)
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await here.poll(hosts[18])
        assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert refused.value.details() == (
            "this connection holds 18 polls, and more would keep reports waiting: give each host its own connection "
            "through the proxy, or raise HEADWAY_GRPC_CALLS_PER_CONNECTION"
        )
        assert (await here.report(hosts[18])).lease_s > 0
        here.polls[0].cancel()  # as an agent's end does
        await here.holding(17)
        here.poll(hosts[18])
        await here.holding(18)
