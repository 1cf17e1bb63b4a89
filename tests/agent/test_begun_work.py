"""A worker that was published as idle and has begun a job is news, at most once a second."""

import pytest

from headway.agent.model import NOT_KNOWN, Activity
from headway.agent.reporting.begun_work import PUBLISHED_GAP_S, WORKS_FOR_S, BegunWork
from headway.scaling.model import ActivitySource, Worker, WorkerState

NOW_S = 100.0
IDLE = Activity(is_busy=False, source=ActivitySource.REPORTER, known_at_s=NOW_S)


def published(is_busy: bool | None, *, ago_s: float) -> BegunWork:
    worker = Worker(
        worker_id="w",
        pool="mail",
        template="mail",
        pid=1,
        state=WorkerState.RUNNING,
        started_at_s=0.0,
        is_busy=is_busy,
    )
    begun_work = BegunWork()
    begun_work.publish([worker], now_s=NOW_S - ago_s)
    return begun_work


def busy(*, for_s: float | None) -> Activity:
    since_s = None if for_s is None else NOW_S - for_s
    return Activity(is_busy=True, busy_since_s=since_s, source=ActivitySource.REPORTER, known_at_s=NOW_S)


@pytest.mark.parametrize(
    ("was_busy", "activity", "is_due"),
    [
        (False, busy(for_s=WORKS_FOR_S), True),
        (False, busy(for_s=None), True),  # nobody knows since when
        (False, busy(for_s=WORKS_FOR_S / 2), False),  # perhaps it takes milliseconds
        (False, IDLE, False),
        (False, NOT_KNOWN, False),
        (True, busy(for_s=60.0), False),  # the control plane knows
        (None, busy(for_s=60.0), False),  # it counts as busy there
    ],
)
def test_an_idle_worker_that_has_worked_for_a_while_is_news(
    was_busy: bool | None, activity: Activity, is_due: bool
) -> None:
    begun_work = published(was_busy, ago_s=60.0)
    assert begun_work.is_due(lambda _: activity, now_s=NOW_S) is is_due


@pytest.mark.parametrize(("ago_s", "is_due"), [(PUBLISHED_GAP_S, True), (PUBLISHED_GAP_S / 2, False)])
def test_news_of_begun_work_come_once_a_second_at_most(ago_s: float, is_due: bool) -> None:
    assert published(False, ago_s=ago_s).is_due(lambda _: busy(for_s=9.0), now_s=NOW_S) is is_due


def test_before_anything_is_published_nothing_is_news() -> None:
    assert not BegunWork().is_due(lambda _: busy(for_s=9.0), now_s=NOW_S)
