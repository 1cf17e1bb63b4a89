"""Whole targets, as the predecessor's strategies put the formulas together. What is fractional stays so until here."""

import math
from dataclasses import dataclass

from headway.peers.formulas.drain import backlog_drain, backlog_drain_classic
from headway.peers.formulas.forecast import trended_classic

SIZING_SPARE = 1.25  # the conservative strategy's buffer
CONSERVATIVE_THRESHOLD = 0.75
SHORTEST_BELIEVED_S = 0.01


def littles_law(rate_per_s: float, service_s: float) -> float:
    """Workers that a flow keeps busy on average; none where the rate or the time is not positive.

    Source: J. D. C. Little, "A Proof for the Queuing Formula L = λW", Operations Research 9 (1961).
    """
    return rate_per_s * service_s if rate_per_s > 0 and service_s > 0 else 0.0


def service_s_by_division(active_workers: float, rate_per_s: float) -> float:
    """A job's time as workers divided by throughput, one second where either is nothing.

    It takes every worker for busy: an idle one makes jobs seem slow, so that the workers seem needed.
    """
    return active_workers / rate_per_s if active_workers > 0 and rate_per_s > 0 else 1.0


def trusted_service_s(measured_s: float, *, fallback_s: float, longest_s: float = math.inf) -> float:
    """A measured mean job time of 0.01 s up to the longest that is believed, else the fallback."""
    return measured_s if SHORTEST_BELIEVED_S <= measured_s <= longest_s else fallback_s


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Polled:
    """What the predecessor's strategies read of a queue, and the objective they read it for."""

    rate_per_s: float
    backlog_jobs: int
    oldest_age_s: float
    objective_s: float
    threshold: float = 0.0
    """The share of the objective from which on a backlog counts, where the strategy has one."""
    measured_s: float = 0.0
    fallback_s: float = 0.0
    """A job's time where the measured one is not believed."""

    @property
    def service_s(self) -> float:
        """A job's time."""
        return trusted_service_s(self.measured_s, fallback_s=self.fallback_s)


def predictive_classic(
    seen: Polled, *, active_workers: float, trend: str | None, forecast_per_s: float | None
) -> Sized:
    """The first version's target: Little, Little on the trended rate, and its drain."""
    service_s = service_s_by_division(active_workers, seen.rate_per_s)
    steady = littles_law(seen.rate_per_s, service_s)
    trended = littles_law(trended_classic(seen.rate_per_s, trend, forecast_per_s), service_s)
    drain = backlog_drain_classic(
        seen.backlog_jobs,
        seen.oldest_age_s,
        objective_s=seen.objective_s,
        service_s=service_s,
        threshold=seen.threshold,
    )
    pickup_s = clearing_s(seen.backlog_jobs, workers=max(steady, trended, drain), service_s=service_s)
    return Sized(steady=steady, trended=trended, drain=drain, pickup_s=pickup_s, service_s=service_s)


def simple_rate(seen: Polled) -> Sized:
    """Throughput times job time. It cannot see a backlog: where nothing is finished nothing is wanted."""
    return Sized(steady=littles_law(seen.rate_per_s, seen.service_s))


def backlog_only(seen: Polled) -> Sized:
    """The third version's drain alone."""
    drain = _drain(seen, threshold=seen.threshold)
    pickup_s = clearing_s(seen.backlog_jobs, workers=drain, service_s=seen.service_s)
    return Sized(drain=drain, pickup_s=pickup_s)


def conservative(seen: Polled) -> Sized:
    """The greater of throughput times job time and a late drain, and a quarter more."""
    steady = SIZING_SPARE * littles_law(seen.rate_per_s, seen.service_s)
    drain = SIZING_SPARE * _drain(seen, threshold=CONSERVATIVE_THRESHOLD)
    pickup_s = clearing_s(seen.backlog_jobs, workers=max(steady, drain), service_s=seen.service_s)
    return Sized(steady=steady, drain=drain, pickup_s=pickup_s)


def _drain(seen: Polled, *, threshold: float) -> float:
    return backlog_drain(
        seen.backlog_jobs,
        seen.oldest_age_s,
        objective_s=seen.objective_s,
        service_s=seen.service_s,
        threshold=threshold,
    )
