"""Hosts whose polls are held."""

import asyncio

from headway.control.agents.agent_service import AgentService, AppliedAssignment
from headway.store.engine import transaction
from headway.store.hosts.hosts import Enrolment, enrol

BOUND_S = 60.0


async def enrolled(reports: AgentService, name: str = "a") -> str:
    asking = Enrolment(name=name, host_id="", boot_id="boot", agent_version="1")
    async with transaction(reports._engine) as conn:
        return await enrol(conn, asking)


async def having(reports: AgentService, host_id: str, *, epoch: int = 0, revision: int = 0) -> AppliedAssignment:
    return AppliedAssignment(cluster_id=await reports.cluster_id(), host_id=host_id, epoch=epoch, revision=revision)


async def held(reports: AgentService, host_id: str, polls: int = 1) -> None:
    """Return once so many polls of the host wait for a change."""
    async with asyncio.timeout(BOUND_S):
        while len(getattr(getattr(reports._held.get(host_id), "changed", None), "_waiters", ())) < polls:  # noqa: ASYNC110
            await asyncio.sleep(0.005)
