"""What a rehearsal came to: how many jobs started in time, what that cost, and how it went."""

import math
from array import array
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field

from headway.scaling.arithmetic import DAY_S
from headway.simulate.engine.unplaced import Unplaced

RESULT_WINDOW_S = 300.0  # short enough to show an outage that a day's average would hide
WINDOW_FRACTION_MIN = 0.95
RESULT_POINTS_MAX = 1200  # about two for each pixel column of a plot
RESULT_ROUNDING_S = 1e-9  # what binary fractions add to a wait of exactly the objective


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One stretch of a rehearsal for a plot: its end and the greatest of each figure within it."""

    at_s: float
    target_workers: int
    present_workers: int
    busy_workers: int
    waiting_jobs: int
    pickup_max_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """The figures of one rehearsal among several that differ in when their ticks are."""

    tick_phase_s: float
    attainment_percent: float
    pickup_p50_s: float | None
    pickup_p95_s: float | None
    pickup_p99_s: float | None
    worker_hours: float
    spawns: int
    kills: int
    flips: int
    bad_windows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One pool's rehearsal. Attainment is in per cent of all jobs; one that was never started was not in time.

    Of several that differ in their tick phase, every figure is the median.
    """

    pool: str
    jobs: int
    unserved_jobs: int
    objective_s: float
    attainment_percent: float
    attainment_by_day_percent: tuple[float | None, ...]
    """``None`` for a day without arrivals."""
    pickup_p50_s: float | None
    pickup_p95_s: float | None
    pickup_p99_s: float | None
    pickup_max_s: float | None
    worker_hours: float
    work_hours: float
    spawns: int
    kills: int
    flips: int
    """How often the target changed its direction."""
    bad_windows: int
    """Stretches of 5 minutes with less than 95 % of their arrivals in time."""
    windows: int
    """Stretches of 5 minutes with arrivals."""
    ticks: int
    ended_s: float
    deaths: int = 0
    """Workers that died, by themselves or with their host."""
    crashes: int = 0
    """Start-ups that failed."""
    given_up_jobs: int = 0
    """Jobs that failed as often as they may."""
    unplaced: Unplaced | None = None
    """What had no place on the hosts; of several tick phases, that of the one that is drawn."""
    phases: tuple[Phase, ...] = ()
    """Each of the rehearsals that this one stands for; none where it is the only one."""
    points: tuple[Point, ...] = field(default=())

    @property
    def work_multiple(self) -> float | None:
        """Worker-hours for each hour of work; ``None`` without work."""
        return self.worker_hours / self.work_hours if self.work_hours else None


class Recorder:
    """The figures of every tick, kept small."""

    def __init__(self) -> None:
        self.at_s = array("d")
        self.target = array("i")
        self.present = array("i")
        self.busy = array("i")
        self.waiting = array("i")
        self.pickup_max_s = array("d")
        self.flips = 0
        self._last_target = 0
        self._direction = 0

    def take(
        self, at_s: float, *, target: int, present: int, busy: int, waiting: int, pickup_max_s: float | None
    ) -> None:
        """Keep one tick."""
        self.at_s.append(at_s)
        self.target.append(target)
        self.present.append(present)
        self.busy.append(busy)
        self.waiting.append(waiting)
        self.pickup_max_s.append(-1.0 if pickup_max_s is None else pickup_max_s)
        if target != self._last_target:
            direction = 1 if target > self._last_target else -1
            self.flips += direction == -self._direction
            self._direction, self._last_target = direction, target

    def repeat(self, at_s: Sequence[float]) -> None:
        """Keep ticks that are like the last one, but for when they are and that nothing started."""
        self.at_s.extend(at_s)
        count = len(at_s)
        for kept in (self.target, self.present, self.busy, self.waiting):
            kept.extend(array("i", kept[-1:]) * count)
        self.pickup_max_s.extend(array("d", [-1.0]) * count)

    def points(self) -> tuple[Point, ...]:
        """At most ``RESULT_POINTS_MAX`` stretches of the same number of ticks."""
        ticks = len(self.at_s)
        stride = max(1, math.ceil(ticks / RESULT_POINTS_MAX))
        return tuple(self._point(first, min(first + stride, ticks)) for first in range(0, ticks, stride))

    def _point(self, first: int, end: int) -> Point:
        pickup_max_s = max(self.pickup_max_s[first:end])
        return Point(
            at_s=self.at_s[end - 1],
            target_workers=max(self.target[first:end]),
            present_workers=max(self.present[first:end]),
            busy_workers=max(self.busy[first:end]),
            waiting_jobs=max(self.waiting[first:end]),
            pickup_max_s=pickup_max_s if pickup_max_s >= 0 else None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Punctuality:
    """How many of the jobs started in time: all together, by day and by window."""

    percent: float
    by_day_percent: tuple[float | None, ...]
    bad_windows: int
    windows: int


def punctuality(arrived_s: Sequence[float], pickup_s: Sequence[float], *, objective_s: float) -> Punctuality:
    """How many of the jobs, given in order of arrival, started within ``objective_s``.

    A wait that is not a number is of a job that never started.
    """
    in_time = [wait_s <= objective_s + RESULT_ROUNDING_S for wait_s in pickup_s]  # False for nan
    windows = [
        fraction for fraction in _fractions(arrived_s, in_time, stretch_s=RESULT_WINDOW_S) if fraction is not None
    ]
    return Punctuality(
        percent=100.0 * sum(in_time) / len(in_time) if in_time else 100.0,
        by_day_percent=tuple(
            None if fraction is None else 100.0 * fraction
            for fraction in _fractions(arrived_s, in_time, stretch_s=DAY_S)
        ),
        bad_windows=sum(fraction < WINDOW_FRACTION_MIN for fraction in windows),
        windows=len(windows),
    )


def _fractions(arrived_s: Sequence[float], in_time: Sequence[bool], *, stretch_s: float) -> list[float | None]:
    """The part in time of each stretch from the start to the last arrival; ``None`` where nothing arrived."""
    fractions: list[float | None] = []
    first = 0
    while first < len(arrived_s):
        end = bisect_left(arrived_s, (len(fractions) + 1) * stretch_s, lo=first)
        fractions.append(sum(in_time[first:end]) / (end - first) if end > first else None)
        first = end
    return fractions


def percentile(ordered: Sequence[float], fraction: float) -> float | None:
    """The smallest of ``ordered`` that at least ``fraction`` of them do not exceed; ``None`` of nothing."""
    if not ordered:
        return None
    return ordered[max(0, math.ceil(fraction * len(ordered) - RESULT_ROUNDING_S) - 1)]
