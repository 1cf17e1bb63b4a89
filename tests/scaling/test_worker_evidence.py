"""What is known of workers, and what is made of it: unknown counts as busy wherever work is counted."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.scaling.metrics.newest_sample import LISTED_GAP_S, listed_workers, with_unlisted_workers
from headway.scaling.metrics.worker_evidence import SampledInstant, WorkerEvidence, evidence_of
from headway.scaling.model import ActivitySource, QueueMetrics, QueueSample, RunningJob, Worker, WorkerState
from headway.scaling.reading.busy_slots import slots_of, with_unknown_as_idle
from support.pools import NOW_S, predicted_pickup_s, queue, view

UNKNOWN, IDLE, BUSY = None, False, True
TWO_JOBS = {"busy_workers": 1, "reported_jobs": 2, "certain_jobs": 2}


def worker(is_busy: bool | None, running_jobs: int | None = None, busy_since_s: float | None = None) -> Worker:
    return Worker(
        worker_id="w",
        pool="mail",
        template="mail",
        pid=1,
        state=WorkerState.RUNNING,
        started_at_s=0.0,
        is_busy=is_busy,
        running_jobs=running_jobs,
        busy_since_s=busy_since_s,
    )


@pytest.mark.parametrize(
    ("workers", "running", "found", "most_slots"),
    [
        ([], 0, {}, 0),
        ([worker(IDLE)], 1, {"idle_workers": 1}, 0),
        ([worker(UNKNOWN)], 1, {"unknown_workers": 1}, 4),
        ([worker(BUSY)], 1, {"busy_workers": 1, "uncounted_workers": 1, "certain_jobs": 1}, 4),
        ([worker(BUSY, 3)], 1, {"busy_workers": 1, "reported_jobs": 3, "certain_jobs": 3}, 3),
        ([worker(BUSY, 0)], 1, {"busy_workers": 1, "reported_jobs": 1, "certain_jobs": 1}, 1),  # its word is busy
        ([worker(BUSY, 3, NOW_S)], 1, {"busy_workers": 1, "reported_jobs": 3}, 3),
        ([worker(IDLE, 0), worker(BUSY, 2)], 3, {"unknown_workers": 1, "idle_workers": 1} | TWO_JOBS, 2 + 4),
        ([worker(IDLE), worker(IDLE)], 1, {"idle_workers": 1}, 0),
        ([worker(IDLE), worker(BUSY, 1)], 1, {"busy_workers": 1, "reported_jobs": 1, "certain_jobs": 1}, 1),
    ],
)  # fmt: skip
def test_workers_are_counted_by_the_word_on_each(
    workers: list[Worker], running: int, found: dict[str, int], most_slots: int
) -> None:
    """With four slots a worker. Whoever runs and has no word on it is unknown."""
    evidence = evidence_of(workers, running_workers=running)
    assert evidence == WorkerEvidence(**found)
    assert evidence.most_slots(4) == most_slots
    assert evidence.may_be_busy_workers == running - found.get("idle_workers", 0)


def reporting(*started_ago_s: float, known_ago_s: float, source: ActivitySource = ActivitySource.REPORTER) -> Worker:
    """A worker that named its jobs, some seconds before the samples."""
    jobs = tuple(
        RunningJob(job_id=f"{number}", queue="mail", started_at_s=NOW_S - ago_s)
        for number, ago_s in enumerate(started_ago_s)
    )
    oldest_s = min((job.started_at_s for job in jobs), default=None)
    known = {"running": jobs, "activity_source": source, "activity_known_at_s": NOW_S - known_ago_s}
    return replace(worker(BUSY, len(jobs), oldest_s), **known)


@pytest.mark.parametrize(
    ("found", "service_s", "jobs"),
    [
        (reporting(20.0, known_ago_s=0.0), 0.001, 1),  # it ran at the very instant
        (reporting(20.0, known_ago_s=5.0), 0.001, 1),  # it had run for 15 s, five seconds ago
        (reporting(20.0, known_ago_s=12.0), 0.001, 0),  # it had run for 8 s, 12 s ago
        (reporting(20.0, known_ago_s=12.0), 60.0, 1),  # the pool's jobs take a minute
        (reporting(20.0, known_ago_s=19.9), None, 1),  # nobody knows how long they take
        (reporting(5.002, known_ago_s=5.0), 0.002, 0),  # of milliseconds, seconds ago
        (reporting(-1.0, known_ago_s=-2.0), None, 0),  # it began after the samples: it is a job that was taken
        (reporting(20.0, 20.0, -1.0, known_ago_s=-2.0), None, 2),
        (reporting(20.0, known_ago_s=0.0, source=ActivitySource.BROKER), None, 0),  # the samples have it
    ],
)
def test_a_job_that_its_worker_reported_ran_at_the_instant_of_the_samples(
    found: Worker, service_s: float | None, jobs: int
) -> None:
    """Unless it began later, or the word is older than such a job lasts."""
    instant = SampledInstant(at_s=NOW_S, service_time_s=service_s)
    assert evidence_of([found], running_workers=1, instant=instant).certain_jobs == jobs


def test_words_are_brought_to_the_clock_of_the_jobs() -> None:
    found = replace(reporting(20.0, known_ago_s=0.0), activity_known_at_s=NOW_S - 100.0)
    instant = SampledInstant(at_s=NOW_S, ahead_s=100.0, service_time_s=0.001)
    assert evidence_of([found], running_workers=1, instant=instant).certain_jobs == 1


def at_least(in_flight_jobs: int, **values: Any) -> QueueMetrics:
    return queue(in_flight_jobs=None, in_flight_min_jobs=in_flight_jobs, **values)


@pytest.mark.parametrize(
    ("known", "pool", "slots"),
    [
        # The broker's count, and what workers are known to run beside it.
        (queue(in_flight_jobs=2), {"running_workers": 3}, 2),
        (queue(in_flight_jobs=2), {"running_workers": 3, "certain_jobs": 3}, 3),
        (queue(in_flight_jobs=2), {"running_workers": 3, "unknown_activity_workers": 3, "idle_workers": 0}, 2),
        # Six workers with one job each that the broker has forgotten, and three that it has not given out yet.
        (at_least(3), {"running_workers": 6, "busy_workers": 6, "busy_slots": 6, "unknown_activity_workers": 6}, 6),
        (at_least(3, reserved_jobs=3), {"running_workers": 6, "busy_workers": 2, "busy_slots": 2}, 2),
        (at_least(3), {"running_workers": 6, "busy_workers": 2, "busy_slots": 2}, 3),
        (at_least(0, reserved_jobs=1), {"running_workers": 6, "busy_workers": 0, "busy_slots": 0}, 1),
        # Of two jobs by the workers' word, one began after the sample: it is work that is taken.
        (at_least(0), {"running_workers": 6, "busy_workers": 2, "busy_slots": 2, "taken_jobs": 1}, 1),
    ],
)
def test_work_in_progress_is_what_is_counted_else_the_most_that_can_run(
    known: QueueMetrics, pool: dict[str, Any], slots: int
) -> None:
    assert slots_of(view(known, **pool)).busy(known) == slots


def test_the_least_work_is_that_of_workers_that_are_known_to_be_busy() -> None:
    seen = view(
        at_least(0), running_workers=5, busy_workers=4, busy_slots=13, unknown_activity_workers=3, slots_per_worker=4
    )
    least = with_unknown_as_idle(seen, slots_of(seen))
    assert (least.busy_workers, least.busy_slots, least.unknown_activity_workers) == (1, 1, 0)


@given(exact=st.integers(0, 40), least=st.integers(0, 40), running=st.integers(0, 10), unknown=st.integers(0, 10))
def test_least_figure_and_most_are_in_order(exact: int, least: int, running: int, unknown: int) -> None:
    """What is counted without the unknown workers is never more than with them, and never less than the bound."""
    unknown = min(unknown, running)
    bounded = view(
        at_least(min(exact, least)),
        running_workers=running,
        busy_workers=running,
        busy_slots=running * 4,
        unknown_activity_workers=unknown,
        slots_per_worker=4,
    )
    (seen,) = bounded.queues
    fewest, most = (slots_of(each).busy(seen) for each in (with_unknown_as_idle(bounded, slots_of(bounded)), bounded))
    assert min(exact, least) <= fewest <= most
    assert most <= max(running * 4, min(exact, least))


def test_a_prediction_waits_for_the_most_that_may_run() -> None:
    known = at_least(0, service_time_s=6.0)
    seen = view(known, running_workers=2, busy_workers=2, busy_slots=2, unknown_activity_workers=2)
    assert predicted_pickup_s(seen, target_workers=2) == pytest.approx(3.0)  # one of two slots, each busy for 6 s


def sample(listed_workers: int | None, *, ago_s: float = 1.0) -> dict[str, QueueSample]:
    known = QueueSample(queue="redis/mail", at_s=NOW_S - ago_s, waiting_jobs=0, listed_workers=listed_workers)
    return {known.queue: known}


@pytest.mark.parametrize(
    ("samples", "is_exact"),
    [
        (sample(3), True),
        (sample(4), True),
        (sample(2), False),  # a worker without heartbeats, or one whose only thread works
        (sample(None), True),  # whoever lists no workers counts jobs in another way
        (sample(2, ago_s=LISTED_GAP_S + 1), True),
        ({}, True),
    ],
)
def test_a_broker_that_does_not_see_every_worker_knows_a_lower_bound(
    samples: dict[str, QueueSample], is_exact: bool
) -> None:
    counted = queue(in_flight_jobs=2, in_flight_mean_jobs=2.0)
    (known,) = with_unlisted_workers([counted], samples, running_workers=3, now_s=NOW_S)
    if is_exact:
        assert known is counted
    else:
        assert (known.in_flight_jobs, known.in_flight_min_jobs, known.in_flight_mean_jobs) == (None, 2, None)


def listed(queue: str, workers: int | None, *, ago_s: float = 0.0) -> QueueSample:
    return QueueSample(queue=queue, at_s=NOW_S - ago_s, waiting_jobs=0, listed_workers=workers)


@pytest.mark.parametrize(
    ("read", "found"),
    [
        ([listed("a", 3), listed("b", 2)], 3),  # a worker that serves both is one worker
        ([listed("a", 0), listed("b", 0)], 0),
        ([listed("a", 3), listed("b", None)], None),
        ([listed("a", 3), listed("b", 3, ago_s=LISTED_GAP_S + 1)], None),
        ([listed("a", 3)], None),  # b was never read
    ],
)
def test_a_broker_lists_each_worker_of_a_pool_once(read: list[QueueSample], found: int | None) -> None:
    assert listed_workers(["a", "b"], {each.queue: each for each in read}, now_s=NOW_S) == found
