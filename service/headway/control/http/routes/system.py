"""The installation's own parts: leader, stages of the pipeline, collectors, agents."""

from headway.control.http.dependencies import WithContext, operations
from headway.control.http.overview.system_parts import system_of
from headway.control.http.problems import declared
from headway.control.http.schemas.system_responses import SystemOut
from headway.store.engine import snapshot
from headway.store.events.event_sources import list_collectors
from headway.store.overview import read_health, read_hosts

router = operations(prefix="/v1", tags=["health"])


@router.get("/system", summary="Read the installation's parts", responses=declared())
async def get_system(context: WithContext) -> SystemOut:
    """The leader, how far each stage from broker to worker is behind, collectors and agents, each with its age."""
    health = await context.overviews.health()
    async with snapshot(context.engine) as conn:
        row, hosts, collectors = await read_health(conn), await read_hosts(conn), await list_collectors(conn)
    return system_of(health, row, hosts, collectors, now_s=context.clock())
