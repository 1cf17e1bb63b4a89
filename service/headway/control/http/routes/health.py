"""Whether the installation works, for people, load balancers and whoever starts these processes; and its parts."""

from typing import Any

from headway.control.http.dependencies import WithContext, operations
from headway.control.http.problems import declared
from headway.control.http.schemas.responses import HealthOut, LiveOut
from headway.control.http.schemas.system_responses import SystemOut
from headway.store.engine import snapshot
from headway.store.events.event_sources import list_collectors
from headway.store.overview import read_health, read_hosts

router = operations(prefix="/v1", tags=["health"])

WITHOUT_TOKEN: dict[str, Any] = {"security": []}


@router.get("/health", summary="Read the installation's condition", responses=declared(), openapi_extra=WITHOUT_TOKEN)
async def get_health(context: WithContext) -> HealthOut:
    """How the installation is: `ok`, or `degraded` with the reasons. A 503 where the database does not answer."""
    return await context.overviews.health()


@router.get(
    "/health/live", summary="See whether the process answers", responses=declared(), openapi_extra=WITHOUT_TOKEN
)
async def get_live() -> LiveOut:
    """The process answers. Nothing else is checked."""
    return LiveOut()


@router.get("/system", summary="Read the installation's parts", responses=declared())
async def get_system(context: WithContext) -> SystemOut:
    """The leader, how far each stage from broker to worker is behind, collectors and agents, each with its age."""
    health = await context.overviews.health()
    async with snapshot(context.engine) as conn:
        row, hosts, collectors = await read_health(conn), await read_hosts(conn), await list_collectors(conn)
    return SystemOut.of(health, row, hosts, collectors, now_s=context.clock())
