"""The page of a back-test: every candidate over all pools, then pool by pool."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from html import escape
from typing import Any

from headway.simulate.report.charts import COLOURS, Place, cost_chart
from headway.simulate.report.fleet import Total, totals
from headway.simulate.report.page import cells_html, document, extremes_html, over_time, percent, table
from headway.simulate.report.rows import Row

POOLS_SHOWN = 40  # one by one; a page of a thousand is read by nobody and opened by no browser
PAST_NAMED_MAX = 8  # names beside dots: more would cover the dots
FOOT = (
    "Every pool was rehearsed with the core that decides in the live loop, on the jobs that were recorded. Waits are "
    "from arrival to start; workers are paid from spawn to exit, start-up and drain included."
)


def past_page(
    pools: Mapping[str, Sequence[Row]], skipped: Mapping[str, str], *, title: str, facts: Mapping[str, str]
) -> str:
    """The whole report as HTML. Of ``pools`` those with the most work are shown one by one."""
    shown = largest(pools)
    sections = [_overview(totals(pools)), skipped_section(skipped)]
    sections += [pool_section(pool, pools[pool], named=named_of(pools[pool])) for pool in shown]
    if len(shown) < len(pools):
        sections.append(f'<p class="soft">{len(pools) - len(shown)} pools with less work are not shown one by one.</p>')
    return document(title, facts, "".join(sections), foot=FOOT)


def largest(pools: Mapping[str, Sequence[Row]]) -> tuple[str, ...]:
    """The pools that are shown one by one, those with the most work first."""
    work = {pool: max((row.result.work_hours for row in rows), default=0.0) for pool, rows in pools.items()}
    return tuple(sorted((pool for pool in pools if pools[pool]), key=lambda pool: (-work[pool], pool))[:POOLS_SHOWN])


def named_of(rows: Sequence[Row]) -> frozenset[str]:
    """The candidates whose names are written into the chart: all of a few, else the first, which all are compared with,
    and the cheapest that meets the objective.
    """
    if len(rows) <= PAST_NAMED_MAX:
        return frozenset(row.strategy for row in rows)
    kept = [row for row in rows if row.is_kept]
    best = min(kept or rows, key=lambda row: (row.result.worker_hours, row.result.spawns))
    return frozenset({rows[0].strategy, best.strategy})


def pool_section(pool: str, rows: Sequence[Row], *, named: frozenset[str], note: str = "") -> str:
    """One pool: a ``note`` on it, its candidates as dots and as a table, and those that were kept over time."""
    first = rows[0]
    names = tuple(row.strategy for row in rows)
    places = [
        Place(
            name=row.strategy,
            work_multiple=max(row.result.work_multiple or 1.0, 1e-9),
            in_time_percent=row.result.attainment_percent,
            css=f"c{number % COLOURS}",
            is_named=row.strategy in named,
        )
        for number, row in enumerate(rows)
        if row.result.work_multiple
    ]
    chart = cost_chart(places, percentile=first.percentile, title=f"Share of jobs in time against cost of {pool}")
    drawn = "".join(
        over_time(row, None, is_open=False) for row in rows if row.result.points and row.strategy in named | {names[0]}
    )
    return (
        f"<section><h2>{escape(pool)}</h2>"
        f'<p class="soft">{first.result.jobs:,} jobs, {first.result.work_hours:,.2f} hours of work; objective '
        f"{first.percentile:g} % within {first.result.objective_s:g} s.</p>{note}"
        f"<figure><figcaption>Jobs in time against cost (× the work itself). Up and to the left is better; each step "
        f"up is a tenth of the late jobs.</figcaption>{chart}</figure>"
        f"<details><summary>Every candidate</summary>{table(rows, names)}</details>{drawn}</section>"
    )


def _overview(found: Sequence[Total]) -> str:
    if not found or not found[0].pools:
        return ""
    places = [
        Place(
            name=total.candidate,
            work_multiple=max(total.work_multiple or 1.0, 1e-9),
            in_time_percent=total.in_time_percent,
            css=f"c{number % COLOURS}",
            is_named=number == 0 or len(found) <= PAST_NAMED_MAX,
        )
        for number, total in enumerate(found)
        if total.work_multiple
    ]
    chart = cost_chart(places, percentile=None, title="All pools: share of jobs in time against cost")
    pools = found[0].pools
    return (
        f"<section><h2>All pools together</h2>"
        f'<p class="soft">{pools:,} {"pool" if pools == 1 else "pools"}, {found[0].jobs:,} jobs, '
        f"{found[0].work_hours:,.2f} hours of work.</p>{totals_table(found)}"
        f"<figure><figcaption>If every pool ran under one candidate: jobs in time against cost.</figcaption>{chart}"
        "</figure></section>"
    )


TOTAL_COLUMNS = ("objectives met", "in time", "worker-hours", "× work", "spawns", "kills", "flips")


def total_cells(total: Total) -> tuple[str, ...]:
    """The figures of one candidate over all pools, as ``TOTAL_COLUMNS`` name them."""
    return (
        f"{total.kept_pools:,}/{total.pools:,}",
        percent(total.in_time_percent),
        f"{total.worker_hours:,.2f}",
        "–" if total.work_multiple is None else f"{total.work_multiple:.2f}",
        f"{total.spawns:,}",
        f"{total.kills:,}",
        f"{total.flips:,}",
    )


def total_extremes(total: Total) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The least and the most of each figure over the tick phases, as ``TOTAL_COLUMNS`` name them; none of one phase."""
    if not total.by_phase:
        return ()
    return tuple((name, total_cells(_extreme(total, of))) for name, of in (("least", min), ("most", max)))


def _extreme(total: Total, of: Callable[..., Any]) -> Total:
    names = ("kept_pools", "in_time_percent", "worker_hours", "spawns", "kills", "flips")
    return replace(total, **{name: of(getattr(each, name) for each in total.by_phase) for name in names})


def totals_table(found: Sequence[Total]) -> str:
    """A row a candidate, over all pools."""
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in TOTAL_COLUMNS)
    body = "".join(
        f'<tr><th scope="row"><i class="key c{number % COLOURS}"></i>{escape(total.candidate)}</th>'
        f"{cells_html(total_cells(total))}</tr>{extremes_html(total_extremes(total))}"
        for number, total in enumerate(found)
    )
    return (
        f'<div class="wide"><table><thead><tr><th scope="col">candidate</th>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def skipped_section(skipped: Mapping[str, str]) -> str:
    """The pools that were not rehearsed, and why."""
    if not skipped:
        return ""
    lines = "".join(f"<li>{escape(pool)}: {escape(why)}</li>" for pool, why in skipped.items())
    return f"<section><h2>Not rehearsed</h2><ul>{lines}</ul></section>"
