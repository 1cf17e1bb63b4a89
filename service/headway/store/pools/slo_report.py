"""What a report on objectives is made of: jobs by period, and the workers that decisions recorded."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from sqlalchemy import text

from headway.scaling.metrics.attainment import Attained
from headway.scaling.metrics.reports.series import DECISION_HOLDS_S
from headway.scaling.metrics.reports.slo_report import WorkerTime
from headway.store.engine import Connection


async def read_attained_by_period(
    conn: Connection, pools: Sequence[str], *, from_s: float, until_s: float, step_s: float
) -> Mapping[str, Mapping[float, Attained]]:
    """Pool -> start of a period -> its jobs, each counted by the objective of its time."""
    found: dict[str, dict[float, Attained]] = defaultdict(dict)
    asked = {"pools": list(pools), "from_s": from_s, "until_s": until_s, "step_s": step_s}
    for row in await conn.execute(_ATTAINED, asked):
        found[row.pool][float(row.at_s)] = Attained(jobs=int(row.jobs), late_jobs=int(row.late_jobs))
    return found


async def read_worker_time(
    conn: Connection, pools: Sequence[str], *, from_s: float, until_s: float, step_s: float
) -> Mapping[str, Mapping[float, WorkerTime]]:
    """Pool -> start of a period -> the workers that were there.

    A decision's count holds until the next one, and 390 s at most: a control plane that was down knows nothing.
    """
    found: dict[str, dict[float, WorkerTime]] = defaultdict(dict)
    asked = {
        "pools": list(pools),
        "from_s": from_s,
        "until_s": until_s,
        "step_s": step_s,
        "holds_s": DECISION_HOLDS_S,
    }
    for row in await conn.execute(_WORKED, asked):
        found[row.pool][float(row.at_s)] = WorkerTime(
            worker_s=float(row.worker_s), known_s=float(row.known_s), peak_workers=int(row.peak_workers)
        )
    return found


# A period at a time: all at once is a sort of nine million rows, of a thousand pools and a month.
_ATTAINED = text(
    """
    select pool, at_s, jobs, late_jobs
    from generate_series(
        cast(:from_s as bigint), cast(:until_s as bigint) - 1, cast(:step_s as bigint)
    ) as period(at_s)
    cross join lateral (
        select pool, sum(cast(jobs as float8)) as jobs, sum(cast(late_jobs as float8)) as late_jobs
        from pool_attainment
        where from_s >= at_s and from_s < at_s + :step_s and pool = any(cast(:pools as text[]))
        group by pool
    ) as attained
    """
)
_WORKED = text(
    """
    with decided as (
        select pool, extract(epoch from decided_at)::float8 as began_s,
            extract(epoch from least(
                coalesce(lead(decided_at) over (partition by pool order by decided_at), now()),
                decided_at + make_interval(secs => :holds_s)
            ))::float8 as ends_s,
            coalesce(running_workers, 0) + coalesce(starting_workers, 0) + coalesce(unknown_workers, 0)
                + coalesce(leaving_workers, 0) as workers
        from decisions
        cross join lateral jsonb_to_record(body) as stored(
            running_workers integer, starting_workers integer, unknown_workers integer, leaving_workers integer
        )
        where pool = any(cast(:pools as text[]))
            and decided_at >= to_timestamp(:from_s - :holds_s) and decided_at < to_timestamp(:until_s)
    ),
    parts as (
        select pool, number * :step_s as at_s, workers,
            least(ends_s, (number + 1) * :step_s) - greatest(began_s, number * :step_s) as lasted_s
        from decided
        cross join lateral generate_series(
            floor(began_s / :step_s)::bigint, floor(ends_s / :step_s)::bigint
        ) as period(number)
    )
    select pool, at_s, sum(workers * lasted_s) as worker_s, sum(lasted_s) as known_s, max(workers) as peak_workers
    from parts where lasted_s > 0 and at_s >= :from_s and at_s < :until_s group by 1, 2
    """
)
