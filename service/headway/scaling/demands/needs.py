"""What jobs with a deadline need: the idle slots that must stay and the new ones, beside what starts jobs anyway.

A deadline has all that this follows from, in numbers that a person can calculate with and that a decision keeps.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from headway.scaling.arithmetic import ROUNDING

LATE_S = 2.0  # for which a new worker starts late jobs: with 2.5 s, bursts lose jobs that would start in time


@dataclass(frozen=True, slots=True, kw_only=True)
class Coming:
    """Slots that will be free in so many seconds."""

    slots: int
    ready_in_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Supply:
    """What will start jobs without one more worker, and how soon one more would."""

    busy_slots: int
    idle_slots: int
    coming: tuple[Coming, ...]
    completions_per_s: float
    """Of the busy slots, now."""
    cycle_s: float
    """Of a slot, from one start to the next; infinite where nothing is known of how soon it is free again."""
    caution: float
    """How many standard deviations fewer completions than expected are assumed."""
    helping_slots: int = 0
    """Slots that run jobs of other pools' queues: neither busy nor idle."""
    freed: tuple[Coming, ...] = ()
    """Those of them that take a job of the pool itself next."""
    reserved_jobs: int = 0
    """Jobs that workers have taken and not begun: busy slots begin these first."""
    start_up_s: float = 0.0
    """Of one more worker."""
    tick_s: float = 0.0
    """From now to the next evaluation, which may ask for more."""

    def with_helping_as_idle(self) -> "Supply":
        """This supply with the slots that run jobs of other pools' queues among the idle ones."""
        if not self.helping_slots:
            return self
        return replace(self, idle_slots=self.idle_slots + self.helping_slots, helping_slots=0, freed=())

    @property
    def reaction_s(self) -> float:
        """From now until a worker is up that the next evaluation asks for."""
        return self.tick_s + self.start_up_s

    @property
    def coming_slots(self) -> int:
        """All slots that come, whenever."""
        return sum([each.slots for each in self.coming])

    def deadline(
        self, jobs: float, within_s: float, *, start_up_s: float = 0.0, from_s: float = 0.0, late_s: float = LATE_S
    ) -> "Deadline":
        """``jobs`` that must start within ``within_s`` from now and not before ``from_s``, beside this supply."""
        left_s = max(within_s, start_up_s)
        coming_jobs = 0.0
        for coming in (*self.coming, *self.freed):
            if coming.ready_in_s <= left_s:
                per_slot = 1.0 + max(0.0, left_s - max(from_s, coming.ready_in_s)) / self.cycle_s
                coming_jobs += coming.slots * per_slot
        return Deadline(
            jobs,
            within_s,
            from_s,
            start_up_s,
            late_s,
            self.completions_per_s,
            self.reserved_jobs,
            self.caution,
            coming_jobs,
            self.idle_slots,
            self.cycle_s,
        )


class Deadline(NamedTuple):
    """Jobs that must start by one moment, and all that says how many slots they need: the terms of a need."""

    jobs: float
    within_s: float
    """By when from now they must have started."""
    from_s: float
    """From when on they can start."""
    start_up_s: float
    late_s: float
    """For how long a new slot has jobs at least, from when it is up."""
    completions_per_s: float
    """Of the busy slots."""
    reserved_jobs: int
    caution: float
    """How many standard deviations fewer completions than expected are assumed."""
    coming_jobs: float
    """What slots that come surely start by then."""
    idle_slots: int
    cycle_s: float
    front_idle_slots: int = 0
    """Idle slots that jobs of other queues take first; they are not among ``idle_slots``."""
    front_new_slots: int = 0
    """New slots for such jobs."""

    @property
    def started_jobs(self) -> float:
        """Jobs that busy and coming slots surely start between ``from_s`` and the deadline.

        By ``from_s`` a busy slot has begun jobs that are reserved, or waits for what is due then: which, nobody knows.
        What is due earlier than a new slot is up is its own as soon as it is.
        """
        reserved_jobs = max(0.0, self.reserved_jobs - self.completions_per_s * self.from_s)
        passed_s = max(self.within_s, self.start_up_s) - self.from_s
        expected = max(0.0, self.completions_per_s * passed_s - reserved_jobs)
        # Completions scatter like a Poisson count, whose variance is its mean.
        return max(0.0, expected - self.caution * math.sqrt(expected)) + self.coming_jobs

    @property
    def needed_slots(self) -> tuple[int, int]:
        """The idle slots that must stay for the jobs, and the new ones; those for jobs in front included.

        Source: docs/why/demand.md, "Recompute a decision".
        """
        kept_slots, new_slots = self._own_slots(self.jobs - self.started_jobs)
        return kept_slots + self.front_idle_slots, new_slots + self.front_new_slots

    def _own_slots(self, left_jobs: float) -> tuple[int, int]:
        if left_jobs <= ROUNDING:
            return 0, 0
        left_s = max(self.within_s, self.start_up_s)
        from_idle = 1.0 + max(0.0, left_s - self.from_s) / self.cycle_s
        kept_slots = math.ceil(left_jobs / from_idle - ROUNDING)
        if kept_slots <= self.idle_slots:
            return kept_slots, 0
        left_jobs -= self.idle_slots * from_idle
        new_s = max(self.late_s, left_s - max(self.start_up_s, self.from_s))
        return self.idle_slots, math.ceil(left_jobs / (1 + math.floor(new_s / self.cycle_s)) - ROUNDING)


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """Slots that jobs with deadlines ask for: idle ones that must stay, and new ones."""

    kept_slots: int = 0
    new_slots: int = 0
    kept_for: Deadline | None = field(default=None, compare=False)
    """The jobs that the idle ones must stay for; ``None``: for those that they are about to take, or there are none."""
    new_for: Deadline | None = field(default=None, compare=False)
    """The jobs that the new ones are for."""

    @property
    def slots(self) -> int:
        """Both together."""
        return self.kept_slots + self.new_slots

    def behind(self, *, idle_slots: int, new_slots: int) -> "Need":
        """This need and what jobs of other queues take first: ``idle_slots``, and ``new_slots`` more."""
        kept_for, new_for = (
            (each or NOBODY)._replace(front_idle_slots=idle_slots, front_new_slots=new_slots)
            for each in (self.kept_for, self.new_for)
        )
        return Need(
            kept_slots=self.kept_slots + idle_slots,
            new_slots=self.new_slots + new_slots,
            kept_for=kept_for,
            new_for=kept_for if self.kept_for is self.new_for else new_for,
        )


NO_NEED = Need()
NOBODY = Supply(busy_slots=0, idle_slots=0, coming=(), completions_per_s=0.0, cycle_s=math.inf, caution=0.0).deadline(
    0.0, 0.0
)
"""No job: what is in front of it is all there is."""


def need(
    jobs: float, within_s: float, given: Supply, *, start_up_s: float, from_s: float = 0.0, late_s: float = LATE_S
) -> Need:
    """The idle slots that must stay and the new ones, so that ``jobs`` start within ``within_s`` from now.

    None of them starts before ``from_s``. Never falls as jobs rise or the time gets shorter. New workers cannot start
    anything before they are up: what is due earlier is theirs as soon as they are. A job that none of them could start
    in time gets no slot of its own: each has at least ``late_s`` from when it is up for the jobs that it is asked for.

    Source: docs/why/demand.md, "Late jobs".
    """
    deadline = given.deadline(jobs, within_s, start_up_s=start_up_s, from_s=from_s, late_s=late_s)
    return need_of(deadline)


def need_of(deadline: Deadline) -> Need:
    """What the jobs of ``deadline`` need."""
    kept_slots, new_slots = deadline.needed_slots
    return Need(kept_slots=kept_slots, new_slots=new_slots, kept_for=deadline, new_for=deadline)


def greatest(needs: Iterable[Need]) -> Need:
    """As many of each kind as any of ``needs`` asks for."""
    found = list(needs)
    kept = max(found, key=lambda each: (each.kept_slots, each.new_slots), default=NO_NEED)
    new = max((kept, *found), key=lambda each: each.new_slots)
    if kept is new:
        return kept
    return Need(kept_slots=kept.kept_slots, new_slots=new.new_slots, kept_for=kept.kept_for, new_for=new.new_for)
