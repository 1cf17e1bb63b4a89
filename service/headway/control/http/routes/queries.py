"""Queues, hosts, decisions and a pool's history: what is seen, and what was decided."""

import asyncio
from typing import Annotated, Literal

from fastapi import Query, Request, Response

from headway.control.http.dependencies import (
    NameQuery,
    PoolPath,
    PoolQuery,
    QueuePath,
    WithContext,
    body_of,
    model_of,
    operations,
    taking,
)
from headway.control.http.overview.pool_history import bucket_points, longest_window_s, service_times
from headway.control.http.problems import declared
from headway.control.http.schemas.behaviour_responses import BehaviourOut
from headway.control.http.schemas.queue_names import IN_PATH, QUEUE_NAMES_FORGOTTEN_MAX, ForgottenOut, QueuesBody
from headway.control.http.schemas.responses import (
    DecisionOut,
    DecisionsOut,
    ExplanationOut,
    HistoryOut,
    HostOut,
    HostsOut,
    LatestDecisionsOut,
    PoolsOut,
    QueuesOut,
    TargetPoint,
)
from headway.control.http.schemas.schema_base import in_a_thread
from headway.errors import Conflict, Invalid, NotFound
from headway.scaling.measure import BUCKET_S
from headway.scaling.metrics.behaviour import Behaviour
from headway.scaling.metrics.unreported import unreported
from headway.store import claimed_names
from headway.store.audit import AUDIT_TIME_MAX_S
from headway.store.decision_partitions import DAYS_KEPT
from headway.store.engine import snapshot, transaction
from headway.store.hosts.template_counts import reported_workers
from headway.store.overview import TargetRow, read_buckets, read_hosts, read_samples, read_target_history
from headway.store.pools import decisions
from headway.store.pools.behaviours import read_summaries, read_timings, with_timings
from headway.store.pools.profiles import StoredProfile, get_profile

DECISIONS_MAX = 500
QUERY_QUEUES_MAX = 2000  # three MB
QUERY_HISTORY_MINUTES_MAX = 120  # buckets of 5 s live two hours

DecisionMoment = Annotated[float | None, Query(ge=0, le=AUDIT_TIME_MAX_S, description="Unix seconds.")]

router = operations(prefix="/v1")


@router.get("/queues", summary="List queues", tags=["queues"], response_model=QueuesOut, responses=declared(Invalid))
async def list_queues(
    context: WithContext,
    pool: PoolQuery = None,
    queue: Annotated[NameQuery, Query(description="Only this queue.")] = None,
    limit: Annotated[int, Query(ge=1, le=QUERY_QUEUES_MAX)] = 500,
    after: Annotated[NameQuery, Query(description="The `next` of an earlier answer.")] = None,
) -> Response:
    """Queues that were seen or that a profile names, by name, a page at a time: newest depths, rates and waits."""
    page = await context.overviews.queues(pool=pool, queue=queue, limit=limit, after=after)
    return await in_a_thread(lambda: page)


@router.delete(
    f"/queues/{IN_PATH}",
    summary="Forget a queue that is gone",
    tags=["queues"],
    status_code=204,
    responses=declared(Invalid, NotFound, Conflict),
)
async def forget_queue(queue: QueuePath, context: WithContext) -> None:
    """Forget a queue with its history, and make room for another. One that is sent again is known anew."""
    async with transaction(context.engine) as conn:
        await claimed_names.forget_queues(conn, [queue], actor=context.actor)
    context.ingest.names.forget()


@router.post(
    "/queues/forget", summary="Forget queues that are gone", tags=["queues"], **taking(QueuesBody, NotFound, Conflict)
)
async def forget_queues(context: WithContext, request: Request) -> ForgottenOut:
    """Forget queues with their histories, all that are named or none; or those whose names begin so, a page at a time.

    A name that no URL carries, as `..`, is forgotten here.
    """
    asked = await body_of(request, lambda body: model_of(QueuesBody, body))
    async with transaction(context.engine) as conn:
        names, is_all = asked.queues or [], True
        if asked.prefix is not None:
            found = await claimed_names.queues_beginning(conn, asked.prefix, limit=QUEUE_NAMES_FORGOTTEN_MAX + 1)
            names, is_all = found[:QUEUE_NAMES_FORGOTTEN_MAX], len(found) <= QUEUE_NAMES_FORGOTTEN_MAX
        if names:
            await claimed_names.forget_queues(conn, names, actor=context.actor)
    context.ingest.names.forget()
    return ForgottenOut(queues=names, is_all=is_all)


@router.get("/pools", summary="List pools", tags=["queues"], response_model=PoolsOut, responses=declared(Invalid))
async def list_pools(context: WithContext, pool: PoolQuery = None) -> Response:
    """Every pool at this moment: its state and what is wrong, its workers as agents report them, how old that is."""
    seen = await context.overviews.overview()
    asked = [each for each in seen.pools if pool is None or each.pool == pool]
    return await in_a_thread(lambda: PoolsOut(at_s=seen.at_s, pools=asked, health=seen.health))


@router.get("/hosts", summary="List hosts", tags=["hosts"], response_model=HostsOut, responses=declared())
async def list_hosts(context: WithContext) -> Response:
    """Every host: its capacity, its templates, its workers, and whether it is known to live."""
    async with snapshot(context.engine) as conn:
        found = await read_hosts(conn)
    return await in_a_thread(lambda: HostsOut(hosts=[HostOut.of(row) for row in found]))


@router.get("/decisions", summary="List decisions", tags=["decisions"], responses=declared(Invalid))
async def list_decisions(
    context: WithContext,
    pool: PoolQuery = None,
    direction: Annotated[
        Literal["up", "down", "same"] | None, Query(description="Only changes this way, against the target before.")
    ] = None,
    reason: Annotated[NameQuery, Query(description="Only those that this demand or limit decided.")] = None,
    from_s: DecisionMoment = None,
    until_s: DecisionMoment = None,
    limit: Annotated[int, Query(ge=1, le=DECISIONS_MAX)] = 50,
    before: Annotated[str | None, Query(max_length=100, description="The `next` of an earlier answer.")] = None,
) -> DecisionsOut:
    """Decisions, newest first, a page at a time."""
    query = decisions.DecisionQuery(pool=pool, direction=direction, reason=reason, from_s=from_s, until_s=until_s)
    async with transaction(context.engine) as conn:
        found = await decisions.list_decisions(conn, query=query, limit=limit, before=before)
    return DecisionsOut(
        decisions=[DecisionOut.of(stored, context.strategies) for stored in found],
        next=found[-1].cursor if len(found) == limit else None,
    )


@router.get(
    "/decisions/latest",
    summary="Read the newest decisions",
    tags=["decisions"],
    response_model=LatestDecisionsOut,
    responses=declared(),
)
async def latest_decisions(context: WithContext) -> Response:
    """The newest decision of each pool."""
    async with transaction(context.engine) as conn:
        latest = await decisions.latest_decisions(conn)
    return await in_a_thread(
        lambda: LatestDecisionsOut(
            decisions=[DecisionOut.of(latest[pool], context.strategies) for pool in sorted(latest)]
        )
    )


@router.get(
    "/pools/{pool}/explain",
    summary="Read why a pool has its workers",
    tags=["decisions"],
    responses=declared(Invalid, NotFound),
)
async def explain_pool(
    pool: PoolPath,
    context: WithContext,
    at_s: Annotated[
        DecisionMoment, Query(description="Unix seconds: the decision that held then; default: the newest.")
    ] = None,
) -> ExplanationOut:
    """The decision that held at a moment of the last 14 days, and what `headway explain` says of it."""
    async with transaction(context.engine) as conn:
        if at_s is None:
            newest = decisions.DecisionQuery(pool=pool)
            stored = next(iter(await decisions.list_decisions(conn, query=newest, limit=1)), None)
        else:
            stored = await decisions.decision_at(conn, pool, at_s=at_s)
        if stored is None:
            why = _undecidable(await get_profile(conn, pool))  # says so where there is no such pool
            when = "yet" if at_s is None else f"that held at {at_s:.0f}: they are kept for {DAYS_KEPT} days"
            raise NotFound(f"pool {pool!r} has no decision {when}{why}")
    return ExplanationOut.explained(stored, context.strategies)


@router.get(
    "/pools/{pool}/history", summary="Read a pool's history", tags=["queues"], responses=declared(Invalid, NotFound)
)
async def get_history(
    pool: PoolPath, context: WithContext, minutes: Annotated[int, Query(ge=1, le=QUERY_HISTORY_MINUTES_MAX)] = 10
) -> HistoryOut:
    """The last minutes of a pool: what the pipeline measured every 5 s, and what was decided."""
    now_s = context.clock()
    from_s = now_s - minutes * 60
    async with transaction(context.engine) as conn:
        profile = (await get_profile(conn, pool)).profile
        rows, _ = await read_buckets(conn, from_s=from_s - longest_window_s(profile), queues=profile.queues)
        unknown = unreported(rows, await read_samples(conn, queues=profile.queues), profile.queues)
        targets = await read_target_history(conn, pool=pool, from_s=from_s)
        reported = await reported_workers(conn, pool)
    # No decision records what ran since the last one; agents' present reports do.
    target_workers = targets[-1].target_workers if targets else 0
    now = TargetRow(
        at_s=now_s, target_workers=target_workers, running_workers=reported[0], starting_workers=reported[1]
    )
    points = await asyncio.to_thread(bucket_points, rows, profile, from_s=from_s, unknown=unknown)
    return HistoryOut(
        pool=pool,
        from_s=from_s,
        until_s=now_s,
        bucket_s=BUCKET_S,
        objective=profile.objective,
        service_times=service_times(row for row in rows if row.bucket_s >= from_s),
        buckets=points,
        targets=[TargetPoint.model_validate(row) for row in (*targets, *([now] if targets else []))],
    )


def _undecidable(stored: StoredProfile) -> str:
    """Why nothing is decided for the pool, to follow that there is no decision; empty where it has queues."""
    if stored.has_queues:
        return ""
    if stored.written.pools_max is not None:
        return ": pools are made of its profile, one for each queue that no pool names"
    return f": no queue that was seen matches {', '.join(map(repr, stored.written.queues))}"


@router.get(
    "/pools/{pool}/behaviour", summary="Read how a pool behaves", tags=["queues"], responses=declared(Invalid, NotFound)
)
async def get_behaviour(pool: PoolPath, context: WithContext) -> BehaviourOut:
    """What was measured of the pool's workers and of the loop that scales them, and how far predictions were off.

    `headway simulate --behaviour FILE` takes this answer.
    """
    async with transaction(context.engine) as conn:
        profile = (await get_profile(conn, pool)).profile
        learned, prediction = (await read_summaries(conn, [pool])).get(pool, (Behaviour(), None))
        timings = (await read_timings(conn, [profile.template])).get(profile.template)
    return BehaviourOut.of(pool, profile.template, with_timings(learned, timings), prediction)
