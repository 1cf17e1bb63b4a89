"""What ingest refuses, and the rows that a batch becomes."""

from dataclasses import asdict
from typing import Any

import pytest

from headway.control.ingest.batch_validation import BATCH_ITEMS_MAX, check, rows_of
from headway.errors import Invalid
from headway.scaling.model import EventKind, JobEvent, QueueSample, TelemetryBatch, WorkerActivity

NOW_S = 1_700_000_000.0


def batch(*, events: Any = (), samples: Any = (), activities: Any = (), **values: Any) -> TelemetryBatch:
    given = {"producer": "app", "sequence": 1, "sent_at_s": NOW_S, **values}
    return TelemetryBatch(events=tuple(events), samples=tuple(samples), activities=tuple(activities), **given)


def event(**values: Any) -> JobEvent:
    return JobEvent(**{"queue": "redis/mail", "job_id": "a", "kind": EventKind.ENQUEUED, "at_s": NOW_S, **values})


def sample(**values: Any) -> QueueSample:
    return QueueSample(**{"queue": "redis/mail", "at_s": NOW_S, "waiting_jobs": 1, **values})


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (batch(producer="a\0b"), "producer 'a\\x00b' is no name"),
        (batch(sequence=2**63), "sequence=9223372036854775808 exceeds"),
        (batch(sent_at_s=float("nan")), "sent_at_s=nan is no Unix time"),
        (batch(events=[event(queue="x" * 501)]), "a name is too long"),
        (batch(events=[event(job_id="\ud800")]), "holds what is no text"),
        (batch(events=[event(job_class="a\0")]), "holds what is no text"),
        (batch(events=[event(at_s=float("inf"))]), "at_s=inf is no Unix time"),
        (batch(events=[event(at_s=0.0)]), "at_s=0.0 is no Unix time"),
        (batch(events=[event(at_s=NOW_S * 1000)]), "at_s=1700000000000.0 is no Unix time in seconds"),
        (batch(events=[event(started_at_s=float("nan"))]), "started_at_s=nan is no Unix time"),
        (batch(samples=[sample(waiting_jobs=2**63)]), "waiting_jobs=9223372036854775808 is no count"),
        (batch(samples=[sample(oldest_age_s=float("nan"))]), "oldest_age_s=nan is no age"),
        (batch(samples=[sample(poll_interval_s=float("inf"))]), "poll_interval_s=inf is no interval"),
        (batch(samples=[sample(at_s=float("-inf"))]), "at_s=-inf is no Unix time"),
        (batch(samples=[sample(in_flight_min_jobs=2**63)]), "in_flight_min_jobs=9223372036854775808 is no count"),
        (batch(activities=[WorkerActivity(host="", pid=1, is_busy=True)]), "host '' is no name"),
        (batch(activities=[WorkerActivity(host="a", pid=0, is_busy=True)]), "pid=0 is no process"),
        (batch(activities=[WorkerActivity(host="a", pid=1, is_busy=True, ended_jobs=2**63)]), "is no count"),
    ],
)
def test_what_would_break_the_group_or_the_stream_is_refused_by_name(wrong: TelemetryBatch, says: str) -> None:
    with pytest.raises(Invalid) as raised:
        check(wrong)
    assert says in str(raised.value)
    str(raised.value).encode()  # the answer itself can be sent


def test_a_batch_has_a_bound_and_may_be_empty() -> None:
    check(batch())
    check(batch(events=[event()] * BATCH_ITEMS_MAX, sent_at_s=0.0))
    with pytest.raises(Invalid, match="10001 items, at most 10000 are taken: split it"):
        check(batch(events=[event()] * BATCH_ITEMS_MAX, samples=[sample()]))


def test_a_batch_wrong_throughout_gets_a_short_message() -> None:
    with pytest.raises(Invalid) as raised:
        check(batch(events=[event(at_s=-1.0)] * 1000))
    assert len(raised.value.breaches) == 10


def test_events_and_samples_become_rows_with_nothing_lost() -> None:
    given_batch = batch(
        sequence=7,
        events=[
            event(kind=EventKind.FINISHED, job_class="Mail", enqueued_at_s=NOW_S - 5, started_at_s=NOW_S - 2, attempt=2)
        ],
        samples=[
            sample(
                waiting_jobs=3,
                in_flight_jobs=2,
                delayed_jobs=1,
                oldest_age_s=0.5,
                reserved_jobs=1,
                oldest_age_max_s=0.75,
                reports_arrivals=False,
                reports_starts=True,
                reports_ends=True,
            )
        ],
    )
    made = rows_of(given_batch, received_at_s=NOW_S + 0.5, offset_s=0.0)
    assert [{name: value for name, value in asdict(row).items() if value is not None} for row in made.rows] == [
        {
            "schema_version": 1, "queue": "redis/mail", "kind": "finished", "job_id": "a", "job_class": "Mail",
            "at_s": NOW_S, "received_at_s": NOW_S + 0.5, "enqueued_at_s": NOW_S - 5, "started_at_s": NOW_S - 2,
            "attempt": 2, "producer": "app", "sequence": 7,
        },
        {
            "schema_version": 1, "queue": "redis/mail", "kind": "sample", "at_s": NOW_S, "received_at_s": NOW_S + 0.5,
            "waiting_jobs": 3, "in_flight_jobs": 2, "delayed_jobs": 1, "oldest_age_s": 0.5, "reserved_jobs": 1,
            "oldest_age_max_s": 0.75, "reports_arrivals": False, "reports_starts": True, "reports_ends": True,
            "producer": "app", "sequence": 7,
        },
    ]  # fmt: skip
    assert made.samples == list(given_batch.samples)
    assert made.corrected_times == 0


def test_lower_bounds_become_columns_of_their_own() -> None:
    given_batch = batch(samples=[sample(waiting_jobs=None, waiting_min_jobs=2, in_flight_min_jobs=1)])
    (row,) = rows_of(given_batch, received_at_s=NOW_S, offset_s=0.0).rows
    assert (row.waiting_jobs, row.waiting_min_jobs) == (None, 2)
    assert (row.in_flight_jobs, row.in_flight_min_jobs) == (None, 1)


def test_a_wrong_clock_is_corrected_and_counted_and_durations_stay_what_they_were() -> None:
    wrong_s = NOW_S - 3600.0
    given_batch = batch(
        events=[
            event(kind=EventKind.FINISHED, at_s=wrong_s, started_at_s=wrong_s - 2, enqueued_at_s=wrong_s - 5),
            event(at_s=NOW_S),
        ],
        samples=[sample(at_s=wrong_s)],
    )
    made = rows_of(given_batch, received_at_s=NOW_S, offset_s=3600.0)
    finished, untouched, reading = made.rows
    assert (finished.at_s, finished.started_at_s, finished.enqueued_at_s) == (NOW_S, NOW_S - 2, NOW_S - 5)
    assert untouched.at_s == NOW_S
    assert reading.at_s == made.samples[0].at_s == NOW_S
    assert made.corrected_times == 2
