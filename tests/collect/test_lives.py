"""What is reported of a job, from record to record. Times are in a job's own small world: enqueued at 10, …"""

import json
from dataclasses import replace

import pytest

from headway.collect.job_lifecycle import JobRecord, JobState, ReportedLife, Sighting, Stage, progress, vanished
from headway.collect.job_memory import JobMemory
from headway.collect.rq.rq_record import job_of, record_from
from headway.scaling.model import EventKind

WAITING, RUNNING, FINISHED, FAILED = JobState.WAITING, JobState.RUNNING, JobState.FINISHED, JobState.FAILED
DELAYED, CANCELED, ELSEWHERE = JobState.DELAYED, JobState.CANCELED, JobState.ELSEWHERE

SEEN = Sighting(queue="redis/mail", job_id="a", at_s=100.0)
FINISHED_SEEN = replace(SEEN, is_in_finished=True)
RUNNING_SEEN = replace(SEEN, is_running=True)


def record(
    state: JobState, enqueued: float = 10.0, started: float | None = None, ended: float | None = None
) -> JobRecord:
    return JobRecord(state=state, enqueued_at_s=enqueued, started_at_s=started, ended_at_s=ended)


def waits(enqueued: float = 10.0, *, ended_before: float | None = None) -> ReportedLife:
    return ReportedLife(stage=Stage.ENQUEUED, enqueued_at_s=enqueued, ended_before_at_s=ended_before)


def runs(started: float = 11.0) -> ReportedLife:
    return ReportedLife(stage=Stage.STARTED, enqueued_at_s=10.0, started_at_s=started)


OVER = ReportedLife(stage=Stage.ENDED, enqueued_at_s=10.0)
CANCELED_OVER = replace(OVER, is_canceled=True)


@pytest.mark.parametrize(
    ("reported", "now", "seen", "events"),
    [
        # a life from its beginning, as far as it has come
        (None, record(WAITING), SEEN, ["enqueued 10"]),
        (None, record(RUNNING, started=11), SEEN, ["enqueued 10", "started 11"]),
        (None, record(FINISHED, started=11, ended=12), SEEN, ["enqueued 10", "started 11", "finished 12"]),
        (None, record(FAILED, started=11, ended=12), SEEN, ["enqueued 10", "started 11", "failed 12"]),
        (waits(), record(WAITING), SEEN, []),
        (waits(), record(FINISHED, started=11, ended=12), SEEN, ["started 11", "finished 12"]),
        (runs(), record(FINISHED, started=11, ended=12), SEEN, ["finished 12"]),
        (OVER, record(FINISHED, started=11, ended=12), SEEN, []),
        # not in the queue's care
        (None, record(DELAYED), SEEN, []),
        (None, record(ELSEWHERE), SEEN, []),
        (waits(), record(CANCELED), SEEN, []),
        (runs(), record(CANCELED, started=11), SEEN, []),
        # a retry at once: the record shows start and end of the life before
        (runs(), record(WAITING, 13, 11, 12), SEEN, ["failed 12", "retried 12", "enqueued 13"]),
        (waits(), record(WAITING, 13, 11, 12), SEEN, ["started 11", "failed 12", "retried 12", "enqueued 13"]),
        (waits(), record(RUNNING, 13, 14, 12), SEEN, ["failed 12", "retried 12", "enqueued 13", "started 14"]),
        (waits(13, ended_before=12), record(RUNNING, 13, 14, 12), SEEN, ["started 14"]),
        (waits(13, ended_before=12), record(FAILED, 13, 14, 15), SEEN, ["started 14", "failed 15"]),
        # the end of the life before is overwritten
        (
            runs(),
            record(FAILED, 13, 14, 15),
            SEEN,
            ["failed 13", "retried 13", "enqueued 13", "started 14", "failed 15"],
        ),
        (runs(), record(FINISHED, 13, 14, 15), SEEN, ["finished 13", "enqueued 13", "started 14", "finished 15"]),
        (waits(), record(FINISHED, 13, 14, 15), SEEN, ["enqueued 13", "started 14", "finished 15"]),
        # a retry later
        (runs(), record(DELAYED, 10, 11, 12), SEEN, ["failed 12", "retried 12"]),
        (waits(), record(DELAYED, 10, 11, 12), SEEN, ["started 11", "failed 12", "retried 12"]),
        (OVER, record(WAITING, 70, 11, 12), SEEN, ["enqueued 70"]),
        # a life between two polls that is over: its job waits for a retry once more
        (waits(), record(DELAYED, 13, 14, 15), SEEN, ["enqueued 13", "started 14", "failed 15", "retried 15"]),
        (OVER, record(DELAYED, 13, 14, 15), SEEN, ["enqueued 13", "started 14", "failed 15", "retried 15"]),
        (
            runs(),
            record(DELAYED, 13, 14, 15),
            SEEN,
            ["failed 13", "retried 13", "enqueued 13", "started 14", "failed 15", "retried 15"],
        ),
        (waits(), record(CANCELED, 13), SEEN, []),
        (waits(), record(DELAYED, 13), SEEN, []),
        # stopped in its second life, of which RQ writes no end: not before it was seen so
        (None, record(FAILED, 13, 14, 12), SEEN, ["enqueued 13", "started 14", "failed 100"]),
        # a repetition: like a retry, but in the registry of finished jobs
        (runs(), record(WAITING, 13, 11, 12), FINISHED_SEEN, ["finished 12", "enqueued 13"]),
        (runs(), record(DELAYED, 10, 11, 12), FINISHED_SEEN, ["finished 12"]),
        # the same id again after its record was deleted: no trace is left
        (runs(), record(WAITING, 13), SEEN, ["finished 13", "enqueued 13"]),
        (waits(), record(WAITING, 13), SEEN, ["enqueued 13"]),
        # given up: RQ writes no end of its own, the one in the record is of the life before
        (runs(), record(FAILED, started=11), SEEN, ["failed 100"]),
        (runs(), record(WAITING, 13, 11), SEEN, ["failed 13", "retried 13", "enqueued 13"]),
        (runs(), record(DELAYED, 10, 11), SEEN, ["failed 100", "retried 100"]),
        (waits(13, ended_before=12), record(FAILED, 13, 11, 12), SEEN, ["failed 100"]),
        # given up before its start was seen
        (waits(), record(WAITING, 13, 11), SEEN, ["started 11", "failed 13", "retried 13", "enqueued 13"]),
        (waits(), record(DELAYED, 10, 11), SEEN, ["started 11", "failed 100", "retried 100"]),
        (waits(13, ended_before=12), record(WAITING, 14, 11, 12), SEEN, ["enqueued 14"]),
        # tried again, and well in the end: that is why it is in the registry of finished jobs
        (
            replace(runs(), retries_left=1),
            replace(record(FINISHED, 13, 14, 15), retries_left=0),
            FINISHED_SEEN,
            ["failed 13", "retried 13", "enqueued 13", "started 14", "finished 15"],
        ),
        # the same id again while it runs: that run ends later, and RQ writes its record over the one of the new life
        (runs(), record(WAITING, 13, 11), RUNNING_SEEN, ["enqueued 13"]),
        (waits(), record(WAITING, 13, 11), RUNNING_SEEN, ["started 11", "enqueued 13"]),
        # it failed and was put back just after it was seen running, before its record was read
        (
            replace(runs(), retries_left=1),
            replace(record(WAITING, 13, 11), retries_left=0),
            RUNNING_SEEN,
            ["failed 13", "retried 13", "enqueued 13"],
        ),
        (
            runs(),
            record(WAITING, 13),
            replace(RUNNING_SEEN, failed_at_s=12.0),
            ["failed 13", "retried 13", "enqueued 13"],
        ),
        (waits(13), record(RUNNING, 10, 11), SEEN, []),
        (waits(13), record(FINISHED, 10, 11, 14), SEEN, ["finished 14"]),
        (waits(13, ended_before=14), record(FINISHED, 10, 11, 14), SEEN, []),
        (waits(13, ended_before=14), record(RUNNING, 10, 15, 14), SEEN, ["started 15"]),
        # the same id again while it waits: it is there twice, and runs twice
        (replace(OVER, ended_at_s=12.0), record(RUNNING, 10, 13, 12), SEEN, ["started 13"]),
        (replace(OVER, ended_at_s=12.0), record(FINISHED, 10, 11, 12), SEEN, []),
        # and its second run is given up: the end in the record is of the first
        (replace(OVER, ended_at_s=12.0), record(FAILED, 10, 13, 12), SEEN, ["started 13", "failed 100"]),
        # cancelled, and run all the same: a worker had just taken it, or it stood in the queue once more
        (CANCELED_OVER, record(RUNNING, started=11), SEEN, ["started 11"]),
        (CANCELED_OVER, record(FINISHED, started=11, ended=12), SEEN, ["started 11", "finished 12"]),
        (CANCELED_OVER, record(CANCELED, started=11), SEEN, []),
        # its entry is known to be told, the job itself is not remembered
        (None, record(RUNNING, started=11), replace(SEEN, is_enqueued_reported=True), ["started 11"]),
    ],
)
def test_what_is_new_is_reported_and_nothing_else(
    reported: ReportedLife | None, now: JobRecord, seen: Sighting, events: list[str]
) -> None:
    new, reported_now = progress(reported, now, seen)
    assert [f"{event.kind} {event.at_s:g}" for event in new] == events
    again, _ = progress(reported_now, now, seen) if reported_now else ([], None)
    assert again == []


def test_starts_carry_when_it_was_enqueued_and_ends_when_it_started() -> None:
    (enqueued, started, finished), _ = progress(None, record(FINISHED, started=11, ended=12), SEEN)
    assert (enqueued.enqueued_at_s, enqueued.started_at_s) == (None, None)
    assert (started.enqueued_at_s, started.started_at_s) == (10.0, None)
    assert (finished.enqueued_at_s, finished.started_at_s) == (10.0, 11.0)


def test_only_a_running_job_that_left_no_record_is_known_to_have_ended() -> None:
    (finished,), reported = vanished(runs(), SEEN)
    assert (finished.kind, finished.at_s, finished.started_at_s) == (EventKind.FINISHED, 100.0, 11.0)
    assert reported == replace(runs(), stage=Stage.ENDED)
    assert vanished(waits(), SEEN) == ([], None)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["queued", None, "1970-01-01T00:00:10.500000Z", "", ""], record(WAITING, 10.5)),
        (["queued", "1970-01-01T00:00:09Z", None, None, None], record(WAITING, 9.0)),  # never stamped: its making
        (["queued", None, "nonsense", None, None], None),
        (["queued", None, "9999-12-31T23:59:59.000000Z", None, None], None),  # ingest would refuse its whole batch
        (["queued", None, "0001-01-01T00:00:00.000000Z", None, None], None),
        ([None, None, None, None, None], None),
        (["stopped", None, "1970-01-01T00:00:10Z", None, None], record(FAILED, 10.0)),
        (["deferred", None, "1970-01-01T00:00:10Z", None, None], record(ELSEWHERE, 10.0)),
        ([None, None, "1970-01-01T00:00:10Z", None, None], record(ELSEWHERE, 10.0)),
    ],
)
def test_a_record_is_read_as_rq_writes_it(values: list[str | None], expected: JobRecord | None) -> None:
    found = record_from([*values, None, None, None])
    assert found is None if expected is None else found == replace(expected, created_at_s=found and found.created_at_s)


@pytest.mark.parametrize(
    ("left", "retries", "repeats", "expected"),
    [
        ("2", None, None, (2, None, False)),
        ("0", "", None, (0, None, False)),
        (None, "3", None, (None, 3, False)),
        (None, None, "4", (None, None, True)),
        ("-1", "x", None, (None, None, False)),
        ("9" * 30, None, None, (None, None, False)),
    ],
)
def test_what_rq_writes_of_retries_is_read(
    left: str | None, retries: str | None, repeats: str | None, expected: tuple[int | None, int | None, bool]
) -> None:
    found = record_from(["queued", None, "1970-01-01T00:00:10Z", None, None, left, retries, repeats])
    assert found is not None
    assert (found.retries_left, found.retries, found.is_repeated) == expected


@pytest.mark.parametrize(
    ("reported", "now", "seen", "attempts"),
    [
        (None, record(WAITING), SEEN, [None]),
        (None, replace(record(WAITING), retries_left=3), SEEN, [None]),
        # put back at once after a failure
        (runs(), record(WAITING, 13, 11, 12), SEEN, [2]),
        (replace(runs(), attempt=2), record(WAITING, 13, 11, 12), SEEN, [3]),
        # several times between two looks: what RQ has left says how often
        (replace(runs(), retries_left=3), replace(record(WAITING, 13, 11, 12), retries_left=1), SEEN, [3]),
        # failed, and its retry or the hand that puts it back came later
        (replace(OVER, has_failed=True), record(WAITING, 70, 11, 12), SEEN, [2]),
        (replace(OVER, has_failed=True, attempt=2, is_aside=True), record(FINISHED, 70, 71, 72), SEEN, [3]),
        # ended well, and came again: a repetition, or another job under the same id
        (OVER, record(WAITING, 70, 11, 12), SEEN, [None]),
        (replace(OVER, retries_left=3), replace(record(WAITING, 70, 11, 12), retries_left=2), SEEN, [None]),
        (runs(), record(WAITING, 13, 11, 12), FINISHED_SEEN, [None]),
        # nothing is remembered: the record shows an end before, and that RQ may put it back
        (None, replace(record(WAITING, 13, 11, 12), retries_left=0), SEEN, [2]),
        (None, record(WAITING, 13, 11, 12), SEEN, [None]),
        (None, replace(record(WAITING, 13, 11, 12), retries_left=0, is_repeated=True), SEEN, [None]),
        # what came since the look before has an entry that was never told: the first that is told counts as fresh
        (
            None,
            replace(record(WAITING, 13, 11, 12), retries_left=0, created_at_s=9.0),
            replace(SEEN, polled_at_s=8.0),
            [None],
        ),
        (
            None,
            replace(record(WAITING, 13, 11, 12), retries_left=0, created_at_s=9.0),
            replace(SEEN, polled_at_s=9.5),
            [2],
        ),
        # a job that asks to be tried again is counted by RQ
        (None, replace(record(WAITING, 13, 11, 12), retries=2), SEEN, [3]),
        (runs(), replace(record(WAITING, 13, 11, 12), retries=4), SEEN, [5]),
    ],
)
def test_an_entry_says_which_attempt_it_begins(
    reported: ReportedLife | None, now: JobRecord, seen: Sighting, attempts: list[int | None]
) -> None:
    new, _ = progress(reported, now, seen)
    assert [event.attempt for event in new if event.kind is EventKind.ENQUEUED] == attempts


@pytest.mark.parametrize("state", JobState)
@pytest.mark.parametrize("reported", [waits(), waits(13, ended_before=12), runs(), OVER])
@pytest.mark.parametrize("moments", [(10, 11, 12), (13, 11, 12), (13, 14, 12), (13, 14, 15), (13, None, None)])
def test_nothing_is_reported_again_of_a_record_that_has_not_changed(
    reported: ReportedLife, state: JobState, moments: tuple[float, float | None, float | None]
) -> None:
    jobs, seen = JobMemory(begins_at_s=0.0), record(state, *moments)
    jobs.put("a", reported, at_s=20.0)
    for polled in range(3):
        known = jobs.reported("a")
        assert known is not None
        new, now = progress(known, seen, SEEN)
        assert new == [] or polled == 0
        if now is not None:
            jobs.put("a", now, at_s=20.0)


def test_a_life_between_two_polls_is_the_attempt_after_those_that_failed_before_it() -> None:
    before = replace(waits(), retries_left=2)
    new, now = progress(before, replace(record(DELAYED, 13, 14, 15), retries_left=0), SEEN)
    assert [event.attempt for event in new if event.kind is EventKind.ENQUEUED] == [2]
    new, _ = progress(now, replace(record(WAITING, 16, 14, 15), retries_left=0), SEEN)
    assert [(str(event.kind), event.attempt) for event in new] == [("enqueued", 3)]


def test_a_job_put_aside_until_its_retry_is_known_to_have_failed_however_often_it_is_polled() -> None:
    later = replace(record(DELAYED, 10, 11, 12), retries_left=1)
    reported: ReportedLife | None = runs()
    for _ in range(3):
        assert reported is not None
        _, reported = progress(reported, later, SEEN)
    assert reported is not None
    assert (reported.has_failed, reported.is_aside) == (True, True)


@pytest.mark.parametrize(
    ("member", "job_id"),
    [
        (f"a:{'f' * 32}", "a"),
        (f"tenant:7:{'0' * 32}", "tenant:7"),
        ("before-rq-2", "before-rq-2"),
        ("tenant:7", "tenant:7"),
    ],
)
def test_the_job_of_an_execution(member: str, job_id: str) -> None:
    assert job_of(member) == job_id


OVER_AT_12 = replace(OVER, ended_at_s=12.0)


@pytest.mark.parametrize("reported", [waits(), waits(13, ended_before=12), runs(), OVER_AT_12, CANCELED_OVER])
def test_what_was_reported_of_a_job_is_the_same_after_a_restart(reported: ReportedLife) -> None:
    jobs = JobMemory(begins_at_s=0.0)
    jobs.put("a", reported, at_s=100.0)
    assert JobMemory.from_state(json.loads(json.dumps(jobs.to_state()))).reported("a") == reported


def test_ended_jobs_are_read_as_they_were_stored_before_their_ends_were() -> None:
    jobs = JobMemory(begins_at_s=0.0)
    jobs.put("a", OVER_AT_12, at_s=100.0, score=512.0)
    state = jobs.to_state()
    state["ended"] = {job: each[:3] for job, each in state["ended"].items()}
    assert JobMemory.from_state(state).reported("a") == OVER
    assert JobMemory.from_state(state).has_ended("a", score=512.0)
