"""Worker processes, a page at a time."""

from typing import Annotated

from fastapi import Query, Request, Response

from headway.control.http.dependencies import (
    NamePath,
    NameQuery,
    PoolQuery,
    WithContext,
    body_of,
    model_of,
    operations,
    taking,
)
from headway.control.http.problems import declared
from headway.control.http.schemas.host_bodies import KillBody
from headway.control.http.schemas.schema_base import in_a_thread
from headway.control.http.schemas.worker_responses import CutOut, CutsOut, WorkerOut, WorkersOut
from headway.errors import Conflict, Invalid, NotFound
from headway.scaling.model import WorkerState
from headway.store.audit import AUDIT_TIME_MAX_S
from headway.store.engine import snapshot, transaction
from headway.store.hosts.hosts import list_workers as read_workers
from headway.store.hosts.job_cuts import CUTS_SHOWN_MAX
from headway.store.hosts.job_cuts import list_cuts as read_cuts
from headway.store.hosts.kill_orders import order_kill
from headway.store.leadership import notify_hosts

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


@router.post(
    "/workers/{worker_id}/kill",
    summary="Kill a worker, which cuts its jobs",
    status_code=202,
    **taking(KillBody, NotFound, Conflict),
)
async def kill_worker(worker_id: NamePath, context: WithContext, request: Request) -> Response:
    """Have a worker killed by its agent as soon as that polls: for one that does not end by itself.

    Its jobs are cut: what becomes of them is their library's affair. Asked again, nothing more happens.
    """
    reason = await body_of(request, lambda body: model_of(KillBody, body).reason)
    async with transaction(context.engine) as conn:
        host_id = await order_kill(conn, worker_id, reason=reason, actor=context.actor)
        await notify_hosts(conn, [host_id])
    return Response(status_code=202)


@router.get("/cuts", summary="List jobs that were cut", responses=declared(Invalid))
async def list_cuts(
    context: WithContext,
    pool: PoolQuery = None,
    from_s: Annotated[
        float | None, Query(ge=0, le=AUDIT_TIME_MAX_S, description="Unix seconds: those that were reported since.")
    ] = None,
    limit: Annotated[int, Query(ge=1, le=CUTS_SHOWN_MAX)] = 100,
) -> CutsOut:
    """Jobs that ends of workers have cut, and workers that may have lost one, the newest first, for 30 days."""
    async with snapshot(context.engine) as conn:
        found = await read_cuts(conn, pool=pool, since_s=from_s, limit=limit)
    return CutsOut(cuts=[CutOut.of(row) for row in found])
