"""How long workers take to start and to end, learned by template and host from what agents measured.

Of each the mean is kept, in which the newest counts most, and the last observations, whose spread rehearsals need.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Any, Self, TypeVar

from psycopg import sql
from psycopg.types.json import Jsonb
from sqlalchemy import bindparam, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.ext.asyncio import AsyncConnection

from headway.scaling.metrics.behaviour import RECENT_MAX, WEIGHT
from headway.scaling.model import Exit, StartUp

TIMED_TEMPLATES_KEPT = 400  # of a host: twice what it may have
KEPT_LEAST = 1e-12  # less of an old mean is nothing: Postgres refuses a product that no float can hold


Each = TypeVar("Each", StartUp, Exit)
_TEMPLATE = attrgetter("template")


@dataclass(frozen=True, slots=True, kw_only=True)
class Folded:
    """Several observations in one: the new mean is ``kept`` times the old one plus ``added``, else ``mean``."""

    mean: float
    kept: float
    added: float


def folded(values: Sequence[float]) -> Folded:
    """``values``, each with its weight, in the order they came. With nothing known before, the first counts whole."""
    mean = values[0]
    for value in values[1:]:
        mean += WEIGHT * (value - mean)
    kept = (1.0 - WEIGHT) ** len(values)
    kept = kept if kept > KEPT_LEAST else 0.0
    return Folded(mean=mean, kept=kept, added=mean - values[0] * kept)


async def learn_start_ups(conn: AsyncConnection, reported: Iterable[tuple[str, Iterable[StartUp]]]) -> None:
    """Fold new starts of hosts, by their ids, into what is known: all at once."""
    rows = _rows(reported, took_s=lambda start_up: start_up.start_up_s)
    await _learn(conn, rows, _START_UPS)
    if rows:
        await conn.execute(_KEEP_P95, {"rows": rows})


async def learn_exits(conn: AsyncConnection, reported: Iterable[tuple[str, Iterable[Exit]]]) -> None:
    """Fold new ends of idle workers of hosts, by their ids, into what is known: all at once."""
    rows = _rows(reported, took_s=lambda one: one.exit_s)
    await _learn(conn, rows, _EXITS)


async def _learn(conn: AsyncConnection, rows: list[dict[str, Any]], into: "_Learned") -> None:
    if rows:
        await conn.exec_driver_sql(into.learn, {"rows": Jsonb(rows), "recent_max": RECENT_MAX})
        host_ids = sorted({row["host_id"] for row in rows})
        await conn.exec_driver_sql(into.forget, {"host_ids": host_ids, "templates_max": TIMED_TEMPLATES_KEPT})


def _rows(reported: Iterable[tuple[str, Iterable[Each]]], *, took_s: Callable[[Each], float]) -> list[dict[str, Any]]:
    return [
        _row(host_id, template, list(each), took_s)
        for host_id, observed in reported
        for template, each in groupby(sorted(observed, key=_TEMPLATE), key=_TEMPLATE)
    ]


def _row(host_id: str, template: str, each: Sequence[Each], took: Callable[[Each], float]) -> dict[str, Any]:
    took_s = [max(0.0, took(one)) for one in each]  # by the rounding of a clock one may be a little below
    mean = folded(took_s)
    cpu_s = [max(0.0, one.cpu_s) for one in each if one.cpu_s is not None]
    cpu = folded(cpu_s) if cpu_s else None
    alone_s = [one.alone_s for one in each if one.alone_s is not None]
    return {
        "host_id": host_id,
        "template": template,
        "mean_s": mean.mean,
        "kept": mean.kept,
        "added_s": mean.added,
        "count": len(took_s),
        "recent_s": took_s[: -RECENT_MAX - 1 : -1],
        "recent_alone_s": alone_s[: -RECENT_MAX - 1 : -1],
        "cpu_s": cpu and cpu.mean,
        "cpu_kept": cpu and cpu.kept,
        "cpu_added_s": cpu and cpu.added,
    }


# A row of a host is written by one transaction at a time: each holds the lock on its host. A mean below a nanosecond is
# 0: it would fall on, past the smallest float, where Postgres refuses the product and with it the report.
_LEARN = sql.SQL(
    """
    with reported as (
        select * from jsonb_to_recordset(%(rows)s) as reported(
            host_id text, template text, mean_s double precision, kept double precision, added_s double precision,
            count bigint, recent_s double precision[], recent_alone_s double precision[], cpu_s double precision,
            cpu_kept double precision, cpu_added_s double precision)
    ),
    learned as (
        update {table} as known set
            {mean_s} = case when known.{mean_s} < 1e-9 then 0 else known.{mean_s} end * reported.kept
                + reported.added_s,
            {count} = known.{count} + reported.count,
            recent_s = (reported.recent_s || known.recent_s)[1 : %(recent_max)s],
            recent_alone_s = (reported.recent_alone_s || known.recent_alone_s)[1 : %(recent_max)s],
            {cpu_s} = coalesce(
                case when known.{cpu_s} < 1e-9 then 0 else known.{cpu_s} end * reported.cpu_kept + reported.cpu_added_s,
                reported.cpu_s, known.{cpu_s})
        from reported where known.host_id = reported.host_id and known.template = reported.template
        returning known.host_id, known.template
    )
    insert into {table} (host_id, template, {mean_s}, {count}, recent_s, recent_alone_s, {cpu_s})
    select host_id, template, mean_s, count, recent_s, recent_alone_s, cpu_s
    from reported where (host_id, template) not in (select host_id, template from learned)
    """
)
# Names of templates come and go: what was learned of one stays while a host has few of them.
_FORGET = sql.SQL(
    """
    delete from {table} as known using hosts
    where known.host_id = any(%(host_ids)s) and hosts.host_id = known.host_id
        and (select count(*) from {table} as every where every.host_id = hosts.host_id) > %(templates_max)s
        and not hosts.templates @> jsonb_build_array(jsonb_build_object('name', known.template))
    """
)
_KEEP_P95 = text(
    """
    update template_start_ups as known set start_up_p95_s = (
        select percentile_disc(0.95) within group (order by each) from unnest(known.recent_s) as each)
    from jsonb_to_recordset(:rows) as reported(host_id text, template text)
    where known.host_id = reported.host_id and known.template = reported.template
    """
).bindparams(bindparam("rows", type_=JSONB))


@dataclass(frozen=True, slots=True)
class _Learned:
    """The statements of one of the two tables, which are alike but for their names."""

    learn: str
    forget: str

    @classmethod
    def into(cls, **names: str) -> Self:
        """Those of the table and the columns with these ``names``."""
        quoted = {place: sql.Identifier(name) for place, name in names.items()}
        return cls(_LEARN.format(**quoted).as_string(), _FORGET.format(**quoted).as_string())


_START_UPS = _Learned.into(table="template_start_ups", mean_s="start_up_s", count="starts", cpu_s="start_up_cpu_s")
_EXITS = _Learned.into(table="template_exits", mean_s="exit_s", count="exits", cpu_s="exit_cpu_s")
