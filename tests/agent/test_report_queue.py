"""Which changes of what workers do are reported at once, and not with the next report of every 15 s."""

import pytest

from headway.agent.controlplane.client import HostUpdate
from headway.agent.controlplane.report_queue import ReportQueue
from headway.scaling.model import HostCapacity, Worker, WorkerState


def update(*is_busy: bool | None) -> HostUpdate:
    """Workers a, b, … of which each is busy, idle or unknown."""
    workers = [
        Worker(
            worker_id=name, pool="mail", template="py", pid=1, state=WorkerState.RUNNING, started_at_s=0.0, is_busy=each
        )
        for name, each in zip("abc", is_busy, strict=False)
    ]
    return HostUpdate(capacity=HostCapacity(cpu_cores=1.0, memory_bytes=1), templates=(), workers=workers)


@pytest.mark.parametrize(
    ("reported", "since", "is_news"),
    [
        ([True, False], [[True, False]], False),
        ([True, False], [[True, True]], True),  # a busy worker is taken for idle
        ([True, False], [[True, None]], True),
        ([True, True], [[False, True]], False),  # between two jobs, perhaps
        ([True, True], [[False, True], [False, True]], True),
        ([True, True], [[False, True], [True, True], [False, True]], False),
        ([None, None], [[False, None], [False, None]], True),
        ([True, True], [[None, True], [None, True]], False),  # unknown is treated as busy
        ([False, False], [[False]], True),  # one is gone
    ],
)
def test_other_idle_workers_than_were_reported_are_news(
    reported: list[bool | None], since: list[list[bool | None]], is_news: bool
) -> None:
    queue = ReportQueue()
    queue.add(update(*reported))
    queue.reported(queue.batch())
    for each in since:
        queue.add(update(*each))
    assert queue.has_idle_news is is_news


def test_what_was_reported_is_no_news_any_more() -> None:
    queue = ReportQueue()
    for _ in range(2):
        queue.add(update(False))
    assert queue.has_idle_news
    queue.reported(queue.batch())
    assert not queue.has_idle_news
