"""Queues, hosts, decisions and a pool's history: what is seen, and what was decided."""

from typing import Annotated

from fastapi import APIRouter, Query, Response

from headway.control.http.answers import (
    DecisionOut,
    DecisionsOut,
    HistoryOut,
    HostOut,
    HostsOut,
    LatestDecisionsOut,
    QueuesOut,
    TargetPoint,
)
from headway.control.http.behaviour_answers import BehaviourOut
from headway.control.http.door import AtDoor, PoolPath, PoolQuery
from headway.control.http.given import in_a_thread
from headway.control.http.overview import bucket_points, service_times
from headway.control.http.problems import declared
from headway.errors import Invalid, NotFound
from headway.scaling.behaviour import Behaviour
from headway.scaling.measure import BUCKET_S
from headway.store.behaviours import read_summaries, read_timings, with_timings
from headway.store.decisions import latest_decisions, list_decisions
from headway.store.engine import snapshot, transaction
from headway.store.overview import (
    read_buckets,
    read_hosts,
    read_target_history,
)
from headway.store.profiles import get_profile

DECISIONS_MAX = 500
HISTORY_MINUTES_MAX = 120  # buckets of 5 s live two hours

router = APIRouter(prefix="/v1")


@router.get(
    "/queues",
    operation_id="list_queues",
    summary="List queues",
    tags=["queues"],
    response_model=QueuesOut,
    responses=declared(Invalid),
)
async def list_all_queues(door: AtDoor, pool: PoolQuery = None) -> Response:
    """Every queue that was seen or that a profile names: newest depths, rates and waits."""
    at_s, queues = await door.overviews.queues(pool=pool)
    return await in_a_thread(lambda: QueuesOut(at_s=at_s, queues=queues))


@router.get(
    "/hosts",
    operation_id="list_hosts",
    summary="List hosts",
    tags=["hosts"],
    response_model=HostsOut,
    responses=declared(),
)
async def list_all_hosts(door: AtDoor) -> Response:
    """Every host: its capacity, its templates, its workers, and whether it is known to live."""
    async with snapshot(door.engine) as conn:
        found = await read_hosts(conn)
    return await in_a_thread(lambda: HostsOut(hosts=[HostOut.of(row) for row in found]))


@router.get(
    "/decisions",
    operation_id="list_decisions",
    summary="List decisions",
    tags=["decisions"],
    responses=declared(Invalid),
)
async def list_newest_decisions(
    door: AtDoor,
    pool: PoolQuery = None,
    limit: Annotated[int, Query(ge=1, le=DECISIONS_MAX)] = 50,
    before: Annotated[str | None, Query(max_length=100, description="The `next` of an earlier answer.")] = None,
) -> DecisionsOut:
    """Decisions, newest first, a page at a time."""
    async with transaction(door.engine) as conn:
        found = await list_decisions(conn, pool=pool, limit=limit, before=before)
    return DecisionsOut(
        decisions=[DecisionOut.of(stored) for stored in found],
        next=found[-1].cursor if len(found) == limit else None,
    )


@router.get(
    "/decisions/latest",
    operation_id="latest_decisions",
    summary="Read the newest decisions",
    tags=["decisions"],
    response_model=LatestDecisionsOut,
    responses=declared(),
)
async def list_latest_decisions(door: AtDoor) -> Response:
    """The newest decision of each pool."""
    async with transaction(door.engine) as conn:
        latest = await latest_decisions(conn)
    return await in_a_thread(
        lambda: LatestDecisionsOut(decisions=[DecisionOut.of(latest[pool]) for pool in sorted(latest)])
    )


@router.get(
    "/pools/{pool}/history",
    operation_id="get_history",
    summary="Read a pool's history",
    tags=["queues"],
    responses=declared(Invalid, NotFound),
)
async def get_pool_history(
    pool: PoolPath, door: AtDoor, minutes: Annotated[int, Query(ge=1, le=HISTORY_MINUTES_MAX)] = 10
) -> HistoryOut:
    """The last minutes of a pool: what the pipeline measured every 5 s, and what was decided."""
    now_s = door.clock()
    from_s = now_s - minutes * 60
    async with transaction(door.engine) as conn:
        profile = (await get_profile(conn, pool)).profile
        buckets, _ = await read_buckets(conn, from_s=from_s, queues=profile.queues)
        targets = await read_target_history(conn, pool=pool, from_s=from_s)
    return HistoryOut(
        pool=pool,
        from_s=from_s,
        until_s=now_s,
        bucket_s=BUCKET_S,
        objective=profile.objective,
        service_times=service_times(buckets),
        buckets=bucket_points(buckets),
        targets=[TargetPoint.model_validate(row, from_attributes=True) for row in targets],
    )


@router.get(
    "/pools/{pool}/behaviour",
    operation_id="get_behaviour",
    summary="Read how a pool behaves",
    tags=["queues"],
    responses=declared(Invalid, NotFound),
)
async def get_pool_behaviour(pool: PoolPath, door: AtDoor) -> BehaviourOut:
    """What was measured of the pool's workers and of the loop that scales them, and how far predictions were off.

    `headway simulate --behaviour FILE` takes this answer.
    """
    async with transaction(door.engine) as conn:
        profile = (await get_profile(conn, pool)).profile
        learned, prediction = (await read_summaries(conn, [pool])).get(pool, (Behaviour(), None))
        timings = (await read_timings(conn, [profile.template])).get(profile.template)
    return BehaviourOut.of(pool, profile.template, with_timings(learned, timings), prediction)
