"""What one worker's reporter has said so far: its last beat, the jobs that run, and what it proves. Bounded.

A job that was reported to begin runs until its end is reported, or until beats no longer list it: the processes of a
pool write their own lines, so that a beat may be older than a start which came before it. A job that was reported to
end has ended, also where later beats list it. The main process learns of an end after the process that ran the job, and
never where it lost its broker meanwhile: up to 5.5, Celery's pool of processes then forgets what it ran. The next agent
gets these ends from this one.
"""

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from headway.agent.model import Activity
from headway.agent.reporting.report_lines import BeatPart, BeatState, JobReport, ReportKind
from headway.scaling.fields import taken_from
from headway.scaling.model import RUNNING_JOBS_NAMED_MAX, ActivitySource, RunningJob

BEAT_FRESH_S = 6.0  # three beats
LOOP_STILL_S = 5.0  # a loop that turns counts every 4 s at the latest
QUEUES_NAMED_MAX = 100
RUNNING_JOBS_MAX = 10_000  # of a worker, as slots in host.toml
BEATS_WITHOUT_START = 2  # that list none of it end a start; one may have been written just before
ENDS_KEPT_MAX = 2_000  # of a worker, from one beat to the next; of more, the oldest are forgotten
FORGOTTEN_AFTER_S = 10.0  # five beats: by then a main process has learned of an end, unless it never does


@dataclass(frozen=True, slots=True, kw_only=True)
class Beat(BeatState):
    """A worker's whole state, as its reporter said it."""

    received_at_s: float
    """When that was so, by the host's clock since boot."""
    queues: tuple[str, ...]
    """Those that it consumes, by their own names, the first ``QUEUES_NAMED_MAX`` of them."""


Attempt = tuple[str, int | None]
"""Job and attempt: the next attempt of a job may begin in another process before the end of the first is reported."""


@dataclass(slots=True)
class _Open:
    """An attempt that runs."""

    job: RunningJob
    is_listed: bool
    """A beat has listed it: the first that does not, ends it."""
    missed_beats: int = 0
    begun: int = 0
    """How often it was reported to begin without an end: a message that was delivered again may run beside itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedEnd:
    """The reported end of an attempt, in Unix seconds of the host."""

    started_at_s: float
    """An attempt of the same name that began later is another: its message was delivered again."""
    at_s: float


@dataclass(slots=True)
class _Gathering:
    """A beat of which some parts have come."""

    number: int
    parts: int
    next_part: int = 0
    listed: set[Attempt] = field(default_factory=set)
    """Attempts that run."""
    ended: set[Attempt] = field(default_factory=set)
    """Attempts that the beat lists, and whose end was reported."""
    others: int = 0
    queues: tuple[str, ...] = ()


class WorkerReport:
    """The newest that one worker has reported of itself."""

    def __init__(self) -> None:
        self.beat: Beat | None = None
        self.unread_lines = 0
        """Lines that were refused: too many, too long, or no lines of the protocol."""
        self.lost_reports = 0
        """Reports of jobs for which there was no room."""
        self._open: dict[Attempt, _Open] = {}
        self._ends: dict[Attempt, ReportedEnd] = {}
        """Of attempts that the next beat may list although their end was reported."""
        self._forgotten: tuple[Attempt, ...] = ()
        """Attempts whose end was reported some time before the last beat, which lists them."""
        self._unnamed_jobs = 0
        """Jobs that run beside those in ``_open``."""
        self._ended_jobs = 0
        """Jobs whose end was reported, without those that the end of their process has cut."""
        self._nameless_jobs = 0
        """What the worker ran by its last beat and cannot name: no line says that it ended."""
        self._gathering: _Gathering | None = None
        self._is_whole = False
        """Whether nothing is missing since the beat before the last."""
        self._loop_moved_at_s = float("-inf")
        self._known_at_s: float | None = None
        self._events: deque[JobReport] = deque()

    def take_over(self, ends: Mapping[Attempt, ReportedEnd]) -> None:
        """Go on with the ends of jobs that were ``forgotten`` under an earlier agent."""
        self._ends.update(ends)
        self._forgotten = tuple(ends)  # until a beat has said what it lists

    @property
    def forgotten(self) -> dict[Attempt, ReportedEnd]:
        """The ends that were reported of jobs which the last beat lists all the same, and will list from now on."""
        return {key: self._ends[key] for key in self._forgotten if key in self._ends}

    @property
    def running_jobs(self) -> int:
        """Jobs that have begun and not ended, as far as was reported."""
        named_jobs = sum(max(1, each.begun) for each in self._open.values())
        return min(RUNNING_JOBS_MAX, named_jobs + self._unnamed_jobs + self._nameless_jobs)

    @property
    def running(self) -> tuple[RunningJob, ...]:
        """Those of them that are named."""
        return tuple(each.job for each in self._open.values())

    def activity(self, *, now_s: float, unix_ahead_s: float) -> Activity:
        """What the report says of the worker; unknown before it says anything, and where it may lack something.

        ``unix_ahead_s`` is how far Unix time is ahead of the host's clock.
        """
        if self._known_at_s is None:
            return Activity(is_busy=None)
        said = Activity(
            is_busy=None,
            source=ActivitySource.REPORTER,
            known_at_s=self._known_at_s,
            ended_jobs=max(self._ended_jobs, 0 if self.beat is None else self.beat.ended or 0),
        )
        if self.running_jobs:
            since_s = min((each.started_at_s for each in self.running), default=None)
            return replace(
                said,
                is_busy=True,
                busy_since_s=None if since_s is None else min(now_s, since_s - unix_ahead_s),
                running_jobs=self.running_jobs,
                running=self.running,
            )
        return replace(said, is_busy=False, running_jobs=0) if self._is_idle(now_s) else said

    def _is_idle(self, now_s: float) -> bool:
        beat = self.beat
        if beat is None or not self._is_whole or now_s - beat.received_at_s > BEAT_FRESH_S:
            return False
        return beat.loop is not None and beat.received_at_s - self._loop_moved_at_s < LOOP_STILL_S

    def take_events(self) -> list[JobReport]:
        """What was reported of jobs since the last call."""
        taken, self._events = list(self._events), deque()
        return taken

    # --- what comes --------------------------------------------------------------------------------------------------

    def miss(self, lines: int) -> None:
        """Note lines that nobody read. Until the next whole beat, a start may be among them."""
        self.unread_lines += lines
        self._is_whole = False

    def take(self, said: JobReport | BeatPart, *, at_s: float, events_max: int) -> None:
        """Take what a line said, which was so at ``at_s`` by the host's clock since boot."""
        if isinstance(said, BeatPart):
            self._take_part(said, at_s)
            return
        if len(self._events) < events_max:
            self._events.append(said)
        else:
            self.lost_reports += 1
        if said.kind is ReportKind.BEGUN:
            self._begin(said)
            self._known_at_s = at_s
        elif said.kind is ReportKind.ENDED:
            self._end(said)
            self._ended_jobs += not said.is_cut
            self._known_at_s = at_s

    def _begin(self, said: JobReport) -> None:
        attempt = (said.job_id, said.attempt)
        known = self._open.get(attempt)
        if known is None and len(self._open) >= RUNNING_JOBS_NAMED_MAX:
            self._unnamed_jobs = min(RUNNING_JOBS_MAX, self._unnamed_jobs + 1)
            return
        job = taken_from(RunningJob, said, started_at_s=said.at_s)
        self._open[attempt] = _Open(job=job, is_listed=False, begun=1 if known is None else known.begun + 1)

    def _end(self, said: JobReport) -> None:
        attempt = (said.job_id, said.attempt)
        started_at_s = said.at_s if said.started_at_s is None else said.started_at_s
        self._ends[attempt] = ReportedEnd(started_at_s=started_at_s, at_s=said.at_s)
        if len(self._ends) > ENDS_KEPT_MAX:
            del self._ends[next(iter(self._ends))]
        known = self._open.get(attempt)
        if known is None:
            self._unnamed_jobs = max(0, self._unnamed_jobs - 1)
        elif known.begun > 1:
            known.begun -= 1
        else:
            del self._open[attempt]

    def _take_part(self, said: BeatPart, at_s: float) -> None:
        if said.part == 0:
            self._gathering = _Gathering(number=said.number, parts=said.parts)
        gathering = self._gathering
        if gathering is None or (said.number, said.part, said.parts) != (
            gathering.number,
            gathering.next_part,
            gathering.parts,
        ):
            self._gathering = None  # a part is missing: the next beat is soon
            return
        gathering.next_part += 1
        gathering.queues = (*gathering.queues, *said.queues)[:QUEUES_NAMED_MAX]
        self._list(gathering, said.running)
        if gathering.next_part == gathering.parts:
            self._gathering = None
            self._conclude(gathering, said, at_s)

    def _list(self, gathering: _Gathering, jobs: Iterable[RunningJob]) -> None:
        """Take the jobs of one part of a beat."""
        for job in jobs:
            attempt = (job.job_id, job.attempt)
            known, end = self._open.get(attempt), self._ends.get(attempt)
            if known is None and end is not None and job.started_at_s <= end.started_at_s:
                gathering.ended.add(attempt)
                continue
            if known is None and len(self._open) >= RUNNING_JOBS_NAMED_MAX:
                gathering.others = min(RUNNING_JOBS_MAX, gathering.others + 1)
                continue
            gathering.listed.add(attempt)
            if known is None:
                self._open[attempt] = _Open(job=job, is_listed=True)
            else:
                known.is_listed, known.missed_beats = True, 0

    def _conclude(self, gathering: _Gathering, last: BeatPart, at_s: float) -> None:
        """All parts of a beat have come."""
        for attempt in [each for each in self._open if each not in gathering.listed]:
            known = self._open[attempt]
            known.missed_beats += 1
            if known.is_listed or known.missed_beats >= BEATS_WITHOUT_START:
                del self._open[attempt]
        self._ends = {key: end for key, end in self._ends.items() if key in gathering.ended or end.at_s >= last.at_s}
        still_listed = (key for key in self._ends if key in gathering.ended)
        self._forgotten = tuple(key for key in still_listed if last.at_s - self._ends[key].at_s >= FORGOTTEN_AFTER_S)
        self._unnamed_jobs = gathering.others
        self._nameless_jobs = last.unnamed
        before = self.beat
        if before is not None and last.loop != before.loop:  # one that stood still before this agent came has not moved
            self._loop_moved_at_s = at_s
        # What was lost since the beat before was perhaps a start that this beat is too early for.
        self._is_whole = before is None or last.lost <= before.lost
        self._known_at_s = at_s
        self.beat = taken_from(Beat, last, received_at_s=at_s, queues=gathering.queues)
