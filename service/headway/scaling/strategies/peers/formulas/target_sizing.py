"""Whole targets, as the predecessor's strategies put the formulas together. What is fractional stays so until here."""

import math
from dataclasses import dataclass

from headway.scaling.strategies.peers.formulas.drain import backlog_drain, backlog_drain_classic
from headway.scaling.strategies.peers.formulas.forecast import trended_classic
from headway.scaling.strategies.peers.formulas.steady import littles_law, service_s_by_division, trusted_service_s

SIZING_SPARE = 1.25  # the conservative strategy's buffer
CONSERVATIVE_THRESHOLD = 0.75


@dataclass(frozen=True, slots=True, kw_only=True)
class Sized:
    """The parts of a target, in workers; the greatest counts. ``pickup_s`` is what its maker predicts, if anything."""

    steady: float = 0.0
    trended: float = 0.0
    drain: float = 0.0
    pickup_s: float | None = None
    service_s: float = 0.0

    @property
    def greatest(self) -> float:
        """Workers, fractional."""
        return max(self.steady, self.trended, self.drain, 0.0)

    @property
    def workers(self) -> int:
        """Whole workers."""
        return math.ceil(self.greatest)


def clearing_s(backlog_jobs: int, *, workers: float, service_s: float) -> float:
    """How long so many workers need for the backlog; 0 where there are none of the one or the other.

    The predecessor takes it for the wait of the next job, with the workers it wants and not those that there will be.
    """
    return backlog_jobs / workers * service_s if backlog_jobs > 0 and workers > 0 else 0.0


def predictive_classic(
    *,
    rate_per_s: float,
    active_workers: float,
    backlog_jobs: int,
    oldest_age_s: float,
    objective_s: float,
    threshold: float,
    trend: str | None,
    forecast_per_s: float | None,
) -> Sized:
    """The first version's target: Little, Little on the trended rate, and its drain."""
    service_s = service_s_by_division(active_workers, rate_per_s)
    steady = littles_law(rate_per_s, service_s)
    trended = littles_law(trended_classic(rate_per_s, trend, forecast_per_s), service_s)
    drain = backlog_drain_classic(
        backlog_jobs, oldest_age_s, objective_s=objective_s, service_s=service_s, threshold=threshold
    )
    pickup_s = clearing_s(backlog_jobs, workers=max(steady, trended, drain), service_s=service_s)
    return Sized(steady=steady, trended=trended, drain=drain, pickup_s=pickup_s, service_s=service_s)


def simple_rate(*, rate_per_s: float, measured_s: float, fallback_s: float) -> Sized:
    """Throughput times job time. It cannot see a backlog: where nothing is finished nothing is wanted."""
    service_s = trusted_service_s(measured_s, fallback_s=fallback_s)
    return Sized(steady=littles_law(rate_per_s, service_s), service_s=service_s)


def backlog_only(
    *,
    backlog_jobs: int,
    oldest_age_s: float,
    measured_s: float,
    fallback_s: float,
    objective_s: float,
    threshold: float,
) -> Sized:
    """The third version's drain alone."""
    service_s = trusted_service_s(measured_s, fallback_s=fallback_s)
    drain = backlog_drain(backlog_jobs, oldest_age_s, objective_s=objective_s, service_s=service_s, threshold=threshold)
    pickup_s = clearing_s(backlog_jobs, workers=drain, service_s=service_s)
    return Sized(drain=drain, pickup_s=pickup_s, service_s=service_s)


def conservative(
    *,
    rate_per_s: float,
    backlog_jobs: int,
    oldest_age_s: float,
    measured_s: float,
    fallback_s: float,
    objective_s: float,
) -> Sized:
    """The greater of throughput times job time and a late drain, and a quarter more."""
    service_s = trusted_service_s(measured_s, fallback_s=fallback_s)
    drain = backlog_drain(
        backlog_jobs, oldest_age_s, objective_s=objective_s, service_s=service_s, threshold=CONSERVATIVE_THRESHOLD
    )
    steady = SIZING_SPARE * littles_law(rate_per_s, service_s)
    pickup_s = clearing_s(backlog_jobs, workers=max(steady, SIZING_SPARE * drain), service_s=service_s)
    return Sized(steady=steady, drain=SIZING_SPARE * drain, pickup_s=pickup_s, service_s=service_s)
