"""What can be seen of a pool at one moment, and who decides by it."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from operator import attrgetter
from typing import Protocol

from headway.errors import Invalid
from headway.scaling.measure import BucketRow
from headway.scaling.model import DelayedJobs


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """One observation of a queue and its workers. Counts are since the last one; ``at_s`` is Unix seconds."""

    at_s: float
    waiting: int
    oldest_age_s: float | None = None
    arrived: int = 0
    retried: int = 0
    """Of those that arrived, the ones that came back for another attempt."""
    started: int = 0
    finished: int = 0
    service_sum_s: float = 0.0
    """Over the jobs that finished since the last observation."""
    workers: int = 0
    """Busy, idle and starting together; one that was asked to leave is no longer counted."""
    busy: int = 0
    idle: int = 0
    starting: int = 0
    leaving: int = 0
    """Workers that were asked to leave and still run."""
    pickup_max_s: float | None = None
    """The longest wait among the jobs that started since the last observation."""
    in_flight: int | None = None
    """Jobs that are being worked on; ``None``: one a busy worker."""
    capacity_workers: int | None = None
    """Workers of this pool that the hosts can hold, present ones included; ``None``: there is room for all."""
    start_up_s: float | None = None
    """How long workers took to start of late; ``None``: as long as the controller was given."""
    start_up_p95_s: float | None = None
    """What 95 % of the newest start-ups took at most; ``None``: as the controller was given."""
    taken: int = 0
    """Jobs that running workers have begun since the queue was sampled, as far as that is known."""
    dispatch_overhead_s: float | None = None
    """What a slot needs beside the service of each job, as measured; ``None``: as the controller was given."""
    delayed: tuple[DelayedJobs, ...] = ()
    """The jobs that are known to come later."""
    rows: tuple[BucketRow, ...] | None = None
    """The queue by buckets of the clock, those that have changed since the last observation; ``None``: the counts above
    hold. A controller takes one or the other from its first observation to its last.
    """

    def __post_init__(self) -> None:
        known = [value for value in _figures_of(self) if value is not None]
        # What is not finite makes the sum so. Engines observe millions of times: names are found only if it is needed.
        if min(known) < 0 or not math.isfinite(sum(known)) or not math.isfinite(self.at_s):
            raise Invalid(*self._breaches())

    def _breaches(self) -> Iterator[str]:
        if not math.isfinite(self.at_s):
            yield f"observation: at_s={self.at_s} is no time"
        for name, value in zip(_FIGURES, _figures_of(self), strict=True):
            if value is not None and not 0 <= value < math.inf:
                yield f"observation at {self.at_s}: {name}={value} must be finite and at least 0"


_FIGURES = tuple(each.name for each in fields(Observation) if each.name not in {"at_s", "rows", "delayed"})
_figures_of = attrgetter(*_FIGURES)


class Target(Protocol):
    """What a controller answers: a ``Decision`` is one."""

    @property
    def target_workers(self) -> int: ...
    @property
    def burst_workers(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Count:
    """So many workers, none of which leaves by itself."""

    target_workers: int
    burst_workers: int = 0


class Stepping(Protocol):
    """Anything that decides from one observation to the next: a ``Controller`` is one.

    ``now_s`` is given only where metrics are late: it is then later than ``observation.at_s``.
    """

    def step(self, observation: Observation, /, *, now_s: float | None = None) -> Target: ...


def together(earlier: Observation, later: Observation) -> Observation:
    """Two observations as if there had been only the later one."""
    waits = [wait_s for wait_s in (earlier.pickup_max_s, later.pickup_max_s) if wait_s is not None]
    return replace(
        later,
        arrived=earlier.arrived + later.arrived,
        retried=earlier.retried + later.retried,
        started=earlier.started + later.started,
        finished=earlier.finished + later.finished,
        service_sum_s=earlier.service_sum_s + later.service_sum_s,
        pickup_max_s=max(waits, default=None),
        rows=None if later.rows is None else (*(earlier.rows or ()), *later.rows),
    )
