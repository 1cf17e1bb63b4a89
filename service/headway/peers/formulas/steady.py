"""Workers for a steady flow."""

import math

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
