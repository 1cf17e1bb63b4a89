"""Spark's rows in Postgres: written twice they count once, and whoever waits is notified."""

import json
import threading
import time
from contextlib import closing
from dataclasses import dataclass, replace

import psycopg
import pytest

from headway.errors import Misconfigured, Unavailable
from headway.scaling.measure import BucketRow
from headway.store.metrics.metrics_sink import SINK_NOTICE_BYTES_MAX, MetricsSink, notice, wakes
from headway.store.metrics.pipeline_heartbeat import CRASHED, STOPPED, PipelineHeartbeat


@dataclass(frozen=True)
class Progress:
    """A micro-batch as the pipeline reports it."""

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
        revision = sink.write([ROW, replace(ROW, queue="redis/video")], Progress())
        received = next(listener.notifies(timeout=60, stop_after=1))
        revisions = listener.execute("select distinct revision from queue_buckets").fetchall()
    assert revisions == [(revision,)] == [(json.loads(received.payload)["revision"],)]


def test_pools_at_zero_in_whose_queues_jobs_wait_are_woken(migrated_url: str, sink: MetricsSink) -> None:
    """One that runs needs no notification, nor one whose queues are empty: they are decided by the clock."""
    with psycopg.connect(migrated_url, autocommit=True) as listener:
        for pool, queue in (("new", "a"), ("zero", "b"), ("runs", "c"), ("empty", "d")):
            listener.execute("insert into profiles (pool, body) values (%s, '{}')", [pool])
            listener.execute("insert into profile_queues (queue, pool, rank) values (%s, %s, 0)", [queue, pool])
        for pool, target in (("zero", 0), ("runs", 2)):
            listener.execute(
                "insert into pool_states (pool, target_workers, memory, epoch) values (%s, %s, '{}', 0)", [pool, target]
            )
        listener.execute("listen headway_metrics")
        sink.write([replace(ROW, queue=queue, waiting_jobs=int(queue != "d")) for queue in "abcd"], Progress())
        received = next(listener.notifies(timeout=60, stop_after=1))
    assert json.loads(received.payload)["wake"] == ["new", "zero"]


def test_a_lower_bound_of_what_waits_wakes_a_pool_at_zero(migrated_url: str, sink: MetricsSink) -> None:
    """Rows do not have it: it is in the newest reading of the queue."""
    with psycopg.connect(migrated_url, autocommit=True) as listener:
        for queue, least_jobs in (("a", 6000), ("b", 0), ("c", 2), ("d", 4)):
            body = json.dumps({"queues": [queue], "activation_jobs": 3})
            listener.execute("insert into profiles (pool, body) values (%s, %s)", [queue, body])
            listener.execute("insert into profile_queues (queue, pool, rank) values (%s, %s, 0)", [queue, queue])
            listener.execute(
                "insert into queue_samples (queue, sampled_at_s, waiting_min_jobs) values (%s, %s, %s)",
                [queue, ROW.bucket_s, least_jobs],
            )
        listener.execute("listen headway_metrics")
        sink.write([replace(ROW, queue=queue, waiting_jobs=None) for queue in "abcd"], Progress())
        received = next(listener.notifies(timeout=60, stop_after=1))
    assert json.loads(received.payload)["wake"] == ["a", "d"]


def test_a_pool_of_one_queue_is_woken_only_for_more_jobs_than_its_threshold(
    migrated_url: str, sink: MetricsSink
) -> None:
    """Of a pool with more queues one shows too little; what is no threshold keeps nobody asleep."""
    bodies = {
        "few": {"queues": ["a"], "activation_jobs": 3},
        "taken": {"queues": ["b"], "activation_jobs": 3},
        "more": {"queues": ["c"], "activation_jobs": 2},
        "two": {"queues": ["d", "e"], "activation_jobs": 9},
        "odd": {"queues": ["f"], "activation_jobs": "many"},
        "broken": {"queues": 7, "activation_jobs": 9},
    }
    with psycopg.connect(migrated_url, autocommit=True) as listener:
        for (pool, body), queue in zip(bodies.items(), "abcdfg", strict=True):
            listener.execute("insert into profiles (pool, body) values (%s, %s)", [pool, json.dumps(body)])
            listener.execute("insert into profile_queues (queue, pool, rank) values (%s, %s, 0)", [queue, pool])
        listener.execute("listen headway_metrics")
        rows = [replace(ROW, queue=queue, waiting_jobs=3, in_flight_jobs=int(queue == "b")) for queue in "abcdfg"]
        sink.write(rows, Progress())
        received = next(listener.notifies(timeout=60, stop_after=1))
    assert json.loads(received.payload)["wake"] == ["broken", "more", "odd", "taken", "two"]


def test_more_pools_than_a_notification_holds_wake_all_the_same() -> None:
    few, many = notice(1, ["mail"]), notice(1, [f"pool-{number}" for number in range(5_000)])
    assert [wakes(few), wakes(many), wakes(notice(1, []))] == [True, True, False]
    assert len(many) <= SINK_NOTICE_BYTES_MAX
    assert wakes("what an older pipeline says")


def test_a_batch_without_rows_takes_no_revision(sink: MetricsSink) -> None:
    assert sink.write([], Progress()) is None


def test_a_later_batch_has_a_greater_revision(sink: MetricsSink) -> None:
    first, second = sink.write([ROW], Progress()), sink.write([ROW], Progress())
    assert first is not None
    assert second is not None
    assert second > first


def test_every_field_comes_back_as_it_was(migrated_url: str, sink: MetricsSink) -> None:
    full = BucketRow(
        queue="redis/a b\t\\n",
        bucket_s=4e9,
        arrived_jobs=1,
        started_jobs=2,
        finished_jobs=3,
        failed_jobs=4,
        retried_attempts=3,
        retried_jobs=5,
        revoked_jobs=8,
        service_sum_s=0.1,
        pickup_max_s=1e-9,
        service_sketch={-348: 1, 698: 10**12},
        pickup_sketch={0: 1},
        sampled_at_s=4e9 + 0.123456,
        waiting_jobs=10**12,
        in_flight_jobs=0,
        delayed_jobs=6,
        oldest_age_s=7.5,
    )
    sink.write([full], Progress())
    with psycopg.connect(migrated_url) as connection:
        cursor = connection.execute("select * from queue_buckets")
        assert cursor.description is not None
        found = dict(zip([column.name for column in cursor.description], cursor.fetchone() or (), strict=True))
    for name in ("service_sketch", "pickup_sketch"):
        found[name] = {int(index): count for index, count in found[name].items()}
    assert BucketRow(**{name: value for name, value in found.items() if name in BucketRow.__dataclass_fields__}) == full


def test_a_job_class_has_rows_of_its_own_and_its_queue_keeps_its_own(migrated_url: str, sink: MetricsSink) -> None:
    of_class = replace(ROW, job_class="Mail", span_s=60.0, arrived_jobs=2, waiting_jobs=None)
    for _ in range(2):
        sink.write([ROW, of_class], Progress())
    assert stored(migrated_url) == [("redis/mail", 3, {"7": 2}, 1, None)]
    with psycopg.connect(migrated_url) as connection:
        rows = connection.execute("select queue, job_class, bucket_s, arrived_jobs, service_sketch from rollup_minutes")
        assert rows.fetchall() == [("redis/mail", "Mail", 4e9, 2, {"7": 2})]


def test_a_lost_connection_is_replaced(migrated_url: str, sink: MetricsSink) -> None:
    sink.write([ROW], Progress())
    with psycopg.connect(migrated_url, autocommit=True) as other:
        other.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid()"
            " and datname = current_database()"
        )
    sink.write([replace(ROW, arrived_jobs=4)], Progress())
    assert stored(migrated_url)[0][1] == 4


def test_a_sink_that_is_closed_amid_an_outage_stops_trying(database_url: str) -> None:
    """A pipeline that is asked to stop does not wait a minute for a Postgres that is away."""
    sink = MetricsSink(f"{database_url}_that_is_not_there")
    failures: list[Exception] = []

    def write() -> None:
        try:
            sink.write([ROW], Progress())
        except Unavailable as error:
            failures.append(error)

    writing = threading.Thread(target=write)
    writing.start()
    sink.close()
    writing.join(20)
    assert [str(error) for error in failures] == ["the pipeline is stopping: nothing more is written"]


def test_an_outage_is_logged_once_however_often_it_is_tried_again(
    sink: MetricsSink, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    tries: list[object] = []

    def back_at_the_third(work: object) -> None:
        tries.append(work)
        if len(tries) < 3:
            raise psycopg.OperationalError("connection refused")

    monkeypatch.setattr(sink, "_once", back_at_the_third)
    sink.write([ROW], Progress())
    assert len(tries) == 3
    assert caplog.messages.count("Postgres is away, trying again for 60 s: connection refused") == 1


def test_a_database_without_tables_is_one_sentence_that_says_what_to_do(database_url: str) -> None:
    with closing(MetricsSink(database_url)) as sink, pytest.raises(Misconfigured, match="headway migrate"):
        sink.starting()


def test_readiness_is_recorded_and_taken_back_at_the_next_start(migrated_url: str, sink: MetricsSink) -> None:
    def is_ready() -> object:
        with psycopg.connect(migrated_url) as connection:
            return connection.execute("select is_ready from pipeline_health").fetchall()

    sink.starting()
    assert is_ready() == [(False,)]
    sink.ready()
    assert is_ready() == [(True,)]
    sink.write([ROW], Progress())
    assert is_ready() == [(True,)]


def test_a_beat_says_that_the_pipeline_lives_and_leaves_its_last_batch(migrated_url: str, sink: MetricsSink) -> None:
    def health() -> tuple[object, ...]:
        with psycopg.connect(migrated_url) as connection:
            (row,) = connection.execute("select batch_id, rows, newest_received_at_s, written_at from pipeline_health")
        return row

    sink.ready()
    sink.write([ROW], Progress(batch_id=7))
    *batch, written_at = health()
    sink.beat()
    *same, beaten_at = health()
    assert same == batch == [7, 1, 1.0]
    assert beaten_at > written_at


def test_who_begins_after_one_that_was_not_stopped_is_restarting(migrated_url: str, sink: MetricsSink) -> None:
    def stage() -> object:
        with psycopg.connect(migrated_url) as connection:
            return connection.execute("select stage, is_ready from pipeline_health").fetchall()

    beat = PipelineHeartbeat(migrated_url)
    with closing(beat):
        sink.starting()
        sink.ready()
        beat.ended(STOPPED)
        assert stage() == [("stopped", False)]
        sink.starting()
        assert stage() == [("starting", False)]
        sink.ready()  # and is killed, which leaves no word
        sink.starting()
        assert stage() == [("restarting", False)]
        beat.ended(CRASHED)
        sink.starting()
        assert stage() == [("restarting", False)]


def test_a_sign_of_life_waits_for_no_batch_and_a_missing_database_is_no_error(
    migrated_url: str, sink: MetricsSink
) -> None:
    def beat_age_s() -> float:
        with psycopg.connect(migrated_url) as connection:
            (row,) = connection.execute("select extract(epoch from clock_timestamp() - beat_at) from pipeline_health")
        return float(row[0])

    sink.ready()
    with psycopg.connect(migrated_url) as connection, closing(PipelineHeartbeat(migrated_url)) as beat:
        connection.execute("update pipeline_health set beat_at = now() - interval '1 hour'")
        connection.commit()
        with sink._lock:
            beat.write()
    assert beat_age_s() < 600
    with closing(PipelineHeartbeat(f"{migrated_url}_that_is_not_there")) as beat:
        beat.write()


def test_what_the_pipeline_is_at_and_how_old_its_events_were_is_recorded(migrated_url: str, sink: MetricsSink) -> None:
    def health() -> tuple[object, ...]:
        with psycopg.connect(migrated_url) as connection:
            (row,) = connection.execute("select stage, is_ready, rows_lag_s from pipeline_health")
        return row

    sink.starting()
    assert health() == ("starting", False, None)
    sink.at("rebuilding")
    sink.beat()
    assert health() == ("rebuilding", False, None)
    sink.ready()
    sink.write([ROW], Progress(newest_received_at_s=time.time() - 40))
    *said, lag_s = health()
    assert said == ["ready", True]
    assert lag_s == pytest.approx(40, abs=10)
    sink.write([], Progress(newest_received_at_s=None))  # brings nothing, and tells nothing of a lag
    assert health() == ("ready", True, lag_s)
