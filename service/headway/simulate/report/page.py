"""The report's page around its charts."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from html import escape
from importlib import resources
from types import MappingProxyType
from typing import Any

from headway.simulate.engine.results import Phase
from headway.simulate.report.charts import COLOURS, WAIT_MULTIPLE_MAX, frontier, waits_over_time, workers_over_time
from headway.simulate.report.rows import Offered, Row, workloads

COLUMNS = (
    ("in time", "share of jobs that started within the objective"),
    ("p50", "half of the jobs waited no longer"),
    ("p95", "95 % of the jobs waited no longer"),
    ("p99", "99 % of the jobs waited no longer"),
    ("worker-hours", "paid from spawn to exit"),
    ("× work", "worker-hours for each hour of work"),
    ("spawns", "workers started"),
    ("kills", "workers ended before their job was"),
    ("flips", "changes of the target's direction"),
    ("bad 5 min", "stretches of 5 minutes with less than 95 % in time, of those with arrivals"),
)


def page(
    rows: Sequence[Row],
    offered: Sequence[Offered],
    *,
    title: str,
    settings: Mapping[str, str],
    notes: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> str:
    """The whole report as HTML; ``notes`` has sentences on workloads, by their names."""
    loads = {each.workload: each for each in offered}
    strategies = tuple(dict.fromkeys(row.strategy for row in rows))
    sections = [
        _workload(name, [row for row in rows if row.workload == name], loads[name], strategies, notes.get(name, ()))
        for name in workloads(rows)
    ]
    foot = (
        "The same core decides here and in the live loop. Waits are from arrival to start; "
        "workers are paid from spawn to exit, start-up and drain included."
    )
    return document(title, settings, "".join(sections), foot=foot)


def document(title: str, facts: Mapping[str, str], body: str, *, foot: str) -> str:
    """A page that loads nothing: ``body`` under its title and ``facts``."""
    style = (resources.files(__package__) / "style.css").read_text()
    listed = "".join(f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in facts.items())
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{escape(title)}</title><style>{style}</style></head><body>"
        f"<header><h1>{escape(title)}</h1><dl>{listed}</dl></header><main>{body}</main>"
        f"<footer>{escape(foot)}</footer></body></html>\n"
    )


def _workload(name: str, rows: Sequence[Row], offered: Offered, strategies: Sequence[str], notes: Sequence[str]) -> str:
    jobs, work_hours = rows[0].result.jobs, rows[0].result.work_hours
    drawn = [row for row in rows if row.is_drawn]
    lines = "".join(f"<p>{escape(line)}</p>" for line in notes)
    charts = "".join(over_time(row, offered, is_open=index == 0) for index, row in enumerate(drawn))
    is_swept = any(row.risk is not None for row in rows)
    knob = " The line joins the places of the risk knob, named by its value." if is_swept else ""
    return (
        f"<section><h2>{escape(name)}</h2>"
        f'<p class="soft">{jobs:,} jobs, {work_hours:,.2f} hours of work.</p>{table(rows, strategies)}{lines}'
        f"<figure><figcaption>Jobs in time against cost (× the work itself). Up and to the left is better; "
        f"each step up is a tenth of the late jobs.{knob}</figcaption>{frontier(rows, strategies)}</figure>"
        f"{charts}</section>"
    )


def over_time(row: Row, offered: Offered | None, *, is_open: bool) -> str:
    """What can be unfolded: workers, demand and waits over time."""
    offered = offered or Offered(workload=row.workload, points=())
    work = [("offered", "workers that the arriving work fills")] if offered.points else []
    keys = _key([("present", "workers there"), ("target", "target"), *work])
    waits = _key([("wait", "longest wait in time"), ("late", "too late")])
    return (
        f"<details{' open' if is_open else ''}><summary>{escape(row.label)}: over time</summary>"
        f"<figure><figcaption>Workers and demand</figcaption>{keys}{workers_over_time(row, offered)}</figure>"
        f"<figure><figcaption>Waits in seconds, the longest of each stretch{_clipped(row)}</figcaption>"
        f"{waits}{waits_over_time(row)}</figure></details>"
    )


def _clipped(row: Row) -> str:
    longest_s = max((point.pickup_max_s or 0.0 for point in row.result.points), default=0.0)
    edge_s = WAIT_MULTIPLE_MAX * row.result.objective_s
    return f"; those at the upper edge were longer, up to {seconds(longest_s)}" if longest_s > edge_s else ""


def _key(entries: Sequence[tuple[str, str]]) -> str:
    shown = "".join(f'<li><i class="key {css}"></i>{escape(text)}</li>' for css, text in entries)
    return f'<ul class="keys">{shown}</ul>' if entries else ""


def table(rows: Sequence[Row], strategies: Sequence[str]) -> str:
    """A row a rehearsal, with every figure."""
    head = "".join(f'<th scope="col" title="{escape(hint)}">{escape(name)}</th>' for name, hint in COLUMNS)
    body = "".join(_row(row, strategies.index(row.strategy) % COLOURS) for row in rows)
    return (
        f'<div class="wide"><table><thead><tr><th scope="col">strategy</th>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _row(row: Row, colour: int) -> str:
    first, *rest = cells(row)
    verdict = "kept" if row.is_kept else "missed"
    return (
        f'<tr><th scope="row"><i class="key c{colour}"></i>{escape(row.label)}</th>'
        f'<td class="{verdict}" title="the objective was {verdict}">{escape(first)}</td>{cells_html(rest)}</tr>'
        f"{extremes_html(extremes(row))}"
    )


def cells_html(texts: Iterable[str]) -> str:
    """Texts as the cells of a row."""
    return "".join(f"<td>{escape(text)}</td>" for text in texts)


def extremes_html(found: Iterable[tuple[str, Iterable[str]]]) -> str:
    """Rows of the least and the most over all tick phases, below the row that they belong to."""
    return "".join(
        f'<tr class="soft"><th scope="row">{name} of all tick phases</th>{cells_html(figures)}</tr>'
        for name, figures in found
    )


def cells(row: Row) -> tuple[str, ...]:
    """The figures of one rehearsal, as ``COLUMNS`` name them."""
    result = row.result
    return (
        percent(result.attainment_percent),
        *(seconds(each) for each in (result.pickup_p50_s, result.pickup_p95_s, result.pickup_p99_s)),
        f"{result.worker_hours:,.2f}",
        "–" if result.work_multiple is None else f"{result.work_multiple:.2f}",
        f"{result.spawns:,}",
        f"{result.kills:,}",
        f"{result.flips:,}",
        f"{result.bad_windows:,}/{result.windows:,}",
    )


def extremes(row: Row) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The least and the most of each figure over the tick phases, as ``COLUMNS`` name them; none of a single phase.

    Each figure by itself: a row of the least is no rehearsal.
    """
    if not row.result.phases:
        return ()
    return tuple((name, _extreme(row, of)) for name, of in (("least", min), ("most", max)))


def _extreme(row: Row, of: Callable[..., Any]) -> tuple[str, ...]:
    def value(name: str) -> Any:
        return of((found for each in row.result.phases if (found := getattr(each, name)) is not None), default=None)

    figures = {each.name: value(each.name) for each in fields(Phase) if each.name != "tick_phase_s"}
    return cells(replace(row, result=replace(row.result, **figures)))


def percent(value: float) -> str:
    """A share of jobs; it says 100 only of all of them."""
    text = f"{value:.2f}"
    return f"{'99.99' if text == '100.00' and value < 100 else text} %"


def seconds(value: float | None) -> str:
    """A wait; a dash where nothing started."""
    if value is None:
        return "–"
    return f"{value:.2f} s" if value < 9.995 else f"{value:,.1f} s"
