"""What crosses the wire comes out as it went in, what is not known included."""

from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.scaling.model import (
    RUNNING_JOBS_NAMED_MAX,
    ActivitySource,
    Assignment,
    BrokerPoll,
    DueJobs,
    EnteredJob,
    EventKind,
    Exit,
    Hint,
    HostCapacity,
    HostProblem,
    HostProblemKind,
    JobEvent,
    PolledQueue,
    QueueCounts,
    QueueOrder,
    QueueReceptions,
    QueueSample,
    Receipt,
    RunningJob,
    StartUp,
    Suspension,
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
    written_slots=st.none() | st.integers(1, 100),
    cpu_cores=NUMBERS,
    memory_bytes=COUNTS,
    gpus=COUNTS,
    labels=LABELS,
    isolation_drain_after_s=st.none() | NUMBERS,
    drain_timeout_s=st.none() | NUMBERS,
    queue_order=st.none() | st.sampled_from(QueueOrder),
    strict_queues=st.lists(TEXTS, max_size=3).map(tuple),
    queues_allowed=st.lists(TEXTS, max_size=3).map(tuple),
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
    received_at_s=st.none() | NUMBERS,
    is_redelivered=st.none() | st.booleans(),
)
RUNNING = st.builds(
    RunningJob,
    job_id=TEXTS,
    queue=TEXTS,
    job_class=st.none() | TEXTS,
    attempt=st.none() | st.integers(1, 2**32 - 1),
    started_at_s=NUMBERS,
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
    activity_source=st.none() | st.sampled_from(ActivitySource),
    activity_known_at_s=st.none() | st.integers(0, 1000).map(float),
    running_jobs=st.none() | COUNTS,
    running=st.lists(RUNNING, max_size=3).map(tuple),
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
    is_suspended=st.booleans(),
)
HINTS = st.builds(
    Hint,
    pid=COUNTS,
    is_busy=st.booleans(),
    since_age_s=st.none() | NUMBERS,
    age_s=NUMBERS,
    ended_jobs=st.none() | COUNTS,
)
DUE = (DueJobs(within_s=5.0, jobs=2), DueJobs(within_s=20.0, jobs=9))
SAMPLES = (
    st.builds(
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
        poll_interval_s=st.none() | NUMBERS,
        suspension=st.none() | st.sampled_from(Suspension),
    )
    | st.builds(
        QueueSample,
        queue=st.text(min_size=1, max_size=10),
        at_s=NUMBERS,
        waiting_jobs=st.none(),
        waiting_min_jobs=COUNTS,
        in_flight_min_jobs=st.none() | COUNTS,
        delayed_jobs=st.just(9),
        due=st.sampled_from([(), DUE[:1], DUE]),
    )
    | st.builds(
        lambda queued_jobs, overdue_jobs: QueueSample(
            queue="q", at_s=1.0, waiting_jobs=queued_jobs + overdue_jobs, waiting_min_jobs=queued_jobs
        ),
        st.integers(0, 1_000),
        st.integers(1, 1_000),
    )
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
    running_jobs=st.none() | COUNTS,
    is_withdrawn=st.booleans(),
)

POLLS = st.builds(
    BrokerPoll,
    connection=TEXTS,
    at_s=NUMBERS,
    until_s=NUMBERS,
    after_s=st.none() | NUMBERS,
    queues=st.lists(
        st.builds(
            PolledQueue,
            queue=TEXTS,
            waiting_jobs=COUNTS,
            held_jobs=st.none() | COUNTS,
            consumers=st.none() | COUNTS,
            entered=st.lists(st.builds(EnteredJob, job_id=TEXTS, attempt=st.integers(1, 2**32 - 1)), max_size=3).map(
                tuple
            ),
            is_complete=st.booleans(),
            is_ordered=st.booleans(),
        ),
        max_size=3,
    ).map(tuple),
    finds_all=st.booleans(),
)
RECEPTIONS = st.builds(
    QueueReceptions,
    queue=TEXTS,
    since_s=NUMBERS,
    until_s=NUMBERS,
    received_at_s=st.lists(NUMBERS, max_size=3).map(tuple),
    workers=COUNTS,
    is_prompt=st.booleans(),
    is_whole=st.booleans(),
)


def over_the_wire(message: Any) -> Any:
    """The message as the other side reads it."""
    return type(message).FromString(message.SerializeToString())


@given(TEMPLATES)
def test_a_template_arrives_as_it_was_sent(template: Template) -> None:
    message = over_the_wire(codec.message_of(agent_pb2.Template, template))
    assert codec.template_from_message(message) == template


@given(CAPACITIES)
def test_a_capacity_arrives_as_it_was_sent(capacity: HostCapacity) -> None:
    message = over_the_wire(codec.message_of(agent_pb2.HostCapacity, capacity))
    assert codec.value_of(HostCapacity, message) == capacity


@given(WORKERS)
def test_a_worker_arrives_as_it_was_sent_its_start_by_the_receivers_clock(worker: Worker) -> None:
    message = over_the_wire(codec.worker_to_message(worker, now_s=1000.0))
    assert codec.worker_from_message(message, now_s=1000.0) == worker


def test_a_source_of_evidence_of_a_later_version_is_not_known() -> None:
    message = agent_pb2.Worker(worker_id="a", state=agent_pb2.WORKER_STATE_RUNNING, activity_source="hearsay")
    assert codec.worker_from_message(message, now_s=0.0).activity_source is None


def test_of_many_running_jobs_only_the_first_are_named() -> None:
    job = agent_pb2.RunningJob(job_id="j", queue="q", started_at_s=1.0)
    message = agent_pb2.Worker(worker_id="a", state=agent_pb2.WORKER_STATE_RUNNING, running_jobs=500)
    message.running.extend([job] * 500)
    worker = codec.worker_from_message(message, now_s=0.0)
    assert (worker.running_jobs, len(worker.running)) == (500, RUNNING_JOBS_NAMED_MAX)


@given(ASSIGNMENTS)
def test_an_assignment_arrives_as_it_was_sent(assignment: Assignment) -> None:
    message = over_the_wire(codec.message_of(agent_pb2.Assignment, assignment))
    assert codec.value_of(Assignment, message, host_id="h") == assignment


@given(HINTS)
def test_a_hint_arrives_as_it_was_sent(hint: Hint) -> None:
    message = over_the_wire(codec.message_of(agent_pb2.WorkerHint, hint))
    assert codec.value_of(Hint, message) == hint


LEARNED_THERE = {"start_up_s", "start_up_p95_s", "start_up_cpu_s", "exit_s"}
BY_AN_AGE = {"started_at_s", "state_since_s", "activity_known_at_s"}
AGES = {"age_s", "state_age_s", "activity_age_s"}
OF_THE_BROKER = {"busy_queue", "busy_since_s", "other_jobs", "state_reported_s"}


@pytest.mark.parametrize(
    ("value", "message", "of_the_value", "of_the_message"),
    [
        (TelemetryBatch, telemetry_pb2.IngestRequest, {"dropped_events"}, {"revoked"}),
        (JobEvent, telemetry_pb2.JobEvent, set(), set()),
        (QueueSample, telemetry_pb2.QueueSample, set(), set()),
        (WorkerActivity, telemetry_pb2.WorkerActivity, set(), set()),
        (QueueCounts, telemetry_pb2.QueueCounts, set(), set()),
        (BrokerPoll, telemetry_pb2.BrokerPoll, set(), set()),
        (PolledQueue, telemetry_pb2.PolledQueue, set(), set()),
        (EnteredJob, telemetry_pb2.EnteredJob, set(), set()),
        (QueueReceptions, telemetry_pb2.QueueReceptions, set(), set()),
        (Receipt, telemetry_pb2.IngestResponse, set(), set()),
        (HostCapacity, agent_pb2.HostCapacity, set(), set()),
        (HostProblem, agent_pb2.HostProblem, set(), set()),
        (StartUp, agent_pb2.StartUp, set(), set()),
        (Exit, agent_pb2.Exit, set(), set()),
        (Hint, agent_pb2.WorkerHint, set(), set()),
        (Assignment, agent_pb2.Assignment, {"host_id"}, set()),
        (Template, agent_pb2.Template, LEARNED_THERE, set()),
        (RunningJob, agent_pb2.RunningJob, set(), set()),
        (Worker, agent_pb2.Worker, BY_AN_AGE | OF_THE_BROKER, AGES | {"exit_code", "is_unrecorded"}),
    ],
)
def test_a_value_and_its_message_share_every_field_but_these(
    value: Any, message: Any, of_the_value: set[str], of_the_message: set[str]
) -> None:
    """A field that is renamed on one side alone would be lost without a word."""
    own, carried = {each.name for each in fields(value)}, set(message.DESCRIPTOR.fields_by_name)
    assert (own - carried, carried - own) == (of_the_value, of_the_message)


@given(ACTIVITIES)
def test_an_activity_arrives_as_it_was_sent(activity: WorkerActivity) -> None:
    batch = TelemetryBatch(producer="a", sequence=1, sent_at_s=0.0, activities=(activity,))
    assert codec.batch_from_message(over_the_wire(codec.batch_to_message(batch))).activities == (activity,)


@given(SAMPLES)
def test_a_sample_arrives_as_it_was_sent(sample: QueueSample) -> None:
    batch = TelemetryBatch(producer="a", sequence=1, sent_at_s=0.0, samples=(sample,))
    assert codec.batch_from_message(over_the_wire(codec.batch_to_message(batch))).samples == (sample,)


@given(EVENTS)
def test_an_event_arrives_as_it_was_sent(event: JobEvent) -> None:
    batch = TelemetryBatch(producer="a", sequence=1, sent_at_s=0.0, events=(event,))
    assert codec.batch_from_message(over_the_wire(codec.batch_to_message(batch))).events == (event,)


@given(POLLS, RECEPTIONS)
def test_polls_and_receptions_arrive_as_they_were_sent(poll: BrokerPoll, receptions: QueueReceptions) -> None:
    batch = TelemetryBatch(producer="a", sequence=1, sent_at_s=0.0, polls=(poll,), receptions=(receptions,))
    arrived = codec.batch_from_message(over_the_wire(codec.batch_to_message(batch)))
    assert (arrived.polls, arrived.receptions) == ((poll,), (receptions,))


@given(COUNTERS)
def test_counts_arrive_as_they_were_sent(counts: QueueCounts) -> None:
    batch = TelemetryBatch(producer="a", sequence=1, sent_at_s=0.0, counts=(counts,))
    assert codec.batch_from_message(over_the_wire(codec.batch_to_message(batch))).counts == (counts,)


def test_a_sample_of_an_older_source_says_nothing_of_what_it_does_not_know() -> None:
    message = telemetry_pb2.IngestRequest(producer="a", samples=[telemetry_pb2.QueueSample(queue="q", waiting_jobs=3)])
    (sample,) = codec.batch_from_message(over_the_wire(message)).samples
    assert sample == QueueSample(queue="q", at_s=0.0, waiting_jobs=3)
    assert {getattr(sample, name) for name in sample.__slots__[3:]} == {None, ()}


@pytest.mark.parametrize(
    ("carried", "message"),
    [
        (codec.template_from_message, agent_pb2.Template(name="mail", content_hash="a", slots=1)),
        (lambda message: codec.value_of(HostCapacity, message), agent_pb2.HostCapacity(cpu_cores=2.0, memory_bytes=1)),
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
        "activity_source",
        "activity_known_at_s",
        "running_jobs",
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
    """Revoked jobs come after the others: they have a field of their own."""
    carried = TelemetryBatch(producer="app", sequence=1, sent_at_s=1.0, events=tuple(events))
    ordered = tuple(sorted(events, key=lambda event: event.kind is EventKind.REVOKED))
    assert codec.batch_from_message(codec.batch_to_message(carried)) == replace(carried, events=ordered)


def test_a_control_plane_that_does_not_know_revoked_jobs_takes_the_rest_of_the_batch() -> None:
    """To it, the field is one that it does not know, and each event has a kind that it knows."""
    begun, revoked = (
        JobEvent(queue="q", job_id="j", kind=kind, at_s=1.0) for kind in (EventKind.STARTED, EventKind.REVOKED)
    )
    message = codec.batch_to_message(
        TelemetryBatch(producer="agent-1", sequence=1, sent_at_s=1.0, events=(revoked, begun))
    )
    assert [each.kind for each in message.events] == [telemetry_pb2.EVENT_KIND_STARTED]


def test_problems_arrive_as_they_were_reported_and_those_of_a_later_version_are_left_out() -> None:
    problems = tuple(HostProblem(kind=kind, error_number=28) for kind in HostProblemKind)
    messages = codec.problems_to_messages(problems)
    assert codec.problems_from_messages(map(over_the_wire, messages)) == problems
    assert codec.problems_from_messages([agent_pb2.HostProblem(kind=99, error_number=1), *messages]) == problems
