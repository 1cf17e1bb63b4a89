"""One queue from poll to poll: which job records are worth reading, and what in them is new."""

from collections import deque
from collections.abc import Iterator
from itertools import islice
from typing import Any

from headway.collect.job_lifecycle import (
    JobRecord,
    JobState,
    ReportedLife,
    Sighting,
    Stage,
    progress,
    recent,
    unseen_run,
    vanished,
)
from headway.collect.job_memory import JobMemory
from headway.collect.rq.ended_jobs import EndedJobs
from headway.collect.rq.queue_reading import Answers, QueueReading, RecordRequests
from headway.collect.rq.scheduled_jobs import ScheduledComparison
from headway.collect.rq.shared_keys import SharedKeys
from headway.connections import as_text
from headway.scaling.model import JobEvent, QueueSample, Redelivery

LEFT_ASKED_MAX = 500
FINISHED_KEPT_S = 500.0  # RQ's default result_ttl
FAILED_KEPT_S = 31_536_000.0  # RQ's default failure_ttl, a year


class TrackedQueue:
    """One queue, reported up to a point."""

    def __init__(self, queue: str, *, begins_at_s: float) -> None:
        """Begin at ``begins_at_s``: jobs that ended before are not reported."""
        self.queue = queue
        self.jobs = JobMemory(begins_at_s=begins_at_s)
        self.finished = EndedJobs(begins_at_s=begins_at_s, kept_s=(FINISHED_KEPT_S,))
        self.failed = EndedJobs(begins_at_s=begins_at_s, kept_s=(FAILED_KEPT_S,))
        self._behind: deque[str] = deque()
        self._edge_s: dict[str, float] = {}
        self._scheduled = ScheduledComparison()
        self.gone: list[tuple[ReportedLife, Sighting]] = []
        """Jobs that waited at the poll before the last and have left no record since, the first in the queue first."""

    # --- what to read -------------------------------------------------------------------------------------------------

    def must_poll_deeper(self, reading: QueueReading) -> bool:
        """Whether more jobs entered since the last poll than ``reading.tail`` shows."""
        return not (self._behind or reading.is_whole_list or self._last_anchor(reading.tail) is not None)

    def poll_deeper(self, tail: list[str], *, entries_reported_until_s: float | None = None) -> None:
        """Take a longer tail, to be reported bit by bit. With a time, what waits before the tail counts as reported."""
        anchor = self._last_anchor(tail)
        self._behind.extend(tail if anchor is None else tail[anchor + 1 :])
        if entries_reported_until_s is not None:
            self.jobs.entries_reported_until_s = entries_reported_until_s

    def asks(self, reading: QueueReading, *, room: int) -> RecordRequests:
        """The jobs whose records show what is new, ``room`` at most."""
        asked = RecordRequests(room, is_behind=bool(self._behind))
        gone = [job for job in self.jobs.running() if job not in reading.members]
        left = self._left(reading)
        asked.ended.update(gone, left)
        has_gone = asked.add(gone)
        asked.has_all_ends = asked.add(self._new_ends(reading)) and has_gone
        asked.add(job for job, member in reading.members.items() if not self.jobs.is_running(job, member=member))
        entered = list(self._entered(reading, room))
        asked.new.update(entered)
        asked.add(entered)
        if reading.is_whole_list:
            asked.add(job for job in reading.tail if job not in self.jobs.waiting)
        asked.add(left)
        asked.add((*reading.finished.sampled, *reading.failed.sampled))
        # Only for their age: reported out of turn, they would stand for everything that entered before them.
        edges = {job for job in _edges(reading) if job not in self.jobs.waiting and job not in self._edge_s}
        asked.only_read = edges - asked.jobs.keys()
        asked.add(asked.only_read)
        scheduled = [job for job in self._scheduled.changed(reading.scheduled) if job not in asked.jobs]
        asked.scheduled.update(scheduled)
        asked.ended.update(scheduled)
        asked.add(scheduled)
        asked.recheck(self._oldest(reading))
        return asked

    def asks_again(self, reading: QueueReading, asked: RecordRequests, answers: Answers) -> list[str]:
        """The other jobs at the edges, where the oldest has entered the queue anew: any of them may have, too."""
        since_s = self._reported_since_s(reading)
        found = ((answers.records.get(job), each_s) for job, each_s in since_s.items())
        is_anew = any(record is not None and record.enqueued_at_s != each_s for record, each_s in found)
        return asked.recheck(since_s) if is_anew else []

    def _oldest(self, reading: QueueReading) -> list[str]:
        """The job that the age is of, if it was reported: where it still waits since then, no other is older.

        A job that ran and came back between two polls stands in the list as before.
        """
        known_s = {job: self._edge_s[job] for job in _edges(reading) if job in self._edge_s}
        known_s |= self._reported_since_s(reading)
        return [job for job in sorted(known_s, key=known_s.__getitem__)[:1] if job in self.jobs.waiting]

    def _reported_since_s(self, reading: QueueReading) -> dict[str, float]:
        """Since when those at the edges wait that were reported."""
        found = ((job, self.jobs.waiting_since_s(job)) for job in _edges(reading))
        return {job: since_s for job, since_s in found if since_s is not None}

    def _new_ends(self, reading: QueueReading) -> Iterator[str]:
        for ends in (reading.finished, reading.failed):
            yield from (job for job, score in ends.scores.items() if not self.jobs.has_ended(job, score=score))

    def _entered(self, reading: QueueReading, room: int) -> Iterator[str]:
        """Jobs behind everything that was reported, in their order."""
        if self._behind:
            yield from islice(self._behind, room)
            return
        anchor = self._last_anchor(reading.tail)
        behind = reading.tail if anchor is None else reading.tail[anchor + 1 :]
        yield from (job for job in behind if job not in self.jobs.waiting)

    def _last_anchor(self, tail: list[str]) -> int | None:
        """Where in ``tail`` the last job stands that was reported.

        Where the last ones are gone, deleted or lost with a server that failed, any other shows it that still waits.
        """
        for known in (set(self.jobs.anchors), self.jobs.waiting):
            found = next((index for index in range(len(tail) - 1, -1, -1) if tail[index] in known), None)
            if found is not None:
                return found
        return None

    def _left(self, reading: QueueReading) -> list[str]:
        """Jobs that were reported as waiting and seem not to wait any more."""
        waiting = self.jobs.waiting
        left: Iterator[str]
        if reading.is_whole_list:
            present = set(reading.tail)
            left = (job for job in waiting if job not in present)
        elif any(job in waiting for job in reading.head):
            # Of a long list only the head is seen: who entered before those in it has left, cutting in line aside.
            head = set(reading.head)
            first = next(index for index, job in enumerate(waiting) if job in head)
            left = islice(waiting, first)
        else:
            return []
        return list(islice(left, LEFT_ASKED_MAX))

    # --- what is new --------------------------------------------------------------------------------------------------

    def take(
        self, reading: QueueReading, asked: RecordRequests, answers: Answers, *, at_s: float, polled_at_s: float | None
    ) -> list[JobEvent]:
        """What is new of this queue, each job's events in their order. All of it counts as reported from now on.

        ``polled_at_s`` is when the poll before was.
        """
        events: list[JobEvent] = []
        self.gone.clear()
        for job_id in asked.jobs:
            if job_id not in asked.only_read and not _is_elsewhere(job_id, asked, answers):
                events += self._news(job_id, reading, asked, answers, at_s=at_s, polled_at_s=polled_at_s)
        while self._behind and self._behind[0] in asked.jobs:
            self._behind.popleft()
        if asked.has_all_ends:
            self.finished.read(at_s, reading.finished.stops)
            self.failed.read(at_s, reading.failed.stops)
        self._learn(reading, answers)
        self.jobs.trim(ends_read_until_s=min(self.finished.read_until_s, self.failed.read_until_s))
        self._edge_s = dict(self._entered_s(reading, answers))
        self._scheduled.note(reading.scheduled, unread=asked.scheduled - asked.jobs.keys())
        return recent(events, at_s=at_s)

    def unseen_runs(self, jobs: int) -> Iterator[JobEvent]:
        """The runs of the first ``jobs`` of ``gone``, of which workers have counted the ends."""
        for reported, sighting in self.gone[:jobs]:
            yield from unseen_run(reported, sighting)

    def sample(self, reading: QueueReading, *, at_s: float, listed_workers: int, shared: SharedKeys) -> QueueSample:
        """The state of the queue. To be called after ``take``."""
        scheduled = reading.scheduled
        known_s = [self._edge_s[job] for job in _edges(reading) if job in self._edge_s]
        is_known = bool(known_s) or not reading.waiting_jobs
        if scheduled.overdue_since_s is not None:
            known_s.append(scheduled.overdue_since_s)
        return QueueSample(
            queue=self.queue,
            at_s=at_s,
            waiting_jobs=reading.waiting_jobs + scheduled.overdue_jobs,
            # No worker takes the others before somebody has moved them.
            waiting_min_jobs=reading.waiting_jobs if scheduled.overdue_jobs else None,
            in_flight_jobs=reading.in_flight_jobs,
            delayed_jobs=shared.delayed_jobs(reading.scheduled_jobs - scheduled.overdue_jobs),
            oldest_age_s=max(0.0, at_s - min(known_s, default=at_s)) if is_known else None,
            due=scheduled.due,
            listed_workers=listed_workers,
            suspension=shared.suspension,
            redelivery=Redelivery.CLEAN_UP,
        )

    @property
    def is_at_rest(self) -> bool:
        """Whether no job is remembered that may do anything: of an empty reading, nothing is new."""
        return not (self._behind or self._edge_s or self._scheduled.due_s or self.jobs.has_unended)

    def rest(self, *, at_s: float) -> None:
        """What ``take`` does with an empty reading of a queue that is at rest."""
        self.finished.read_all(at_s)
        self.failed.read_all(at_s)
        self.jobs.trim(ends_read_until_s=at_s)

    def is_left(self, reading: QueueReading) -> bool:
        """Whether there is a job of the queue, or one was reported whose end was not. After ``take``."""
        is_there = reading.waiting_jobs or reading.in_flight_jobs or reading.scheduled_jobs
        return bool(is_there or self.jobs.has_unended)

    def _news(
        self,
        job_id: str,
        reading: QueueReading,
        asked: RecordRequests,
        answers: Answers,
        *,
        at_s: float,
        polled_at_s: float | None,
    ) -> list[JobEvent]:
        reported, record = self.jobs.reported(job_id), answers.records[job_id]
        is_new = job_id in asked.new
        if is_new:
            self.jobs.anchors.append(job_id)
        sighting = Sighting(
            queue=self.queue,
            job_id=as_text(job_id),
            at_s=at_s,
            is_in_finished=job_id in reading.finished.scores or job_id in answers.finished,
            failed_at_s=self.failed.ended_at_s(reading.failed.scores.get(job_id), now_s=at_s),
            is_enqueued_reported=not is_new and record is not None and self.jobs.is_entry_reported(record),
            polled_at_s=polled_at_s,
            is_running=job_id in reading.members,
        )
        if record is None:
            events, now = self._gone(job_id, reported, reading, sighting)
        elif reported is None and self.jobs.is_old(record, is_new=is_new, failed_at_s=sighting.failed_at_s):
            events, now = [], _old_life(record, sighting)
        else:
            events, now = progress(reported, record, sighting)
        if now is not None and not (job_id in asked.rechecked and now == reported):  # whose place in line it keeps
            score = _score(job_id, record, reading, answers)
            ended_at_s = None if record is None else record.ended_at_s
            member = reading.members.get(job_id)
            self.jobs.put(job_id, now, at_s=at_s, ended_at_s=ended_at_s, member=member, score=score)
        return events

    def _gone(
        self, job_id: str, reported: ReportedLife | None, reading: QueueReading, sighting: Sighting
    ) -> tuple[list[JobEvent], ReportedLife | None]:
        if reported is None or reported.stage is Stage.ENDED or job_id in reading.members:
            return [], None
        self.jobs.forget(job_id)
        if reported.stage is Stage.ENQUEUED:
            self.gone.append((reported, sighting))
        return vanished(reported, sighting)

    def _learn(self, reading: QueueReading, answers: Answers) -> None:
        """Note for how long jobs are kept whose place in a registry was not found by that."""
        for state, endings, scores in (
            (JobState.FINISHED, self.finished, {**reading.finished.sampled, **answers.finished}),
            (JobState.FAILED, self.failed, {**reading.failed.sampled, **answers.failed}),
        ):
            for job_id, score in scores.items():
                record = answers.records.get(job_id)
                if record is not None and record.state is state and record.ended_at_s is not None:
                    endings.learn(score - record.ended_at_s // 1, since_s=self.jobs.ends_reported_until_s)

    def _entered_s(self, reading: QueueReading, answers: Answers) -> Iterator[tuple[str, float]]:
        """When the jobs at both edges of the list entered it, as far as that is known."""
        for job_id in _edges(reading):
            since_s, record = self.jobs.waiting_since_s(job_id), answers.records.get(job_id)
            if since_s is not None:
                yield job_id, since_s
            elif record is not None:
                yield job_id, record.enqueued_at_s
            elif job_id in self._edge_s:
                yield job_id, self._edge_s[job_id]

    # --- across restarts ----------------------------------------------------------------------------------------------

    def to_state(self) -> dict[str, Any]:
        """What ``from_state`` makes an equal of this from; JSON can carry it."""
        return {
            "jobs": self.jobs.to_state(),
            "finished": self.finished.to_state(),
            "failed": self.failed.to_state(),
            "scheduled": self._scheduled.to_state(),
        }

    @classmethod
    def from_state(cls, queue: str, state: Any) -> "TrackedQueue":
        """The queue as far as it was reported."""
        self = cls(queue, begins_at_s=0.0)
        self.jobs = JobMemory.from_state(state["jobs"])
        self.finished = EndedJobs.from_state(state["finished"])
        self.failed = EndedJobs.from_state(state["failed"])
        self._scheduled = ScheduledComparison.from_state(state.get("scheduled", {}))  # an older version wrote none
        return self


def _edges(reading: QueueReading) -> list[str]:
    """The jobs among which the oldest is: the next ones to be taken, and the last, where jobs cut in line."""
    return [*reading.head, *reading.tail[-1:]]


def _is_elsewhere(job_id: str, asked: RecordRequests, answers: Answers) -> bool:
    """Whether a job was scheduled a moment ago, and is in the queue again or gone: other readings show that whole."""
    if job_id not in asked.scheduled:
        return False
    record = answers.records[job_id]
    return record is None or record.state is not JobState.DELAYED


def _old_life(record: JobRecord, sighting: Sighting) -> ReportedLife | None:
    """What to remember of a job that was reported before and forgotten."""
    if record.state is JobState.DELAYED:
        return progress(None, record, sighting)[1]
    return ReportedLife(stage=Stage.ENDED, enqueued_at_s=record.enqueued_at_s) if record.is_ended else None


def _score(job_id: str, record: JobRecord | None, reading: QueueReading, answers: Answers) -> float | None:
    is_finished = record is not None and record.state is JobState.FINISHED
    ends, asked = (reading.finished, answers.finished) if is_finished else (reading.failed, answers.failed)
    return ends.scores.get(job_id, asked.get(job_id))
