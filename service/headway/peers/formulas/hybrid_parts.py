"""The third version's parts: which rate it counts with, which wait it reads, what it makes of them, and its hysteresis.

While throughput is steady, a target comes down by one a cycle.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean, pstdev

from headway.peers.formulas.arrivals import (
    ArrivalEstimate,
    Outlook,
    PolledSample,
    estimated_arrivals,
    kept_samples,
)
from headway.peers.formulas.drain import backlog_drain
from headway.peers.formulas.target_sizing import Sized, clearing_s, littles_law, trusted_service_s

FALLBACK_BACKLOG_JOBS = 3
NOISE_FROM_PERCENT = 5.0
NOISE_SHARE_MAX = 0.3
SPAN_MIN_S = 1.0
SATURATED_PERCENT = 90.0
LONGEST_BELIEVED_S = 600.0
SEEN_MAX = 10
SEEN_MIN = 3
SMOOTHER_STEADY_BELOW = 0.05  # coefficient of variation


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a queue's configuration says."""

    objective_s: float
    workers_min: int
    workers_max: int
    threshold: float
    fallback_s: float
    confidence_min: float
    outlook: Outlook | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """What is seen of the queue and its workers at a moment."""

    at_s: float
    backlog_jobs: int
    oldest_age_s: float
    served_per_s: float
    measured_s: float
    failure_percent: float
    busy_percent: float
    active_workers: int
    start_up_s: float
    waited_s: float | None
    """The objective's percentile of the waits that ended; ``None`` of too few."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """What is kept from one sight to the next."""

    samples: tuple[PolledSample, ...] = ()
    rates: tuple[float, ...] = ()
    workers: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Hybrid:
    """The target, and how it came about."""

    workers: int
    sized: Sized
    raw_rate_per_s: float
    retries_per_s: float
    span_s: float
    signal_s: float
    wanted_workers: float
    """Before rounding, bounds and smoothing."""
    is_boosted: bool
    is_smoothed: bool

    @property
    def rate_per_s(self) -> float:
        """What counts as new jobs."""
        return max(0.0, self.raw_rate_per_s - self.retries_per_s)


def hybrid(sight: Sight, learned: Learned, settings: Settings) -> tuple[Hybrid, Learned]:
    """The target for what is seen, after what was learned, and what is learned now."""
    samples = kept_samples(learned.samples, PolledSample(sight.at_s, sight.backlog_jobs))
    estimate = estimated_arrivals(samples, served_per_s=sight.served_per_s, outlook=settings.outlook)
    sizing = _sized(sight, settings, raw_per_s=_counted_per_s(estimate, sight, settings))

    bounded = _bounded(math.ceil(sizing.wanted_workers), settings)
    rates = seen_rates(learned.rates, sight.served_per_s)
    calm = smoothed(bounded, last_workers=learned.workers, rates=rates)
    workers = _bounded(calm, settings)
    return (
        replace(sizing, workers=workers, is_smoothed=calm != bounded),
        Learned(samples=samples, rates=rates, workers=calm),
    )


def _sized(sight: Sight, settings: Settings, *, raw_per_s: float) -> Hybrid:
    service_s = trusted_service_s(sight.measured_s, fallback_s=settings.fallback_s, longest_s=LONGEST_BELIEVED_S)
    retries_per_s = retry_noise(raw_per_s, served_per_s=sight.served_per_s, failure_percent=sight.failure_percent)
    span_s = max(SPAN_MIN_S, settings.objective_s - sight.start_up_s)
    signal_s = sight.oldest_age_s if sight.waited_s is None else sight.waited_s
    steady = littles_law(max(0.0, raw_per_s - retries_per_s), service_s)
    drain = backlog_drain(
        sight.backlog_jobs,
        math.floor(signal_s),
        objective_s=settings.objective_s,
        service_s=service_s,
        threshold=settings.threshold,
        left_after_start_s=span_s,
    )
    wanted = max(steady, drain)
    is_boosted = sight.busy_percent >= SATURATED_PERCENT and 0 < sight.active_workers >= wanted
    pickup_s = clearing_s(sight.backlog_jobs, workers=wanted, service_s=service_s)
    return Hybrid(
        workers=0,
        sized=Sized(steady=steady, drain=drain, pickup_s=pickup_s, service_s=service_s),
        raw_rate_per_s=raw_per_s,
        retries_per_s=retries_per_s,
        span_s=span_s,
        signal_s=signal_s,
        wanted_workers=sight.active_workers + 1 if is_boosted else wanted,
        is_boosted=is_boosted,
        is_smoothed=False,
    )


def _bounded(workers: int, settings: Settings) -> int:
    return max(settings.workers_min, min(settings.workers_max, workers))


def _counted_per_s(estimate: ArrivalEstimate, sight: Sight, settings: Settings) -> float:
    """The estimate if it is trusted, else throughput; from the backlog alone where that is nothing."""
    rate_per_s = estimate.rate_per_s if estimate.confidence >= settings.confidence_min else sight.served_per_s
    if rate_per_s != 0:
        return rate_per_s
    return fallback_per_s(sight.backlog_jobs, sight.oldest_age_s, objective_s=settings.objective_s)


def fallback_per_s(backlog_jobs: int, oldest_age_s: float, *, objective_s: float) -> float:
    """A rate for a backlog that nothing else explains: as if it had come within the objective, twice that when old."""
    if backlog_jobs < FALLBACK_BACKLOG_JOBS or objective_s <= 0:
        return 0.0
    spread_per_s = backlog_jobs / objective_s
    return spread_per_s * min(oldest_age_s / (0.5 * objective_s), 2.0) if oldest_age_s > 0 else spread_per_s


def retry_noise(rate_per_s: float, *, served_per_s: float, failure_percent: float) -> float:
    """The part of a rate taken for retries: throughput times the root of the failed share, up to 30 % of the rate."""
    if failure_percent <= NOISE_FROM_PERCENT or served_per_s <= 0:
        return 0.0
    return min(served_per_s * math.sqrt(failure_percent / 100.0), NOISE_SHARE_MAX * rate_per_s)


def seen_rates(rates: Sequence[float], newest: float) -> tuple[float, ...]:
    """The throughputs that count, ``newest`` among them."""
    return (*rates, newest)[-SEEN_MAX:]


def smoothed(raw_workers: int, *, last_workers: int | None, rates: Sequence[float]) -> int:
    """The target that a raw one becomes after ``last_workers`` (``None`` the first time), with the rates of late."""
    if last_workers is None or raw_workers >= last_workers or not is_steady(rates):
        return raw_workers
    return max(raw_workers, last_workers - 1)


def is_steady(rates: Sequence[float]) -> bool:
    """Whether at least three throughputs differ so little that a lower target is taken for noise."""
    if len(rates) < SEEN_MIN:
        return False
    mean = fmean(rates)
    return mean > 0 and pstdev(rates) / mean < SMOOTHER_STEADY_BELOW
