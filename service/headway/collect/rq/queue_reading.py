"""What one poll of a queue of RQ finds, which job records it then requests, and the replies. Values only."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from headway.collect.job_lifecycle import JobRecord
from headway.collect.rq.scheduled_jobs import NOTHING_SCHEDULED, ScheduledJobs


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedSpans:
    """What the spans of a registry of ended jobs hold: ids and scores."""

    scores: Mapping[str, float]
    stops: list[float | None]
    """For each span the score where the reading stopped because there was too much; None where it came to the end."""
    sampled: Mapping[str, float] = field(default_factory=dict)
    """A few jobs drawn by lot from the whole registry, now and then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueReading:
    """What one poll of the keys of a queue found. Ids stand in the list's order, the next one to be taken first."""

    waiting_jobs: int
    in_flight_jobs: int
    """Those that run, and those that were taken."""
    scheduled_jobs: int
    """In the registry of scheduled jobs, those that are due among them."""
    head: list[str]
    tail: list[str]
    taken: list[str]
    """Jobs that a worker took and has not begun, the one that was taken first, first."""
    members: Mapping[str, str]
    """Job id -> its member of the registry of started jobs, which also names the execution."""
    finished: EndedSpans
    failed: EndedSpans
    scheduled: ScheduledJobs = NOTHING_SCHEDULED

    @property
    def is_whole_list(self) -> bool:
        """Whether ``tail`` is all that waits."""
        return self.waiting_jobs <= len(self.tail)


@dataclass(slots=True)
class RecordRequests:
    """Jobs whose records a poll has to read, the most urgent first, and never more than ``room``."""

    room: int
    is_behind: bool
    """Whether new entries are reported bit by bit, so that the list's end was not read."""
    jobs: dict[str, None] = field(default_factory=dict)
    new: set[str] = field(default_factory=set)
    """Those whose place in the list shows that they entered after everything reported."""
    ended: set[str] = field(default_factory=set)
    """Those that may have ended: their scores in the registries are wanted as well."""
    only_read: set[str] = field(default_factory=set)
    """Those whose record shows how long the queue's jobs wait, and is not to be reported yet."""
    scheduled: set[str] = field(default_factory=set)
    """Those that only the registry of scheduled jobs names: they are reported where they are set aside, and else as the
    place shows them to which they went."""
    has_all_ends: bool = True
    rechecked: set[str] = field(default_factory=set)
    """Those reported as waiting whose record is read once more: they may have run and entered the queue anew."""

    @property
    def within_room(self) -> int:
        """How many of ``jobs`` take room. Those that are read once more do not: one of each queue would fill it."""
        return len(self.jobs) - len(self.rechecked)

    @property
    def is_full(self) -> bool:
        """Whether there is no room for another job."""
        return self.within_room >= self.room

    def recheck(self, job_ids: Iterable[str]) -> list[str]:
        """Ask for jobs that were reported as waiting, whatever the room. Returns those not asked for before."""
        fresh = [job_id for job_id in job_ids if job_id not in self.jobs]
        self.jobs.update(dict.fromkeys(fresh))
        self.rechecked.update(fresh)
        return fresh

    def add(self, job_ids: Iterable[str]) -> bool:
        """Ask for more jobs. Returns whether there was room for all of them."""
        for job_id in job_ids:
            if job_id not in self.jobs:
                if self.is_full:
                    return False
                self.jobs[job_id] = None
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """The records of the jobs asked for, None where there is none, and where in the registries some of them are."""

    records: dict[str, JobRecord | None]
    finished: dict[str, float]
    failed: dict[str, float]
