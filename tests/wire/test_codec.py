"""What crosses the wire comes out as it went in, what is not known included."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.scaling.model import (
    Assignment,
    EventKind,
    Hint,
    HostCapacity,
    HostProblem,
    HostProblemKind,
    JobEvent,
    QueueCounts,
    QueueSample,
    TelemetryBatch,
    Template,
    Worker,
    WorkerActivity,
    WorkerState,
)
from headway.wire import codec
from headway.wire.v1 import agent_pb2, telemetry_pb2

NUMBERS = st.floats(min_value=0.0, max_value=1e9)
COUNTS = st.integers(min_value=0, max_value=2**31)
TEXTS = st.text(max_size=10)
LABELS = st.dictionaries(TEXTS, TEXTS, max_size=3)
TEMPLATES = st.builds(
    Template,
    name=TEXTS,
    content_hash=TEXTS,
    slots=st.integers(1, 100),
    cpu_cores=NUMBERS,
    memory_bytes=COUNTS,
    gpus=COUNTS,
    labels=LABELS,
    isolation_drain_after_s=st.none() | NUMBERS,
    drain_timeout_s=st.none() | NUMBERS,
)
CAPACITIES = st.builds(
    HostCapacity,
    cpu_cores=NUMBERS,
    memory_bytes=COUNTS,
    gpus=COUNTS,
    cpu_pressure=st.none() | st.floats(0.0, 1.0),
    memory_pressure=st.none() | st.floats(0.0, 1.0),
)
EVENTS = st.builds(
    JobEvent,
    queue=TEXTS.filter(bool),
    job_id=TEXTS.filter(bool),
    kind=st.sampled_from([kind for kind in EventKind if kind is not EventKind.SAMPLE]),
    at_s=NUMBERS,
    enqueued_at_s=st.none() | NUMBERS,
    started_at_s=st.none() | NUMBERS,
    job_class=st.none() | TEXTS,
    attempt=st.none() | st.integers(1, 2**32 - 1),
)
WORKERS = st.builds(
    Worker,
    worker_id=TEXTS,
    pool=TEXTS,
    template=TEXTS,
    pid=COUNTS,
    state=st.sampled_from(WorkerState),
    started_at_s=st.integers(0, 1000).map(float),
    is_burst=st.booleans(),
    is_busy=st.none() | st.booleans(),
    restart_generation=COUNTS,
    template_hash=TEXTS,
    memory_bytes=st.none() | COUNTS,
    is_forced=st.none() | st.booleans(),
    state_since_s=st.none() | st.integers(0, 1000).map(float),
)
ASSIGNMENTS = st.builds(
    Assignment,
    pool=TEXTS,
    host_id=st.just("h"),
    template=TEXTS,
    base_workers=COUNTS,
    burst_workers=COUNTS,
    restart_generation=COUNTS,
    is_exclusive=st.booleans(),
)
HINTS = st.builds(
    Hint,
    pid=COUNTS,
    is_busy=st.booleans(),
    since_age_s=st.none() | NUMBERS,
    age_s=NUMBERS,
    ended_jobs=st.none() | COUNTS,
)
SAMPLES = st.builds(
    QueueSample,
    queue=st.text(min_size=1, max_size=10),
    at_s=NUMBERS,
    waiting_jobs=COUNTS,
    in_flight_jobs=st.none() | COUNTS,
    delayed_jobs=st.none() | COUNTS,
    oldest_age_s=st.none() | NUMBERS,
    reserved_jobs=st.none() | COUNTS,
    oldest_age_max_s=st.none() | NUMBERS,
    reports_arrivals=st.none() | st.booleans(),
    reports_starts=st.none() | st.booleans(),
    reports_ends=st.none() | st.booleans(),
)
COUNTERS = st.builds(
    QueueCounts,
    queue=st.text(min_size=1, max_size=10),
    at_s=NUMBERS,
    epoch=st.text(min_size=1, max_size=10),
    arrived_jobs=st.none() | COUNTS,
    started_jobs=st.none() | COUNTS,
    finished_jobs=st.none() | COUNTS,
    failed_jobs=st.none() | COUNTS,
)
ACTIVITIES = st.builds(
    WorkerActivity,
    host=TEXTS,
    pid=COUNTS,
    is_busy=st.booleans(),
    busy_since_s=st.none() | NUMBERS,
    ended_jobs=st.none() | COUNTS,
)


def over_the_wire(message: Any) -> Any:
    """The message as the other side reads it."""
    return type(message).FromString(message.SerializeToString())


@given(TEMPLATES)
def test_a_template_arrives_as_it_was_sent(template: Template) -> None:
    assert codec.template_from_message(over_the_wire(codec.template_to_message(template))) == template


@given(CAPACITIES)
def test_a_capacity_arrives_as_it_was_sent(capacity: HostCapacity) -> None:
    assert codec.capacity_from_message(over_the_wire(codec.capacity_to_message(capacity))) == capacity


@given(WORKERS)
def test_a_worker_arrives_as_it_was_sent_its_start_by_the_receivers_clock(worker: Worker) -> None:
    message = over_the_wire(codec.worker_to_message(worker, now_s=1000.0))
    assert codec.worker_from_message(message, now_s=1000.0) == worker


@given(ASSIGNMENTS)
def test_an_assignment_arrives_as_it_was_sent(assignment: Assignment) -> None:
    (message,) = codec.assignments_to_messages([assignment])
    assert codec.assignments_from_messages([over_the_wire(message)], host_id="h") == (assignment,)


@given(HINTS)
def test_a_hint_arrives_as_it_was_sent(hint: Hint) -> None:
    (sent,) = codec.hints_to_messages([hint])
    message = over_the_wire(sent)
    since_age_s = message.since_age_s if message.HasField("since_age_s") else None
    ended_jobs = message.ended_jobs if message.HasField("ended_jobs") else None
    assert (message.pid, message.is_busy, message.age_s) == (hint.pid, hint.is_busy, hint.age_s)
    assert (since_age_s, ended_jobs) == (hint.since_age_s, hint.ended_jobs)


@given(ACTIVITIES)
def test_an_activity_arrives_as_it_was_sent(activity: WorkerActivity) -> None:
    batch = TelemetryBatch(producer="a", sequence=1, sent_at_s=0.0, activities=(activity,))
    assert codec.batch_from_message(over_the_wire(codec.batch_to_message(batch))).activities == (activity,)


@given(SAMPLES)
def test_a_sample_arrives_as_it_was_sent(sample: QueueSample) -> None:
    batch = TelemetryBatch(producer="a", sequence=1, sent_at_s=0.0, samples=(sample,))
    assert codec.batch_from_message(over_the_wire(codec.batch_to_message(batch))).samples == (sample,)


@given(COUNTERS)
def test_counts_arrive_as_they_were_sent(counts: QueueCounts) -> None:
    batch = TelemetryBatch(producer="a", sequence=1, sent_at_s=0.0, counts=(counts,))
    assert codec.batch_from_message(over_the_wire(codec.batch_to_message(batch))).counts == (counts,)


def test_a_sample_of_an_older_source_says_nothing_of_what_it_does_not_know() -> None:
    message = telemetry_pb2.IngestRequest(producer="a", samples=[telemetry_pb2.QueueSample(queue="q", waiting_jobs=3)])
    (sample,) = codec.batch_from_message(over_the_wire(message)).samples
    assert sample == QueueSample(queue="q", at_s=0.0, waiting_jobs=3)
    assert {getattr(sample, name) for name in sample.__slots__[3:]} == {None}


@pytest.mark.parametrize(
    ("carried", "message"),
    [
        (codec.template_from_message, agent_pb2.Template(name="mail", content_hash="a", slots=1)),
        (codec.capacity_from_message, agent_pb2.HostCapacity(cpu_cores=2.0, memory_bytes=1)),
        (
            lambda message: codec.worker_from_message(message, now_s=0.0),
            agent_pb2.Worker(worker_id="a", state=agent_pb2.WORKER_STATE_RUNNING),
        ),
        (
            lambda message: codec.batch_from_message(telemetry_pb2.IngestRequest(producer="a", activities=[message])),
            telemetry_pb2.WorkerActivity(host="a", pid=1),
        ),
    ],
)
def test_what_an_older_side_does_not_say_is_not_known(carried: Any, message: Any) -> None:
    value = carried(message)
    value = value.activities[0] if isinstance(value, TelemetryBatch) else value
    unknown = (
        "isolation_drain_after_s",
        "drain_timeout_s",
        "cpu_pressure",
        "memory_pressure",
        "memory_bytes",
        "ended_jobs",
        "is_forced",
        "is_busy",
    )
    optional = {
        name for name in unknown if name in type(value).__dataclass_fields__ and _is_optional(type(value), name)
    }
    assert optional
    assert {getattr(value, name) for name in optional} == {None}


def _is_optional(kind: Any, name: str) -> bool:
    return "None" in str(kind.__dataclass_fields__[name].type)


@given(st.lists(EVENTS, max_size=3))
def test_a_job_event_comes_out_as_it_went_in(events: list[JobEvent]) -> None:
    carried = TelemetryBatch(producer="app", sequence=1, sent_at_s=1.0, events=tuple(events))
    assert codec.batch_from_message(codec.batch_to_message(carried)) == carried


def test_problems_arrive_as_they_were_reported_and_those_of_a_later_version_are_left_out() -> None:
    problems = tuple(HostProblem(kind=kind, error_number=28) for kind in HostProblemKind)
    messages = codec.problems_to_messages(problems)
    assert codec.problems_from_messages(map(over_the_wire, messages)) == problems
    assert codec.problems_from_messages([agent_pb2.HostProblem(kind=99, error_number=1), *messages]) == problems
