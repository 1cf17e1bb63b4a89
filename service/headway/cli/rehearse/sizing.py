"""How many workers a load needs when it is worst, as a sum whose every line can be checked by hand."""

import math
from dataclasses import dataclass

from headway.errors import Invalid
from headway.scaling.arithmetic import DAY_S, ROUNDING
from headway.scaling.planning.queueing import slots_for, slots_for_burst, wait_exceeds_probability

SIZING_SLOTS_MAX = 200_000  # beyond this the arithmetic takes seconds, and one pool is the wrong shape


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What is expected of a pool, and what a worker of it takes."""

    jobs_per_day: float
    peak_factor: float
    """The busiest moment's rate over the day's mean."""
    service_s: float
    target_s: float
    percentile: float
    busy_fraction_max: float
    """No worker is to be busy for more than this share of the peak: the rest is for what goes wrong."""
    slots_per_worker: int
    memory_per_worker_bytes: int
    connections_per_worker: int
    burst_jobs: float = 0.0
    """So many come at the same moment, on top of the others."""

    def __post_init__(self) -> None:
        breaches = [
            f"{name}={getattr(self, name):g} must be above 0"
            for name in ("jobs_per_day", "peak_factor", "service_s", "target_s", "slots_per_worker")
            if not 0 < getattr(self, name) < math.inf
        ]
        if not 0 < self.busy_fraction_max < 1:
            breaches.append(f"utilisation={self.busy_fraction_max:g} must lie between 0 and 1, both excluded")
        if not 0 < self.percentile < 100:
            breaches.append(f"percentile={self.percentile:g} must lie between 0 and 100, both excluded")
        breaches += [
            f"{name}={getattr(self, name)} must not be negative"
            for name in ("memory_per_worker_bytes", "connections_per_worker", "burst_jobs")
            if getattr(self, name) < 0
        ]
        if not self.burst_jobs <= SIZING_SLOTS_MAX:
            breaches.append(f"{self.burst_jobs:,.0f} jobs at once; more than {SIZING_SLOTS_MAX:,} are not planned")
        if not breaches and self.peak_slots > SIZING_SLOTS_MAX:
            breaches.append(
                f"the peak keeps {self.peak_slots:,.0f} slots busy; more than {SIZING_SLOTS_MAX:,} are not planned"
            )
        if breaches:
            raise Invalid(*breaches)

    @property
    def peak_rate_per_s(self) -> float:
        """When it is worst."""
        return self.jobs_per_day / DAY_S * self.peak_factor

    @property
    def peak_slots(self) -> float:
        """Slots that the peak keeps busy on average: rate times service time."""
        return self.peak_rate_per_s * self.service_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizing:
    """What ``load`` needs at its peak."""

    load: Load
    slots_for_headroom: int
    """So many that none is busy for more than its share."""
    slots_for_objective: int
    """So many that the objective is met, were arrivals as random as they can be at that rate."""
    slots_for_burst: int
    """So many that the jobs of a burst start in time beside the peak's; 0 without one."""
    workers: int

    @property
    def slots(self) -> int:
        """The greatest of them."""
        return max(self.slots_for_headroom, self.slots_for_objective, self.slots_for_burst)

    @property
    def memory_bytes(self) -> int:
        """Of all workers together."""
        return self.workers * self.load.memory_per_worker_bytes

    @property
    def connections(self) -> int:
        """Of all workers together."""
        return self.workers * self.load.connections_per_worker

    @property
    def work_hours_per_day(self) -> float:
        """Worker-hours that a day's jobs keep workers busy: what nobody can pay less than."""
        return self.load.jobs_per_day * self.load.service_s / self.load.slots_per_worker / 3600

    @property
    def standing_hours_per_day(self) -> float:
        """Worker-hours of a day if the peak's workers stood all day."""
        return self.workers * 24.0


def sized(load: Load) -> Sizing:
    """The fewest workers for ``load`` at its peak."""
    for_headroom = math.ceil(load.peak_slots / load.busy_fraction_max - ROUNDING)
    for_objective = slots_for(load.peak_slots, load.service_s, load.target_s, load.percentile)
    for_burst = slots_for_burst(load.burst_jobs, load.service_s, load.target_s)
    if for_burst:
        for_burst += math.ceil(load.peak_slots - ROUNDING)
    slots = max(for_headroom, for_objective, for_burst)
    return Sizing(
        load=load,
        slots_for_headroom=for_headroom,
        slots_for_objective=for_objective,
        slots_for_burst=for_burst,
        workers=math.ceil(slots / load.slots_per_worker),
    )


def late_fraction(load: Load, *, slots: int) -> float:
    """The share of jobs that wait longer than the objective, with ``slots`` slots at the peak."""
    return wait_exceeds_probability(slots, load.peak_slots, load.service_s, load.target_s)
