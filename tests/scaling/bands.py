"""What a band has seen."""

from headway.scaling.demands.safety_stock import STOCK_BAND_TIME_S
from headway.scaling.demands.shortfalls import Shortfalls


def watched(*shortfalls_jobs: float, for_s: float = STOCK_BAND_TIME_S) -> Shortfalls:
    """A band that was watched for ``for_s`` and in which so many jobs came, once each."""
    found = Shortfalls(jobs=100, time_s=for_s)
    for jobs in shortfalls_jobs:
        found = found.seen(jobs, jobs=0, span_s=0.0)
    return found
