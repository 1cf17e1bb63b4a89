from headway.control.recent import KEPT_S, RecentBuckets
from headway.scaling.measure import BucketRow
from headway.scaling.model import Objective


def row(bucket_s: float, *, queue: str = "redis/mail", waiting_jobs: int = 0, arrived_jobs: int = 0) -> BucketRow:
    return BucketRow(
        queue=queue,
        bucket_s=bucket_s,
        arrived_jobs=arrived_jobs,
        sampled_at_s=bucket_s + 1,
        waiting_jobs=waiting_jobs,
        oldest_age_s=0.0,
    )


def test_a_newer_version_of_a_bucket_takes_the_place_of_the_older() -> None:
    recent = RecentBuckets()
    recent.take([row(100.0, arrived_jobs=3)], revision=1)
    recent.take([row(100.0, arrived_jobs=6)], revision=2)
    metrics = recent.metrics("redis/mail", now_s=130.0, objective=Objective())
    assert metrics.arrival_rate_per_s == 6 / 30
    assert recent.revision == 2


def test_the_queues_in_which_jobs_wait_are_named() -> None:
    recent = RecentBuckets()
    assert recent.take([row(5.0, waiting_jobs=2), row(5.0, queue="redis/idle")], revision=1) == {"redis/mail"}


def test_forgetting_keeps_the_newest_row_so_that_its_age_can_be_told() -> None:
    recent = RecentBuckets()
    recent.take([row(5.0), row(10.0)], revision=1)
    recent.forget(now_s=10.0 + 2 * KEPT_S)
    metrics = recent.metrics("redis/mail", now_s=10.0 + 2 * KEPT_S, objective=Objective())
    assert metrics.sampled_at_s == 11.0


def test_a_queue_never_seen_is_unknown_and_not_empty() -> None:
    metrics = RecentBuckets().metrics("redis/none", now_s=1.0, objective=Objective())
    assert metrics.sampled_at_s is None
    assert metrics.waiting_jobs is None
    assert metrics.arrival_rate_per_s is None
