"""Messages to the core's values and back. The only module besides the servers and clients that reads generated code.

Durations cross the wire, times do not, where a host's clock is concerned: whoever receives an age subtracts it from its
own clock.
"""

from collections.abc import Iterable
from typing import Any

from headway.errors import Invalid
from headway.scaling.model import (
    Assignment,
    EventKind,
    Exit,
    Hint,
    HostCapacity,
    HostProblem,
    HostProblemKind,
    JobEvent,
    QueueCounts,
    QueueSample,
    StartUp,
    TelemetryBatch,
    Template,
    Worker,
    WorkerActivity,
    WorkerState,
)
from headway.wire.v1 import agent_pb2, telemetry_pb2

_KINDS = {
    EventKind.ENQUEUED: telemetry_pb2.EVENT_KIND_ENQUEUED,
    EventKind.STARTED: telemetry_pb2.EVENT_KIND_STARTED,
    EventKind.FINISHED: telemetry_pb2.EVENT_KIND_FINISHED,
    EventKind.FAILED: telemetry_pb2.EVENT_KIND_FAILED,
    EventKind.RETRIED: telemetry_pb2.EVENT_KIND_RETRIED,
}
_KINDS_BACK = {number: kind for kind, number in _KINDS.items()}

_PROBLEMS = {
    HostProblemKind.STATE_FOLDER: agent_pb2.HOST_PROBLEM_KIND_STATE_FOLDER,
    HostProblemKind.LOG_FOLDER: agent_pb2.HOST_PROBLEM_KIND_LOG_FOLDER,
    HostProblemKind.HOST_FILE: agent_pb2.HOST_PROBLEM_KIND_HOST_FILE,
}
_PROBLEMS_BACK = {number: kind for kind, number in _PROBLEMS.items()}

_STATES = {
    WorkerState.STARTING: agent_pb2.WORKER_STATE_STARTING,
    WorkerState.RUNNING: agent_pb2.WORKER_STATE_RUNNING,
    WorkerState.DRAINING: agent_pb2.WORKER_STATE_DRAINING,
    WorkerState.BACKING_OFF: agent_pb2.WORKER_STATE_BACKING_OFF,
    WorkerState.GONE: agent_pb2.WORKER_STATE_GONE,
}
_STATES_BACK = {number: state for state, number in _STATES.items()}
# A state of its own would make control planes of an earlier version refuse the whole report.
_STATES[WorkerState.UNKNOWN] = agent_pb2.WORKER_STATE_RUNNING


_MAYBE_SAMPLED: tuple[Any, ...] = (
    "in_flight_jobs",
    "delayed_jobs",
    "oldest_age_s",
    "reserved_jobs",
    "oldest_age_max_s",
    "reports_arrivals",
    "reports_starts",
    "reports_ends",
)
"""What a sample may leave out."""
_MAYBE_COUNTED: tuple[Any, ...] = ("arrived_jobs", "started_jobs", "finished_jobs", "failed_jobs")


def batch_to_message(batch: TelemetryBatch) -> telemetry_pb2.IngestRequest:
    """The message that carries ``batch``."""
    return telemetry_pb2.IngestRequest(
        producer=batch.producer,
        sequence=batch.sequence,
        sent_at_s=batch.sent_at_s,
        events=[
            telemetry_pb2.JobEvent(
                queue=event.queue,
                job_id=event.job_id,
                kind=_KINDS[event.kind],
                at_s=event.at_s,
                enqueued_at_s=event.enqueued_at_s,
                started_at_s=event.started_at_s,
                job_class=event.job_class,
                attempt=event.attempt,
            )
            for event in batch.events
        ],
        samples=[
            telemetry_pb2.QueueSample(
                queue=sample.queue,
                at_s=sample.at_s,
                waiting_jobs=sample.waiting_jobs,
                in_flight_jobs=sample.in_flight_jobs,
                delayed_jobs=sample.delayed_jobs,
                oldest_age_s=sample.oldest_age_s,
                reserved_jobs=sample.reserved_jobs,
                oldest_age_max_s=sample.oldest_age_max_s,
                reports_arrivals=sample.reports_arrivals,
                reports_starts=sample.reports_starts,
                reports_ends=sample.reports_ends,
            )
            for sample in batch.samples
        ],
        activities=[
            telemetry_pb2.WorkerActivity(
                host=activity.host,
                pid=activity.pid,
                is_busy=activity.is_busy,
                busy_since_s=activity.busy_since_s,
                ended_jobs=activity.ended_jobs,
            )
            for activity in batch.activities
        ],
        counts=[
            telemetry_pb2.QueueCounts(
                queue=counts.queue,
                at_s=counts.at_s,
                epoch=counts.epoch,
                arrived_jobs=counts.arrived_jobs,
                started_jobs=counts.started_jobs,
                finished_jobs=counts.finished_jobs,
                failed_jobs=counts.failed_jobs,
            )
            for counts in batch.counts
        ],
    )


def batch_from_message(message: telemetry_pb2.IngestRequest) -> TelemetryBatch:
    """The batch that ``message`` carries. Raises ``Invalid`` where a value breaks a rule."""
    return TelemetryBatch(
        producer=message.producer,
        sequence=message.sequence,
        sent_at_s=message.sent_at_s,
        events=tuple(_event(event) for event in message.events),
        samples=tuple(
            QueueSample(
                queue=sample.queue,
                at_s=sample.at_s,
                waiting_jobs=sample.waiting_jobs,
                **{name: getattr(sample, name) for name in _MAYBE_SAMPLED if sample.HasField(name)},
            )
            for sample in message.samples
        ),
        activities=tuple(
            WorkerActivity(
                host=activity.host,
                pid=activity.pid,
                is_busy=activity.is_busy,
                busy_since_s=activity.busy_since_s if activity.HasField("busy_since_s") else None,
                ended_jobs=activity.ended_jobs if activity.HasField("ended_jobs") else None,
            )
            for activity in message.activities
        ),
        counts=tuple(
            QueueCounts(
                queue=counts.queue,
                at_s=counts.at_s,
                epoch=counts.epoch,
                **{name: getattr(counts, name) for name in _MAYBE_COUNTED if counts.HasField(name)},
            )
            for counts in message.counts
        ),
    )


def _event(message: telemetry_pb2.JobEvent) -> JobEvent:
    kind = _KINDS_BACK.get(message.kind)
    if kind is None:
        raise Invalid(f"event of job {message.job_id!r} in queue {message.queue!r}: kind {message.kind} is not known")
    return JobEvent(
        queue=message.queue,
        job_id=message.job_id,
        kind=kind,
        at_s=message.at_s,
        enqueued_at_s=message.enqueued_at_s if message.HasField("enqueued_at_s") else None,
        started_at_s=message.started_at_s if message.HasField("started_at_s") else None,
        job_class=message.job_class if message.HasField("job_class") else None,
        attempt=message.attempt if message.HasField("attempt") else None,
    )


def worker_to_message(worker: Worker, *, now_s: float, exit_code: int | None = None) -> agent_pb2.Worker:
    """The message that reports ``worker``; its start becomes an age."""
    return agent_pb2.Worker(
        worker_id=worker.worker_id,
        pool=worker.pool,
        template=worker.template,
        pid=worker.pid,
        state=_STATES[worker.state],
        age_s=max(0.0, now_s - worker.started_at_s),
        is_burst=worker.is_burst,
        is_busy=worker.is_busy,
        restart_generation=worker.restart_generation,
        exit_code=exit_code,
        template_hash=worker.template_hash,
        memory_bytes=worker.memory_bytes,
        is_forced=worker.is_forced,
        state_age_s=None if worker.state_since_s is None else max(0.0, now_s - worker.state_since_s),
        is_unrecorded=worker.state is WorkerState.UNKNOWN,
    )


def worker_from_message(message: agent_pb2.Worker, *, now_s: float) -> Worker:
    """The worker that ``message`` reports; its age becomes a start on the receiver's clock."""
    state = _STATES_BACK.get(message.state)
    if state is None:
        raise Invalid(f"worker {message.worker_id!r}: state {message.state} is not known")
    return Worker(
        worker_id=message.worker_id,
        pool=message.pool,
        template=message.template,
        pid=message.pid,
        state=WorkerState.UNKNOWN if message.is_unrecorded else state,
        started_at_s=now_s - message.age_s,
        is_burst=message.is_burst,
        is_busy=message.is_busy if message.HasField("is_busy") else None,
        restart_generation=message.restart_generation,
        template_hash=message.template_hash,
        memory_bytes=message.memory_bytes if message.HasField("memory_bytes") else None,
        is_forced=message.is_forced if message.HasField("is_forced") else None,
        state_since_s=now_s - message.state_age_s if message.HasField("state_age_s") else None,
    )


def start_up_to_message(start_up: StartUp) -> agent_pb2.StartUp:
    """The message that reports ``start_up``."""
    return agent_pb2.StartUp(
        template=start_up.template,
        start_up_s=start_up.start_up_s,
        cpu_s=start_up.cpu_s,
        waited_s=start_up.waited_s,
    )


def start_up_from_message(message: agent_pb2.StartUp) -> StartUp:
    """The start that ``message`` reports."""
    return StartUp(
        template=message.template,
        start_up_s=message.start_up_s,
        cpu_s=message.cpu_s if message.HasField("cpu_s") else None,
        waited_s=message.waited_s if message.HasField("waited_s") else None,
    )


def exit_to_message(ended: Exit) -> agent_pb2.Exit:
    """The message that reports ``ended``."""
    return agent_pb2.Exit(template=ended.template, exit_s=ended.exit_s, cpu_s=ended.cpu_s, waited_s=ended.waited_s)


def exit_from_message(message: agent_pb2.Exit) -> Exit:
    """The end that ``message`` reports."""
    return Exit(
        template=message.template,
        exit_s=message.exit_s,
        cpu_s=message.cpu_s if message.HasField("cpu_s") else None,
        waited_s=message.waited_s if message.HasField("waited_s") else None,
    )


def template_to_message(template: Template) -> agent_pb2.Template:
    """The message that reports ``template``: what placing needs, never its argv."""
    return agent_pb2.Template(
        name=template.name,
        content_hash=template.content_hash,
        slots=template.slots,
        cpu_cores=template.cpu_cores,
        memory_bytes=template.memory_bytes,
        gpus=template.gpus,
        labels=template.labels,
        isolation_drain_after_s=template.isolation_drain_after_s,
        drain_timeout_s=template.drain_timeout_s,
    )


def template_from_message(message: agent_pb2.Template) -> Template:
    """The template that ``message`` reports."""
    if message.slots < 1:
        raise Invalid(f"template {message.name!r}: slots={message.slots} must be at least 1")
    return Template(
        name=message.name,
        content_hash=message.content_hash,
        slots=message.slots,
        cpu_cores=message.cpu_cores,
        memory_bytes=message.memory_bytes,
        gpus=message.gpus,
        labels=dict(message.labels),
        isolation_drain_after_s=(
            message.isolation_drain_after_s if message.HasField("isolation_drain_after_s") else None
        ),
        drain_timeout_s=message.drain_timeout_s if message.HasField("drain_timeout_s") else None,
    )


def capacity_from_message(message: agent_pb2.HostCapacity) -> HostCapacity:
    """The capacity that ``message`` reports."""
    return HostCapacity(
        cpu_cores=message.cpu_cores,
        memory_bytes=message.memory_bytes,
        gpus=message.gpus,
        cpu_pressure=message.cpu_pressure if message.HasField("cpu_pressure") else None,
        memory_pressure=message.memory_pressure if message.HasField("memory_pressure") else None,
    )


def problems_to_messages(problems: Iterable[HostProblem]) -> list[agent_pb2.HostProblem]:
    """The messages that report what keeps an agent from its work."""
    return [agent_pb2.HostProblem(kind=_PROBLEMS[each.kind], error_number=each.error_number) for each in problems]


def problems_from_messages(messages: Iterable[agent_pb2.HostProblem]) -> tuple[HostProblem, ...]:
    """The problems that ``messages`` report, one of a kind; a later version's kinds are left out."""
    found = {
        _PROBLEMS_BACK[message.kind]: message.error_number for message in messages if message.kind in _PROBLEMS_BACK
    }
    return tuple(HostProblem(kind=kind, error_number=number) for kind, number in found.items())


def capacity_to_message(capacity: HostCapacity) -> agent_pb2.HostCapacity:
    """The message that reports ``capacity``."""
    return agent_pb2.HostCapacity(
        cpu_cores=capacity.cpu_cores,
        memory_bytes=capacity.memory_bytes,
        gpus=capacity.gpus,
        cpu_pressure=capacity.cpu_pressure,
        memory_pressure=capacity.memory_pressure,
    )


def assignments_to_messages(assignments: Iterable[Assignment]) -> list[agent_pb2.Assignment]:
    """The messages that assign work to a host."""
    return [
        agent_pb2.Assignment(
            pool=assignment.pool,
            template=assignment.template,
            base_workers=assignment.base_workers,
            burst_workers=assignment.burst_workers,
            restart_generation=assignment.restart_generation,
            is_exclusive=assignment.is_exclusive,
        )
        for assignment in assignments
    ]


def hints_to_messages(hints: Iterable[Hint]) -> list[agent_pb2.WorkerHint]:
    """The messages with the broker's hints about a host's workers."""
    return [
        agent_pb2.WorkerHint(
            pid=hint.pid,
            is_busy=hint.is_busy,
            since_age_s=hint.since_age_s,
            age_s=hint.age_s,
            ended_jobs=hint.ended_jobs,
        )
        for hint in hints
    ]


def assignments_from_messages(messages: Iterable[agent_pb2.Assignment], *, host_id: str) -> tuple[Assignment, ...]:
    """What ``messages`` assign to the host ``host_id``."""
    return tuple(
        Assignment(
            pool=message.pool,
            host_id=host_id,
            template=message.template,
            base_workers=message.base_workers,
            burst_workers=message.burst_workers,
            restart_generation=message.restart_generation,
            is_exclusive=message.is_exclusive,
        )
        for message in messages
    )
