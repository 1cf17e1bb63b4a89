"""What workers report of jobs, as events: each attempt arrives, starts and ends once, in queues of its pool only."""

from typing import Any

import pytest

from headway.agent.reporting.job_events import UNSENT_REPORTS_MAX, UnsentReports, events_of, queues_of
from headway.agent.reporting.report_lines import JobReport, Outcome, ReportKind
from headway.scaling.model import EventKind, JobEvent, PoolQueues

QUEUES = queues_of(
    [
        PoolQueues(pool="mail", queues=("celery/urgent", "celery/bulk")),
        PoolQueues(pool="two", queues=("eu/mail", "us/mail", "us/news")),
        PoolQueues(pool="slashed", queues=("celery/a/b",)),
    ]
)


def report(kind: ReportKind, **values: Any) -> JobReport:
    return JobReport(**{"kind": kind, "job_id": "j", "queue": "bulk", "at_s": 100.0, "attempt": 2, **values})


def sent(*reports: JobReport, pool: str = "mail") -> list[tuple[EventKind, float, float | None, float | None]]:
    events = events_of(pool, reports, QUEUES)
    assert {each.queue for each in events} <= {"celery/bulk"}
    return [(each.kind, each.at_s, each.enqueued_at_s, each.started_at_s) for each in events]


@pytest.mark.parametrize(
    ("known", "arrived_at_s", "waits_from_s"),
    [
        ({}, 100.0, None),  # nobody knows since when it waited: it arrives as it begins, and its wait is not measured
        ({"entered_at_s": 90.0}, 90.0, 90.0),
        ({"eta_s": 95.0}, 95.0, 95.0),  # a delayed job waits from when it is due
        ({"entered_at_s": 90.0, "eta_s": 95.0}, 95.0, 95.0),
        ({"entered_at_s": 97.0, "eta_s": 95.0}, 97.0, 97.0),  # it came when it was due already
        ({"entered_at_s": 101.0}, 100.0, 100.0),  # the clock of its sender is ahead
    ],
)
def test_a_job_that_begins_has_arrived_and_starts(
    known: dict[str, float], arrived_at_s: float, waits_from_s: float | None
) -> None:
    assert sent(report(ReportKind.BEGUN, **known)) == [
        (EventKind.ENQUEUED, arrived_at_s, None, None),
        (EventKind.STARTED, 100.0, waits_from_s, None),
    ]


@pytest.mark.parametrize(
    ("ended", "kinds"),
    [
        ({"outcome": Outcome.FINISHED}, [EventKind.FINISHED]),
        ({"outcome": Outcome.FAILED}, [EventKind.FAILED]),
        ({"outcome": Outcome.RETRIED}, [EventKind.FAILED, EventKind.RETRIED]),
        ({"outcome": Outcome.REJECTED}, [EventKind.FAILED]),
        ({"outcome": Outcome.REJECTED, "is_requeued": True}, [EventKind.FAILED, EventKind.RETRIED]),
        ({"outcome": Outcome.REVOKED}, [EventKind.FAILED]),
        # It expired or was revoked before it began: it has left its queue, and was never work.
        ({"outcome": Outcome.REVOKED, "started_at_s": None}, [EventKind.REVOKED]),
        # The process that ran it died before it could say when it began.
        ({"outcome": Outcome.FAILED, "started_at_s": None}, [EventKind.FAILED]),
    ],
)
def test_a_job_ends_as_its_worker_says(ended: dict[str, Any], kinds: list[EventKind]) -> None:
    events = sent(report(ReportKind.ENDED, **{"started_at_s": 60.0, **ended}))
    assert [kind for kind, *_ in events] == kinds


def test_the_service_time_goes_with_the_end_and_not_with_the_retry() -> None:
    events = sent(report(ReportKind.ENDED, outcome=Outcome.RETRIED, started_at_s=60.0))
    assert [started_at_s for *_, started_at_s in events] == [60.0, None]


def test_a_message_that_a_worker_took_is_no_event() -> None:
    assert sent(report(ReportKind.RECEIVED)) == []


@pytest.mark.parametrize(
    ("pool", "queue", "named"),
    [
        ("mail", "urgent", ["celery/urgent"]),
        ("mail", "news", []),  # another pool's
        ("mail", "celery/urgent", []),  # no queue's own name
        ("two", "news", ["us/news"]),
        ("two", "mail", []),  # nobody knows of which connection
        ("slashed", "a/b", ["celery/a/b"]),
        ("unknown", "urgent", []),
    ],
)
def test_a_worker_names_queues_of_its_own_pool_only(pool: str, queue: str, named: list[str]) -> None:
    events = events_of(pool, [report(ReportKind.ENDED, queue=queue, outcome=Outcome.FAILED)], QUEUES)
    assert [each.queue for each in events] == named


def test_an_event_carries_what_the_report_says_of_its_job() -> None:
    (event,) = events_of(
        "mail", [report(ReportKind.ENDED, outcome=Outcome.FINISHED, started_at_s=60.0, job_class="shop.send")], QUEUES
    )
    assert event == JobEvent(
        queue="celery/bulk",
        job_id="j",
        kind=EventKind.FINISHED,
        at_s=100.0,
        started_at_s=60.0,
        job_class="shop.send",
        attempt=2,
    )


def test_what_comes_before_the_queues_are_known_waits_and_goes_once() -> None:
    unsent = UnsentReports()
    unsent.add("mail", [report(ReportKind.RECEIVED), report(ReportKind.BEGUN)])
    unsent.add("two", [report(ReportKind.ENDED, queue="news", outcome=Outcome.FAILED)])
    found = [(each.queue, each.kind) for each in unsent.take_events(QUEUES)]
    assert found == [
        ("celery/bulk", EventKind.ENQUEUED),
        ("celery/bulk", EventKind.STARTED),
        ("us/news", EventKind.FAILED),
    ]
    assert unsent.take_events(QUEUES) == []


def test_of_what_waits_for_long_the_newest_stays() -> None:
    unsent = UnsentReports()
    ended = [report(ReportKind.ENDED, job_id=str(number), outcome=Outcome.FAILED) for number in range(3)]
    unsent.add("mail", [*ended[:2], *ended[2:] * UNSENT_REPORTS_MAX])
    assert {each.job_id for each in unsent.take_events(QUEUES)} == {"2"}
