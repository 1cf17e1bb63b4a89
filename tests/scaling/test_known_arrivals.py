"""Delayed jobs that come are work, and no news of what will come."""

from dataclasses import replace

from headway.scaling.model import DelayedJobs, KnownArrivals, QueueMetrics
from headway.scaling.reading.known_arrivals import SOON_S, learned, with_known
from headway.scaling.reading.pooled_queue import pooled

BEFORE = KnownArrivals(delayed_jobs=1_000)
QUEUE = QueueMetrics(
    queue="redis/mail",
    sampled_at_s=100.0,
    window_s=60.0,
    delayed_jobs=10,
    arrived_jobs=995,
    arrived_until_s=100.0,
    arrival_rate_per_s=20.0,
    retry_rate_per_s=1.0,
)


def seen(queue: QueueMetrics, before: KnownArrivals | None, now_s: float) -> tuple[QueueMetrics, KnownArrivals | None]:
    known = learned(before, queue, (queue,), tick_s=5.0, now_s=now_s)
    return with_known(queue, known, tick_s=5.0, now_s=now_s), known


def test_what_was_delayed_and_has_come_is_no_news() -> None:
    queue, known = seen(QUEUE, BEFORE, 101.0)
    assert known == KnownArrivals(delayed_jobs=10, came=((101.0, 990),), due_jobs=10)
    assert (queue.fresh_jobs, queue.fresh_rate_per_s) == (5, 20.0 - 1.0 - 990 / 60)


def test_only_arrivals_of_its_time_are_no_news() -> None:
    _, known = seen(QUEUE, BEFORE, 101.0)
    later = replace(QUEUE, arrived_jobs=7, arrived_until_s=130.0)
    queue, known = seen(later, known, 131.0)
    assert (queue.fresh_jobs, queue.fresh_rate_per_s) == (7, 20.0 - 1.0 - 990 / 60)
    queue, known = seen(replace(later, arrived_until_s=190.0, delayed_jobs=0), known, 191.0)
    assert queue.fresh_rate_per_s == 19.0 - 10 / 60
    assert known == KnownArrivals(delayed_jobs=0, came=((191.0, 10),), due_jobs=0)


def test_a_pool_without_delayed_jobs_remembers_nothing() -> None:
    queue = replace(QUEUE, delayed_jobs=0)
    assert seen(queue, None, 101.0) == (queue, None)
    assert seen(queue, KnownArrivals(delayed_jobs=0, came=((1.0, 5),)), 101.0) == (queue, None)


def test_jobs_of_which_it_is_not_known_whether_they_are_delayed_have_not_come() -> None:
    queue, known = seen(replace(QUEUE, delayed_jobs=None), BEFORE, 101.0)
    assert (known, queue.fresh_jobs) == (BEFORE, 995)
    _, known = seen(replace(QUEUE, delayed_jobs=1_200), BEFORE, 101.0)
    assert known == KnownArrivals(delayed_jobs=1_200, due_jobs=1_200)


def test_delayed_jobs_that_are_removed_before_they_are_due_have_not_come() -> None:
    """A purge takes 1,000 jobs, of which 3 were due: what comes meanwhile is news."""
    delayed = (DelayedJobs(jobs=3, due_in_s=SOON_S), DelayedJobs(jobs=997, due_in_s=600.0))
    _, known = seen(replace(QUEUE, delayed_jobs=1_000, delayed=delayed), None, 96.0)
    assert known == KnownArrivals(delayed_jobs=1_000, due_jobs=3)
    queue, known = seen(replace(QUEUE, delayed_jobs=0), known, 101.0)
    assert known == KnownArrivals(delayed_jobs=0, came=((101.0, 3),), due_jobs=0)
    assert (queue.fresh_jobs, queue.fresh_rate_per_s) == (995 - 3, 20.0 - 1.0 - 3 / 60)


def test_all_jobs_of_a_queue_may_come_that_does_not_say_when_they_are_due() -> None:
    known_times = replace(QUEUE, queue="a", delayed_jobs=50, delayed=(DelayedJobs(jobs=20, due_in_s=600.0),))
    unknown_times = replace(QUEUE, queue="b", delayed_jobs=7)
    known = learned(None, pooled((known_times, unknown_times)), (known_times, unknown_times), tick_s=5.0, now_s=96.0)
    assert known == KnownArrivals(delayed_jobs=57, due_jobs=7)


def test_after_an_evaluation_that_does_not_know_the_delayed_jobs_all_that_are_gone_may_have_come() -> None:
    _, known = seen(replace(QUEUE, delayed_jobs=None), KnownArrivals(delayed_jobs=1_000, due_jobs=3), 101.0)
    assert known == BEFORE
