"""Spans of time that requests name."""

from typing import Annotated

from fastapi import Query

from headway.errors import Invalid
from headway.scaling.measure import LATEST_S

RANGE_S_MAX = 400 * 86_400.0  # as long as hours are kept

FromQuery = Annotated[
    float | None, Query(ge=0, le=LATEST_S, allow_inf_nan=False, description="Unix seconds: from then on.")
]
UntilQuery = Annotated[
    float | None, Query(ge=0, le=LATEST_S, allow_inf_nan=False, description="Unix seconds: before then; default: now.")
]


def time_range(
    from_s: float | None,
    until_s: float | None,
    *,
    now_s: float,
    default_s: float,
    shortest_s: float,
    ahead_s_max: float = 0.0,
) -> tuple[float, float]:
    """The span that is asked for: up to now, and ``default_s`` long, where nothing else is said.

    Raises:
        Invalid: it ends before it begins, or is shorter than ``shortest_s``, longer than 400 days, or too far ahead.
    """
    end_s = now_s if until_s is None else until_s
    begin_s = end_s - default_s if from_s is None else from_s
    breaches = []
    if begin_s >= end_s:
        breaches.append(f"from_s={begin_s:.0f} is not before until_s={end_s:.0f}")
    elif end_s - begin_s < shortest_s:
        breaches.append(f"from_s to until_s is {end_s - begin_s:g} s: ask for {shortest_s:g} s at least")
    elif end_s - begin_s > RANGE_S_MAX:
        breaches.append(f"from_s to until_s is {(end_s - begin_s) / 86_400:.0f} days: ask for 400 days at most")
    if end_s > now_s + max(ahead_s_max, shortest_s):
        breaches.append(f"until_s={end_s:.0f} is {end_s - now_s:.0f} s ahead of now")
    if breaches:
        raise Invalid(*breaches)
    return begin_s, end_s
