"""Which readings are worth sending."""

from dataclasses import replace

import pytest

from headway.collect.change_filter import ChangeFilter
from headway.scaling.model import QueueSample, WorkerActivity

QUIET = QueueSample(queue="redis/news", at_s=0.0, waiting_jobs=0, in_flight_jobs=0, delayed_jobs=0, oldest_age_s=0.0)
BUSY = QueueSample(queue="redis/mail", at_s=0.0, waiting_jobs=3, in_flight_jobs=1, delayed_jobs=0, oldest_age_s=1.0)
IDLE_WORKER = WorkerActivity(host="a", pid=1, is_busy=False)


def sent(news: ChangeFilter, at_s: float, *samples: QueueSample, activity: WorkerActivity = IDLE_WORKER) -> list[str]:
    """What is due, taken for sent: the last parts of the queues' names and ``worker``."""
    due, activities = news.due([replace(each, at_s=at_s) for each in samples], [activity], at_s=at_s)
    news.sent(due, activities, at_s=at_s)
    return [each.queue.removeprefix("redis/") for each in due] + ["worker" for _ in activities]


def test_the_first_reading_is_sent_and_then_only_what_changes() -> None:
    news = ChangeFilter()
    assert sent(news, 0.0, QUIET) == ["news", "worker"]
    assert sent(news, 0.5, QUIET) == []
    assert sent(news, 1.0, replace(QUIET, delayed_jobs=1)) == ["news"]
    assert sent(news, 1.5, replace(QUIET, delayed_jobs=1), activity=replace(IDLE_WORKER, is_busy=True)) == ["worker"]


def test_while_jobs_wait_their_age_is_sent_each_second() -> None:
    news = ChangeFilter()
    sent(news, 0.0, QUIET, BUSY)
    assert sent(news, 0.5, QUIET, BUSY) == []
    assert sent(news, 1.0, QUIET, BUSY) == ["mail"]
    assert sent(news, 1.5, QUIET, BUSY) == []
    assert sent(news, 2.0, QUIET, BUSY) == ["mail"]


def test_every_four_seconds_everything_goes_at_once() -> None:
    news = ChangeFilter()
    sent(news, 0.0, QUIET, BUSY)
    sent(news, 3.0, replace(QUIET, waiting_jobs=1))
    assert sent(news, 3.9, QUIET) == ["news"]
    assert sent(news, 4.0, QUIET, BUSY) == ["news", "mail", "worker"]
    assert sent(news, 4.5, QUIET) == []


def test_that_a_busy_queue_is_quiet_now_is_repeated_sooner_for_a_minute() -> None:
    news = ChangeFilter()
    sent(news, 0.0, QUIET, replace(BUSY, waiting_jobs=0))
    idle = replace(BUSY, waiting_jobs=0, in_flight_jobs=0)
    assert sent(news, 0.5, QUIET, idle) == ["mail"]
    assert sent(news, 2.0, QUIET, idle) == []
    assert sent(news, 2.5, QUIET, idle) == ["mail"]
    assert sent(news, 4.0, QUIET, idle) == ["news", "mail", "worker"]
    assert sent(news, 6.0, QUIET, idle) == ["mail"]
    for number in range(1, 17):
        sent(news, 4.0 * number, QUIET, idle)
    assert sent(news, 66.5, QUIET, idle) == []


def test_what_was_not_sent_stays_due() -> None:
    news = ChangeFilter()
    sent(news, 0.0, QUIET)
    changed = replace(QUIET, at_s=0.5, waiting_jobs=1)
    assert news.due([changed], [IDLE_WORKER], at_s=0.5) == ([changed], [])
    assert news.due([changed], [IDLE_WORKER], at_s=0.5) == ([changed], [])


@pytest.mark.parametrize("at_s", [1.0, 4.0])  # also where everything goes
def test_what_a_broker_does_not_say_of_a_worker_any_more_is_withdrawn_until_that_is_sent(at_s: float) -> None:
    """The heartbeat of a worker whose only thread runs a job is overdue: whether it is idle is not known any more."""
    news = ChangeFilter()
    other = replace(IDLE_WORKER, pid=2)
    news.sent([], [IDLE_WORKER, other], at_s=0.0)
    withdrawn = replace(other, is_busy=True, is_withdrawn=True)
    for _ in range(2):
        _, activities = news.due([], [IDLE_WORKER], at_s=at_s)
        assert withdrawn in activities
        assert activities.count(IDLE_WORKER) == (at_s == 4.0)
    news.sent([], activities, at_s=at_s)
    assert news.due([], [IDLE_WORKER], at_s=at_s + 0.5) == ([], [])
    assert news.due([], [IDLE_WORKER, other], at_s=at_s + 0.5) == ([], [other])


def test_a_clock_that_was_set_back_silences_nothing() -> None:
    news = ChangeFilter()
    sent(news, 1000.0, QUIET)
    assert sent(news, 10.0, QUIET) == ["news", "worker"]
    assert sent(news, 15.0, QUIET) == ["news", "worker"]
