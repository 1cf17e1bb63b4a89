"""A straight line through past rates, and how far each forecast policy believes it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

SAMPLES_MIN = 5
FORECAST_SPREAD_MIN = 1e-12  # squares below this are none: all samples at one instant, or all of one rate


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedRate:
    """A rate at a moment."""

    at_s: float
    rate_per_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """A least-squares line read ``horizon_s`` past its last sample, and how well it fits (R², 0 to 1)."""

    projected_per_s: float
    r_squared: float
    slope_per_s2: float
    samples: int
    is_sufficient: bool


def fit(history: Sequence[TimedRate], *, horizon_s: float) -> Fit:
    """The line through ``history``; nothing of it counts below five samples. One instant's mean is taken as certain.

    Sums run over distances from the means: sums of squared Unix seconds, as the predecessor has them, leave no digits.
    """
    count = len(history)
    if count < SAMPLES_MIN:
        return Fit(projected_per_s=0.0, r_squared=0.0, slope_per_s2=0.0, samples=0, is_sufficient=False)
    middle_s = sum(each.at_s for each in history) / count
    mean = sum(each.rate_per_s for each in history) / count
    spread = sum((each.at_s - middle_s) ** 2 for each in history)
    slant = sum((each.at_s - middle_s) * (each.rate_per_s - mean) for each in history)
    if spread < FORECAST_SPREAD_MIN:
        return Fit(projected_per_s=mean, r_squared=1.0, slope_per_s2=0.0, samples=count, is_sufficient=True)
    slope = slant / spread
    ahead_s = max(each.at_s for each in history) + horizon_s - middle_s
    return Fit(
        projected_per_s=max(0.0, mean + slope * ahead_s),
        r_squared=_r_squared(history, slope=slope, middle_s=middle_s, mean=mean),
        slope_per_s2=slope,
        samples=count,
        is_sufficient=True,
    )


def _r_squared(history: Sequence[TimedRate], *, slope: float, middle_s: float, mean: float) -> float:
    total = sum((each.rate_per_s - mean) ** 2 for each in history)
    if total < FORECAST_SPREAD_MIN:
        return 1.0
    left = sum((each.rate_per_s - mean - slope * (each.at_s - middle_s)) ** 2 for each in history)
    return max(0.0, 1.0 - left / total)


@dataclass(frozen=True, slots=True, kw_only=True)
class ForecastPolicy:
    """From which fit on a projection counts, and its share of the mixture."""

    min_r_squared: float
    forecast_weight: float


POLICIES: Mapping[str, ForecastPolicy] = MappingProxyType(
    {
        "disabled": ForecastPolicy(min_r_squared=1.1, forecast_weight=0.0),
        "hint": ForecastPolicy(min_r_squared=0.8, forecast_weight=0.3),
        "moderate": ForecastPolicy(min_r_squared=0.6, forecast_weight=0.5),
        "aggressive": ForecastPolicy(min_r_squared=0.4, forecast_weight=0.8),
    }
)


def blended(rate_per_s: float, line: Fit, policy: ForecastPolicy) -> float | None:
    """The rate mixed with the line's projection; ``None`` where the line is not believed."""
    if not line.is_sufficient or line.r_squared < policy.min_r_squared:
        return None
    weight = policy.forecast_weight
    return weight * line.projected_per_s + (1.0 - weight) * rate_per_s


def trended_classic(rate_per_s: float, direction: str | None, forecast_per_s: float | None) -> float:
    """The first version's forecast: a fifth more when the trend is up, a fifth less when it is down.

    An upward trend with a forecast takes that where it is higher. Sizing for less than there is, or the maximum of the
    two, is a ratchet: the way down never wins.
    """
    if direction == "up":
        return 1.2 * rate_per_s if forecast_per_s is None else max(forecast_per_s, rate_per_s)
    return 0.8 * rate_per_s if direction == "down" else rate_per_s
