"""Whether a worker is busy: by the broker's word while it is fresh, else by what its processes do, else not known."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from headway.agent.model import NOT_KNOWN, Activity, ReceivedHint
from headway.agent.workers.worker_record import Record
from headway.local import procfs
from headway.local.procfs import Stat
from headway.scaling.model import WorkerState

ACTIVITY_HINT_FRESH_S = 12.0  # a change is sent at once and everything every 5 s: two rounds and losses on the way
BUSY_CPU_FRACTION = 0.05  # of one core; a worker that only asks its broker for jobs takes less than 0.01
SAMPLE_EVERY_S = 5.0


def by_hint(hint: ReceivedHint | None, *, started_at_s: float, now_s: float) -> Activity:
    """What a hint reports of the worker that started then. A hint from before its start is about another process."""
    if hint is None or now_s - hint.known_at_s > ACTIVITY_HINT_FRESH_S or hint.known_at_s < started_at_s:
        return NOT_KNOWN
    since_s = None if hint.since_age_s is None else hint.received_at_s - hint.since_age_s
    return Activity(is_busy=hint.is_busy, busy_since_s=since_s if hint.is_busy else None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The processes of one worker at a moment."""

    at_s: float
    cpu_s: float
    children: frozenset[tuple[int, int]]
    """Pid and start of each."""


def sampled(process: Stat, children: list[Stat], *, now_s: float) -> Sample:
    """The sample of a worker's process and its descendants."""
    return Sample(
        at_s=now_s,
        cpu_s=process.cpu_s + sum(child.cpu_s for child in children),
        children=frozenset((child.pid, child.started_ticks) for child in children),
    )


@dataclass(slots=True)
class ProcessWatch:
    """What is known of one worker from its processes."""

    crew: frozenset[tuple[int, int]] | None = None
    """The children it keeps while idle, as far as that is known: those it had when it was first seen running."""
    last: Sample | None = None
    activity: Activity = field(default=NOT_KNOWN)

    def see(self, sample: Sample) -> None:
        """Judge by a new sample: a child that is not of the crew works on a job, and so does who takes CPU."""
        if self.last is None or self.crew is None:
            self.crew = sample.children
        else:
            used_s = sample.cpu_s - self.last.cpu_s
            is_working = used_s > BUSY_CPU_FRACTION * (sample.at_s - self.last.at_s)
            has_hands = not sample.children <= self.crew
            self.activity = Activity(is_busy=is_working or has_hands)
            self.crew &= sample.children
        self.last = sample


class ActivityTracker:
    """What is known of every worker's activity: the newest hints, and a watch on each worker's processes."""

    def __init__(self) -> None:
        self._hints: dict[int, ReceivedHint] = {}
        self._watches: dict[str, ProcessWatch] = {}

    def receive(self, hints: tuple[ReceivedHint, ...]) -> None:
        """Replace the broker's earlier hints by its newest ones."""
        self._hints = {hint.pid: hint for hint in hints}

    def scan(self, records: Iterable[Record], *, now_s: float) -> None:
        """Poll the processes of these workers, and forget all others."""
        watches: dict[str, ProcessWatch] = {}
        for record in records:
            process = procfs.stat(record.pid) if record.life.state is WorkerState.RUNNING else None
            if process is not None:
                watch = watches[record.worker_id] = self._watches.get(record.worker_id, ProcessWatch())
                watch.see(sampled(process, procfs.descendants(record.pid), now_s=now_s))
        self._watches = watches

    def ended_jobs(self, record: Record) -> int | None:
        """Jobs that the worker has ended, by its broker's last word of it, however old: they only grow."""
        hint = self._hints.get(record.pid)
        return None if hint is None or hint.known_at_s < record.life.started_at_s else hint.ended_jobs

    def activity(self, record: Record, *, now_s: float) -> Activity:
        """Whether the worker is busy, as far as that is known."""
        hinted = by_hint(self._hints.get(record.pid), started_at_s=record.life.started_at_s, now_s=now_s)
        if hinted.is_busy is not None:
            return hinted
        watch = self._watches.get(record.worker_id)
        if watch is None or (record.pid in self._hints and not watch.activity.is_busy):
            # The broker knows this worker and is silent for now. A job that only waits takes no CPU either.
            return NOT_KNOWN
        return watch.activity
