"""Whether a worker is busy, by evidence: what somebody said who knows it, and what its processes show.

Only the worker's own report and the broker's record of it say that a worker is idle, and only while they are fresh.
Processor time proves a worker busy that does not report, and so does a child where the library forks one per job.
Neither proves it idle: a job that waits takes no processor time, and a pool's processes are there with and without a
job. All else is unknown.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from headway.agent.config.worker_programs import has_rq_title, is_rq_worker
from headway.agent.model import NOT_KNOWN, Activity, ReceivedHint
from headway.agent.workers.worker_record import Record
from headway.local import procfs
from headway.local.procfs import Stat
from headway.scaling.model import ActivitySource, WorkerState

ACTIVITY_HINT_FRESH_S = 12.0  # a change is sent at once and everything every 5 s: two rounds and losses on the way
BUSY_CPU_FRACTION = 0.05  # of one core; a worker that only asks its broker for jobs takes less than 0.01
SAMPLE_EVERY_S = 5.0
SAMPLE_FRESH_S = 12.0  # two polls of the processes, and a late one
_WATCHED = frozenset({WorkerState.RUNNING, WorkerState.DRAINING})


def weighed(*claims: Activity) -> Activity:
    """What is to be believed of ``claims``, which come in the order of their precedence.

    The first that somebody made, unless another proved the worker busy since. Where that leaves it open, as a reporter
    does that is silent, nobody else knows better that the worker is idle. A reporter that says idle is believed: it
    reports each job as it begins, and what else takes processor time is none.
    """
    first = next((each for each in claims if each.source is not None), NOT_KNOWN)
    if first.is_busy or (first.is_busy is False and first.source is ActivitySource.REPORTER):
        return first
    after_s = _known_at_s(first) if first.is_busy is False else float("-inf")
    proofs = (each for each in claims if each.is_busy and _known_at_s(each) >= after_s)
    return max(proofs, key=_known_at_s, default=first)


def by_hint(hint: ReceivedHint | None, *, started_at_s: float, now_s: float) -> Activity:
    """What a hint reports of the process that started then. A hint from before its start is about another process."""
    if hint is None or now_s - hint.known_at_s > ACTIVITY_HINT_FRESH_S or hint.known_at_s < started_at_s:
        return NOT_KNOWN
    since_s = None if hint.since_age_s is None else hint.received_at_s - hint.since_age_s
    return Activity(
        is_busy=hint.is_busy,
        busy_since_s=since_s if hint.is_busy else None,
        source=ActivitySource.BROKER,
        known_at_s=hint.known_at_s,
    )


def of_family(hinted: Sequence[Activity]) -> Activity:
    """What the broker says of a worker by what it says of each of the processes that it knows there.

    Busy where one is; idle where all are, as of the oldest word: a worker behind a wrapper may be several.
    """
    busy = [each for each in hinted if each.is_busy]
    if busy:
        since_s = min((each.busy_since_s for each in busy if each.busy_since_s is not None), default=None)
        return replace(max(busy, key=_known_at_s), busy_since_s=since_s)
    return min(hinted, key=_known_at_s, default=NOT_KNOWN)  # a process that nobody knows of has the oldest word


def _known_at_s(claim: Activity) -> float:
    return float("-inf") if claim.known_at_s is None else claim.known_at_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The processes of one worker at a moment."""

    at_s: float
    cpu_s: float
    starts_s: Mapping[int, float]
    """Pid -> start, by the clock of ``at_s``, of the process that was started and each of its descendants."""
    parents: Mapping[int, int] = field(default_factory=dict)
    """Pid -> pid of the parent, of each of them."""
    has_job_process: bool = False
    """Whether one of them runs a job and nothing else."""
    has_scheduler: bool = False
    """Whether one of them moves jobs that are due into their queue."""

    def lineage(self, pid: int) -> Iterator[int]:
        """The process and those above it, up to the one that was started."""
        while pid in self.parents:
            yield pid
            pid = self.parents[pid]


def sampled(process: Stat, children: Sequence[Stat], *, now_s: float) -> Sample:
    """The sample of the process that was started, and of its descendants."""
    family = (process, *children)
    return Sample(
        at_s=now_s,
        cpu_s=sum(each.cpu_s for each in family),
        starts_s={each.pid: each.started_at_s for each in family},
        parents={each.pid: each.parent_pid for each in family},
        has_job_process=any(is_work_horse(each) for each in children),
        has_scheduler=any(is_rq_scheduler(each) for each in children),
    )


def is_work_horse(process: Stat) -> bool:
    """Whether RQ's worker has forked the process for one job.

    It leads a group of its own, as RQ's scheduler and the workers of RQ's pool do not, and it is a copy of its parent,
    as a program that a job has started is not.
    """
    return process.group == process.pid and _is_copy_of_rq_worker(process)


def is_rq_scheduler(process: Stat) -> bool:
    """Whether the process is the scheduler of the RQ worker that has started it. It is there while it holds the lock.

    The workers of RQ's pool are like that, too.
    """
    return process.group != process.pid and _is_copy_of_rq_worker(process)


def _is_copy_of_rq_worker(process: Stat) -> bool:
    if process.is_over:
        return False
    own, parents = procfs.command_line(process.pid), procfs.command_line(process.parent_pid)
    return is_rq_worker(parents) and (own == parents or has_rq_title(own))


@dataclass(slots=True)
class ProcessWatch:
    """What is known of one worker from its processes."""

    last: Sample | None = None
    activity: Activity = field(default=NOT_KNOWN)

    def see(self, sample: Sample) -> None:
        """Judge by a new sample: who runs a job in a process of its own is busy, and so is who takes CPU."""
        if sample.has_job_process:
            self.activity = Activity(is_busy=True, source=ActivitySource.CHILD, known_at_s=sample.at_s)
        elif self.last is not None and _takes_cpu(self.last, sample):
            self.activity = Activity(is_busy=True, source=ActivitySource.CPU, known_at_s=sample.at_s)
        else:
            self.activity = NOT_KNOWN
        self.last = sample


def _takes_cpu(before: Sample, now: Sample) -> bool:
    return now.cpu_s - before.cpu_s > BUSY_CPU_FRACTION * (now.at_s - before.at_s)


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
            process = procfs.stat(record.pid) if record.life.state in _WATCHED else None
            if process is not None:
                watch = watches[record.worker_id] = self._watches.get(record.worker_id, ProcessWatch())
                watch.see(sampled(process, procfs.descendants(record.pid), now_s=now_s))
        self._watches = watches

    def ended_jobs(self, record: Record) -> int | None:
        """Jobs that the worker has ended, by its broker's last word of it, however old: they only grow."""
        counts = [hint.ended_jobs for hint, _ in self._hints_of(record) if hint.ended_jobs is not None]
        return sum(counts) if counts else None

    def activity(self, record: Record, *, now_s: float, reported: Activity = NOT_KNOWN) -> Activity:
        """Whether the worker is busy, as far as that is known; ``reported`` is what it says itself."""
        hints = self._hints_of(record)
        hinted = [by_hint(hint, started_at_s=at_s, now_s=now_s) for hint, at_s in hints]
        watch = self._watches.get(record.worker_id)
        last = None if watch is None else watch.last
        mains = set() if last is None else {each.pid for each in record.mains} & last.parents.keys()
        if last is not None and len(mains) > 1:  # several workers behind one wrapper, each of which may have a job
            hinted += [NOT_KNOWN] * len(mains.difference(*(last.lineage(hint.pid) for hint, _ in hints)))
            reported = NOT_KNOWN if reported.is_busy is False else reported  # one of them says so, of itself
        shown = NOT_KNOWN if watch is None else watch.activity
        is_fresh = shown.known_at_s is not None and now_s - shown.known_at_s <= SAMPLE_FRESH_S
        found = weighed(reported, of_family(hinted), shown if is_fresh else NOT_KNOWN)
        moves_due_jobs = last is not None and last.has_scheduler
        return replace(found, moves_due_jobs=True) if moves_due_jobs else found

    def _hints_of(self, record: Record) -> list[tuple[ReceivedHint, float]]:
        """The hints about the worker's processes, each with the start of its process.

        The broker knows the process that takes jobs, which a shell or another wrapper may have started.
        """
        watch = self._watches.get(record.worker_id)
        starts_s = {} if watch is None or watch.last is None else watch.last.starts_s
        family = {**starts_s, record.pid: record.life.started_at_s}
        found = ((self._hints[pid], at_s) for pid, at_s in family.items() if pid in self._hints)
        return [(hint, at_s) for hint, at_s in found if hint.known_at_s >= at_s]
