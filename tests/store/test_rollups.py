"""Minutes and hours made of buckets, on a real Postgres: equal to the definition, redone where a bucket changed."""

import logging
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headway.scaling.measure import CLASS_BUCKET_S, BucketRow, rolled_up
from headway.store.metrics import rollups
from headway.store.metrics.metrics_sink import MetricsSink
from headway.store.metrics.rollup_statements import VALUES
from headway.store.metrics.rollups import ROLLUP_FINAL_S, levels, tend
from headway.store.missing_rights import MissingRights
from headway.store.retention import BUCKETS_KEPT_S, HOURS_KEPT_S, MINUTES_KEPT_S
from headway_spark.stream.pipeline import LATENESS_S
from store.progress import Progress

HOUR_S = 1_000_800.0  # on the hour
DAY_S = 86_400.0


class Database:
    """Buckets written as the pipeline does, and what becomes of them."""

    def __init__(self, url: str) -> None:
        self.sink = MetricsSink(url)
        self.connection: rollups.Connection = psycopg.connect(url, autocommit=True)

    def write(self, *rows: BucketRow) -> None:
        self.sink.write(rows, Progress())

    def settled(self) -> None:
        """As if all that is stored had been written long ago."""
        self.connection.execute("update queue_buckets set written_at = now() - interval '1 day'")

    def tend(self) -> None:
        tend(self.connection, is_stopping=lambda: False, lacks=MissingRights())

    def rows(self, table: str) -> list[BucketRow]:
        span_s = {"rollup_minutes": 60.0, "rollup_hours": 3600.0}[table]
        query = f"select queue, nullif(job_class, ''), bucket_s, {', '.join(VALUES)} from {table} order by 1, 2, 3"
        found = []
        for queue, job_class, bucket_s, *values in self.connection.execute(query).fetchall():
            given = dict(zip(VALUES, values, strict=True))
            for name in ("service_sketch", "pickup_sketch"):
                given[name] = {int(index): jobs for index, jobs in given[name].items()}
            found.append(BucketRow(queue=queue, job_class=job_class, bucket_s=bucket_s, span_s=span_s, **given))
        return found

    def count(self, table: str) -> int:
        return int(self.connection.execute(f"select count(*) from {table}").fetchone()[0])

    def empty(self) -> None:
        self.connection.execute("truncate queue_buckets, rollup_minutes, rollup_hours")
        self.connection.execute("update rollup_progress set revision = 0, minutes_until_s = 0, hours_until_s = 0")


@pytest.fixture
def database(migrated_url: str) -> Iterator[Database]:
    database = Database(migrated_url)
    yield database
    database.sink.close()
    database.connection.close()


def arrived(after_s: float, jobs: int, **more: object) -> BucketRow:
    """A bucket that starts so long after the hour."""
    return BucketRow(**{"queue": "q", "bucket_s": HOUR_S + after_s, "arrived_jobs": jobs} | more)


def jobs_by_start(rows: Sequence[BucketRow]) -> dict[float, int]:
    return {row.bucket_s - HOUR_S: row.arrived_jobs for row in rows}


COUNT = st.integers(0, 10**6)
SKETCH = st.dictionaries(st.integers(-348, 698), st.integers(1, 10**9), max_size=4)
BUCKET = st.builds(
    BucketRow,
    queue=st.sampled_from(["a", "b"]),
    bucket_s=st.integers(0, 60).map(lambda number: HOUR_S + 5.0 * number),
    arrived_jobs=COUNT,
    started_jobs=COUNT,
    finished_jobs=COUNT,
    failed_jobs=COUNT,
    retried_jobs=COUNT,
    revoked_jobs=COUNT,
    service_sum_s=st.floats(0, 1e6),
    pickup_max_s=st.none() | st.floats(0, 1e6),
    service_sketch=SKETCH,
    pickup_sketch=SKETCH,
).filter(
    lambda row: any((row.arrived_jobs, row.started_jobs, row.finished_jobs, row.failed_jobs))
)  # what has waits began
IDLE = st.builds(BucketRow, queue=st.just("idle"), bucket_s=st.just(HOUR_S))
SAMPLED = st.builds(
    lambda row, after_s, waiting_jobs, delayed_jobs: replace(
        row, sampled_at_s=row.bucket_s + after_s, waiting_jobs=waiting_jobs, delayed_jobs=delayed_jobs, oldest_age_s=1.5
    ),
    BUCKET | IDLE,
    st.floats(0, 4.9),
    st.integers(0, 5),
    st.none() | st.integers(0, 5),
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(given_rows=st.lists(BUCKET | SAMPLED | IDLE, max_size=40))
def test_postgres_merges_as_the_definition_does(database: Database, given_rows: list[BucketRow]) -> None:
    database.empty()
    rows = list({(row.queue, row.bucket_s): row for row in given_rows}.values())
    late = arrived(3600.0 + ROLLUP_FINAL_S, 1, queue="z")
    database.write(*rows, late)
    database.tend()
    for table, span_s in (("rollup_minutes", 60.0), ("rollup_hours", 3600.0)):
        found, expected = database.rows(table), rolled_up(rows, span_s=span_s)
        assert [replace(row, service_sum_s=0.0) for row in found] == [
            replace(row, service_sum_s=0.0) for row in expected
        ]
        assert [row.service_sum_s for row in found] == pytest.approx([row.service_sum_s for row in expected])


def test_a_minute_is_made_once_it_has_ended_and_redone_when_a_bucket_of_it_changes(database: Database) -> None:
    database.write(arrived(0.0, 1), arrived(55.0, 2), arrived(60.0, 4))
    database.tend()
    assert jobs_by_start(database.rows("rollup_minutes")) == {0.0: 3}  # the second still runs
    database.write(arrived(120.0, 8))
    database.tend()
    database.write(arrived(5.0, 16), arrived(60.0, 5))
    database.tend()
    assert jobs_by_start(database.rows("rollup_minutes")) == {0.0: 19, 60.0: 5}


def test_an_hour_is_made_when_no_event_can_change_it_any_more(database: Database) -> None:
    database.write(arrived(0.0, 1), arrived(3595.0, 2), arrived(3600.0 + ROLLUP_FINAL_S - 5.0, 1))
    database.tend()
    assert database.rows("rollup_hours") == []
    database.write(arrived(3600.0 + ROLLUP_FINAL_S, 1))
    database.tend()
    assert jobs_by_start(database.rows("rollup_hours")) == {0.0: 3}


def test_no_event_is_taken_into_an_hour_that_was_made() -> None:
    """The stream's own bound: a bucket, or the minute of a class, that began before the hour's end is forgotten."""
    assert ROLLUP_FINAL_S >= LATENESS_S + CLASS_BUCKET_S


def test_a_rebuilt_past_changes_its_hour_again(database: Database) -> None:
    database.write(arrived(0.0, 1), arrived(7200.0 + ROLLUP_FINAL_S, 1))
    database.tend()
    database.write(arrived(0.0, 10))
    database.tend()
    assert jobs_by_start(database.rows("rollup_hours"))[0.0] == 10


def test_job_classes_get_hours_from_their_minutes(database: Database) -> None:
    for minute in range(2):
        database.write(arrived(60.0 * minute, 3, job_class="Mail", span_s=60.0, service_sketch={7: 2}))
    database.write(arrived(0.0, 6), arrived(3600.0 + ROLLUP_FINAL_S, 1))
    database.tend()
    classed = [row for row in database.rows("rollup_hours") if row.job_class]
    assert [(row.job_class, row.arrived_jobs, row.service_sketch) for row in classed] == [("Mail", 6, {7: 4})]


def test_hours_without_the_pipeline_leave_no_gap(database: Database) -> None:
    """It went away amid a minute and comes back a day later: that minute is whole, and nothing before it is lost."""
    database.write(arrived(0.0, 1), arrived(60.0, 2))
    database.tend()
    database.settled()
    database.tend()  # as the first thing after the day: nothing has come yet
    database.write(arrived(65.0, 4))
    database.tend()
    database.write(arrived(DAY_S, 8))
    database.tend()
    assert jobs_by_start(database.rows("rollup_minutes")) == {0.0: 1, 60.0: 6}
    assert jobs_by_start(database.rows("rollup_hours")) == {0.0: 7}


def test_a_turn_that_was_cut_short_is_gone_over_again(database: Database) -> None:
    database.write(*(arrived(60.0 * minute, 1) for minute in range(5)))
    turns = iter([False, False, True])
    tend(database.connection, is_stopping=lambda: next(turns, True), lacks=MissingRights())
    assert len(database.rows("rollup_minutes")) == 2
    database.tend()
    assert jobs_by_start(database.rows("rollup_minutes")) == {60.0 * minute: 1 for minute in range(4)}


def test_an_hour_of_many_queues_is_made_in_parts_and_minutes_once(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A whole hour in one statement ran into its timeout: every turn began anew, and nothing was ever forgotten."""
    queues = [f"q{number}" for number in range(5)]
    database.write(*(arrived(60.0 * minute, 1, queue=queue) for queue in queues for minute in range(2)))
    database.write(arrived(3600.0 + ROLLUP_FINAL_S, 1))
    monkeypatch.setattr(rollups, "ROLLUP_HOUR_QUEUES", 2)
    reads: list[int] = []

    def is_stopping_in_the_hour() -> bool:
        reads.append(database.count("rollup_hours"))
        return reads[-1] > 0

    tend(database.connection, is_stopping=is_stopping_in_the_hour, lacks=MissingRights())
    assert [row.queue for row in database.rows("rollup_hours")] == queues[:2]
    database.connection.execute("delete from rollup_minutes where bucket_s >= %s", [HOUR_S + 60.0])
    database.tend()
    assert jobs_by_start(database.rows("rollup_minutes")) == {0.0: 1}
    assert [(row.queue, row.arrived_jobs) for row in database.rows("rollup_hours")] == [(queue, 1) for queue in queues]


def test_each_level_is_forgotten_when_the_stream_has_passed_its_time(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many rows, in small turns."""
    monkeypatch.setattr(rollups, "ROLLUP_FORGET_ROWS_MAX", 2)
    database.write(*(arrived(5.0 * number, 1) for number in range(5)))
    for after_s, counts in (
        (BUCKETS_KEPT_S, (6, 1, 1)),
        (BUCKETS_KEPT_S + 60.0, (2, 2, 1)),
        (MINUTES_KEPT_S + 3600.0 + BUCKETS_KEPT_S, (1, 0, 2)),
        (HOURS_KEPT_S + 8 * 3600.0, (1, 0, 1)),
    ):
        database.write(arrived(after_s, 1))
        database.settled()
        database.tend()
        assert tuple(map(database.count, ("queue_buckets", "rollup_minutes", "rollup_hours"))) == counts


def test_a_bucket_that_was_written_again_stays_for_its_neighbours(database: Database) -> None:
    """A rebuild writes an old minute in parts: forgotten between them, its first part would be lost."""
    database.write(arrived(0.0, 1), arrived(DAY_S, 1))
    database.tend()
    database.write(arrived(5.0, 2))
    database.tend()
    assert jobs_by_start(database.rows("rollup_minutes")) == {0.0: 3}


@pytest.mark.parametrize("table", ["rollup_minutes", "rollup_hours"])
def test_what_has_expired_is_found_without_reading_what_is_kept(database: Database, table: str) -> None:
    """Every minute, in a table of many millions of rows whose oldest have made room for the newest for years."""
    kept = "select 'q' || i %% 100, %s + i / 100 * 60.0 from generate_series(0, 20000) as i"
    for days in range(3):
        database.connection.execute(f"insert into {table} (queue, bucket_s) {kept}", [HOUR_S + days * DAY_S])
        database.connection.execute(f"delete from {table} where bucket_s < %s", [HOUR_S + days * DAY_S])
        database.connection.execute(f"vacuum analyze {table}")
    for asked in ("bucket_s < %(at_s)s limit 5000", "bucket_s >= %(at_s)s and bucket_s < %(at_s)s + 60 limit 5000"):
        plan = f"explain (analyze, buffers, format json) select ctid from {table} where {asked}"
        ((found,),) = database.connection.execute(plan, {"at_s": HOUR_S + 2 * DAY_S}).fetchall()
        assert found[0]["Plan"]["Shared Hit Blocks"] + found[0]["Plan"]["Shared Read Blocks"] < 30


def test_what_a_queue_takes_a_day_is_known_of_every_level(database: Database) -> None:
    database.write(*(arrived(5.0 * number, 1, queue=queue) for number in range(1440) for queue in ("a", "b")))
    database.tend()
    buckets, minutes, _ = levels(database.connection)
    assert (buckets.rows, buckets.queues, minutes.rows) == (2880, 2, 238)
    assert buckets.bytes_a_queue_and_day == pytest.approx(buckets.stored_bytes / 2 * 12)


def test_two_pipelines_do_not_do_it_at_once(database: Database, migrated_url: str) -> None:
    database.write(arrived(0.0, 1), arrived(60.0, 1))
    with psycopg.connect(migrated_url, autocommit=True) as other:
        other.execute("select pg_advisory_lock(%s)", [rollups._LOCK])
        database.tend()
        assert database.rows("rollup_minutes") == []


def test_a_pipeline_that_is_ready_rolls_up_and_logs_what_is_stored(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    """In a thread of its own, which ends with the sink."""
    caplog.set_level(logging.INFO, logger="headway.store.metrics.rollups")
    database.write(arrived(0.0, 3), arrived(60.0, 1))
    database.sink.ready()
    deadline_s = time.monotonic() + 60
    while "level=rollup_hours" not in caplog.text:
        assert time.monotonic() < deadline_s
        time.sleep(0.01)
    assert jobs_by_start(database.rows("rollup_minutes")) == {0.0: 3}
    assert "stored level=rollup_minutes rows=1" in caplog.text
    database.sink.close()
    assert "rollups" not in {thread.name for thread in threading.enumerate()}


def test_whatever_goes_wrong_in_one_turn_the_next_one_comes(
    database: Database, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else buckets would be kept without end."""
    caplog.set_level(logging.INFO, logger="headway.store.metrics.rollups")
    monkeypatch.setattr(rollups, "TEND_S", 0.01)
    monkeypatch.setattr(rollups, "ROLLUP_LOGGED_EVERY_S", 0.01)
    tried = []

    def learned_at_the_second_try(*_: object, **__: object) -> int:
        tried.append(1)
        if len(tried) == 1:
            raise ZeroDivisionError
        return 0

    monkeypatch.setattr(rollups, "train_due", learned_at_the_second_try)
    database.sink.ready()
    deadline_s = time.monotonic() + 60
    while "level=rollup_hours" not in caplog.text:
        assert time.monotonic() < deadline_s
        time.sleep(0.01)
    assert "metrics are not rolled up, trying again in a minute" in caplog.text


def test_what_cannot_be_counted_in_time_is_reported_as_that(
    database: Database, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everything was rolled up by then."""

    def too_much(_: rollups.Connection) -> list[rollups.Level]:
        raise psycopg.errors.QueryCanceled("canceling statement due to statement timeout")

    monkeypatch.setattr(rollups, "levels", too_much)
    database.sink.ready()
    deadline_s = time.monotonic() + 60
    while "headway.store.metrics.rollups" not in {record.name for record in caplog.records}:
        assert time.monotonic() < deadline_s
        time.sleep(0.01)
    assert "what is stored was not counted: canceling statement due to statement timeout" in caplog.text
    assert "not rolled up" not in caplog.text
