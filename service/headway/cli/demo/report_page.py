"""A demo's report as a page that loads nothing: the comparison, workers and waits over time, how figures were made."""

from collections.abc import Sequence
from dataclasses import replace
from html import escape

from headway.cli.demo.demo_libraries import LIBRARIES
from headway.cli.demo.demo_report import Report, Run, present_workers
from headway.cli.demo.report_text import Cell, Row, cells, facts, faults, headline, heads, jobs_text, notes
from headway.simulate.report.page import document
from headway.simulate.report.svg import BOTTOM, TOP, Frame, Tick, frame


def report_page(report: Report, run: Run, *, moments: Sequence[Tick]) -> str:
    """The page. ``moments``, in seconds from the first job, label the axis of time; without any it has seconds."""
    items = "".join(f"<li>{escape(name)}: {escape(value)}</li>" for name, value in faults(report))
    kills = f'{_paragraphs([jobs_text(report)])}<ul class="list">{items}</ul>'
    sections = [
        ("What it took", f"{_paragraphs([headline(report)])}{_table(report)}{_workers(report, run, moments)}"),
        *((queue["queue"], _waits(queue, run, moments)) for queue in report["queues"]),
        *([("Killed on the way", kills)] if faults(report) else []),
        ("How the figures were made", _paragraphs(notes(report))),
    ]
    body = "".join(f"<section><h2>{escape(name)}</h2>{part}</section>" for name, part in sections)
    machine, versions, library = report["machine"], report["versions"], LIBRARIES[report["library"]]
    used = f"{library.title} {versions[library.name]}"
    foot = f"Headway {versions['headway']}, {used}, {machine['system']}, {machine['cores']} cores."
    return document(f"headway demo: {report['workload']['title']}", dict(facts(report)), body, foot=foot)


def _paragraphs(texts: Sequence[str | None]) -> str:
    return "".join(f"<p>{escape(text)}</p>" for text in texts if text)


def _table(report: Report) -> str:
    names = (head.replace("-\n", "-").replace("\n", " ") for head in heads(report))
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in names)
    body = "".join(_row(each) for each in cells(report))
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _row(row: Sequence[Cell]) -> str:
    first, *rest = row
    # The page's own style draws the mark.
    classes = ("", ' class="missed"')
    numbers = "".join(f"<td{classes[each.is_missed]}>{escape(each.text)}</td>" for each in rest)
    return f'<tr><th scope="row" class="long">{escape(first.text)}</th>{numbers}</tr>'


def _workers(report: Report, run: Run, moments: Sequence[Tick]) -> str:
    """How many workers there were, beside the constant pools."""
    pools: list[Row] = [row for row in report["comparison"] if row.get("workers")]
    levels = {str(row["way"]): sum(row["workers"].values()) for row in pools}
    present = [(at_s - run.began_at_s, workers) for at_s, workers in present_workers(run.lives)]
    box = _over_time(
        run, most=max([1, *levels.values(), *(workers for _, workers in present)]), height=230.0, moments=moments
    )
    box.area([(0.0, 0), *present], "present")
    for name, text in (("peak", "sized for the peak"), ("best_fixed", "best fixed pool")):
        if name in levels:
            box.level(levels[name], f"level {name}", f"{text}: {levels[name]}")
    for index, fault in enumerate(report.get("faults", ())):
        _mark(box, fault["at_s"], f"killed {fault['what']}", line=index)
    caption = "Workers of all queues: Headway's, and pools of constant size"
    return f"<figure><figcaption>{caption}</figcaption>{box.svg('Workers over time')}</figure>"


def _waits(queue: Report, run: Run, moments: Sequence[Tick]) -> str:
    """How long each job of a queue waited."""
    goal = next(goal for goal in run.goals if goal.queue == queue["queue"])
    jobs = run.of(goal)
    waits = [(job.enqueued_at_s - run.began_at_s, job.pickup_s(until_s=run.ended_at_s)) for job in jobs]
    box = _over_time(
        run, most=max([1.25 * goal.objective_s, *(wait_s for _, wait_s in waits)]), height=150.0, moments=moments
    )
    box.dots([each for each in waits if each[1] <= goal.objective_s], "wait")
    box.dots([each for each in waits if each[1] > goal.objective_s], "late", radius=2.2)
    box.level(goal.objective_s, "objective", f"{goal.percentile:g} % within {goal.objective_s:g} s")
    return (
        "<figure><figcaption>How long each job waited, in seconds, by when it came</figcaption>"
        f"{box.svg(f'Waits of {goal.queue}')}</figure>"
    )


def _over_time(run: Run, *, most: float, height: float, moments: Sequence[Tick]) -> Frame:
    until_s = max([run.ended_at_s, *(life.ended_at_s for life in run.lives)]) - run.began_at_s
    box = frame(until=max(until_s, 1.0), most=most, height=height)
    if not moments:
        return box
    return replace(box, x_ticks=tuple(each for each in moments if each.value <= until_s))


def _mark(box: Frame, at_s: float, label: str, *, line: int) -> None:
    """A line down at a moment; each label is lower than the one before it, so that none hides another."""
    x, y = box.across(at_s), TOP + 10 + 14 * line
    box.marks.append(f'<line class="fault" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP:.0f}" y2="{box.height - BOTTOM:.1f}"/>')
    box.marks.append(f'<text class="tick halo" x="{x + 4:.1f}" y="{y:.0f}">{escape(label)}</text>')
