"""How long workers take to start and to end, learned by template and host from what agents measured.

Of each the mean is kept, in which the newest counts most, and the last observations, whose spread rehearsals need.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from headway.scaling.model import Exit, StartUp

WEIGHT = 0.3  # of the newest: after ten of them what was before counts 3 %
RECENT_MAX = 100  # observations that a spread is made of: the 95th percentile needs twenty


Each = TypeVar("Each", StartUp, Exit)


@dataclass(frozen=True, slots=True, kw_only=True)
class Folded:
    """Several observations in one: the new mean is ``kept`` times the old one plus ``added``, else ``mean``."""

    mean: float
    kept: float
    added: float


def folded(values: Sequence[float]) -> Folded:
    """``values``, each with its weight, in the order they came. With nothing known before, the first counts whole."""
    kept = (1.0 - WEIGHT) ** len(values)
    mean = values[0]
    for value in values[1:]:
        mean += WEIGHT * (value - mean)
    return Folded(mean=mean, kept=kept, added=mean - values[0] * kept)


async def learn_start_ups(conn: AsyncConnection, host_id: str, start_ups: Iterable[StartUp]) -> None:
    """Fold new starts of a host into what is known."""
    for template, each in _by_template(start_ups).items():
        took, cpu_s = folded([one.start_up_s for one in each]), [one.cpu_s for one in each if one.cpu_s is not None]
        cpu = folded(cpu_s) if cpu_s else None
        await conn.execute(
            _LEARN_START_UPS,
            {
                "host_id": host_id,
                "template": template,
                "mean_s": took.mean,
                "kept": took.kept,
                "added_s": took.added,
                "count": len(each),
                "recent_s": [one.start_up_s for one in reversed(each)],
                "cpu_s": cpu and cpu.mean,
                "cpu_kept": cpu and cpu.kept,
                "cpu_added_s": cpu and cpu.added,
            },
        )


async def learn_exits(conn: AsyncConnection, host_id: str, exits: Iterable[Exit]) -> None:
    """Fold new ends of idle workers of a host into what is known."""
    for template, each in _by_template(exits).items():
        took = folded([one.exit_s for one in each])
        await conn.execute(
            _LEARN_EXITS,
            {
                "host_id": host_id,
                "template": template,
                "mean_s": took.mean,
                "kept": took.kept,
                "added_s": took.added,
                "count": len(each),
                "recent_s": [one.exit_s for one in reversed(each)],
            },
        )


def _by_template(observed: Iterable[Each]) -> dict[str, list[Each]]:
    grouped: dict[str, list[Each]] = {}
    for each in observed:
        grouped.setdefault(each.template, []).append(each)
    return dict(sorted(grouped.items()))


_RECENT = f"(cast(:recent_s as double precision[]) || known.recent_s)[1:{RECENT_MAX}]"
_LEARN_START_UPS = text(
    f"""
    insert into template_start_ups as known
        (host_id, template, start_up_s, starts, recent_s, start_up_cpu_s, start_up_p95_s)
    select :host_id, :template, :mean_s, :count, recent_s[1:{RECENT_MAX}], cast(:cpu_s as double precision),
        (select percentile_disc(0.95) within group (order by each) from unnest(recent_s[1:{RECENT_MAX}]) as each)
    from (select cast(:recent_s as double precision[]) as recent_s) as given
    on conflict (host_id, template) do update set
        start_up_s = known.start_up_s * :kept + :added_s,
        starts = known.starts + :count,
        recent_s = {_RECENT},
        start_up_cpu_s = coalesce(known.start_up_cpu_s * :cpu_kept + :cpu_added_s, :cpu_s, known.start_up_cpu_s),
        start_up_p95_s = (
            select percentile_disc(0.95) within group (order by each) from unnest({_RECENT}) as each)
    """  # noqa: S608 - a number of ours
)
_LEARN_EXITS = text(
    f"""
    insert into template_exits as known (host_id, template, exit_s, exits, recent_s)
    values (:host_id, :template, :mean_s, :count, (cast(:recent_s as double precision[]))[1:{RECENT_MAX}])
    on conflict (host_id, template) do update set
        exit_s = known.exit_s * :kept + :added_s, exits = known.exits + :count, recent_s = {_RECENT}
    """  # noqa: S608 - as above
)
