"""Percentiles of waits, by nearest rank and by interpolation."""

import math
from collections.abc import Sequence


def nearest_rank(values: Sequence[float], percentile: float, *, samples_min: int = 1) -> float | None:
    """The smallest value that ``percentile`` % do not exceed; ``None`` of nothing or of fewer than ``samples_min``."""
    if not values or len(values) < samples_min:
        return None
    rank = max(1, math.ceil(percentile / 100 * len(values)))
    return sorted(values)[min(rank, len(values)) - 1]


def interpolated(values: Sequence[float], percentile: float) -> float:
    """The percentile by a line between the two values around its rank; 0 of nothing."""
    if not values:
        return 0.0
    ordered = sorted(values)
    rank = percentile / 100 * (len(ordered) - 1)
    low = math.floor(rank)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (rank - low)


def recent_waits_s(
    waits: Sequence[tuple[float, float]], *, now_s: float, window_s: float, kept_max: int
) -> tuple[float, ...]:
    """The waits (each with the moment it ended, in order) of the window, of the newest ``kept_max`` that are kept."""
    kept = waits[-kept_max:] if kept_max > 0 else ()
    return tuple(wait_s for at_s, wait_s in kept if at_s >= now_s - window_s)
