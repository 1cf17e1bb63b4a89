"""Jobs that a broker counts as taken and that no worker has."""

from dataclasses import replace
from typing import Any

import pytest

from headway.scaling.metrics.unheld_jobs import (
    REPORT_AGE_MAX_S,
    UNHELD_AFTER_S,
    UNHELD_GAP_S,
    HeldJobs,
    UnheldWatch,
    are_all_idle,
    held_jobs,
)
from headway.scaling.model import (
    ActivitySource,
    Host,
    HostCapacity,
    Inability,
    QueueSample,
    Redelivery,
    Worker,
    WorkerState,
)

NOW_S = 1_800_000_000.0
TIMEOUT = Redelivery.VISIBILITY_TIMEOUT
IDLE = Worker(
    worker_id="w1",
    pool="mail",
    template="celery",
    pid=7,
    state=WorkerState.RUNNING,
    started_at_s=NOW_S - 600.0,
    is_busy=False,
    activity_source=ActivitySource.REPORTER,
)
CAPACITY = HostCapacity(cpu_cores=4.0, memory_bytes=1 << 30)
HOST = Host(host_id="a", name="a", capacity=CAPACITY, workers=(IDLE,), silent_s=3.0)


def sample(**values: Any) -> QueueSample:
    given = {"in_flight_jobs": 3, "delayed_jobs": 0, "redelivery": TIMEOUT, **values}
    return QueueSample(**{"queue": "redis/mail", "at_s": NOW_S - 2.0, "waiting_jobs": 0, **given})


@pytest.mark.parametrize(
    ("values", "jobs"),
    [
        ({}, 3),
        ({"in_flight_jobs": 0}, 0),
        ({"in_flight_jobs": 0, "redelivery": None}, 0),
        ({"in_flight_jobs": None, "in_flight_min_jobs": 2}, 2),
        ({"in_flight_jobs": None}, None),
        ({"redelivery": None}, None),  # RabbitMQ gives them back as soon as their worker is gone
        ({"delayed_jobs": None}, None),  # a worker may hold them until they are due
        ({"at_s": NOW_S - 13.0}, None),
    ],
)
def test_jobs_are_taken_by_the_word_of_a_source_that_says_what_becomes_of_them(
    values: dict[str, Any], jobs: int | None
) -> None:
    held = held_jobs([sample(**values)], now_s=NOW_S)
    assert (None if held is None else held.jobs) == jobs


def test_of_several_queues_all_must_be_known_and_their_jobs_add() -> None:
    empty = sample(queue="redis/other", in_flight_jobs=0, redelivery=None)
    assert held_jobs([sample(), empty], now_s=NOW_S) == HeldJobs(jobs=3, redelivery=TIMEOUT)
    assert held_jobs([sample(), None], now_s=NOW_S) is None


@pytest.mark.parametrize(
    ("worker", "is_idle"),
    [
        ({}, True),
        ({"activity_source": ActivitySource.BROKER}, True),
        ({"activity_source": ActivitySource.CPU}, False),  # which proves no worker idle
        ({"activity_source": None}, False),
        ({"is_busy": True}, False),
        ({"is_busy": None}, False),
        ({"state": WorkerState.STARTING}, False),
        ({"state": WorkerState.DRAINING}, False),
        ({"state": WorkerState.UNKNOWN}, False),
        ({"inability": Inability.STOPPED}, False),
        ({"is_left_behind": True}, False),
        ({"goes_to_background": True}, False),
        ({"pool": "other", "is_busy": True}, True),  # which takes from other queues
    ],
)
def test_all_workers_are_idle_if_each_is_known_to_be(worker: dict[str, Any], *, is_idle: bool) -> None:
    host = replace(HOST, workers=(IDLE, replace(IDLE, **{"worker_id": "w2", **worker})))
    assert are_all_idle({"mail"}, [host]) == is_idle


@pytest.mark.parametrize("host", [{"is_known": False}, {"is_confirmed": False}, {"silent_s": REPORT_AGE_MAX_S + 1.0}])
def test_nobody_knows_what_workers_of_a_silent_host_do(host: dict[str, Any]) -> None:
    assert not are_all_idle({"mail"}, [replace(HOST, **host)])


class Seen:
    """One pool, evaluated every 10 s."""

    def __init__(self) -> None:
        self._watch = UnheldWatch()
        self._now_s = NOW_S

    def __call__(self, jobs: int | None, *, are_idle: bool = True, after_s: float = 10.0) -> int | None:
        self._now_s += after_s
        held = None if jobs is None else HeldJobs(jobs=jobs, redelivery=TIMEOUT)
        return self._watch.see("mail", held, are_workers_idle=are_idle, now_s=self._now_s)


def of_a_minute(jobs: int) -> Seen:
    """A pool whose workers have been idle for so long beside ``jobs``."""
    seen = Seen()
    for _ in range(int(UNHELD_AFTER_S / 10.0) + 1):
        seen(jobs)
    assert seen(jobs) == jobs
    return seen


def test_no_worker_has_what_stays_taken_for_a_minute_while_all_are_idle() -> None:
    seen = Seen()
    assert [seen(3) for _ in range(8)] == [None] * 6 + [3, 3]


def test_the_fewest_that_were_taken_in_that_minute_count() -> None:
    """One of the four was on its way to a worker, or from it."""
    seen = Seen()
    assert [seen(4 if number == 2 else 3) for number in range(7)][-1] == 3


def test_jobs_that_come_and_go_are_held_by_workers() -> None:
    seen = Seen()
    assert {seen(number % 2) for number in range(30)} == {0, None}


def test_a_worker_that_begins_a_job_does_not_hide_the_others_at_once() -> None:
    seen = of_a_minute(3)
    assert seen(4, are_idle=False) == 3
    assert seen(3) == 3


def test_after_a_while_of_work_it_is_not_known() -> None:
    """The broker may have given them back, and what is taken now may run."""
    seen = of_a_minute(3)
    assert seen(3, are_idle=False, after_s=UNHELD_GAP_S) == 3
    assert seen(3, are_idle=False) is None
    assert seen(3) is None


def test_those_that_are_given_back_count_no_longer() -> None:
    seen = of_a_minute(3)
    assert [seen(2), seen(0), seen(2)] == [2, 0, None]


def test_more_of_them_show_after_another_minute() -> None:
    seen = of_a_minute(3)
    assert [seen(5) for _ in range(13)][-1] == 5


def test_nothing_is_said_where_the_broker_is_not_read_or_the_control_plane_was_away() -> None:
    seen = of_a_minute(3)
    assert (seen(None), seen(3)) == (None, 3)
    assert seen(3, after_s=UNHELD_GAP_S + 1.0) is None
