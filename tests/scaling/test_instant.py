"""Workers and queues of one view are of one instant: that of the newest samples."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.scaling.metrics.sampling_instant import (
    NOTHING_RECENT,
    RecentStarts,
    WorkersAtInstant,
    counted,
    instant_s,
    recent_of,
)
from headway.scaling.model import QueueMetrics, Worker, WorkerState
from support.pools import queue

AT_S = 1_000.0


def sampled(name: str, at_s: float | None, *, in_flight_jobs: int | None = 0) -> QueueMetrics:
    return queue(queue=name, sampled_at_s=at_s, in_flight_jobs=in_flight_jobs)


def worker(
    pool: str = "mail",
    *,
    state: WorkerState = WorkerState.RUNNING,
    ready_at_s: float | None = None,
    begun_at_s: float | None = None,
) -> Worker:
    return Worker(
        worker_id="w",
        pool=pool,
        template="mail",
        pid=1,
        state=state,
        started_at_s=0.0,
        state_since_s=ready_at_s,
        busy_since_s=begun_at_s,
    )


@pytest.mark.parametrize(
    ("queues", "at_s"),
    [
        ((), None),
        ((sampled("redis/a", None),), None),
        ((sampled("redis/a", 10.0),), 10.0),
        # One look of a collector is at both: it was silent about that which had not changed.
        ((sampled("redis/a", 6.0), sampled("redis/b", 10.0)), 10.0),
        # Of another connection another collector tells.
        ((sampled("redis/a", 6.0), sampled("other/b", 10.0)), 6.0),
        ((sampled("redis/a", None), sampled("other/b", 10.0)), 10.0),
    ],
)
def test_samples_are_of_the_newest_of_their_connection(queues: tuple[QueueMetrics, ...], at_s: float | None) -> None:
    assert instant_s(queues) == at_s


@pytest.mark.parametrize(
    ("recent", "in_flight_jobs", "running", "starting", "expected"),
    [
        # nothing of late: as reported
        (RecentStarts(), 1, 2, 1, (2, 1, 0)),
        # ready since the sample: it still starts
        (RecentStarts(ready_at_s=(AT_S + 0.1,)), 0, 1, 0, (0, 1, 0)),
        (RecentStarts(ready_at_s=(AT_S - 0.1,)), 0, 1, 0, (1, 0, 0)),
        (RecentStarts(ready_at_s=(AT_S + 0.1, AT_S - 0.1)), 1, 3, 2, (2, 3, 0)),
        # but the sample knows of its job
        (RecentStarts(ready_at_s=(AT_S + 0.1,)), 1, 1, 0, (1, 0, 0)),
        # a report that is late: the sample knows of the job of one that is said to start
        (RecentStarts(), 2, 1, 2, (2, 1, 0)),
        # workers of somebody else: there are no more than there are
        (RecentStarts(), 9, 1, 2, (3, 0, 0)),
        # a job begun since the sample
        (RecentStarts(begun_at_s=(AT_S + 0.1,)), 0, 1, 0, (1, 0, 1)),
        (RecentStarts(begun_at_s=(AT_S - 0.1,)), 0, 1, 0, (1, 0, 0)),
        # a worker's clock that is ahead: its job is in the sample, and no slot was free
        (RecentStarts(begun_at_s=(AT_S + 0.1,)), 1, 1, 0, (1, 0, 0)),
        # ready and at work, both since the sample
        (RecentStarts(ready_at_s=(AT_S + 0.1,), begun_at_s=(AT_S + 0.2,)), 0, 1, 0, (0, 1, 1)),
        # in flight is not known
        (RecentStarts(ready_at_s=(AT_S + 0.1,)), None, 2, 0, (1, 1, 0)),
    ],
)
def test_workers_are_counted_as_the_sample_could_know_them(
    recent: RecentStarts, in_flight_jobs: int | None, running: int, starting: int, expected: tuple[int, int, int]
) -> None:
    found = counted(
        (sampled("redis/mail", AT_S, in_flight_jobs=in_flight_jobs),),
        recent,
        running_workers=running,
        starting_workers=starting,
        slots_per_worker=1,
    )
    assert found == WorkersAtInstant(running_workers=expected[0], starting_workers=expected[1], taken_jobs=expected[2])


def test_while_no_queue_was_ever_sampled_workers_are_as_they_were_reported() -> None:
    recent = RecentStarts(ready_at_s=(AT_S,), begun_at_s=(AT_S,))
    found = counted((sampled("redis/mail", None),), recent, running_workers=2, starting_workers=1, slots_per_worker=1)
    assert found == WorkersAtInstant(running_workers=2, starting_workers=1, taken_jobs=0)


TIMES = st.lists(st.floats(AT_S - 5.0, AT_S + 5.0), max_size=6).map(tuple)


@given(
    st.builds(RecentStarts, ready_at_s=TIMES, begun_at_s=TIMES),
    st.none() | st.integers(0, 40),
    st.integers(0, 6),
    st.integers(0, 6),
    st.integers(1, 5),
)
def test_bringing_workers_to_the_instant_loses_and_invents_none_and_hides_no_job(
    recent: RecentStarts, in_flight_jobs: int | None, running: int, starting: int, slots: int
) -> None:
    found = counted(
        (sampled("redis/mail", AT_S, in_flight_jobs=in_flight_jobs),),
        recent,
        running_workers=running,
        starting_workers=starting,
        slots_per_worker=slots,
    )
    assert found.running_workers + found.starting_workers == running + starting
    assert found.running_workers >= 0
    assert found.starting_workers >= 0
    assert 0 <= found.taken_jobs <= running * slots
    at_work = min(in_flight_jobs or 0, (running + starting) * slots)
    assert found.running_workers * slots >= at_work, "a slot that has a job by the sample runs by then"


def test_what_running_workers_did_of_late_is_found_by_pool() -> None:
    workers = (
        worker("mail", ready_at_s=95.0),
        worker("mail", ready_at_s=80.0, begun_at_s=96.0),
        worker("mail", ready_at_s=95.0, state=WorkerState.DRAINING),
        worker("news", begun_at_s=50.0),
        worker("push"),
    )
    found = recent_of(workers, since_s=90.0)
    assert found == {"mail": RecentStarts(ready_at_s=(95.0,), begun_at_s=(96.0,))}
    assert found.get("news", NOTHING_RECENT) == RecentStarts()


def test_states_are_brought_to_the_clock_of_the_samples() -> None:
    assert recent_of((worker(ready_at_s=95.0),), since_s=90.0, ahead_s=-10.0) == {}
    found = recent_of((worker(ready_at_s=95.0, begun_at_s=95.0),), since_s=90.0, ahead_s=10.0)
    assert found == {"mail": RecentStarts(ready_at_s=(105.0,), begun_at_s=(95.0,))}
