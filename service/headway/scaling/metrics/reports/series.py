"""What a queue or a pool did over minutes to months, on one time axis, for a chart.

A point is a span of the axis. Of waits, depths and worker counts it has the greatest of its span, so that no peak
hides between two points; of events their number, once it has ended. ``None`` is not known: when nobody read a queue,
it was not empty.
"""

import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

from headway.scaling.arithmetic import HOUR_S, MINUTE_S
from headway.scaling.history.weekly import HOUR_MINUTES, Season
from headway.scaling.measure import BUCKET_S, BucketRow, MovingSketch, quantiles_s
from headway.scaling.metrics.dispatch_overhead import DISPATCH_SETTLES_S
from headway.scaling.metrics.unreported import NOTHING
from headway.scaling.model import Objective
from headway.scaling.profile import Profile
from headway.scaling.profile_keys.schedule import Zones, hour_of_week

DECISION_HOLDS_S = 390.0  # decisions repeat every 300 s: one that no other follows for longer holds no more
SAMPLE_HOLDS_S = 15.0  # a queue is read every 4 s or so, and may miss a bucket of 5 s or two

Column = list[float | None]


class Source(StrEnum):
    """How fine the rows are that a series is made of."""

    RAW = "raw"
    MINUTES = "minutes"
    HOURS = "hours"


SPANS_S: Mapping[Source, float] = MappingProxyType(
    {Source.RAW: BUCKET_S, Source.MINUTES: MINUTE_S, Source.HOURS: HOUR_S}
)

COUNTED: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "reports_arrivals": ("enqueued",),
        "reports_starts": ("started",),
        "reports_ends": ("finished", "failed", "retried"),
    }
)
"""Which columns count the events that a source reports, or does not."""

_EVENTS: Mapping[str, str] = MappingProxyType(
    {
        "enqueued": "arrived_jobs",
        "started": "started_jobs",
        "finished": "finished_jobs",
        "failed": "failed_jobs",
        "retried": "retried_attempts",
    }
)
_WAITS = ("p50_s", "p95_s", "pickup_s", "pickup_max_s", "pickup_ratio")


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """Spans of ``step_s`` beside each other, at multiples of it."""

    first: int
    """The number of the first span."""
    points: int
    step_s: float

    @property
    def from_s(self) -> float:
        """Where the first span begins."""
        return self.first * self.step_s

    @property
    def until_s(self) -> float:
        """Where the last one ends."""
        return (self.first + self.points) * self.step_s

    @property
    def at_s(self) -> list[float]:
        """Where each begins."""
        return [(self.first + number) * self.step_s for number in range(self.points)]

    def place(self, at_s: float) -> int | None:
        """The number of the point that holds ``at_s``; ``None`` beside the axis."""
        number = math.floor(at_s / self.step_s) - self.first
        return number if 0 <= number < self.points else None

    def next_place(self, at_s: float) -> int:
        """The number of the first point that begins at ``at_s`` or later, as far as there are points."""
        return min(self.points, max(0, math.ceil(min(at_s, self.until_s) / self.step_s) - self.first))

    def empty(self) -> Column:
        """A column of which nothing is known."""
        return [None] * self.points


def axis_of(*, from_s: float, until_s: float, points: int, span_s: float) -> Axis:
    """The finest axis over [from, until) that has at most ``points`` spans, each of whole ``span_s``."""
    parts = max(1, math.ceil((until_s - from_s) / span_s / points))
    while True:
        step_s = parts * span_s
        first, end = math.floor(from_s / step_s), math.ceil(until_s / step_s)
        if end - first <= points or parts * span_s > 2 * (until_s - from_s):
            return Axis(first=first, points=min(points, end - first), step_s=step_s)
        parts += 1


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueReading:
    """What fresh decisions of a span knew of one queue."""

    waiting_max_jobs: int | None = None
    oldest_age_max_s: float | None = None
    is_empty_last: bool = False
    """Whether nothing waited when the last of them was made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DecidedSpan:
    """The decisions of one span of an axis: the greatest of each count, and those of the last."""

    at_s: float
    last_at_s: float
    greatest: Mapping[str, int | None]
    """Column -> workers."""
    last: Mapping[str, int | None]
    readings: Mapping[str, QueueReading] = field(default_factory=dict)
    """By queue."""


WORKERS = ("running_workers", "starting_workers", "draining_workers", "target_workers")


def worker_columns(decided: Sequence[DecidedSpan], axis: Axis, *, now_s: float) -> dict[str, Column]:
    """The most workers in each point by what decisions, oldest first, recorded; a decision holds until the next."""
    columns = {name: axis.empty() for name in WORKERS}
    ends_s = [*(each.at_s for each in decided[1:]), math.inf][: len(decided)]
    for each, next_s in zip(decided, ends_s, strict=True):
        if (place := axis.place(each.at_s)) is not None:
            for name in WORKERS:
                _raise(columns[name], place, each.greatest.get(name))
        # What the last of them set holds on, also into the span of the next.
        until_s = min(next_s + axis.step_s, each.last_at_s + DECISION_HOLDS_S, now_s)
        for place in range(axis.next_place(each.last_at_s), axis.next_place(until_s)):
            for name in WORKERS:
                _raise(columns[name], place, each.last.get(name))
    return columns


def queue_columns(
    rows: Iterable[BucketRow],
    decided: Sequence[DecidedSpan],
    axis: Axis,
    *,
    objectives: Mapping[str, Objective | None],
    unknown: Collection[str] = NOTHING,
    now_s: float,
) -> dict[str, Column]:
    """Waits, depths and events of some queues together: counts and depths add, waits and ages are the greatest.

    Args:
        rows: Of one span all, any queues; a window of the objective earlier than the axis, for its first waits.
        decided: Of the pool, oldest first: they show that a queue without rows was read, and was empty.
        axis: Of spans no shorter than those of the rows.
        objectives: Of each queue that is asked for; ``None``: it has none.
        unknown: Which events are not reported of one of them, as ``unreported`` has them.
        now_s: Unix seconds: nothing is known of later.
    """
    by_queue: dict[str, list[BucketRow]] = {queue: [] for queue in objectives}
    for row in rows:
        if row.queue in by_queue:
            by_queue[row.queue].append(row)
    parts = []
    for queue, of_queue in by_queue.items():
        of_queue.sort(key=lambda row: row.bucket_s)
        parts.append(_of_queue(queue, of_queue, decided, axis, objective=objectives[queue], now_s=now_s))
    # A queue that was never seen is left out where another was: its depth would leave none known.
    seen = [part for part in parts if any(map(_any_known, part.values()))] or parts[:1]
    columns = {name: _together(name, [part[name] for part in seen], axis) for name in (*_WAITS, *_DEPTHS, *_EVENTS)}
    for events in unknown:
        columns.update((name, axis.empty()) for name in COUNTED[events])
    _forget_unfinished(columns, axis, now_s=now_s)
    return columns


def _forget_unfinished(columns: Mapping[str, Column], axis: Axis, *, now_s: float) -> None:
    """A count of a span that has not ended, or whose last events are on their way, would be too small."""
    finished = math.floor((now_s - DISPATCH_SETTLES_S) / axis.step_s) - axis.first
    for place in range(max(0, finished), axis.points):
        for name in _EVENTS:
            columns[name][place] = None


_DEPTHS = ("backlog_jobs", "oldest_age_s")


def _of_queue(
    queue: str,
    rows: Sequence[BucketRow],
    decided: Sequence[DecidedSpan],
    axis: Axis,
    *,
    objective: Objective | None,
    now_s: float,
) -> dict[str, Column]:
    columns = {name: axis.empty() for name in (*_WAITS, *_DEPTHS, *_EVENTS)}
    _fill_waits(columns, rows, axis, objective)
    for row, following in zip(rows, (*rows[1:], None), strict=False):
        if (place := axis.place(row.bucket_s)) is None:
            continue
        _raise(columns["pickup_max_s"], place, row.pickup_max_s)
        for name, counted in _EVENTS.items():
            columns[name][place] = (columns[name][place] or 0) + getattr(row, counted)
        if row.sampled_at_s is not None:
            _raise(columns["backlog_jobs"], place, row.waiting_jobs)
            _raise(columns["oldest_age_s"], place, row.oldest_age_s)
            _hold_sample(columns, place, row, axis, next_s=math.inf if following is None else following.bucket_s)
    _fill_readings(columns, queue, decided, axis, now_s=now_s)
    return columns


def _hold_sample(columns: Mapping[str, Column], place: int, row: BucketRow, axis: Axis, *, next_s: float) -> None:
    """Depths of a row hold a little longer than 5 s, because the next reading may come late."""
    if row.span_s >= SAMPLE_HOLDS_S:
        return
    until_s = min(next_s, row.bucket_s + SAMPLE_HOLDS_S)
    for later in range(place + 1, axis.next_place(until_s)):
        columns["backlog_jobs"][later] = row.waiting_jobs
        columns["oldest_age_s"][later] = row.oldest_age_s
        for name in _EVENTS:
            columns[name][later] = 0


def _fill_waits(
    columns: Mapping[str, Column], rows: Sequence[BucketRow], axis: Axis, objective: Objective | None
) -> None:
    """The percentiles of the objective's window, as it moves over the rows; the greatest of each point."""
    starts = [row.bucket_s for row in rows if row.pickup_sketch]
    sketches = {row.bucket_s: row.pickup_sketch for row in rows if row.pickup_sketch}
    window, window_s = MovingSketch(), 0.0 if objective is None else objective.window_s
    percentiles = (50.0, 95.0) if objective is None else (50.0, 95.0, objective.percentile)
    for at_s in starts:
        if (place := axis.place(at_s)) is None:
            continue
        inside = starts[bisect_right(starts, at_s - window_s) : bisect_right(starts, at_s)] or [at_s]
        found = quantiles_s(window.of({each: sketches[each] for each in inside}), percentiles)
        for name, value_s in zip(_WAITS, found, strict=False):
            _raise(columns[name], place, value_s)
        if objective is not None and found[-1] is not None:
            _raise(columns["pickup_ratio"], place, found[-1] / objective.target_s)


def _fill_readings(
    columns: Mapping[str, Column], queue: str, decided: Sequence[DecidedSpan], axis: Axis, *, now_s: float
) -> None:
    """What decisions knew: depths beside those of the rows, and zeros where a queue without rows was empty."""
    for each, following in zip(decided, (*decided[1:], None), strict=False):
        known = each.readings.get(queue)
        if known is None:
            continue
        place = axis.place(each.at_s)
        if place is not None:
            _raise(columns["backlog_jobs"], place, known.waiting_max_jobs)
            _raise(columns["oldest_age_s"], place, known.oldest_age_max_s)
        if not known.is_empty_last:
            continue
        until_s = min(each.last_at_s + DECISION_HOLDS_S, now_s, following.at_s if following else math.inf)
        first = axis.next_place(each.last_at_s) if place is None else place
        for quiet in range(first, axis.next_place(until_s)):
            for name in (*_EVENTS, "backlog_jobs", *(("oldest_age_s",) if known.oldest_age_max_s is not None else ())):
                columns[name][quiet] = columns[name][quiet] or 0


def _together(name: str, parts: Sequence[Column], axis: Axis) -> Column:
    if len(parts) == 1:
        return parts[0]
    together = axis.empty()
    for place, values in enumerate(zip(*parts, strict=True)):
        known = [value for value in values if value is not None]
        if name in _WAITS or name == "oldest_age_s":
            together[place] = max(known, default=None)
        elif len(known) == len(values):
            together[place] = sum(known)  # without one of them it would be too small
    return together


def forecast_columns(seasons: Mapping[str, Season], queues: Collection[str], axis: Axis) -> tuple[Column, Column]:
    """Arrivals a second that the weeks of ``queues`` predict, on average, and what 95 % of minutes do not exceed.

    Nothing where one of the queues has no season: the sum would be too small.
    """
    if not queues or not all(queue in seasons for queue in queues):
        return axis.empty(), axis.empty()
    means: dict[int, tuple[float, float]] = defaultdict(lambda: (0.0, 0.0))
    expected, high = axis.empty(), axis.empty()
    for place, at_s in enumerate(axis.at_s):
        hours = range(math.floor(at_s / HOUR_S), math.ceil((at_s + axis.step_s) / HOUR_S))
        for hour in hours:
            if hour not in means:
                means[hour] = _hour_per_s([seasons[queue] for queue in queues], hour)
        expected[place] = math.fsum(means[hour][0] for hour in hours) / len(hours)
        high[place] = max(means[hour][1] for hour in hours)
        rush_per_s = _rush_per_s([seasons[queue] for queue in queues], at_s) if axis.step_s <= MINUTE_S else 0.0
        expected[place], high[place] = max(expected[place] or 0.0, rush_per_s), max(high[place] or 0.0, rush_per_s)
    return expected, high


def _hour_per_s(seasons: Iterable[Season], hour: int) -> tuple[float, float]:
    slots = [(season, hour_of_week(hour, season.zone)) for season in seasons]
    return (
        math.fsum(season.mean_jobs[slot] for season, slot in slots) / MINUTE_S,
        math.fsum(season.high_jobs[slot] for season, slot in slots) / MINUTE_S,
    )


def _rush_per_s(seasons: Iterable[Season], at_s: float) -> float:
    minute = math.floor(at_s / MINUTE_S)
    jobs = 0.0
    for season in seasons:
        slot = hour_of_week(minute // HOUR_MINUTES, season.zone)
        jobs += season.peaks.get(slot * HOUR_MINUTES + minute % HOUR_MINUTES, 0.0)
    return jobs / MINUTE_S


def ceilings(profile: Profile, zones: Zones, axis: Axis, *, known_from_s: float) -> Column:
    """The most workers that the profile and its schedules allow as each point begins; unknown of an earlier version."""
    column = axis.empty()
    for place, at_s in enumerate(axis.at_s):
        if at_s + axis.step_s > known_from_s:
            bounds = profile.bounds_at(max(at_s, known_from_s), zones)
            column[place] = bounds.workers_max if profile.pinned is None else profile.pinned
    return column


def _raise(column: Column, place: int, value: float | None) -> None:
    there = column[place]
    if value is not None and (there is None or value > there):
        column[place] = value


def _any_known(column: Column) -> bool:
    return any(value is not None for value in column)
