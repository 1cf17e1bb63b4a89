"""Lengths of time in seconds, and how near to a whole or to zero a binary fraction counts as one."""

MINUTE_S, HOUR_S, DAY_S = 60.0, 3600.0, 86_400.0
SHORTEST_S = 0.001  # what is shorter counts as this: no decision depends on less
ROUNDING = 1e-9  # what binary fractions add to or take from a whole number must neither buy nor cost a worker or slot
