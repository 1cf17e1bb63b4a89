"""Whether the installation works, for people, load balancers and whoever starts these processes. Needs no token."""

from typing import Any

from headway.control.http.dependencies import WithContext, operations
from headway.control.http.problems import declared
from headway.control.http.schemas.responses import HealthOut, LiveOut

router = operations(prefix="/v1/health", tags=["health"])

WITHOUT_TOKEN: dict[str, Any] = {"security": []}


@router.get("", summary="Read the installation's condition", responses=declared(), openapi_extra=WITHOUT_TOKEN)
async def get_health(context: WithContext) -> HealthOut:
    """How the installation is: `ok`, or `degraded` with the reasons. A 503 where the database does not answer."""
    return await context.overviews.health()


@router.get("/live", summary="See whether the process answers", responses=declared(), openapi_extra=WITHOUT_TOKEN)
async def get_live() -> LiveOut:
    """The process answers. Nothing else is checked."""
    return LiveOut()
