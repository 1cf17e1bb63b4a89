"""How long nearly all jobs of a pool take, over the last days."""

from collections.abc import Collection, Mapping

from sqlalchemy import Text, cast, select, union_all

from headway.scaling.arithmetic import DAY_S
from headway.scaling.measure import merged, quantile_s
from headway.store.engine import Connection
from headway.store.served_queues import served_queues
from headway.store.sketch_columns import sketch_of
from headway.store.tables import queue_buckets, rollup_hours, rollup_minutes

SERVICE_WINDOW_S = 7 * DAY_S  # long jobs are rare, and a week has one of each kind
SERVICE_MINUTES_S = 2 * 3600.0  # what is in no hour yet


async def read_service_p99_s(conn: Connection, pools: Collection[str], *, now_s: float) -> Mapping[str, float]:
    """Pool -> what 99 % of the jobs that its workers take took at most, by those that ended within a week.

    Those of queues that it helps with are among them; pools of none are left out.
    """
    if not pools:
        return {}
    served = union_all(*served_queues(list(pools))).subquery("served")
    sketches: dict[str, list[Mapping[int, int]]] = {}
    for table, from_s in (
        (rollup_hours, now_s - SERVICE_WINDOW_S),
        (rollup_minutes, now_s - SERVICE_MINUTES_S),
        (queue_buckets, now_s - SERVICE_MINUTES_S),
    ):
        columns = table.c
        query = (
            select(served.c.pool, cast(columns.service_sketch, Text))
            .join(served, served.c.queue == columns.queue)
            .where(columns.bucket_s >= from_s)
        )
        if table is not queue_buckets:
            query = query.where(columns.job_class == "")
        for pool, text in await conn.execute(query):
            sketches.setdefault(pool, []).append(sketch_of(text))
    found = {pool: quantile_s(merged(each), 99) for pool, each in sketches.items()}
    return {pool: service_s for pool, service_s in found.items() if service_s is not None}
