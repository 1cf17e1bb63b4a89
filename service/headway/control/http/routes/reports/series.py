"""Queues and pools over 15 minutes to 400 days, for charts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Query, Response

from headway.control.http.dependencies import PoolPath, QueuePath, WithContext, operations
from headway.control.http.overview.pool_history import longest_window_s
from headway.control.http.problems import declared
from headway.control.http.schemas.queue_names import IN_PATH
from headway.control.http.schemas.report_responses import SeriesColumns, SeriesOut
from headway.control.http.schemas.schema_base import in_a_thread
from headway.control.http.time_ranges import FromQuery, UntilQuery, time_range
from headway.errors import Invalid, NotFound
from headway.scaling.history.weekly import Season
from headway.scaling.measure import BucketRow
from headway.scaling.metrics.reports.series import (
    SPANS_S,
    WORKERS,
    Axis,
    DecidedSpan,
    Source,
    axis_of,
    ceilings,
    forecast_columns,
    queue_columns,
    worker_columns,
)
from headway.scaling.metrics.unreported import unreported
from headway.scaling.model import Objective, QueueSample
from headway.store.engine import Connection, snapshot
from headway.store.metrics.seasons import read_seasons
from headway.store.metrics.series import finest_source, read_decided, read_series_rows
from headway.store.overview import read_queues, read_samples
from headway.store.pools.profiles import StoredProfile, get_profile
from headway.zones import zones_of

SERIES_POINTS_MAX = 1_000
SERIES_DEFAULT_S = 3600.0
SERIES_SHORTEST_S = 60.0
SERIES_AHEAD_S_MAX = 7 * 86_400.0  # of a forecast and of schedules

PointsQuery = Annotated[int, Query(ge=2, le=SERIES_POINTS_MAX, description="At most so many.")]

router = operations(prefix="/v1", tags=["queues"])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    from_s: float
    until_s: float
    points: int
    now_s: float


def _asked(
    context: WithContext, from_s: FromQuery = None, until_s: UntilQuery = None, points: PointsQuery = 300
) -> _Asked:
    now_s = context.clock()
    begin_s, end_s = time_range(
        from_s,
        until_s,
        now_s=now_s,
        default_s=SERIES_DEFAULT_S,
        shortest_s=SERIES_SHORTEST_S,
        ahead_s_max=SERIES_AHEAD_S_MAX,
    )
    return _Asked(from_s=begin_s, until_s=end_s, points=points, now_s=now_s)


WhatIsAsked = Annotated[_Asked, Depends(_asked)]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Read:
    axis: Axis
    source: Source
    rows: Sequence[BucketRow]
    samples: Mapping[str, QueueSample]
    seasons: Mapping[str, Season]
    decided: Sequence[DecidedSpan]


@router.get(
    "/pools/{pool}/series",
    summary="Read a pool's series",
    response_model=SeriesOut,
    responses=declared(Invalid, NotFound),
)
async def get_pool_series(pool: PoolPath, context: WithContext, asked: WhatIsAsked) -> Response:
    """All queues of a pool together from `from_s` to `until_s`, by default the last hour: for a chart.

    Of waits, depths and workers each point has the greatest of its span. Events that are not reported of one of the
    queues are null, and so is a span that nothing is known of.
    """
    async with snapshot(context.engine) as conn:
        stored = await get_profile(conn, pool)
        profile = stored.profile
        read = await _read(conn, asked, queues=profile.queues, window_s=longest_window_s(profile), pool=pool)
    objectives = {queue: profile.objective_of(queue) for queue in profile.queues}
    return await in_a_thread(
        lambda: SeriesOut.taken_from(
            profile,
            read,
            read.axis,
            queue=None,
            columns=_columns(read, objectives, stored, now_s=asked.now_s),
        )
    )


@router.get(
    f"/queues/{IN_PATH}/series",
    summary="Read a queue's series",
    response_model=SeriesOut,
    responses=declared(Invalid, NotFound),
)
async def get_queue_series(queue: QueuePath, context: WithContext, asked: WhatIsAsked) -> Response:
    """A queue from `from_s` to `until_s`, by default the last hour: for a chart.

    Workers are those of its pool where it has that for itself, and else null.
    """
    async with snapshot(context.engine) as conn:
        queues = await read_queues(conn)
        if queue not in queues:
            raise NotFound(f"queue {queue!r}: not seen, and no profile names it")
        pool = queues[queue]
        stored = None if pool is None else await get_profile(conn, pool)
        window_s = 0.0 if stored is None else longest_window_s(stored.profile)
        read = await _read(conn, asked, queues=(queue,), window_s=window_s, pool=pool)
    objective = None if stored is None else stored.profile.objective_of(queue)
    alone = stored if stored is not None and len(stored.profile.queues) == 1 else None
    return await in_a_thread(
        lambda: SeriesOut.taken_from(
            read,
            read.axis,
            pool=pool,
            queue=queue,
            objective=objective,
            member_objectives={},
            columns=_columns(read, {queue: objective}, alone, now_s=asked.now_s),
        )
    )


async def _read(conn: Connection, asked: _Asked, *, queues: Sequence[str], window_s: float, pool: str | None) -> _Read:
    source = finest_source(from_s=asked.from_s, until_s=asked.until_s, now_s=asked.now_s, queues=len(queues))
    axis = axis_of(from_s=asked.from_s, until_s=asked.until_s, points=asked.points, span_s=SPANS_S[source])
    # Of an hour, the waits are those of its own jobs.
    earlier_s = axis.from_s - (0.0 if source is Source.HOURS else window_s)
    return _Read(
        axis=axis,
        source=source,
        rows=await read_series_rows(
            conn, queues=queues, from_s=earlier_s, until_s=min(axis.until_s, asked.now_s), source=source
        ),
        samples=await read_samples(conn, queues=queues),
        seasons={
            queue: each.season
            for queue, each in (await read_seasons(conn, queues=queues)).seasons.items()
            if each.season.is_better
        },
        decided=[] if pool is None else await read_decided(conn, pool=pool, axis=axis),
    )


def _columns(
    read: _Read, objectives: Mapping[str, Objective | None], stored: StoredProfile | None, *, now_s: float
) -> SeriesColumns:
    axis = read.axis
    expected, high = forecast_columns(read.seasons, list(objectives), axis)
    known = queue_columns(
        read.rows,
        read.decided,
        axis,
        objectives=objectives,
        unknown=unreported(read.rows, read.samples, objectives),
        now_s=now_s,
    )
    workers = (
        dict.fromkeys(WORKERS, axis.empty()) if stored is None else worker_columns(read.decided, axis, now_s=now_s)
    )
    ceiling = axis.empty()
    if stored is not None:
        ceiling = ceilings(stored.profile, zones_of(stored.profile), axis, known_from_s=stored.updated_at_s)
    return SeriesColumns(
        at_s=axis.at_s,
        ceiling_workers=ceiling,
        forecast_jobs_per_s=expected,
        forecast_high_jobs_per_s=high,
        **known,
        **workers,
    )
