"""Shortfalls that were watched for a while."""

from headway.scaling.demands.safety_stock import STOCK_RHYTHM_TIME_S
from headway.scaling.demands.shortfalls import Shortfalls


def watched(*shortfalls_jobs: float, for_s: float = STOCK_RHYTHM_TIME_S) -> Shortfalls:
    """Shortfalls of so many jobs, once each, watched for ``for_s`` in all."""
    found = Shortfalls(jobs=100, time_s=for_s)
    for jobs in shortfalls_jobs:
        found = found.seen(jobs, jobs=0, span_s=0.0)
    return found
