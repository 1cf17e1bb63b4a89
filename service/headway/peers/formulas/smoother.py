"""The third version's hysteresis: while throughput is steady, a target comes down by one a cycle."""

from collections.abc import Sequence
from statistics import fmean, pstdev

SEEN_MAX = 10
SEEN_MIN = 3
SMOOTHER_STEADY_BELOW = 0.05  # coefficient of variation


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
