"""Spark's rows in Postgres: written twice they count once, and whoever waits is told."""

from dataclasses import dataclass, replace

import psycopg
import pytest

from headway.scaling.measure import BucketRow
from headway.store.sink import KEPT_S, MetricsSink


@dataclass(frozen=True)
class Progress:
    """A micro-batch as the pipeline tells of it."""

    batch_id: int = 1
    batch_s: float = 0.1
    newest_received_at_s: float | None = 1.0


ROW = BucketRow(queue="redis/mail", bucket_s=4e9, arrived_jobs=3, service_sketch={7: 2}, waiting_jobs=1)


def stored(url: str) -> list[tuple[object, ...]]:
    with psycopg.connect(url) as connection:
        return connection.execute(
            "select queue, arrived_jobs, service_sketch, waiting_jobs, oldest_age_s from queue_buckets order by queue"
        ).fetchall()


@pytest.fixture
def sink(migrated_url: str):
    sink = MetricsSink(migrated_url)
    yield sink
    sink.close()


def test_a_replayed_batch_changes_nothing(migrated_url: str, sink: MetricsSink) -> None:
    sink.write([ROW], Progress())
    once = stored(migrated_url)
    sink.write([ROW], Progress())
    assert stored(migrated_url) == once == [("redis/mail", 3, {"7": 2}, 1, None)]


def test_a_newer_version_of_a_bucket_takes_its_place(migrated_url: str, sink: MetricsSink) -> None:
    sink.write([ROW], Progress())
    sink.write([replace(ROW, arrived_jobs=5, service_sketch={7: 2, 9: 1}, waiting_jobs=None)], Progress())
    assert stored(migrated_url) == [("redis/mail", 5, {"7": 2, "9": 1}, None, None)]


def test_each_batch_has_one_revision_and_says_it(migrated_url: str, sink: MetricsSink) -> None:
    with psycopg.connect(migrated_url, autocommit=True) as listener:
        listener.execute("listen headway_metrics")
        sink.write([ROW, replace(ROW, queue="redis/video")], Progress())
        told = next(listener.notifies(timeout=10, stop_after=1))
        revisions = listener.execute("select distinct revision from queue_buckets").fetchall()
    assert revisions == [(int(told.payload),)]


def test_a_lost_connection_is_replaced(migrated_url: str, sink: MetricsSink) -> None:
    sink.write([ROW], Progress())
    with psycopg.connect(migrated_url, autocommit=True) as other:
        other.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid()"
            " and datname = current_database()"
        )
    sink.write([replace(ROW, arrived_jobs=4)], Progress())
    assert stored(migrated_url)[0][1] == 4


def test_buckets_past_their_time_are_forgotten(migrated_url: str, sink: MetricsSink) -> None:
    with psycopg.connect(migrated_url, autocommit=True) as connection:
        connection.execute(
            "insert into queue_buckets (queue, bucket_s, revision) values ('old', extract(epoch from now()) - %s, 0)",
            [KEPT_S + 60],
        )
    sink.write([ROW], Progress())
    assert [queue for queue, *_ in stored(migrated_url)] == ["redis/mail"]


def test_readiness_is_told_and_taken_back_at_the_next_start(migrated_url: str, sink: MetricsSink) -> None:
    def is_ready() -> object:
        with psycopg.connect(migrated_url) as connection:
            return connection.execute("select is_ready from pipeline_health").fetchall()

    sink.starting()
    assert is_ready() == [(False,)]
    sink.ready()
    assert is_ready() == [(True,)]
    sink.write([ROW], Progress())
    assert is_ready() == [(True,)]
