"""Worker processes, a page at a time."""

from typing import Annotated

from fastapi import Query, Response

from headway.control.http.dependencies import NameQuery, PoolQuery, WithContext, operations
from headway.control.http.problems import declared
from headway.control.http.schemas.schema_base import in_a_thread
from headway.control.http.schemas.worker_responses import WorkerOut, WorkersOut
from headway.errors import Invalid
from headway.scaling.model import WorkerState
from headway.store.engine import snapshot
from headway.store.hosts.hosts import list_workers as read_workers

QUERY_WORKERS_MAX = 2_000

router = operations(prefix="/v1", tags=["hosts"])


@router.get("/workers", summary="List workers", response_model=WorkersOut, responses=declared(Invalid))
async def list_workers(
    context: WithContext,
    pool: PoolQuery = None,
    host: Annotated[NameQuery, Query(description="Only those of this host.")] = None,
    state: Annotated[WorkerState | None, Query(description="Only those in this state.")] = None,
    limit: Annotated[int, Query(ge=1, le=QUERY_WORKERS_MAX)] = 500,
    after: Annotated[NameQuery, Query(description="The `next` of an earlier answer.")] = None,
) -> Response:
    """Worker processes by their ids, a page at a time, as their agents reported them."""
    async with snapshot(context.engine) as conn:
        found = await read_workers(conn, pool=pool, host=host, state=state, limit=limit, after=after)
    following = found[-1].worker.worker_id if len(found) == limit else None
    return await in_a_thread(lambda: WorkersOut(workers=[WorkerOut.of(row) for row in found], next=following))
