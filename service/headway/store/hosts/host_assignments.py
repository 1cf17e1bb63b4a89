"""What a host is to run, as its agent receives it, and which queues it may speak of."""

from collections.abc import Collection
from dataclasses import dataclass, fields
from operator import itemgetter
from typing import Any

from sqlalchemy import (
    ColumnElement,
    CompoundSelect,
    Select,
    Text,
    bindparam,
    func,
    literal_column,
    select,
    union,
    union_all,
)
from sqlalchemy.dialects.postgresql import ARRAY, aggregate_order_by
from sqlalchemy.ext.asyncio import AsyncConnection

from headway.errors import NotFound
from headway.scaling.mapping import from_mapping
from headway.scaling.model import Assignment, Hint, KillOrder, PoolQueues
from headway.store.served_queues import served_queues
from headway.store.tables import (
    age_s,
    assignments,
    hosts,
    kill_orders,
    released_assignments,
    seconds,
    worker_activities,
)

ASSIGNMENT_HINT_AGE_MAX_S = 30.0  # no agent has a use for older ones


@dataclass(frozen=True, slots=True, kw_only=True)
class HostAssignments:
    """What a host is to run, and the broker's hints about its workers. Revision 0: nobody has decided yet."""

    epoch: int
    revision: int
    assignments: tuple[Assignment, ...] = ()
    hints: tuple[Hint, ...] = ()
    pools: tuple[PoolQueues, ...] = ()
    """The queues of each pool that the host runs, or whose last workers may still drain there, and behind them those
    that it helps with.
    """
    kills: tuple[KillOrder, ...] = ()
    """Workers of the host that people want to be killed."""


async def read_queues(conn: AsyncConnection, host_id: str) -> frozenset[str]:
    """The queues of which the host may report jobs: those of the pools that it runs, or ran until a while ago, and
    those that these help with.
    """
    pools = _pools_of(bindparam("host_id"))
    taken_from = union_all(*(each.with_only_columns(each.selected_columns.queue) for each in served_queues(pools)))
    rows = await conn.execute(taken_from, {"host_id": host_id})
    return frozenset(rows.scalars())


async def read_standings(conn: AsyncConnection, host_ids: Collection[str]) -> dict[str, HostAssignments]:
    """Host -> what it is to run, of those that are known, in one statement: a revision and its rows belong together."""
    rows = await conn.execute(_STANDINGS, {"host_ids": list(host_ids)})
    return {
        row.host_id: from_mapping(
            HostAssignments,
            {
                **row._asdict(),
                "assignments": sorted(row.assignments, key=itemgetter("pool")),
                "pools": [{"pool": pool, "queues": queues} for pool, queues in sorted(row.pool_queues.items())],
            },
        )
        for row in rows
    }


def unknown(host_id: str) -> NotFound:
    """What an agent receives whose host nobody knows."""
    return NotFound(f"no host has the id {host_id!r}: its agent must enrol again")


def _pools_of(host_id: ColumnElement[str]) -> CompoundSelect[Any]:
    """The pools that a host runs, and those that it ran."""
    return union(
        *(
            select(table.c.pool).where(table.c.host_id == host_id).correlate(hosts)
            for table in (assignments, released_assignments)
        )
    )


def _standings() -> Select[Any]:
    listed = func.coalesce(func.jsonb_agg(literal_column("listed")), literal_column("'[]'::jsonb"))
    columns = (assignments.c[each.name] for each in fields(Assignment))
    rows = select(*columns).where(assignments.c.host_id == hosts.c.host_id)
    seen = select(
        worker_activities.c.pid,
        worker_activities.c.is_busy,
        age_s(func.to_timestamp(worker_activities.c.busy_since_s)).label("since_age_s"),
        age_s(worker_activities.c.seen_at).label("age_s"),
        worker_activities.c.ended_jobs,
    ).where(
        worker_activities.c.host_name == hosts.c.name,
        worker_activities.c.seen_at > func.now() - seconds(bindparam("hint_age_max_s", ASSIGNMENT_HINT_AGE_MAX_S)),
    )
    killed = select(kill_orders.c.worker_id, kill_orders.c.requested_by).where(kill_orders.c.host_id == hosts.c.host_id)
    taken_from = union_all(*served_queues(_pools_of(hosts.c.host_id))).subquery("taken_from")
    order = taken_from.c.rank, taken_from.c.queue.collate("C")  # as QUEUE_ORDER
    by_pool = (
        select(taken_from.c.pool, func.jsonb_agg(aggregate_order_by(taken_from.c.queue, *order)))
        .group_by(taken_from.c.pool)
        .subquery("by_pool")
    )
    queues = func.coalesce(func.jsonb_object_agg(*by_pool.c), literal_column("'{}'::jsonb"))
    return select(
        hosts.c.host_id,
        hosts.c.assignment_epoch.label("epoch"),
        hosts.c.assignment_revision.label("revision"),
        select(listed).select_from(rows.correlate(hosts).subquery("listed")).scalar_subquery().label("assignments"),
        select(listed).select_from(seen.correlate(hosts).subquery("listed")).scalar_subquery().label("hints"),
        select(listed).select_from(killed.correlate(hosts).subquery("listed")).scalar_subquery().label("kills"),
        select(queues).select_from(by_pool).scalar_subquery().label("pool_queues"),
    ).where(hosts.c.host_id == func.any(bindparam("host_ids", type_=ARRAY(Text))))


_STANDINGS = _standings()
