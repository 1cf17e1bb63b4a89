"""The decision for a pool, with all that led to it."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from headway.scaling.model.memory import Plateau
from headway.scaling.model.queue_metrics import Objective, QueueMetrics
from headway.scaling.model.queue_order import QueueOrder
from headway.scaling.model.shared_jobs import SharedJobs
from headway.scaling.model.suspension import Stoppage, Suspension


class Mode(StrEnum):
    """What Headway may do with a pool."""

    ACT = "act"
    RECOMMEND = "recommend"
    PAUSE = "pause"
    PAUSE_UP = "pause_up"
    PAUSE_DOWN = "pause_down"


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """A reason to want workers, in slots (jobs at once), fractional, at least 0."""

    name: str
    slots: float
    terms: Mapping[str, float] = field(default_factory=dict)
    """What the slots follow from, by the formula of the demand: names, which end with their unit, and numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A limit and the number of workers it left."""

    name: str
    workers: int


class NoteKind(StrEnum):
    """What a note may be about. Programs read this, and never the sentence."""

    UNSEEN_QUEUE = "unseen_queue"
    UNREPORTED_RATES = "unreported_rates"
    RESERVED_JOBS = "reserved_jobs"
    STALE_METRICS = "stale_metrics"
    DIRECT_DEPTHS = "direct_depths"
    NO_HOST = "no_host"
    DUE_JOBS_LEFT = "due_jobs_left"
    FAILING_TEMPLATE = "failing_template"
    START_FAILURE = "start_failure"
    ACTIVATION = "activation"
    PAUSE = "pause"
    OVERRIDE = "override"
    SCHEDULE = "schedule"
    FALLBACK = "fallback"
    INFEASIBLE = "infeasible"
    SEPARATE_POOLS = "separate_pools"
    UNREPORTED_HELP = "unreported_help"
    LONG_HELP = "long_help"
    UNKNOWN_DAY = "unknown_day"
    SPENT_DAY = "spent_day"
    VANISHED_JOBS = "vanished_jobs"
    STRATEGY = "strategy"
    NO_ROOM = "no_room"
    LATER_START = "later_start"
    NOT_EVALUATED = "not_evaluated"


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteFact:
    """What a note says, for programs."""

    kind: str
    """One of ``NoteKind``, or of a later version's."""
    about: tuple[str, ...] = ()
    """What it is about beside its kind, as names, settings and moments: a note with another is news."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """A circumstance of a decision."""

    kind: NoteKind
    text: str
    """A sentence without its full stop. It may have figures that are measured again at each evaluation."""
    about: tuple[str, ...] = ()
    """As ``NoteFact.about``."""

    @property
    def fact(self) -> NoteFact:
        """What it says, without its words."""
        return NoteFact(kind=self.kind, about=self.about)


@dataclass(frozen=True, slots=True, kw_only=True)
class DayBudget:
    """A decision's figures of the day's budget, in worker-seconds."""

    day: str
    """As ``2026-11-27``, of the profile's ``budget_time_zone``."""
    budget_worker_s: float
    paid_worker_s: float
    overrun_worker_s: float = 0.0
    """Paid beyond the budget: jobs that ran when it was spent are not ended."""
    finishing_workers: int = 0
    """Workers that are there though nothing is left: they finish their jobs."""
    is_whole: bool = True
    """Whether all of the day is known; else these are of the part that is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberPickup:
    """How long a job that arrives now in one queue of a pool should wait, and the objective of that queue."""

    queue: str
    objective: Objective
    predicted_pickup_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupUse:
    """A group of pools that the pool is in, and what its other pools take. Counts are workers, or slots."""

    name: str
    cap: int
    is_in_slots: bool = False
    taken_by_others: int | None = None
    """What the other pools of the group should have, or have and do not give up; ``None``: not shared."""
    is_binding: bool = False
    """Its cap lowered the count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """How many workers a pool should have, and the whole story of why. The stored value is the only story."""

    pool: str
    at_s: float
    target_workers: int
    burst_workers: int = 0
    """How many of them are burst: they exit by themselves when the queue is empty."""
    binding: str
    """The demand or limit that gave the number its last word."""
    strategy: str = ""
    """The strategy whose demands these are; empty: not known."""
    mode: Mode = Mode.ACT
    """What Headway was allowed to do with the pool."""
    objective: Objective | None = None
    """The objective it was decided for."""
    demands: tuple[Demand, ...] = ()
    steps: tuple[Step, ...] = ()
    metrics: tuple[QueueMetrics, ...] = ()
    recalled_jobs: float | None = None
    """Jobs that the past predicts for this time and that have not come yet, where the pool is exposed."""
    recalled_weeks: int | None = None
    """How many weeks predict them; ``None`` where earlier days do."""
    running_workers: int = 0
    is_running_known: bool = True
    """``False``: ``running_workers`` is the last target, because the broker lists no workers of a pool in recommend."""
    starting_workers: int = 0
    unknown_workers: int = 0
    leaving_workers: int = 0
    """Those that were asked to stop and still run."""
    is_fresh: bool = True
    metrics_age_s: float | None = None
    """How old the metrics were, where they were not fresh; ``None``: they were, or nothing was ever seen."""
    is_failing: bool = False
    """Its template's workers, of late, have only ended too early, wherever they could be."""
    useful_workers: int | None = None
    """At most so many of its workers get jobs at a time; ``None``: no such bound is known."""
    suspension: Suspension | None = None
    """What keeps all its workers from taking jobs, beside Headway; ``None``: not known."""
    stoppage: Stoppage | None = None
    """The last time in which its workers were kept from taking jobs, while it goes on or shows in the jobs there."""
    leaves_due_jobs: bool = False
    """No worker of it moves jobs into their queue that were scheduled for later and are due."""
    plateau: Plateau | None = None
    """Where jobs wait beside idle slots and the target may not rise freely: what is measured of that."""
    predicted_pickup_s: float | None = None
    member_pickups: tuple[MemberPickup, ...] = ()
    """The same of each queue, by ``queue_order``; none where the pool has a single one, or nothing is known."""
    queue_order: QueueOrder | None = None
    """In what order workers take from the queues; ``None``: not known."""
    helped: tuple[SharedJobs, ...] = ()
    """Jobs of its queues that workers of other pools run; those that are reported are not in ``metrics``."""
    helping: tuple[SharedJobs, ...] = ()
    """Jobs of queues of other pools that its workers run, by queue."""
    helping_workers: int = 0
    """Its workers that have one of these."""
    day_budget: DayBudget | None = None
    """``None`` where the profile sets no budget of the day."""
    groups: tuple[GroupUse, ...] = ()
    """The groups that the pool is in, by their names."""
    notes: tuple[str, ...] = ()
    """Its circumstances, each a sentence without its full stop."""
    note_facts: tuple[NoteFact, ...] = ()
    """What each of the notes says, in their order; none in decisions of earlier versions."""

    @property
    def ranked_demands(self) -> tuple[Demand, ...]:
        """The demands, the greatest first; of equal ones in their order."""
        return tuple(sorted(self.demands, key=lambda demand: -demand.slots))

    def note_of(self, kind: NoteKind) -> str | None:
        """The first note of ``kind``; ``None``: there is none."""
        return next((text for text, fact in zip(self.notes, self.note_facts, strict=False) if fact.kind == kind), None)

    def with_notes(self, *notes: Note) -> "Decision":
        """The decision with ``notes`` after its own."""
        return replace(
            self,
            notes=(*self.notes, *(each.text for each in notes)),
            note_facts=(*self.note_facts, *(each.fact for each in notes)),
        )
