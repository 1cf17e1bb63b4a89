"""Messages to the core's values and back. The only module besides the servers and clients that reads generated code.

Fields of a message and of its value that have one name carry one thing; what differs is written out below. Durations
cross the wire, times do not, where a host's clock is concerned: whoever receives an age takes it from its own clock.
"""

from collections.abc import Iterable
from dataclasses import fields
from enum import StrEnum
from functools import cache
from typing import Any, TypeVar

from google.protobuf.message import Message

from headway.errors import Invalid
from headway.scaling.model import (
    RUNNING_JOBS_NAMED_MAX,
    ActivitySource,
    BrokerPoll,
    CutCause,
    CutJob,
    DueJobs,
    EnteredJob,
    EventKind,
    HostProblem,
    HostProblemKind,
    Inability,
    JobEvent,
    PolledQueue,
    QueueCounts,
    QueueOrder,
    QueueReceptions,
    QueueSample,
    Redelivery,
    RunningJob,
    StartFailure,
    Suspension,
    TelemetryBatch,
    Template,
    Worker,
    WorkerActivity,
    WorkerState,
)
from headway.wire.v1 import agent_pb2, telemetry_pb2

_KINDS: dict[EventKind, int] = {
    kind: telemetry_pb2.EventKind.Value(f"EVENT_KIND_{kind.name}")
    for kind in EventKind
    if kind not in {EventKind.REVOKED, EventKind.SAMPLE}  # revoked jobs have a field of their own
}
_KINDS_BACK = {number: kind for kind, number in _KINDS.items()}

_PROBLEMS = {kind: agent_pb2.HostProblemKind.Value(f"HOST_PROBLEM_KIND_{kind.name}") for kind in HostProblemKind}
_PROBLEMS_BACK = {number: kind for kind, number in _PROBLEMS.items()}

_SUSPENSIONS = {each: telemetry_pb2.Suspension.Value(f"SUSPENSION_{each.name}") for each in Suspension}
_SUSPENSIONS_BACK = {number: each for each, number in _SUSPENSIONS.items()}

_REDELIVERIES = {each: telemetry_pb2.Redelivery.Value(f"REDELIVERY_{each.name}") for each in Redelivery}
_REDELIVERIES_BACK = {number: each for each, number in _REDELIVERIES.items()}

_STATES: dict[WorkerState, int] = {
    state: agent_pb2.WorkerState.Value(f"WORKER_STATE_{state.name}")
    for state in WorkerState
    if state is not WorkerState.UNKNOWN
}
_STATES_BACK = {number: state for state, number in _STATES.items()}
# A state of its own would make control planes of an earlier version refuse the whole report.
_STATES[WorkerState.UNKNOWN] = agent_pb2.WORKER_STATE_RUNNING

_Message = TypeVar("_Message", bound=Message)
_Value = TypeVar("_Value")
_Word = TypeVar("_Word", bound=StrEnum)


def message_of(kind: type[_Message], value: Any, /, **differing: Any) -> _Message:
    """The message that carries ``value``: the fields that both have by one name, and those that differ."""
    for name, _ in _shared(type(value), kind):  # type: ignore[arg-type]  # to mypy no class is hashable
        if name not in differing:
            differing[name] = getattr(value, name)
    return kind(**differing)


def value_of(kind: type[_Value], message: Message, /, **differing: Any) -> _Value:
    """The value that ``message`` carries, as ``message_of`` made it; what may be left out and is comes as ``None``."""
    for name, is_optional in _shared(kind, type(message)):  # type: ignore[arg-type]  # as above
        if name not in differing:
            differing[name] = getattr(message, name) if not is_optional or message.HasField(name) else None
    return kind(**differing)


@cache
def _shared(value: Any, message: type[Message]) -> tuple[tuple[str, bool], ...]:
    """The fields that a value and a message have by one name, and whether the message may leave each out."""
    known = message.DESCRIPTOR.fields_by_name
    return tuple((each.name, known[each.name].has_presence) for each in fields(value) if each.name in known)


def _known_word(kind: type[_Word], text: str) -> _Word | None:
    """The word of an enumeration; ``None`` for an empty text, and for what only a later version distinguishes."""
    return next((each for each in kind if each == text), None)


def batch_to_message(batch: TelemetryBatch) -> telemetry_pb2.IngestRequest:
    """The message that carries ``batch``."""
    return message_of(
        telemetry_pb2.IngestRequest,
        batch,
        events=[
            message_of(telemetry_pb2.JobEvent, event, kind=_KINDS[event.kind])
            for event in batch.events
            if event.kind is not EventKind.REVOKED
        ],
        revoked=[
            message_of(telemetry_pb2.JobEvent, event, kind=telemetry_pb2.EVENT_KIND_UNSPECIFIED)
            for event in batch.events
            if event.kind is EventKind.REVOKED
        ],
        samples=[_sample_to_message(sample) for sample in batch.samples],
        activities=[message_of(telemetry_pb2.WorkerActivity, activity) for activity in batch.activities],
        counts=[message_of(telemetry_pb2.QueueCounts, counts) for counts in batch.counts],
        polls=[_poll_to_message(poll) for poll in batch.polls],
        receptions=[message_of(telemetry_pb2.QueueReceptions, receptions) for receptions in batch.receptions],
    )


def batch_from_message(message: telemetry_pb2.IngestRequest) -> TelemetryBatch:
    """The batch that ``message`` carries. Raises ``Invalid`` where a value breaks a rule."""
    return value_of(
        TelemetryBatch,
        message,
        events=(
            *map(_event, message.events),
            *(value_of(JobEvent, event, kind=EventKind.REVOKED) for event in message.revoked),
        ),
        samples=tuple(map(_sample, message.samples)),
        activities=tuple(value_of(WorkerActivity, activity) for activity in message.activities),
        counts=tuple(value_of(QueueCounts, counts) for counts in message.counts),
        polls=tuple(map(_poll, message.polls)),
        receptions=tuple(
            value_of(QueueReceptions, receptions, received_at_s=tuple(receptions.received_at_s))
            for receptions in message.receptions
        ),
    )


def _sample_to_message(sample: QueueSample) -> telemetry_pb2.QueueSample:
    """``waiting_jobs`` cannot be absent in the message: with a bound beside it, 0 means that it is not known."""
    return message_of(
        telemetry_pb2.QueueSample,
        sample,
        waiting_jobs=sample.waiting_jobs or 0,
        waiting_min_jobs=None if sample.waiting_jobs == 0 else sample.waiting_min_jobs,
        due=[message_of(telemetry_pb2.DueJobs, each) for each in sample.due],
        suspension=None if sample.suspension is None else _SUSPENSIONS[sample.suspension],
        redelivery=None if sample.redelivery is None else _REDELIVERIES[sample.redelivery],
    )


def _sample(message: telemetry_pb2.QueueSample) -> QueueSample:
    is_known = message.waiting_jobs > 0 or not message.HasField("waiting_min_jobs")
    return value_of(
        QueueSample,
        message,
        waiting_jobs=message.waiting_jobs if is_known else None,
        due=tuple(value_of(DueJobs, each) for each in message.due),
        # What a later version distinguishes is not known to this one.
        suspension=_SUSPENSIONS_BACK.get(message.suspension),
        redelivery=_REDELIVERIES_BACK.get(message.redelivery),
    )


def _event(message: telemetry_pb2.JobEvent) -> JobEvent:
    kind = _KINDS_BACK.get(message.kind)
    if kind is None:
        raise Invalid(f"event of job {message.job_id!r} in queue {message.queue!r}: kind {message.kind} is not known")
    return value_of(JobEvent, message, kind=kind)


def _poll_to_message(poll: BrokerPoll) -> telemetry_pb2.BrokerPoll:
    queues = [
        message_of(
            telemetry_pb2.PolledQueue,
            each,
            entered=[telemetry_pb2.EnteredJob(job_id=job.job_id, attempt=job.attempt) for job in each.entered],
        )
        for each in poll.queues
    ]
    return message_of(telemetry_pb2.BrokerPoll, poll, queues=queues)


def _poll(message: telemetry_pb2.BrokerPoll) -> BrokerPoll:
    queues = (
        value_of(
            PolledQueue,
            each,
            entered=tuple(EnteredJob(job_id=job.job_id, attempt=job.attempt) for job in each.entered),
        )
        for each in message.queues
    )
    return value_of(BrokerPoll, message, queues=tuple(queues))


def worker_to_message(worker: Worker, *, now_s: float, exit_code: int | None = None) -> agent_pb2.Worker:
    """The message that reports ``worker``; its start becomes an age."""
    return message_of(
        agent_pb2.Worker,
        worker,
        state=_STATES[worker.state],
        age_s=max(0.0, now_s - worker.started_at_s),
        exit_code=exit_code,
        state_age_s=None if worker.state_since_s is None else max(0.0, now_s - worker.state_since_s),
        is_unrecorded=worker.state is WorkerState.UNKNOWN,
        activity_age_s=None if worker.activity_known_at_s is None else max(0.0, now_s - worker.activity_known_at_s),
        running=[message_of(agent_pb2.RunningJob, each) for each in worker.running[:RUNNING_JOBS_NAMED_MAX]],
    )


def worker_from_message(message: agent_pb2.Worker, *, now_s: float) -> Worker:
    """The worker that ``message`` reports; its age becomes a start on the receiver's clock."""
    state = _STATES_BACK.get(message.state)
    if state is None:
        raise Invalid(f"worker {message.worker_id!r}: state {message.state} is not known")
    return value_of(
        Worker,
        message,
        state=WorkerState.UNKNOWN if message.is_unrecorded else state,
        started_at_s=now_s - message.age_s,
        state_since_s=now_s - message.state_age_s if message.HasField("state_age_s") else None,
        activity_source=_known_word(ActivitySource, message.activity_source),
        activity_known_at_s=now_s - message.activity_age_s if message.HasField("activity_age_s") else None,
        running=tuple(value_of(RunningJob, each) for each in message.running[:RUNNING_JOBS_NAMED_MAX]),
        inability=_known_word(Inability, message.inability),
        start_failure=_known_word(StartFailure, message.start_failure),
    )


def cut_to_message(cut: CutJob, *, now_s: float) -> agent_pb2.CutJob:
    """The message that reports ``cut``; its time becomes an age."""
    return message_of(
        agent_pb2.CutJob,
        cut,
        age_s=None if cut.cut_at_s is None else max(0.0, now_s - cut.cut_at_s),
        job=None if cut.job is None else message_of(agent_pb2.RunningJob, cut.job),
    )


def cut_from_message(message: agent_pb2.CutJob, *, now_s: float) -> CutJob:
    """The cut that ``message`` reports; its age becomes a time on the receiver's clock."""
    return value_of(
        CutJob,
        message,
        # What a later version distinguishes was no end of the worker's own either.
        cause=_known_word(CutCause, message.cause) or CutCause.VANISHED,
        cut_at_s=now_s - message.age_s if message.HasField("age_s") else None,
        job=value_of(RunningJob, message.job) if message.HasField("job") else None,
    )


def template_from_message(message: agent_pb2.Template) -> Template:
    """The template that ``message`` reports."""
    if message.slots < 1:
        raise Invalid(f"template {message.name!r}: slots={message.slots} must be at least 1")
    return value_of(
        Template,
        message,
        labels=dict(message.labels),
        queue_order=_known_word(QueueOrder, message.queue_order),
        strict_queues=tuple(message.strict_queues),
        queues_allowed=tuple(message.queues_allowed),
    )


def problems_to_messages(problems: Iterable[HostProblem]) -> list[agent_pb2.HostProblem]:
    """The messages that report what keeps an agent from its work."""
    return [message_of(agent_pb2.HostProblem, each, kind=_PROBLEMS[each.kind]) for each in problems]


def problems_from_messages(messages: Iterable[agent_pb2.HostProblem]) -> tuple[HostProblem, ...]:
    """The problems that ``messages`` report, one of a kind; a later version's kinds are left out."""
    found = {
        _PROBLEMS_BACK[message.kind]: message.error_number for message in messages if message.kind in _PROBLEMS_BACK
    }
    return tuple(HostProblem(kind=kind, error_number=number) for kind, number in found.items())
