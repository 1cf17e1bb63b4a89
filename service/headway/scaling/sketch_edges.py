"""Where the buckets of a sketch begin and end, and the durations at which a bucket is divided.

Index ``i`` holds (GAMMA^(i-1), GAMMA^i] seconds. The bucket that holds an edge is divided there: its index holds the
durations up to the edge, and ``i + BEYOND`` the longer ones. Jobs that are later than an edge are so counted exactly.

A sketch of an earlier version has no index beyond an edge, and counts as it always did: within 2 %. Indexes beyond an
edge are below all others. An earlier version that reads one takes it for a very short duration, which is in time, as
the whole bucket was to that version.
"""

import math
from collections.abc import Mapping
from types import MappingProxyType

from headway.scaling.arithmetic import DAY_S, SHORTEST_S

GAMMA = 1.02  # two neighbouring sketch buckets differ by 2 %, so that a bucket's middle errs by at most 1 %
LOG_GAMMA = math.log(GAMMA)
LONGEST_S = 8 * DAY_S  # what is longer counts as this: so a sketch has a bounded number of buckets
EDGE = 1e-9  # of a sketch bucket: two libraries' logarithms may differ in the last bit, also of a round duration
EDGES_S = (1, 2, 3, 5, 10, 15, 20, 30, 45, 60, 120, 300, 600, 900, 1800, 3600)
BEYOND = -10_000


def plain_index(value_s: float) -> int:
    """The index of the bucket that holds a duration, whether or not the bucket is divided."""
    return math.ceil(math.log(min(max(value_s, SHORTEST_S), LONGEST_S)) / LOG_GAMMA - EDGE)


EDGE_OF: Mapping[int, float] = MappingProxyType(
    {plain_index(edge_s): float(edge_s) for edge_s in EDGES_S if edge_s != 1}
)
"""Index of a divided bucket -> where it is divided. 1 s is where a bucket ends anyway."""


def place(index: int) -> float:
    """Orders indexes by their durations: what lies beyond an edge comes directly after what does not reach it."""
    return index - BEYOND + 0.5 if index < BEYOND / 2 else float(index)


def bounds_s(index: int) -> tuple[float, float]:
    """Between which durations those of an index lie."""
    is_beyond = index < BEYOND / 2
    plain = index - BEYOND if is_beyond else index
    low_s, high_s, edge_s = GAMMA ** (plain - 1), GAMMA**plain, EDGE_OF.get(plain)
    if edge_s is None:
        return low_s, high_s
    return (edge_s, high_s) if is_beyond else (low_s, edge_s)


def is_exact(target_s: float) -> bool:
    """Whether jobs later than ``target_s`` are counted exactly; else those within 2 % of it may count either way."""
    return target_s in EDGES_S
