"""The queues from which workers of pools take jobs: those that a pool owns, and those that it helps with."""

from collections.abc import Collection
from typing import Any

from sqlalchemy import CompoundSelect, Select, func, literal_column, select, true

from headway.store.tables import profile_queues, profiles

HELPED_RANK = 1_000_000  # behind all queues of the pool


def served_queues(pools: CompoundSelect[Any] | Collection[str]) -> tuple[Select[Any], Select[Any]]:
    """The queues from which workers of ``pools`` take jobs, by pool and rank: those of the pool, and behind them those
    that it helps with.
    """
    own = select(profile_queues.c.pool, profile_queues.c.queue, profile_queues.c.rank)
    named = func.jsonb_path_query_array(profiles.c.body, literal_column("'$.helps[*]'"))
    helped = (
        func.jsonb_array_elements_text(named)
        .table_valued("value", with_ordinality="place")
        .render_derived(name="helped")
    )
    helps = select(profiles.c.pool, helped.c.value.label("queue"), (HELPED_RANK + helped.c.place).label("rank"))
    return (
        own.where(profile_queues.c.pool.in_(pools)),
        helps.select_from(profiles.join(helped, true())).where(profiles.c.pool.in_(pools), helped.c.value.is_not(None)),
    )
