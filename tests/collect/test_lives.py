"""What is told of a job, from record to record. Times are in a job's own small world: enqueued at 10, …"""

from dataclasses import replace

import pytest

from headway.collect.lives import JobRecord, Sighting, Stage, Told, progress, record_from, vanished
from headway.collect.reading import job_of
from headway.scaling.model import EventKind

SEEN = Sighting(queue="redis/mail", job_id="a", at_s=100.0)
FINISHED_SEEN = replace(SEEN, is_in_finished=True)


def record(status: str, enqueued: float = 10.0, started: float | None = None, ended: float | None = None) -> JobRecord:
    return JobRecord(status=status, enqueued_at_s=enqueued, started_at_s=started, ended_at_s=ended)


def waits(enqueued: float = 10.0, *, ended_before: float | None = None) -> Told:
    return Told(stage=Stage.ENQUEUED, enqueued_at_s=enqueued, ended_before_at_s=ended_before)


def runs(started: float = 11.0) -> Told:
    return Told(stage=Stage.STARTED, enqueued_at_s=10.0, started_at_s=started)


OVER = Told(stage=Stage.ENDED, enqueued_at_s=10.0)


@pytest.mark.parametrize(
    ("told", "now", "seen", "events"),
    [
        # a life from its beginning, as far as it has come
        (None, record("queued"), SEEN, ["enqueued 10"]),
        (None, record("started", started=11), SEEN, ["enqueued 10", "started 11"]),
        (None, record("finished", started=11, ended=12), SEEN, ["enqueued 10", "started 11", "finished 12"]),
        (None, record("failed", started=11, ended=12), SEEN, ["enqueued 10", "started 11", "failed 12"]),
        (None, record("stopped", started=11, ended=12), SEEN, ["enqueued 10", "started 11", "failed 12"]),
        (waits(), record("queued"), SEEN, []),
        (waits(), record("finished", started=11, ended=12), SEEN, ["started 11", "finished 12"]),
        (runs(), record("finished", started=11, ended=12), SEEN, ["finished 12"]),
        (OVER, record("finished", started=11, ended=12), SEEN, []),
        # not in the queue's care
        (None, record("scheduled"), SEEN, []),
        (None, record("deferred"), SEEN, []),
        (waits(), record("canceled"), SEEN, []),
        (runs(), record("canceled", started=11), SEEN, []),
        # a retry at once: the record shows start and end of the life before
        (runs(), record("queued", 13, 11, 12), SEEN, ["failed 12", "retried 13", "enqueued 13"]),
        (waits(), record("queued", 13, 11, 12), SEEN, ["started 11", "failed 12", "retried 13", "enqueued 13"]),
        (waits(), record("started", 13, 14, 12), SEEN, ["failed 12", "retried 13", "enqueued 13", "started 14"]),
        (waits(13, ended_before=12), record("started", 13, 14, 12), SEEN, ["started 14"]),
        (waits(13, ended_before=12), record("failed", 13, 14, 15), SEEN, ["started 14", "failed 15"]),
        # the end of the life before is overwritten
        (
            runs(),
            record("failed", 13, 14, 15),
            SEEN,
            ["failed 13", "retried 13", "enqueued 13", "started 14", "failed 15"],
        ),
        (runs(), record("finished", 13, 14, 15), SEEN, ["finished 13", "enqueued 13", "started 14", "finished 15"]),
        (waits(), record("finished", 13, 14, 15), SEEN, ["enqueued 13", "started 14", "finished 15"]),
        # a retry later
        (runs(), record("scheduled", 10, 11, 12), SEEN, ["failed 12", "retried 12"]),
        (waits(), record("scheduled", 10, 11, 12), SEEN, ["started 11", "failed 12", "retried 12"]),
        (OVER, record("queued", 70, 11, 12), SEEN, ["enqueued 70"]),
        # a repetition: like a retry, but in the registry of finished jobs
        (runs(), record("queued", 13, 11, 12), FINISHED_SEEN, ["finished 12", "enqueued 13"]),
        (runs(), record("scheduled", 10, 11, 12), FINISHED_SEEN, ["finished 12"]),
        # the same id again after its record was deleted: no trace is left
        (runs(), record("queued", 13), SEEN, ["finished 13", "enqueued 13"]),
        (waits(), record("queued", 13), SEEN, ["enqueued 13"]),
        # given up: RQ writes no end of its own, the one in the record is of the life before
        (runs(), record("failed", started=11), SEEN, ["failed 100"]),
        (runs(), record("queued", 13, 11), SEEN, ["failed 13", "retried 13", "enqueued 13"]),
        (runs(), record("scheduled", 10, 11), SEEN, ["failed 100", "retried 100"]),
        (waits(13, ended_before=12), record("failed", 13, 11, 12), SEEN, ["failed 100"]),
        # its entry is known to be told, the job itself is not remembered
        (None, record("started", started=11), replace(SEEN, is_enqueued_told=True), ["started 11"]),
    ],
)
def test_what_is_new_is_told_and_nothing_else(
    told: Told | None, now: JobRecord, seen: Sighting, events: list[str]
) -> None:
    new, told_now = progress(told, now, seen)
    assert [f"{event.kind} {event.at_s:g}" for event in new] == events
    again, _ = progress(told_now, now, seen) if told_now else ([], None)
    assert again == []


def test_starts_carry_when_it_was_enqueued_and_ends_when_it_started() -> None:
    (enqueued, started, finished), _ = progress(None, record("finished", started=11, ended=12), SEEN)
    assert (enqueued.enqueued_at_s, enqueued.started_at_s) == (None, None)
    assert (started.enqueued_at_s, started.started_at_s) == (10.0, None)
    assert (finished.enqueued_at_s, finished.started_at_s) == (10.0, 11.0)


def test_only_a_running_job_that_left_no_record_is_known_to_have_ended() -> None:
    (finished,), told = vanished(runs(), SEEN)
    assert (finished.kind, finished.at_s, finished.started_at_s) == (EventKind.FINISHED, 100.0, 11.0)
    assert told == replace(runs(), stage=Stage.ENDED)
    assert vanished(waits(), SEEN) == ([], None)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["queued", None, "1970-01-01T00:00:10.500000Z", "", ""], record("queued", 10.5)),
        (["queued", "1970-01-01T00:00:09Z", None, None, None], record("queued", 9.0)),  # never stamped: its making
        (["queued", None, "nonsense", None, None], None),
        (["queued", None, "9999-12-31T23:59:59.000000Z", None, None], None),  # ingest would refuse its whole batch
        (["queued", None, "0001-01-01T00:00:00.000000Z", None, None], None),
        ([None, None, None, None, None], None),
    ],
)
def test_a_record_is_read_as_rq_writes_it(values: list[str | None], expected: JobRecord | None) -> None:
    assert record_from(values) == expected


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
