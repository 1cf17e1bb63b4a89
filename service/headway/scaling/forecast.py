"""What a rate or load will be a lead time ahead.

A forecaster is a small value: ``updated`` with each point in turn, asked with ``forecast``. Its parameters stay, its
state is a handful of plain numbers. Times count from the last point and Unix times are never summed: nothing cancels.
Whether one may weigh in is decided in ``trial``.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType
from typing import Any, Protocol, Self

from headway.errors import Invalid

MEMORY_S = 60.0  # a dozen looks: enough to tell a slope from chance, few enough to see it turn
DAY_S = 86_400.0
BUCKET_S = 300.0  # of the clock: a load that follows the clock keeps to its minutes, not to its seconds
GAP_MEMORIES = 5.0  # after a silence of this many memories less than 1 % is left of what was known
VALUE_MAX = 1e12  # beyond this it is no rate of jobs
_STATE: Mapping[str, Any] = MappingProxyType({"is_state": True})


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """What was measured at a moment, Unix seconds."""

    at_s: float
    value: float

    def __post_init__(self) -> None:
        if not math.isfinite(self.at_s):
            raise Invalid(f"point: at_s={self.at_s} is no time")
        if not 0 <= self.value <= VALUE_MAX:
            raise Invalid(f"point at {self.at_s}: value={self.value} must lie in 0..{VALUE_MAX:g}")


class Forecaster(Protocol):
    """Foresees one series of points."""

    @property
    def name(self) -> str:
        """How it is called in notes and in the stored state."""

    def updated(self, point: Point) -> Self:
        """The forecaster that has seen ``point``, too; the same where ``point`` is not later than the last."""

    def forecast(self, ahead_s: float) -> float | None:
        """The value ``ahead_s`` after the last point, at least 0; ``None`` while there is no ground for one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Naive:
    """Nothing changes: the last value."""

    name: str = "naive"
    at_s: float | None = field(default=None, metadata=_STATE)
    value: float = field(default=0.0, metadata=_STATE)

    def updated(self, point: Point) -> Self:
        return self if _elapsed_s(self.at_s, point) == 0 else replace(self, at_s=point.at_s, value=point.value)

    def forecast(self, ahead_s: float) -> float | None:  # noqa: ARG002 - the port's shape
        return None if self.at_s is None else self.value


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """Nothing changes but by chance: the mean of late.

    Source: R. G. Brown, "Exponential Smoothing for Predicting Demand" (1956), with the share that the time elapsed asks
    for: D. J. Wright, "Forecasting data published at irregular time intervals", Management Science 32 (1986).
    """

    name: str = "level"
    memory_s: float = MEMORY_S
    at_s: float | None = field(default=None, metadata=_STATE)
    value: float = field(default=0.0, metadata=_STATE)

    def updated(self, point: Point) -> Self:
        elapsed_s = _elapsed_s(self.at_s, point)
        if elapsed_s == 0:
            return self
        kept = math.exp(-elapsed_s / self.memory_s)
        return replace(self, at_s=point.at_s, value=kept * self.value + (1 - kept) * point.value)

    def forecast(self, ahead_s: float) -> float | None:  # noqa: ARG002 - the port's shape
        return None if self.at_s is None else self.value


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend:
    """The straight line of least squares through the points of late; older ones weigh less.

    Its sums are centred and move along with the time, so it is as exact at Unix times as at 0.

    Source: R. G. Brown, "Smoothing, Forecasting and Prediction of Discrete Time Series" (1963), discounted least
    squares; D. H. D. West, "Updating mean and variance estimates", Communications of the ACM 22 (1979), for the sums.
    """

    name: str = "trend"
    memory_s: float = MEMORY_S
    at_s: float | None = field(default=None, metadata=_STATE)
    weight: float = field(default=0.0, metadata=_STATE)
    mean_ago_s: float = field(default=0.0, metadata=_STATE)
    mean_value: float = field(default=0.0, metadata=_STATE)
    sum_tt: float = field(default=0.0, metadata=_STATE)
    sum_tv: float = field(default=0.0, metadata=_STATE)

    def updated(self, point: Point) -> Self:
        elapsed_s = _elapsed_s(self.at_s, point)
        if elapsed_s == 0:
            return self
        if elapsed_s > GAP_MEMORIES * self.memory_s:
            empty = type(self)(name=self.name, memory_s=self.memory_s)
            return replace(empty, at_s=point.at_s, weight=1.0, mean_value=point.value)
        kept = math.exp(-elapsed_s / self.memory_s)
        before = self.weight * kept
        weight = before + 1.0
        older_s, above = self.mean_ago_s + elapsed_s, point.value - self.mean_value
        return replace(
            self,
            at_s=point.at_s,
            weight=weight,
            mean_ago_s=older_s * before / weight,
            mean_value=self.mean_value + above / weight,
            sum_tt=self.sum_tt * kept + before / weight * older_s * older_s,
            sum_tv=self.sum_tv * kept + before / weight * older_s * above,
        )

    def forecast(self, ahead_s: float) -> float | None:
        if self.sum_tt <= 0:
            return None
        return max(0.0, self.mean_value + self.sum_tv / self.sum_tt * (self.mean_ago_s + ahead_s))


@dataclass(frozen=True, slots=True, kw_only=True)
class Holt:
    """A level and a slope, each smoothed: double exponential smoothing. With ``damping_s`` the slope dies away.

    Source: C. C. Holt, "Forecasting seasonals and trends by exponentially weighted moving averages" (1957); E. S.
    Gardner, E. McKenzie, "Forecasting trends in time series", Management Science 31 (1985), for the damping; Wright
    (1986) for points that are not evenly spaced.
    """

    name: str = "holt"
    memory_s: float = MEMORY_S
    slope_memory_s: float = 2 * MEMORY_S
    damping_s: float | None = None
    at_s: float | None = field(default=None, metadata=_STATE)
    level: float = field(default=0.0, metadata=_STATE)
    slope_per_s: float | None = field(default=None, metadata=_STATE)

    def updated(self, point: Point) -> Self:
        elapsed_s = _elapsed_s(self.at_s, point)
        if elapsed_s == 0:
            return self
        if elapsed_s > GAP_MEMORIES * self.memory_s:
            return replace(self, at_s=point.at_s, level=point.value, slope_per_s=None)
        reach_s = self._reach_s(elapsed_s)
        if self.slope_per_s is None:
            return replace(self, at_s=point.at_s, level=point.value, slope_per_s=(point.value - self.level) / elapsed_s)
        kept, slope_kept = math.exp(-elapsed_s / self.memory_s), math.exp(-elapsed_s / self.slope_memory_s)
        level = kept * (self.level + self.slope_per_s * reach_s) + (1 - kept) * point.value
        faded = 1.0 if self.damping_s is None else math.exp(-elapsed_s / self.damping_s)
        slope_per_s = slope_kept * faded * self.slope_per_s + (1 - slope_kept) * (level - self.level) / elapsed_s
        return replace(self, at_s=point.at_s, level=level, slope_per_s=slope_per_s)

    def forecast(self, ahead_s: float) -> float | None:
        if self.slope_per_s is None:
            return None
        return max(0.0, self.level + self.slope_per_s * self._reach_s(ahead_s))

    def _reach_s(self, ahead_s: float) -> float:
        """For how long the slope of now would have to last to reach as far as the damped one does."""
        return ahead_s if self.damping_s is None else -self.damping_s * math.expm1(-ahead_s / self.damping_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seasonal:
    """What it was at this time of the clock in the seasons before; newer ones weigh more.

    ``utc_offset_s`` sets the clock. What is being measured is not yet remembered: only ended buckets are.
    """

    name: str = "seasonal"
    season_s: float = DAY_S
    bucket_s: float = BUCKET_S
    utc_offset_s: float = 0.0
    new_share: float = 0.5
    at_s: float | None = field(default=None, metadata=_STATE)
    value_sum: float = field(default=0.0, metadata=_STATE)
    points: int = field(default=0, metadata=_STATE)
    remembered: tuple[float | None, ...] = field(default=(), metadata=_STATE)
    """One a bucket of the season; ``None`` where nothing was ever measured. Empty until the first has ended."""

    def updated(self, point: Point) -> Self:
        if _elapsed_s(self.at_s, point) == 0:
            return self
        if self.at_s is None or self._span(self.at_s) == self._span(point.at_s):
            return replace(self, at_s=point.at_s, value_sum=self.value_sum + point.value, points=self.points + 1)
        return replace(
            self, at_s=point.at_s, value_sum=point.value, points=1, remembered=self._with_ended(self._bucket(self.at_s))
        )

    def forecast(self, ahead_s: float) -> float | None:
        if self.at_s is None or not self.remembered:
            return None
        return self.remembered[self._bucket(self.at_s + ahead_s)]

    def _with_ended(self, bucket: int) -> tuple[float | None, ...]:
        remembered = self.remembered or (None,) * self._buckets
        mean, before = self.value_sum / self.points, remembered[bucket]
        value = mean if before is None else before + self.new_share * (mean - before)
        return (*remembered[:bucket], value, *remembered[bucket + 1 :])

    @property
    def _buckets(self) -> int:
        return math.ceil(self.season_s / self.bucket_s)

    def _bucket(self, at_s: float) -> int:
        return min(self._buckets - 1, int((at_s + self.utc_offset_s) % self.season_s // self.bucket_s))

    def _span(self, at_s: float) -> tuple[float, int]:
        """The bucket of one certain season."""
        return (at_s + self.utc_offset_s) // self.season_s, self._bucket(at_s)


State = Mapping[str, Any]


def state_of(forecaster: Forecaster) -> dict[str, Any]:
    """What ``forecaster`` has learned, in what JSON knows; its parameters are not in it."""
    return {
        name: list(value) if isinstance(value := getattr(forecaster, name), tuple) else value
        for name in _state_names(forecaster)
    }


def with_state(forecaster: Forecaster, state: State) -> Forecaster:
    """``forecaster`` as it was when ``state`` was taken of it; afresh where the state is of another shape."""
    if set(state) != _state_names(forecaster):
        return forecaster
    taken = {name: tuple(value) if isinstance(value, list) else value for name, value in state.items()}
    return replace(forecaster, **taken)  # type: ignore[type-var]


def _state_names(forecaster: Any) -> set[str]:
    return {item.name for item in fields(forecaster) if item.metadata.get("is_state")}


def _elapsed_s(last_at_s: float | None, point: Point) -> float:
    """From the last point to this one, endless for the first; 0 where this one is not later."""
    return math.inf if last_at_s is None else max(0.0, point.at_s - last_at_s)
