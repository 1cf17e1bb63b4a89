"""What becomes of memory that is no longer needed, where most of what there is lives from tick to tick."""

import ctypes
import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager

# What a tick makes has no cycles and lives until the next one or, in the buckets, for minutes. With the thresholds of
# Python (700, 10, 10) every second tick of 10,000 pools walks through a million objects, half a second of CPU, to no
# avail. So many more must be new before it searches; what requests leave in cycles goes a little later.
THRESHOLDS = (50_000, 10, 10)


def collect_rarely() -> None:
    """Let this process search for cycles as suits many long-lived values: seldom, and not in its first objects."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)


@contextmanager
def unsearched() -> Iterator[None]:
    """No search for cycles until this ends.

    For what replaces a great many values by as many new ones. A search is due once many more were made than freed; in
    the middle both are there, and the new ones would be walked through for nothing. Afterwards the old ones are gone.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def give_back() -> None:
    """Return to the system what this process has freed; where the C library cannot, nothing happens.

    When ten thousand calls are answered, as many new ones come before the old ones are gone. What both took, glibc
    would keep.
    """
    trim: Callable[[int], int] | None = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
