"""The life of a job as its library records it, and what of it has been reported. Pure: readings in, events out.

A library's record of a job holds only the present state. The events of a job therefore depend on what was reported
before:

    -> enqueued          it waits
    enqueued -> started  a worker has it
    started -> ended     it finished or failed
    ended -> enqueued    the same id was put into the queue again: a new life, known by its new ``enqueued_at``

Moves that happened between two polls are reported together, each at its own time.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import IntEnum, StrEnum

from headway.scaling.model import EventKind, JobEvent

REPORTED_WITHIN_S = 600.0  # the stream takes nothing older: ingest would move it, and make a burst that never was


class JobState(StrEnum):
    """Where a job is, as its record shows it."""

    WAITING = "waiting"
    RUNNING = "running"
    FINISHED = "finished"
    FAILED = "failed"
    DELAYED = "delayed"
    """Aside until it is due: a retry, a repetition, a job for later."""
    CANCELED = "canceled"
    ELSEWHERE = "elsewhere"
    """Not in the queue's care: it waits for another job, or its state is not known."""


_ENDED = frozenset({JobState.FINISHED, JobState.FAILED})
_BEGUN = _ENDED | {JobState.RUNNING}
_IN_QUEUE = _BEGUN | {JobState.WAITING}


class Stage(IntEnum):
    """How far a job's life has been reported."""

    ENQUEUED = 1
    STARTED = 2
    ENDED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRecord:
    """The broker's record of a job."""

    state: JobState
    enqueued_at_s: float
    started_at_s: float | None = None
    ended_at_s: float | None = None
    """Of the life before, while the state is neither finished nor failed."""
    created_at_s: float | None = None
    retries_left: int | None = None
    """How often its library puts it back by itself if it fails; ``None``: it does not."""
    retries: int | None = None
    """How often it was put back because it asked to be; ``None``: never."""
    is_repeated: bool = False
    """Whether it is put back when it finishes."""

    @property
    def is_ended(self) -> bool:
        """Whether the present life is over."""
        return self.state in _ENDED

    @property
    def is_set_aside(self) -> bool:
        """Whether the job has run, and waits for its next attempt until that is due."""
        # Of an id that is used again, the start may be one of the job before.
        since_s = max(self.enqueued_at_s, self.created_at_s or 0.0)
        return self.state is JobState.DELAYED and self.started_at_s is not None and self.started_at_s >= since_s


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedLife:
    """What has been reported of a job's present life."""

    stage: Stage
    enqueued_at_s: float
    started_at_s: float | None = None
    ended_before_at_s: float | None = None
    """The end that its record still shows from the life before: nothing new."""
    ended_at_s: float | None = None
    """``None``: it has not ended, or that is not remembered."""
    attempt: int | None = None
    """Which attempt of the job this life is; ``None``: the first, as far as is known."""
    retries_left: int | None = None
    has_failed: bool = False
    """Whether this life ended with a failure."""
    is_aside: bool = False
    """Whether the job has left the queue until its retry is due."""
    is_canceled: bool = False
    """Whether the job was cancelled as it waited: a worker that has taken it, or its other place in line, runs it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """One reading of one job."""

    queue: str
    job_id: str
    at_s: float
    is_in_finished: bool = False
    """Whether it is in the queue's registry of finished jobs."""
    failed_at_s: float | None = None
    """When it failed last, in whole seconds, if the registry of failed jobs shows that it did of late."""
    is_enqueued_reported: bool = False
    """Whether its entry into the queue is known to be reported, though nothing else of it is remembered."""
    polled_at_s: float | None = None
    """When the poll before was; ``None``: this is the first."""
    is_running: bool = False
    """Whether a worker had it just before its record was read."""


def progress(
    reported: ReportedLife | None, record: JobRecord, sighting: Sighting
) -> tuple[list[JobEvent], ReportedLife | None]:
    """What is new of a job since ``reported``, in the order it happened, and what is reported now.

    ``None`` comes back of a job that does not concern the queue: scheduled for later, deferred, cancelled.
    """
    events: list[JobEvent] = []
    before = reported
    if reported is not None and record.enqueued_at_s < reported.enqueued_at_s:
        # Put into the queue again while it ran: as that run ends, RQ writes the record of the life before.
        record = replace(record, enqueued_at_s=reported.enqueued_at_s)
        if record.started_at_s is not None and record.started_at_s < reported.enqueued_at_s:
            return _end_before(reported, record, sighting)
    elif reported is not None and _runs_again(reported, record):
        reported = replace(
            reported,
            stage=Stage.ENQUEUED,
            ended_at_s=None,
            ended_before_at_s=reported.ended_at_s or reported.ended_before_at_s,
            has_failed=False,
            is_canceled=False,
        )
    is_same_life = reported is not None and reported.enqueued_at_s == record.enqueued_at_s
    if reported is not None and not (is_same_life and record.state in _IN_QUEUE):
        events += _end_of_life(reported, record, sighting)
        if is_same_life:  # it left the queue's care: waits for its retry or next repetition, or was cancelled
            is_running_on = record.state is JobState.CANCELED and reported.stage is Stage.STARTED
            is_unbegun = reported.stage is Stage.ENQUEUED and not events
            ended = replace(
                reported,
                stage=Stage.ENDED,
                has_failed=reported.has_failed or any(event.kind is EventKind.FAILED for event in events),
                is_aside=record.state is JobState.DELAYED,
                is_canceled=reported.is_canceled or (record.state is JobState.CANCELED and is_unbegun),
            )
            return events, reported if is_running_on else ended
        reported = None
    if record.state not in _IN_QUEUE:
        if before is None and not record.is_set_aside:
            return events, None
        return _left_meanwhile(before, events, record, sighting)
    if reported is None:
        attempt = _attempt(before, events, record, sighting)
        if not sighting.is_enqueued_reported:
            events.append(_event(sighting, EventKind.ENQUEUED, record.enqueued_at_s, attempt=attempt))
        reported = ReportedLife(
            stage=Stage.ENQUEUED,
            enqueued_at_s=record.enqueued_at_s,
            ended_before_at_s=None if record.state in _ENDED else record.ended_at_s,
            attempt=attempt,
            retries_left=record.retries_left,
        )
    return _moves(reported, record, sighting, events)


def _left_meanwhile(
    before: ReportedLife | None, events: list[JobEvent], record: JobRecord, sighting: Sighting
) -> tuple[list[JobEvent], ReportedLife]:
    """``events`` and the next life after ``before``, or the first, which left the queue before a poll saw it there.

    It counts as reported, however little of it was seen: else each poll would report the end of the life before.
    """
    life = ReportedLife(stage=Stage.ENQUEUED, enqueued_at_s=record.enqueued_at_s)
    has_run = record.is_set_aside
    moves = list(_end_of_life(life, record, sighting)) if has_run else []
    has_failed = any(event.kind is EventKind.FAILED for event in moves)
    # Its failure is counted in the record already, which is to show how often the job was put back before it.
    then = replace(
        record,
        retries_left=_plus(record.retries_left, int(has_failed)),
        retries=_plus(record.retries, -int(has_failed)),
    )
    attempt = _attempt(before, events, then, sighting) if before or then.retries else None
    if has_run and not sighting.is_enqueued_reported:
        events.append(_event(sighting, EventKind.ENQUEUED, record.enqueued_at_s, attempt=attempt))
    return [*events, *moves], replace(
        life,
        stage=Stage.ENDED,
        attempt=attempt,
        retries_left=then.retries_left,
        has_failed=has_failed,
        is_aside=record.state is JobState.DELAYED,
        is_canceled=record.state is JobState.CANCELED,
    )


def vanished(reported: ReportedLife, sighting: Sighting) -> tuple[list[JobEvent], ReportedLife | None]:
    """What is new of a job that no worker has any more and whose record is gone.

    A job that ran has ended: RQ deletes one with ``result_ttl=0`` as it finishes. One that waited may have run in
    between (``unseen_run``), or been deleted: its record does not say.
    """
    if reported.stage is Stage.STARTED:
        event = _event(sighting, EventKind.FINISHED, sighting.at_s, reported.enqueued_at_s, reported.started_at_s)
        return [event], replace(reported, stage=Stage.ENDED)
    return [], None


def unseen_run(reported: ReportedLife, sighting: Sighting) -> tuple[JobEvent, JobEvent]:
    """The start and the end of a job that waited, ran since the poll before, and left no record: no later than now.

    For how long it ran is not known.
    """
    return (
        _event(sighting, EventKind.STARTED, sighting.at_s, reported.enqueued_at_s),
        _event(sighting, EventKind.FINISHED, sighting.at_s, reported.enqueued_at_s),
    )


def recent(events: Iterable[JobEvent], *, at_s: float) -> list[JobEvent]:
    """Those of ``events`` that are worth sending at ``at_s``."""
    return [event for event in events if event.at_s >= at_s - REPORTED_WITHIN_S]


def _runs_again(reported: ReportedLife, record: JobRecord) -> bool:
    """Whether ``record`` shows a run after the life that ``reported`` was of was over, and no entry in between.

    The job stood in the queue twice, or it was cancelled as a worker took it.
    """
    if record.enqueued_at_s != reported.enqueued_at_s or record.started_at_s is None or record.state not in _BEGUN:
        return False
    if reported.ended_at_s is None:
        return reported.is_canceled and _is_begun_since_entry(record)
    return record.started_at_s > reported.ended_at_s


def _end_before(
    reported: ReportedLife, record: JobRecord, sighting: Sighting
) -> tuple[list[JobEvent], ReportedLife | None]:
    """The end of the run that was under way as the life that ``reported`` is of began, if ``record`` shows it."""
    if not record.is_ended or record.ended_at_s is None or record.ended_at_s == reported.ended_before_at_s:
        return [], reported
    kind = EventKind.FINISHED if record.state is JobState.FINISHED else EventKind.FAILED
    event = _event(sighting, kind, record.ended_at_s, started_at_s=record.started_at_s)
    return [event], replace(reported, ended_before_at_s=record.ended_at_s)


def _moves(
    reported: ReportedLife, record: JobRecord, sighting: Sighting, events: list[JobEvent]
) -> tuple[list[JobEvent], ReportedLife]:
    """``events`` and the moves of the present life, and what is reported with them."""
    # RQ may give a job up before it begins again: its record still shows the life before.
    is_of_before = record.is_ended and record.ended_at_s is not None and _shows_end_before(reported, record)
    is_begun_since = not is_of_before or (record.started_at_s or 0.0) > (record.ended_at_s or 0.0)
    started_at_s = record.started_at_s if record.state in _BEGUN and is_begun_since else None
    if reported.stage is Stage.ENQUEUED and started_at_s is not None:
        reported = replace(reported, stage=Stage.STARTED, started_at_s=started_at_s)
        events.append(_event(sighting, EventKind.STARTED, started_at_s, reported.enqueued_at_s))
    if reported.stage is not Stage.ENDED and record.is_ended:
        kind = EventKind.FINISHED if record.state is JobState.FINISHED else EventKind.FAILED
        # A job given up because its worker died has no end of its own: it ended no later than now.
        ended_at_s = None if is_of_before else record.ended_at_s
        began_at_s = _began_at_s(kind, started_at_s or reported.started_at_s, ended_at_s)
        reported = replace(
            reported, stage=Stage.ENDED, has_failed=kind is EventKind.FAILED, ended_at_s=ended_at_s or sighting.at_s
        )
        events.append(_event(sighting, kind, ended_at_s or sighting.at_s, reported.enqueued_at_s, began_at_s))
    return events, reported


def _began_at_s(kind: EventKind, started_at_s: float | None, ended_at_s: float | None) -> float | None:
    """The start that goes with an end; ``None`` of a job that failed without an end that its record shows.

    RQ's clean-up gives such a job up minutes after its worker died. Nobody knows how long the job ran.
    """
    return None if kind is EventKind.FAILED and ended_at_s is None else started_at_s


def _shows_end_before(reported: ReportedLife, record: JobRecord) -> bool:
    """Whether the end in ``record`` is none of the present life: RQ writes none for a job that is stopped."""
    ended_at_s = record.ended_at_s or 0.0
    return ended_at_s == reported.ended_before_at_s or ended_at_s < min(
        record.started_at_s or 0.0, record.enqueued_at_s
    )


def _end_of_life(reported: ReportedLife, record: JobRecord, sighting: Sighting) -> Iterator[JobEvent]:
    """How the life that ``reported`` is of ended, as far as the record of what came after it still shows.

    RQ leaves start and end in the record when it puts a job into the queue again, or aside until its retry is due.
    """
    is_next_in_queue = record.enqueued_at_s != reported.enqueued_at_s
    has_next_left = is_next_in_queue and record.state not in _IN_QUEUE and _is_begun_since_entry(record)
    is_next_begun = record.state in _BEGUN or has_next_left  # then its start, and perhaps its end, are the next life's
    is_end_shown = not (record.is_ended or has_next_left) and record.ended_at_s != reported.ended_before_at_s
    ended_at_s = record.ended_at_s if is_end_shown else None
    started_at_s = reported.started_at_s
    if reported.stage is Stage.ENQUEUED:
        is_begun = not is_next_begun and _is_begun(reported, record)
        if ended_at_s is None and not is_begun and _retries_used(reported, record) <= 0:
            return  # cancelled, or put into the queue a second time, before anybody took it
        started_at_s = record.started_at_s if is_begun else None
        if started_at_s is not None:
            yield _event(sighting, EventKind.STARTED, started_at_s, reported.enqueued_at_s)
    has_failed = _was_retried(reported, record) or _has_failed_since_start(reported, sighting)
    is_running_on = (
        sighting.is_running and record.state is JobState.WAITING and ended_at_s is None and not has_failed
    )  # it may also have ended between the two readings, and then only its failure shows that
    if reported.stage is Stage.ENDED or record.state is JobState.CANCELED or is_running_on:
        return
    # Where the next life has overwritten the end, it came no later than that life began.
    over_at_s = ended_at_s or min(record.enqueued_at_s if is_next_in_queue else sighting.at_s, sighting.at_s)
    kind = _kind_of_end(reported, record, sighting, is_end_shown=ended_at_s is not None)
    yield _event(sighting, kind, over_at_s, reported.enqueued_at_s, _began_at_s(kind, started_at_s, ended_at_s))
    if kind is EventKind.FAILED:
        yield _event(sighting, EventKind.RETRIED, over_at_s)  # as the failure, which is then none of the job


def _attempt(
    before: ReportedLife | None, ended: Iterable[JobEvent], record: JobRecord, sighting: Sighting
) -> int | None:
    """Which attempt of its job the life that begins is; ``None`` of the first, and of what may be.

    Args:
        before: What was reported of the life before, if it is remembered.
        ended: What is reported now of its end.
        record: The job as it is in the life that begins.
        sighting: The reading.
    """
    if record.retries:
        return record.retries + 1
    if before is not None:
        has_failed = before.has_failed or any(event.kind is EventKind.FAILED for event in ended)
        more = max(_retries_used(before, record), int(has_failed))
        return (before.attempt or 1) + more if more else None
    shows_end_before = record.state not in _ENDED and record.ended_at_s is not None
    if not shows_end_before or record.retries_left is None or record.is_repeated:
        return None
    # A job that came and failed since the poll before was never reported: its retry is its first event.
    is_first_reported = sighting.polled_at_s is not None and (record.created_at_s or 0.0) > sighting.polled_at_s
    return None if is_first_reported else 2


def _retries_used(before: ReportedLife, record: JobRecord) -> int:
    """How often RQ has put the job back since ``before``: several times between two polls, if it fails at once."""
    is_over_well = before.stage is Stage.ENDED and not before.has_failed
    if is_over_well or before.retries_left is None or record.retries_left is None:
        return 0
    return before.retries_left - record.retries_left


def _is_begun(reported: ReportedLife, record: JobRecord) -> bool:
    """Whether the start that ``record`` shows is of the life that was ``reported`` to wait."""
    before_s = max(reported.enqueued_at_s, reported.ended_before_at_s or 0.0)
    return record.started_at_s is not None and record.started_at_s >= before_s


def _is_begun_since_entry(record: JobRecord) -> bool:
    """Whether the start that ``record`` shows is of the life that it shows the entry of."""
    return record.started_at_s is not None and record.started_at_s >= record.enqueued_at_s


def _plus(count: int | None, more: int) -> int | None:
    return None if count is None else count + more


def _kind_of_end(reported: ReportedLife, record: JobRecord, sighting: Sighting, *, is_end_shown: bool) -> EventKind:
    """How a life ended that was followed by another. The record does not show it; these are the traces of each way."""
    if _was_retried(reported, record):
        return EventKind.FAILED
    if sighting.is_in_finished and record.state is not JobState.FINISHED:  # else it is there for how it ended now
        return EventKind.FINISHED
    if is_end_shown:  # it ended, and not well: a retry
        return EventKind.FAILED
    if _has_failed_since_start(reported, sighting):
        return EventKind.FAILED  # and its id was put again
    if record.started_at_s is not None and record.state not in _BEGUN:  # RQ gave it up, and retries: no end
        return EventKind.FAILED
    if record.created_at_s is not None and record.created_at_s <= reported.enqueued_at_s:
        return EventKind.FAILED  # the old record: put back by hand, for which RQ takes the traces out
    # A record without any trace is a new one: the old was deleted as its job finished (result_ttl=0).
    return EventKind.FAILED if record.state is JobState.FAILED else EventKind.FINISHED


def _was_retried(reported: ReportedLife, record: JobRecord) -> bool:
    """Whether ``record`` counts more retries than there were in the life that ``reported`` is of."""
    return _retries_used(reported, record) > 0 or (record.retries or 0) >= (reported.attempt or 1)


def _has_failed_since_start(reported: ReportedLife, sighting: Sighting) -> bool:
    """Whether the registry of failed jobs shows the failure of the life that ``reported`` is of."""
    began_at_s = reported.started_at_s or reported.enqueued_at_s
    return sighting.failed_at_s is not None and sighting.failed_at_s >= began_at_s // 1


def _event(
    sighting: Sighting,
    kind: EventKind,
    at_s: float,
    enqueued_at_s: float | None = None,
    started_at_s: float | None = None,
    attempt: int | None = None,
) -> JobEvent:
    return JobEvent(
        queue=sighting.queue,
        job_id=sighting.job_id,
        kind=kind,
        at_s=at_s,
        enqueued_at_s=enqueued_at_s,
        started_at_s=started_at_s,
        attempt=attempt,
    )
