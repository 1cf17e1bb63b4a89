"""When and how far the predecessor lets a count change: its cooldown, and its policies for the way down."""

import math

from headway.scaling.model import LastMove


def is_reversal_held(
    workers: int, wanted_workers: int, last: LastMove | None, *, now_s: float, cooldown_s: float, is_breaching: bool
) -> bool:
    """Whether a move against the last one comes too soon. Moves the same way are free, and rises in a breach too."""
    if last is None or wanted_workers == workers or now_s - last.at_s >= cooldown_s:
        return False
    is_up = wanted_workers > workers
    return is_up is not last.is_up and not (is_up and is_breaching)


def conservative(workers: int, wanted_workers: int, *, share: float = 0.25) -> int:
    """A lower target, taken by a quarter of what there is at most, and by one at least."""
    return (
        max(wanted_workers, workers - max(1, math.ceil(workers * share)))
        if wanted_workers < workers
        else wanted_workers
    )


def no_scale_down(workers: int, wanted_workers: int, *, host_workers_max: int | None) -> int:
    """A lower target is not taken, unless the host cannot hold what there is."""
    if wanted_workers >= workers:
        return wanted_workers
    return workers if host_workers_max is None or workers <= host_workers_max else max(wanted_workers, host_workers_max)
