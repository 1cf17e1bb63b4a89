"""Arrivals guessed from throughput and the growth of the backlog, for want of a counter."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from headway.peers.formulas.forecast import ForecastPolicy, TimedRate, blended, fit

Source = Literal["no_history", "interval_too_short", "estimated", "forecast_blended"]

SAMPLES_MAX = 30
KEPT_S = 300.0
SHORTEST_WINDOW_S = 1.0
SHORTEST_PAIR_S = 0.001
ARRIVALS_UNSURE = 0.3  # the confidence in a throughput without any history of the backlog
SMALL_CHANGE_JOBS = 3
CLEAR_CHANGE_JOBS = 10


@dataclass(frozen=True, slots=True)
class PolledSample:
    """The backlog at a moment."""

    at_s: float
    backlog_jobs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrivalEstimate:
    """A rate, how far it is trusted (0 to 1) and where it comes from."""

    rate_per_s: float
    confidence: float
    source: Source


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """How far ahead to forecast, and how far to trust the forecast."""

    policy: ForecastPolicy
    horizon_s: float


def kept_samples(samples: Sequence[PolledSample], now: PolledSample) -> tuple[PolledSample, ...]:
    """The samples that still count, ``now`` among them as the newest."""
    young = [sample for sample in samples if now.at_s - sample.at_s <= KEPT_S]
    return (*young, now)[-SAMPLES_MAX:]


def estimated_arrivals(
    samples: Sequence[PolledSample], *, served_per_s: float, outlook: Outlook | None = None
) -> ArrivalEstimate:
    """Arrivals per second from samples of the backlog, oldest first, and the throughput of now.

    Each pair of samples weighs twice as much as the pair before it.
    """
    if len(samples) < 2:
        return ArrivalEstimate(rate_per_s=served_per_s, confidence=ARRIVALS_UNSURE, source="no_history")
    window_s = samples[-1].at_s - samples[0].at_s
    if window_s < SHORTEST_WINDOW_S:
        return ArrivalEstimate(rate_per_s=served_per_s, confidence=ARRIVALS_UNSURE, source="interval_too_short")
    growth = _growth(samples)
    estimate = ArrivalEstimate(
        rate_per_s=max(0.0, served_per_s + _weighted(growth)),
        confidence=_confidence(samples, window_s=window_s),
        source="estimated",
    )
    return estimate if outlook is None else _with_outlook(estimate, growth, served_per_s, outlook)


@dataclass(frozen=True, slots=True)
class _Growth:
    """How fast the backlog grew until a moment, jobs per second, and what that weighs."""

    at_s: float
    jobs_per_s: float
    weight: float


def _growth(samples: Sequence[PolledSample]) -> list[_Growth]:
    """One a pair of samples that are not one moment; the newest pair has half of all the weight."""
    return [
        _Growth(after.at_s, (after.backlog_jobs - before.backlog_jobs) / (after.at_s - before.at_s), 2.0**index)
        for index, (before, after) in enumerate(pairwise(samples))
        if after.at_s - before.at_s >= SHORTEST_PAIR_S
    ]


def _weighted(growth: Sequence[_Growth]) -> float:
    weight = sum(each.weight for each in growth)
    return sum(each.weight * each.jobs_per_s for each in growth) / weight if weight else 0.0


def _confidence(samples: Sequence[PolledSample], *, window_s: float) -> float:
    if 5.0 <= window_s <= 30.0:
        base = 0.9
    elif 2.0 <= window_s <= 60.0:
        base = 0.7
    else:
        base = 0.5
    change_jobs = abs(samples[-1].backlog_jobs - samples[0].backlog_jobs)
    certainty = 0.6 if change_jobs < SMALL_CHANGE_JOBS else 0.7 + 0.3 * min(change_jobs / CLEAR_CHANGE_JOBS, 1.0)
    return base * (0.8 + 0.2 * min((len(samples) - 1) / 3, 1.0)) * certainty


def _with_outlook(
    estimate: ArrivalEstimate, growth: Sequence[_Growth], served_per_s: float, outlook: Outlook
) -> ArrivalEstimate:
    """The estimate mixed with the line through the pairs' rates. Each takes the throughput of now, not of its time."""
    past = [TimedRate(at_s=each.at_s, rate_per_s=max(0.0, served_per_s + each.jobs_per_s)) for each in growth]
    line = fit(past, horizon_s=outlook.horizon_s)
    rate_per_s = blended(estimate.rate_per_s, line, outlook.policy)
    if rate_per_s is None:
        return estimate
    return ArrivalEstimate(rate_per_s=rate_per_s, confidence=estimate.confidence, source="forecast_blended")
