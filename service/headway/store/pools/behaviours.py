"""What the leader has learned of pools, and what hosts have of their templates, as one value a pool."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import timedelta
from typing import Any

from sqlalchemy import bindparam, func, select, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.ext.asyncio import AsyncConnection

from headway.scaling.mapping import from_mapping, to_mapping
from headway.scaling.metrics.behaviour import Behaviour, Spread, Timings, behaviour_from_mapping, behaviour_to_mapping
from headway.scaling.metrics.prediction_error import PredictionError
from headway.store.tables import pool_behaviours

BEHAVIOUR_OBSERVATIONS_MAX = 1_000  # that a spread of a template is made of: of many hosts the newest few of each


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """What is written down of one pool."""

    body: Mapping[str, Any]
    """What the next leader goes on from."""
    behaviour: Behaviour = field(default_factory=Behaviour)
    """What that comes to, without what hosts have of its template."""
    prediction: PredictionError | None = None
    """How far its predictions of the last hour were off; ``None``: none was scored."""


async def read_learned(conn: AsyncConnection) -> dict[str, Mapping[str, Any]]:
    """Pool -> the body that was written down of it."""
    return {row.pool: row.body for row in await conn.execute(select(pool_behaviours.c.pool, pool_behaviours.c.body))}


async def save_learned(conn: AsyncConnection, learned: Mapping[str, Learned]) -> None:
    """Write down what was learned; of pools whose profile is gone nothing."""
    if learned:
        rows = [{"pool": pool, "body": each.body, "summary": _to_json(each)} for pool, each in learned.items()]
        await conn.execute(_SAVE, {"rows": rows})


async def read_summaries(
    conn: AsyncConnection, pools: Collection[str] | None = None
) -> dict[str, tuple[Behaviour, PredictionError | None]]:
    """Pool -> what was learned of it, of ``pools`` or of all, without what hosts have of its template."""
    is_of_late = pool_behaviours.c.written_at > func.now() - timedelta(hours=1)
    query = select(pool_behaviours.c.pool, pool_behaviours.c.summary, is_of_late.label("is_of_late"))
    if pools is not None:
        query = query.where(pool_behaviours.c.pool.in_(list(pools)))
    return {row.pool: _from_json(row.summary, is_of_late=row.is_of_late) for row in await conn.execute(query)}


async def read_timings(conn: AsyncConnection, templates: Collection[str] | None = None) -> dict[str, Timings]:
    """Template -> how long its workers take, of ``templates`` or of all."""
    named = None if templates is None else list(templates)
    rows = await conn.execute(_TIMINGS, {"templates": named, "observations": BEHAVIOUR_OBSERVATIONS_MAX})
    return {
        row.template: Timings(
            start_up=_spread(row.start_ups_s, row.start_ups),
            start_up_of_late_s=row.start_up_s,
            start_up_cpu_s=row.start_up_cpu_s,
            start_up_alone=_spread(row.start_ups_alone_s, row.start_ups_alone),
            exit=_spread(row.exits_s, row.exits),
            exit_cpu_s=row.exit_cpu_s,
            exit_alone=_spread(row.exits_alone_s, row.exits_alone),
        )
        for row in rows
    }


def with_timings(behaviour: Behaviour, timings: Timings | None) -> Behaviour:
    """``behaviour`` with what hosts have of its pool's template."""
    if timings is None:
        return behaviour
    return replace(behaviour, **{each.name: getattr(timings, each.name) for each in fields(Timings)})


def _spread(quantiles_s: Any, count: int | None) -> Spread | None:
    return Spread(p50_s=quantiles_s[0], p95_s=quantiles_s[1], count=count) if quantiles_s and count else None


def _to_json(learned: Learned) -> dict[str, Any]:
    return {"behaviour": behaviour_to_mapping(learned.behaviour), "prediction": to_mapping(learned.prediction)}


def _from_json(summary: Mapping[str, Any], *, is_of_late: bool) -> tuple[Behaviour, PredictionError | None]:
    error = summary.get("prediction") if is_of_late else None
    prediction = from_mapping(PredictionError, error) if error else None
    return behaviour_from_mapping(summary.get("behaviour", {})), prediction


_SAVE = text(
    """
    insert into pool_behaviours (pool, body, summary)
    select given.pool, given.body, given.summary
    from jsonb_to_recordset(:rows) as given(pool text, body jsonb, summary jsonb)
    join profiles using (pool)
    on conflict (pool) do update set body = excluded.body, summary = excluded.summary, written_at = now()
    """
).bindparams(bindparam("rows", type_=JSONB))
# Of so many hosts that all of it would be too much, each lists its newest few.
_TIMINGS = text(
    """
    with starts as (
        select template, percentile_disc(array[0.5, 0.95]) within group (order by took_s) as start_ups_s,
            count(took_s) as start_ups, max(start_up_s) as start_up_s, avg(start_up_cpu_s) as start_up_cpu_s,
            percentile_disc(array[0.5, 0.95]) within group (order by alone_s) as start_ups_alone_s,
            count(alone_s) as start_ups_alone
        from (
            select template, start_up_s, start_up_cpu_s, recent_s, recent_alone_s,
                greatest(1, :observations / count(*) over (partition by template)) as newest
            from template_start_ups
            where cast(:templates as text[]) is null or template = any(:templates)
        ) as known cross join lateral unnest(recent_s[1:newest], recent_alone_s[1:newest]) as each(took_s, alone_s)
        group by template
    ), ends as (
        select template, percentile_disc(array[0.5, 0.95]) within group (order by took_s) as exits_s,
            count(took_s) as exits, avg(exit_cpu_s) as exit_cpu_s,
            percentile_disc(array[0.5, 0.95]) within group (order by alone_s) as exits_alone_s,
            count(alone_s) as exits_alone
        from (
            select template, exit_cpu_s, recent_s, recent_alone_s,
                greatest(1, :observations / count(*) over (partition by template)) as newest
            from template_exits
            where cast(:templates as text[]) is null or template = any(:templates)
        ) as known cross join lateral unnest(recent_s[1:newest], recent_alone_s[1:newest]) as each(took_s, alone_s)
        group by template
    )
    select template, start_ups_s, start_ups, start_up_s, start_up_cpu_s, start_ups_alone_s, start_ups_alone,
        exits_s, exits, exit_cpu_s, exits_alone_s, exits_alone
    from starts full join ends using (template)
    """
)
