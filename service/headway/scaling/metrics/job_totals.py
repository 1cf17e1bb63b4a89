"""What a queue did since it was first counted: sums that only grow, and how many jobs were within which duration."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from headway.scaling.arithmetic import HOUR_S, MINUTE_S
from headway.scaling.measure import in_order, late_jobs, merged, sketch_index, sketch_value_s
from headway.scaling.sketch_edges import place

LONG_BOUNDS_S = (5.0, 10.0, 30.0, MINUTE_S, 300.0, 900.0, HOUR_S)
WAIT_BOUNDS_S = (0.1, 0.5, 1.0, 2.5, *LONG_BOUNDS_S)
SERVICE_BOUNDS_S = (0.01, 0.1, 0.5, 1.0, *LONG_BOUNDS_S)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobTotals:
    """Jobs of one queue, over all the time that was counted."""

    enqueued: int = 0
    started: int = 0
    finished: int = 0
    failed: int = 0
    retried: int = 0
    """Attempts that failed and are followed by another one of the same job: in no other figure here."""
    service_sum_s: float = 0.0
    service_sketch: Mapping[int, int] = field(default_factory=dict)
    pickup_sketch: Mapping[int, int] = field(default_factory=dict)

    @property
    def waited(self) -> int:
        """Starts of which it is known how long the job had waited."""
        return sum(self.pickup_sketch.values())

    @property
    def served(self) -> int:
        """Ends of which it is known how long the job had run."""
        return sum(self.service_sketch.values())

    @property
    def pickup_sum_s(self) -> float:
        """What the jobs that started had waited together, at most 1 % off."""
        return sum(sketch_value_s(index) * jobs for index, jobs in self.pickup_sketch.items())

    def negative(self) -> "JobTotals":
        """What takes these jobs away from a sum that has them."""
        return JobTotals(
            enqueued=-self.enqueued,
            started=-self.started,
            finished=-self.finished,
            failed=-self.failed,
            retried=-self.retried,
            service_sum_s=-self.service_sum_s,
            service_sketch={index: -jobs for index, jobs in self.service_sketch.items()},
            pickup_sketch={index: -jobs for index, jobs in self.pickup_sketch.items()},
        )

    def late(self, target_s: float) -> int:
        """Starts later than ``target_s``."""
        return late_jobs(self.pickup_sketch, target_s)


def within(sketch: Mapping[int, int], bounds_s: Iterable[float]) -> list[tuple[float, int]]:
    """Each of ``bounds_s``, ascending and once, with how many values of ``sketch`` do not exceed it."""
    indexes = in_order(sketch)
    seen = (0, *accumulate(sketch[index] for index in indexes))
    found, passed = [], 0
    for bound_s in sorted(set(bounds_s)):
        last = place(sketch_index(bound_s))
        while passed < len(indexes) and place(indexes[passed]) <= last:
            passed += 1
        found.append((bound_s, seen[passed]))
    return found


def together(parts: Sequence[JobTotals]) -> JobTotals:
    """The sum of ``parts``."""
    return JobTotals(
        enqueued=sum(part.enqueued for part in parts),
        started=sum(part.started for part in parts),
        finished=sum(part.finished for part in parts),
        failed=sum(part.failed for part in parts),
        retried=sum(part.retried for part in parts),
        service_sum_s=sum(part.service_sum_s for part in parts),
        service_sketch=merged(part.service_sketch for part in parts),
        pickup_sketch=merged(part.pickup_sketch for part in parts),
    )
