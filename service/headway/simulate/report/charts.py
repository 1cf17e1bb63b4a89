"""The plots of a report: workers and demand over time, waits against the objective, attainment against cost."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from operator import itemgetter

from headway.simulate.report.rows import Offered, Row
from headway.simulate.report.svg import BOTTOM, LEFT, RIGHT, TOP, WIDTH, Frame, Scale, Tick, frame, number

CHART_LATE_LEAST = 1e-5  # what a plot shows of perfection: one in a hundred thousand
NINES = (0.0, 50.0, 90.0, 99.0, 99.9, 99.99, 100.0)
COSTS = (1.0, 1.1, 1.2, 1.5, 2.0, 3.0, 5.0, 7.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0)
COLOURS = 8  # classes c0 … c7 of the page
WAIT_MULTIPLE_MAX = 4.0  # waits above so many objectives lie at the upper edge


def workers_over_time(row: Row, offered: Offered) -> str:
    """Workers that were there, the target, and the workers that the arriving work would keep busy."""
    points = row.result.points
    most = max(
        [1.0, *(value for _, value in offered.points)]
        + [float(max(point.present_workers, point.target_workers)) for point in points]
    )
    box = frame(until=_until_s(row), most=most, height=230.0)
    box.area([(point.at_s, point.present_workers) for point in points], "present")
    box.steps([(point.at_s, point.target_workers) for point in points], "target")
    box.steps(offered.points, "offered")
    return box.svg(f"Workers and demand over time of {row.workload} under {row.label}")


def waits_over_time(row: Row) -> str:
    """The longest wait of each stretch; those above the objective stand out."""
    target_s = row.result.objective_s
    waits = [(point.at_s, point.pickup_max_s) for point in row.result.points if point.pickup_max_s is not None]
    most_s = max([1.25 * target_s, *(wait_s for _, wait_s in waits)])
    box = frame(until=_until_s(row), most=min(most_s, WAIT_MULTIPLE_MAX * target_s), height=150.0)
    box.dots([place for place in waits if place[1] <= target_s], "wait")
    box.dots([place for place in waits if place[1] > target_s], "late", radius=2.2)
    box.level(target_s, "objective", f"objective {number(target_s)} s")
    return box.svg(f"Longest waits over time of {row.workload} under {row.label}")


def frontier(rows: Sequence[Row], strategies: Sequence[str]) -> str:
    """Jobs in time against cost, a dot a rehearsal. Those of one swept strategy are joined: its frontier."""
    shown = [row for row in rows if row.result.work_multiple]
    if not shown:
        return ""
    box = _costs_and_nines([_cost_and_nines(row) for row in shown])
    box.level(_nines(shown[0].percentile), "objective", f"objective {shown[0].percentile:g} %")
    for strategy in dict.fromkeys(row.strategy for row in shown):
        colour = strategies.index(strategy) % COLOURS
        swept = [(row.risk, row) for row in shown if row.strategy == strategy and row.risk is not None]
        if len(swept) > 1:
            ordered = sorted(swept, key=itemgetter(0))
            box.line([_cost_and_nines(row) for _, row in ordered], f"frontier c{colour}")
    places = [(box.across(cost), box.up(nines)) for cost, nines in map(_cost_and_nines, shown)]
    labels = _Labels(places)
    for row, (x, y) in zip(shown, places, strict=True):
        box.marks.append(_dot(box, row, strategies.index(row.strategy) % COLOURS))
        if row.risk is None:
            box.marks.append(labels.beside(x, y, row.strategy))
        else:
            box.marks.append(f'<text class="tick mid halo" x="{x:.1f}" y="{y - 9:.1f}">{row.risk:g}</text>')
    return box.svg("Share of jobs in time against cost")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A dot of ``cost_chart``: what it is called, its cost for each hour of work, and its share of jobs in time."""

    name: str
    work_multiple: float
    in_time_percent: float
    css: str = "c0"
    is_named: bool = False
    """Whether its name is written beside it; of the others a pointer shows it."""


def cost_chart(places: Sequence[Place], *, percentile: float | None, title: str) -> str:
    """Jobs in time against cost, a dot a place."""
    if not places:
        return ""
    spots = [(math.log(each.work_multiple), _nines(each.in_time_percent)) for each in places]
    box = _costs_and_nines(spots)
    if percentile is not None:
        box.level(_nines(percentile), "objective", f"objective {percentile:g} %")
    drawn = [(box.across(cost), box.up(nines)) for cost, nines in spots]
    labels = _Labels(drawn)
    for each, (x, y) in zip(places, drawn, strict=True):
        summary = f"{each.name}: {each.in_time_percent:.2f} % in time, {each.work_multiple:.2f} × the work"
        box.marks.append(
            f'<circle class="dot {each.css}" cx="{x:.1f}" cy="{y:.1f}" r="{6 if each.is_named else 4}">'
            f"<title>{escape(summary)}</title></circle>"
        )
    # Over all dots, so that no later one hides a name.
    box.marks.extend(
        labels.beside(x, y, each.name) for each, (x, y) in zip(places, drawn, strict=True) if each.is_named
    )
    return box.svg(title)


def _dot(box: Frame, row: Row, colour: int) -> str:
    cost, nines = _cost_and_nines(row)
    summary = f"{row.label}: {row.result.attainment_percent:.2f} % in time, {row.result.work_multiple:.2f} × the work"
    radius = 4 if row.risk is not None else 6
    return (
        f'<circle class="dot c{colour}" cx="{box.across(cost):.1f}" cy="{box.up(nines):.1f}" r="{radius}">'
        f"<title>{escape(summary)}</title></circle>"
    )


class _Labels:
    """Names beside dots, each moved down until it covers no dot and no earlier name."""

    def __init__(self, dots: Iterable[tuple[float, float]]) -> None:
        self._taken = [(y + 4, x - 6, x + 6) for x, y in dots]

    def beside(self, x: float, y: float, text: str) -> str:
        """The name as SVG."""
        width = 7.0 * len(text)
        is_left = x + 12 + width > WIDTH - RIGHT
        begin = x - 10 - width if is_left else x + 10
        at = y + 4
        while any(abs(at - other) < 13 and begin < end and begin + width > first for other, first, end in self._taken):
            at += 13
        self._taken.append((at, begin, begin + width))
        css = "tick end halo" if is_left else "tick halo"
        return f'<text class="{css}" x="{x - 10 if is_left else x + 10:.1f}" y="{at:.1f}">{escape(text)}</text>'


def _costs_and_nines(spots: Sequence[tuple[float, float]]) -> Frame:
    height = 340.0
    costs, nines = zip(*spots, strict=True)
    least, most = min([0.0, *costs]), max([math.log(2.0), *costs]) + 0.08
    bottom = min([_nines(90.0), *nines])
    return Frame(
        across=Scale(least=least, most=most, begin=LEFT + 12, end=WIDTH - RIGHT),
        up=Scale(least=bottom, most=_nines(100.0) + 0.15, begin=height - BOTTOM - 8, end=TOP + 6),
        height=height,
        x_ticks=tuple(
            Tick(value=math.log(cost), label=f"{cost:g}×") for cost in _spread(COSTS, least=least, most=most)
        ),
        y_ticks=tuple(
            Tick(value=_nines(percent), label=f"{percent:g} %") for percent in NINES if _nines(percent) >= bottom - 1e-9
        ),
    )


def _spread(costs: Sequence[float], *, least: float, most: float) -> list[float]:
    """Those of ``costs`` that lie on the axis, far enough from each other to be read."""
    kept: list[float] = []
    for cost in costs:
        place = math.log(cost)
        is_far = not kept or place - math.log(kept[-1]) > (most - least) / 16
        if least - 1e-9 <= place <= most and is_far:
            kept.append(cost)
    return kept


def _cost_and_nines(row: Row) -> tuple[float, float]:
    return math.log(row.result.work_multiple or 1.0), _nines(row.result.attainment_percent)


def _nines(percent: float) -> float:
    """Where a share of jobs in time stands: each tenth part of the late ones is one step up."""
    return -math.log10(max(CHART_LATE_LEAST, 1.0 - percent / 100.0))


def _until_s(row: Row) -> float:
    points = row.result.points
    return max([1.0, *(point.at_s for point in points[-1:])])
