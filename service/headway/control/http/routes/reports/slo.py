"""How pools kept their objectives, and what that took."""

import csv
import io
import math
from typing import Annotated, Literal

from fastapi import Depends, Query, Response

from headway.control.http.dependencies import PoolQuery, WithContext, operations
from headway.control.http.problems import declared
from headway.control.http.schemas.report_responses import SloOut, SloPoolOut
from headway.control.http.schemas.schema_base import in_a_thread
from headway.control.http.time_ranges import FromQuery, UntilQuery, time_range
from headway.errors import Invalid, NotFound, csv_cell
from headway.scaling.arithmetic import DAY_S, HOUR_S
from headway.scaling.metrics.reports.slo_report import PeriodReport, slo_report
from headway.scaling.profile import Profile
from headway.store.engine import snapshot
from headway.store.pools.attainment import read_attained_until_s
from headway.store.pools.profiles import get_profile, list_profiles
from headway.store.pools.slo_report import read_attained_by_period, read_worker_time

SLO_DEFAULT_S = 7 * DAY_S
SLO_PERIODS_MAX = 50_000  # of all pools together: 8 MB
SLO_POOL_DAYS_MAX = 500.0  # of decisions that are read for worker-hours: each pool has 288 a day and more
CSV = "text/csv"
COLUMNS = ("from_s", "jobs", "late_jobs", "attainment", "burn_rate", "worker_hours", "workers_known_s", "cost")

StepQuery = Annotated[Literal["hour", "day"], Query(description="How long a period is; days are those of UTC.")]

router = operations(prefix="/v1/slo", tags=["pools"])


async def _report(
    context: WithContext,
    from_s: FromQuery = None,
    until_s: UntilQuery = None,
    pool: PoolQuery = None,
    step: StepQuery = "day",
) -> SloOut:
    now_s, step_s = context.clock(), {"hour": HOUR_S, "day": DAY_S}[step]
    begin_s, end_s = time_range(from_s, until_s, now_s=now_s, default_s=SLO_DEFAULT_S, shortest_s=60.0)
    first, end = math.floor(begin_s / step_s), math.ceil(end_s / step_s)
    periods_s = [number * step_s for number in range(first, end)]
    span = {"from_s": first * step_s, "until_s": end * step_s, "step_s": step_s}
    async with snapshot(context.engine) as conn:
        stored = await list_profiles(conn) if pool is None else [await get_profile(conn, pool)]
        profiles = [each.profile for each in stored]
        names = [profile.pool for profile in profiles]
        if len(names) * len(periods_s) > SLO_PERIODS_MAX:
            raise Invalid(
                f"{len(names)} pools of {len(periods_s)} periods are more than {SLO_PERIODS_MAX:,}: name a pool, "
                "ask for days, or for a shorter range"
            )
        attained = await read_attained_by_period(conn, names, **span)
        counted_until_s = await read_attained_until_s(conn)
        is_few = len(names) * (end_s - begin_s) / DAY_S <= SLO_POOL_DAYS_MAX
        worked = await read_worker_time(conn, names, **span) if is_few else {}

    def of(profile: Profile) -> SloPoolOut:
        report = slo_report(
            periods_s,
            attained.get(profile.pool, {}),
            worked.get(profile.pool, {}),
            percentile=profile.objective.percentile,
            cost_per_worker_hour=profile.cost_per_worker_hour,
        )
        return SloPoolOut.taken_from(report, pool=profile.pool, objective=profile.objective)

    return SloOut(
        **span,
        counted_until_s=counted_until_s,
        pools=[of(profile) for profile in sorted(profiles, key=lambda each: each.pool)],
    )


Report = Annotated[SloOut, Depends(_report)]


@router.get("", summary="Report on objectives", response_model=SloOut, responses=declared(Invalid, NotFound))
async def get_slo(report: Report) -> Response:
    """Attainment, error budget, worker-hours and cost of each pool, by day or hour; by default of the last 7 days."""
    return await in_a_thread(lambda: report)


@router.get(
    "/export",
    summary="Export the report on objectives",
    response_class=Response,
    responses={200: {"content": {CSV: {"schema": {"type": "string"}}}}, **declared(Invalid, NotFound)},
)
async def export_slo(report: Report) -> Response:
    """The same as CSV: a line a pool and period. What is not known is empty."""
    text = io.StringIO()
    lines = csv.writer(text)
    lines.writerow(("pool", *COLUMNS))
    for each in report.pools:
        lines.writerows((csv_cell(each.pool), *_cells(period)) for period in each.periods)
    return Response(text.getvalue(), media_type=CSV, headers={"Content-Disposition": 'attachment; filename="slo.csv"'})


def _cells(period: PeriodReport) -> list[float | str]:
    values = (getattr(period, name) for name in COLUMNS)
    return ["" if value is None else value for value in values]
