"""Charts as inline SVG: scales, ticks and paths. Colours are classes, so that the page can be light or dark."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from html import escape

from headway.scaling.arithmetic import DAY_S

WIDTH, LEFT, RIGHT, TOP, BOTTOM = 900.0, 66.0, 14.0, 12.0, 30.0
TIME_STEPS_S = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """From values to places on a line of the picture."""

    least: float
    most: float
    begin: float
    end: float

    def __call__(self, value: float) -> float:
        """The place of ``value``, kept within the line."""
        span = (self.most - self.least) or 1.0
        part = min(1.0, max(0.0, (value - self.least) / span))
        return self.begin + part * (self.end - self.begin)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """A place on an axis and what is written there."""

    value: float
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """A chart's box: where values are drawn, and the grid with its labels."""

    across: Scale
    up: Scale
    height: float
    x_ticks: tuple[Tick, ...] = ()
    y_ticks: tuple[Tick, ...] = ()
    marks: list[str] = field(default_factory=list)

    def svg(self, title: str) -> str:
        """The picture. ``title`` is its text for a reader who cannot see it."""
        parts = [*self._grid(), *self.marks]
        return (
            f'<svg viewBox="0 0 {WIDTH:.0f} {self.height:.0f}" role="img" aria-label="{escape(title)}">'
            f"{''.join(parts)}</svg>"
        )

    def _grid(self) -> Iterable[str]:
        for tick in self.y_ticks:
            y = self.up(tick.value)
            yield f'<line class="grid" x1="{LEFT:.0f}" x2="{WIDTH - RIGHT:.0f}" y1="{y:.1f}" y2="{y:.1f}"/>'
            yield f'<text class="tick end" x="{LEFT - 8:.0f}" y="{y + 4:.1f}">{escape(tick.label)}</text>'
        for tick in self.x_ticks:
            x = self.across(tick.value)
            yield f'<text class="tick mid" x="{x:.1f}" y="{self.height - BOTTOM + 18:.1f}">{escape(tick.label)}</text>'

    def line(self, points: Iterable[tuple[float, float]], css: str) -> None:
        """A line through ``points``."""
        self.marks.append(f'<path class="{css}" d="{_path(self._places(points))}"/>')

    def steps(self, points: Sequence[tuple[float, float]], css: str) -> None:
        """A line that holds each value until the next."""
        self.marks.append(f'<path class="{css}" d="{_path(self._places(_stepped(points)))}"/>')

    def area(self, points: Sequence[tuple[float, float]], css: str) -> None:
        """The ground below a line that holds each value until the next."""
        if not points:
            return
        base = self.up(self.up.least)
        places = self._places(_stepped(points))
        closed = [(places[0][0], base), *places, (places[-1][0], base)]
        self.marks.append(f'<path class="{css}" d="{_path(closed)}Z"/>')

    def dots(self, points: Iterable[tuple[float, float]], css: str, *, radius: float = 1.6) -> None:
        """A dot at each of ``points``, all in one path."""
        diameter = 2 * radius
        path = "".join(
            f"M{x - radius:.1f} {y:.1f}a{radius} {radius} 0 1 0 {diameter} 0a{radius} {radius} 0 1 0 -{diameter} 0"
            for x, y in self._places(points)
        )
        self.marks.append(f'<path class="{css}" d="{path}"/>')

    def level(self, value: float, css: str, label: str) -> None:
        """A line across at ``value``, with its name at the right."""
        y = self.up(value)
        self.marks.append(f'<line class="{css}" x1="{LEFT:.0f}" x2="{WIDTH - RIGHT:.0f}" y1="{y:.1f}" y2="{y:.1f}"/>')
        self.marks.append(f'<text class="tick end halo" x="{WIDTH - RIGHT:.0f}" y="{y - 5:.1f}">{escape(label)}</text>')

    def _places(self, points: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
        return [(self.across(x), self.up(y)) for x, y in points]


def frame(*, until: float, most: float, height: float, from_: float = 0.0) -> Frame:
    """A chart over time from ``from_`` to ``until`` seconds, with values from 0 to ``most``."""
    y_ticks = tuple(Tick(value=value, label=number(value)) for value in round_steps(0.0, most, about=4))
    top = max(most, y_ticks[-1].value)
    return Frame(
        across=Scale(least=from_, most=until, begin=LEFT, end=WIDTH - RIGHT),
        up=Scale(least=0.0, most=top, begin=height - BOTTOM, end=TOP + 6),
        height=height,
        x_ticks=time_ticks(until),
        y_ticks=y_ticks,
    )


def round_steps(least: float, most: float, *, about: int) -> list[float]:
    """About so many round values that cover ``least`` to ``most``."""
    span = max(most - least, 1e-9)
    power = 10.0 ** math.floor(math.log10(span / about))
    step = next(each for factor in (1, 2, 5, 10) if (each := factor * power) >= span / about * 0.999)
    first = math.floor(least / step + 1e-9)
    count = math.ceil((most - first * step) / step - 1e-9)
    return [(first + index) * step for index in range(count + 1)]


def time_ticks(until_s: float) -> tuple[Tick, ...]:
    """Up to nine moments of a rehearsal, at round times from its start."""
    steps = (*TIME_STEPS_S, *(DAY_S * days for days in (1, 2, 7, 14, 28, 91, 365)))
    step_s = next((step for step in steps if until_s / step <= 8), until_s / 8 or 1.0)
    return tuple(
        Tick(value=index * step_s, label=clock(index * step_s)) for index in range(math.floor(until_s / step_s) + 1)
    )


def clock(at_s: float) -> str:
    """A moment from the start, as short as it can be: ``0``, ``90 s``, ``15 min``, ``2 h``, ``day 3``."""
    if at_s == 0:
        return "0"
    if at_s < 60 or (at_s < 300 and at_s % 60):
        return f"{at_s:g} s"
    if at_s < 3600 or (at_s < DAY_S and at_s % 3600):
        return f"{at_s / 60:g} min"
    if at_s % DAY_S:
        return f"{at_s / 3600:g} h"
    return f"{at_s / DAY_S:g} d"


def number(value: float) -> str:
    """A value on an axis."""
    if abs(value) >= 10_000:
        return f"{value / 1000:,.0f}k"
    return f"{value:,.0f}" if value == round(value) else f"{value:.3g}"


def _stepped(points: Sequence[tuple[float, float]]) -> Iterable[tuple[float, float]]:
    last: float | None = None
    for x, y in points:
        if last is not None:
            yield x, last
        yield x, y
        last = y


def _path(places: Iterable[tuple[float, float]]) -> str:
    """A path through places, without those on a straight line across."""
    kept: list[tuple[float, float]] = []
    for x, y in places:
        if len(kept) > 1 and abs(kept[-1][1] - y) < 0.05 and abs(kept[-2][1] - y) < 0.05:
            kept[-1] = (x, y)
        else:
            kept.append((x, y))
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in kept) if kept else ""
