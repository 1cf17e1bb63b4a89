"""How often Python looks for cycles among what it has made: seldom, where most of it lives from tick to tick."""

import gc

# What a tick makes has no cycles and lives until the next one or, in the buckets, for minutes. With the thresholds of
# Python (700, 10, 10) every second tick of 10,000 pools walks through a million objects, half a second of CPU, to no
# avail. So many more must be new before it looks; what requests leave in cycles goes a little later.
THRESHOLDS = (50_000, 10, 10)


def collect_rarely() -> None:
    """Let this process look for cycles as befits many long-lived values."""
    gc.set_threshold(*THRESHOLDS)
