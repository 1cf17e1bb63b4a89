"""The agents' side of the gRPC server, and what an administrator does."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

from sqlalchemy import text

from headway.agent.controlplane.client import ControlClient, Enrolled, HostUpdate, Proof, ReportAnswer
from headway.agent.model import Identity
from headway.control.auth.authenticator import Authenticator
from headway.local import procfs
from headway.scaling.model import HostCapacity
from headway.store.access.credentials import Role
from headway.store.access.tokens import TokenWanted, create_token
from headway.store.engine import Engine, transaction

SHARED = "shared"


class AgentEndpoint:
    """The agents' endpoint, and what an administrator does. Calls run in threads: the agent's client is synchronous."""

    def __init__(self, engine: Engine, callers: Authenticator, port: int) -> None:
        self.engine = engine
        self.callers = callers
        self.address = f"127.0.0.1:{port}"
        self._clients: list[ControlClient] = []

    def client(self, token: str | None = None) -> ControlClient:
        client = ControlClient(self.address, token=token, clock=procfs.since_boot_s)
        self._clients.append(client)
        return client

    async def join_token(self, **values: Any) -> str:
        wanted = TokenWanted(**{"name": f"join-{time.monotonic_ns()}", "role": Role.JOIN, "uses": 1, **values})
        async with transaction(self.engine) as conn:
            return (await create_token(conn, wanted, actor="test"))[1]

    async def act(self, what: Callable[..., Any], name: str) -> None:
        async with transaction(self.engine) as conn:
            await what(conn, name, actor="test")

    async def enrolled(self, name: str = "a", **values: Any) -> Identity:
        """A host that has joined and shown its credential."""
        client = self.client()
        given = await self.enrol(client, Proof(join_token=await self.join_token()), name, **values)
        identity = identity_of(given)
        await self.report(client, identity)
        return identity

    async def enrol(self, client: ControlClient, proof: Proof, name: str = "a", **values: Any) -> Enrolled:
        given = {"host_name": name, "host_id": "", "boot_id": f"boot-{name}", "agent_id": f"agent-{name}", **values}
        return await asyncio.to_thread(lambda: client.enrol(**given, proof=proof))

    async def report(self, client: ControlClient, identity: Identity, host_id: str | None = None) -> ReportAnswer:
        news = HostUpdate(
            capacity=HostCapacity(cpu_cores=1.0, memory_bytes=1),
            templates=(),
            workers=(),
        )
        reported = identity if host_id is None else Identity(**{**as_dict(identity), "host_id": host_id})
        return await asyncio.to_thread(
            lambda: client.report(
                news, identity=reported, host_name="a", boot_id="boot", sequence=time.monotonic_ns(), epoch_seen=0
            )
        )

    async def rows(self, sql: str) -> list[Any]:
        async with transaction(self.engine) as conn:
            return list(await conn.execute(text(sql)))

    def close(self) -> None:
        for client in self._clients:
            client.close()


def as_dict(identity: Identity) -> dict[str, str]:
    return {name: getattr(identity, name) for name in ("agent_id", "cluster_id", "host_id", "credential")}


def identity_of(given: Enrolled) -> Identity:
    return Identity(agent_id="agent", cluster_id=given.cluster_id, host_id=given.host_id, credential=given.credential)
