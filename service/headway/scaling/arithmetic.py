"""Lengths of time in seconds, how near to a whole a binary fraction counts as one, and how slots become workers."""

import math

MINUTE_S, HOUR_S, DAY_S = 60.0, 3600.0, 86_400.0
SHORTEST_S = 0.001  # what is shorter counts as this: no decision depends on less
COUNT_MAX = 1e9  # what is not bounded counts as this, so that it has a whole number
PERCENT = 100.0
ROUNDING = 1e-9  # what binary fractions add to or take from a whole number must neither buy nor cost a worker or slot


def whole(count: float) -> int:
    """The whole part of ``count``, at most ``COUNT_MAX``."""
    return math.floor(min(count, COUNT_MAX) + ROUNDING)


def workers_of(slots: float, *, slots_per_worker: int) -> int:
    """The fewest workers that have so many slots. Only a decision asks: all before it counts in slots."""
    return math.ceil(slots / slots_per_worker - ROUNDING)
