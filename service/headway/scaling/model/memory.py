"""What deciding remembers of a pool between two evaluations."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from headway.scaling.model.suspension import Stoppage

MEMORY_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """How many workers the demands and bounds asked for at a moment."""

    at_s: float
    workers: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LastMove:
    """When a target last changed, and whether it rose."""

    at_s: float
    is_up: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldCosts:
    """What each of the waits before scaling down that are tried has cost, in worker-seconds, and the count it keeps."""

    began_at_s: float
    """Newer costs weigh more, by their distance from this time."""
    at_s: float
    levels: tuple[int, ...]
    """By wait, the shortest first."""
    bands: tuple[tuple[float, ...], ...] = ()
    """Costs by band of workers, each by wait."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DayPaid:
    """What a pool's workers have been paid for on a day, up to a moment; from then on ``workers`` are paid."""

    day: str
    """As ``2026-11-27``, of the profile's ``budget_time_zone``."""
    at_s: float
    paid_worker_s: float
    workers: int
    since_s: float
    """From when on all is counted: of a day that is known as a whole, its beginning."""
    service_s: float | None = None
    """The service time that was measured last, to two digits: of jobs of hours none may end for long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """Jobs that one sample of a queue showed first and that, as far as is known, still wait."""

    at_s: float
    since_s: float | None
    """Of the sample before, which did not show them; ``None``: there was none."""
    jobs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueDepths:
    """What the samples of one queue showed whose source does not report every event."""

    queue: str
    sampled_at_s: float
    sightings: tuple[Sighting, ...] = ()
    """Of the jobs that wait, the oldest first."""
    part_jobs: float = 0.0
    """What is estimated to have started beyond whole jobs, below 1."""
    arrived_jobs: int = 0
    """From the sample before to the newest, estimated."""
    arrival_rate_per_s: float = 0.0
    """Estimated, over about a minute."""
    start_rate_per_s: float = 0.0
    """The same of starts."""
    late_rate_per_s: float = 0.0
    """The same of those that came later than the objective allows."""
    oldest_age_s: float | None = None
    """How long the oldest had waited at the newest sample, where the source knows it."""

    @property
    def waiting_jobs(self) -> int:
        """Jobs that the newest sample showed."""
        return sum(each.jobs for each in self.sightings)


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolDepths:
    """What the samples showed of those queues of a pool whose sources do not report every event."""

    queues: tuple[QueueDepths, ...] = ()
    """Empty where nothing waited and no slot was busy."""
    busy_slots: int = 0
    """When the newest samples were taken."""
    cycle_s: float | None = None
    """From one start to the next in a slot while jobs wait, at most; ``None``: no drain has shown it yet."""
    ended_jobs: float = 0.0
    """At least so many ended in the drain that goes on; old ones fade."""
    busy_slot_s: float = 0.0
    """Slots worked for so long meanwhile, at most; this fades likewise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredService:
    """How long the jobs of a pool took that ended last, to two digits."""

    time_s: float
    """Their mean service time."""
    batch_s: float | None = None
    """The same weighted by work; ``None``: not measured."""
    longest_batch_s: float | None = None
    """The longest ``batch_s`` of late: one that has faded counts less; ``None``: not measured."""
    longest_at_s: float = 0.0
    """When that was measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownArrivals:
    """Delayed jobs of a pool that have come of late."""

    delayed_jobs: int
    """At the last evaluation."""
    came: tuple[tuple[float, int], ...] = ()
    """When an evaluation missed how many of them, the oldest first."""
    due_jobs: int | None = None
    """Of ``delayed_jobs``, at most so many were due before the next evaluation; ``None``: not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BacklogSample:
    """The jobs of a pool at a moment."""

    at_s: float
    waiting_jobs: int
    in_flight_jobs: int | None
    """``None``: not known."""

    @property
    def least_jobs(self) -> int:
        """All of them, or more where not all are known."""
        return self.waiting_jobs + (self.in_flight_jobs or 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Backlog:
    """Jobs of a pool that wait, or did of late, and what was known before they came: of some nobody knows yet whether
    a worker ever begins them.
    """

    since_s: float
    samples: tuple[BacklogSample, ...]
    """Of the last minute, the oldest first."""
    learned: Mapping[str, Any] = field(default_factory=dict)
    """What the strategy had learned, by its key in the strategy's state."""
    depths: PoolDepths | None = None
    service: MeasuredService | None = None
    vanished_jobs: int = 0
    """Those that this evaluation found gone without a start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenJobs:
    """Jobs that workers have taken without a bound, by the newest sample."""

    at_s: float
    """Of the sample."""
    jobs: int
    growth_per_s: float = 0.0
    """Since the sample before; 0 where they became fewer."""
    growth_before_per_s: float = 0.0
    """The same of the one before."""
    growing_since_s: float | None = None
    """The first of the samples in a row that each had more; ``None``: the newest has not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plateau:
    """Jobs that wait beside idle slots, and what more workers have brought."""

    since_s: float
    """When such jobs were seen first."""
    seen_at_s: float
    """And last."""
    workers: int = 0
    """Those that ran when starts were measured last; 0: they were not yet."""
    starts_per_s: float = 0.0
    """What was measured then."""
    risen_at_s: float | None = None
    """Since when a step more run; ``None``: they do not yet."""
    again_s: float | None = None
    """The last step brought nothing: when one more is tried; ``None``: it did, or is not measured yet."""
    tries: int = 0
    """How many steps in a row have brought nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """What deciding must remember between two evaluations of a pool.

    Stored when it changes; a version that does not fit is dropped, and deciding holds.
    """

    version: int = MEMORY_VERSION
    target_workers: int | None = None
    paused_workers: int | None = None
    """The count that a pause keeps, apart from the last target, which lost hosts lower; ``None``: nothing is paused."""
    wanted: tuple[Wanted, ...] = field(default=())
    """Recent wants, newest last, for the hold before scaling down."""
    lows: tuple[Wanted, ...] = ()
    """Recent wants that no later one was below, newest last, for the hold before scaling up."""
    last_move: LastMove | None = None
    hold_costs: HoldCosts | None = None
    """What each wait before scaling down would have cost; ``None`` where the profile sets the wait."""
    missed_evaluations: int = 0
    """In a row without fresh metrics, where the profile waits for so many: no further than it does."""
    held_since_s: float | None = None
    """Since when too few jobs to wake the pool have been there; ``None``: it is awake, or has none."""
    day_paid: DayPaid | None = None
    """``None`` where the profile sets no budget of the day."""
    depths: PoolDepths | None = None
    """``None`` where the sources of all queues report events."""
    service: MeasuredService | None = None
    """``None`` until a job has ended."""
    known_arrivals: KnownArrivals | None = None
    """``None`` where no job is delayed, and none was of late."""
    stoppage: Stoppage | None = None
    """The last time in which its workers were kept from taking jobs, while it goes on or jobs of it are there."""
    backlog: Backlog | None = None
    """``None`` while hardly any job waits, and did not of late."""
    taken_jobs: TakenJobs | None = None
    """``None`` where workers have no more jobs than a usual prefetch."""
    plateau: Plateau | None = None
    """``None`` where no job has waited beside idle slots of late."""
    strategy_state: Mapping[str, Any] = field(default_factory=dict)
    """What the strategy asked to be given next time: JSON-able."""
