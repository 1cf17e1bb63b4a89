"""Seasons learned from the rollups and stored, on a real Postgres."""

import threading
from collections.abc import Iterator
from datetime import UTC
from zoneinfo import ZoneInfo

import psycopg
import pytest

from headway.scaling.history.daily import DAY_MINUTES
from headway.scaling.history.weekly import HOUR_MINUTES, WEEK_HOURS, WEEK_MINUTES, ArrivalCounts, trained
from headway.store.engine import Engine, transaction
from headway.store.metrics.rollups import Rollups
from headway.store.metrics.seasons import (
    ROLLUPS,
    SyncConnection,
    all_seasons,
    counted,
    learned,
    read_seasons,
    train_due,
    write_seasons,
)
from headway.store.missing_rights import MissingRights
from headway.store.retention import MINUTES_KEPT_S

MONDAY = 2930 * WEEK_MINUTES + 4 * DAY_MINUTES
BERLIN = ZoneInfo("Europe/Berlin")


@pytest.fixture
def connection(migrated_url: str) -> Iterator[SyncConnection]:
    with psycopg.connect(migrated_url, autocommit=True) as connection:
        yield connection


def recorded(connection: SyncConnection, queue: str, jobs: dict[int, int], *, weeks: int = 2) -> None:
    """What came to ``queue`` by minute up to a Monday, as it is kept: two weeks of minutes, and all hours."""
    start = MONDAY - weeks * WEEK_MINUTES
    hours: dict[int, int] = {start // HOUR_MINUTES: 0}
    for minute, arrived in jobs.items():
        hours[minute // HOUR_MINUTES] = hours.get(minute // HOUR_MINUTES, 0) + arrived
    kept = {minute: arrived for minute, arrived in jobs.items() if minute >= MONDAY - 2 * WEEK_MINUTES}
    with connection.cursor() as cursor:
        for table, counts, span_s in (("rollup_minutes", kept, 60.0), ("rollup_hours", hours, 3600.0)):
            cursor.executemany(
                f"insert into {table} (queue, bucket_s, arrived_jobs) values (%s, %s, %s)",
                [(queue, number * span_s, arrived) for number, arrived in counts.items()],
            )
    connection.execute("update rollup_progress set minutes_until_s = %s", [MONDAY * 60.0])


def of_pool(connection: SyncConnection, *queues: str) -> None:
    for queue in queues:
        connection.execute("insert into profiles (pool, body) values (%s, '{}')", [queue])
        connection.execute("insert into profile_queues (queue, pool, rank) values (%s, %s, 0)", [queue, queue])


def mondays(*, weeks: int, jobs: int = 50) -> dict[int, int]:
    """A rush at nine every Monday."""
    return {MONDAY - week * WEEK_MINUTES + 9 * HOUR_MINUTES: jobs for week in range(1, weeks + 1)}


def train(connection: SyncConnection, zone=UTC) -> int:
    return train_due(connection, zone, is_stopping=lambda: False)


def test_minutes_are_counted_as_far_back_as_they_are_kept_and_hours_before(connection: SyncConnection) -> None:
    jobs = mondays(weeks=4) | {MONDAY - 3 * WEEK_MINUTES + 1: 7}
    recorded(connection, "a", jobs, weeks=4)
    recorded(connection, "b", {MONDAY - 5: 1}, weeks=0)
    connection.execute("insert into rollup_minutes (queue, job_class, bucket_s, arrived_jobs) values ('c', 'x', 0, 1)")
    since = MONDAY - 2 * WEEK_MINUTES
    assert counted(connection, queues=["a", "c", "d"], until_s=MONDAY * 60.0) == {
        "a": ArrivalCounts(
            since=since,
            until=MONDAY,
            minutes={minute: count for minute, count in jobs.items() if minute >= since},
            hours_since=(MONDAY - 4 * WEEK_MINUTES) // HOUR_MINUTES,
            hours={minute // HOUR_MINUTES: count for minute, count in jobs.items() if minute < since},
        )
    }
    assert MINUTES_KEPT_S == 2 * WEEK_MINUTES * 60


def test_jobs_that_came_back_for_another_attempt_are_not_counted(connection: SyncConnection) -> None:
    jobs = mondays(weeks=4)
    recorded(connection, "a", jobs, weeks=4)
    known = counted(connection, queues=["a"], until_s=MONDAY * 60.0)
    for table in ("rollup_minutes", "rollup_hours"):
        connection.execute(f"update {table} set arrived_jobs = arrived_jobs + 30, retried_jobs = 30")
    assert counted(connection, queues=["a"], until_s=MONDAY * 60.0) == known


async def test_a_season_is_read_as_it_was_learned(connection: SyncConnection, engine: Engine) -> None:
    recorded(connection, "a", mondays(weeks=3), weeks=3)
    found = learned(counted(connection, queues=["a"], until_s=MONDAY * 60.0), BERLIN, source="a test")
    write_seasons(connection, found)
    write_seasons(connection, found)
    async with transaction(engine) as conn:
        stored = await read_seasons(conn, queues=["a", "b"])
    (trained_one,) = found
    kept = stored.seasons["a"]
    assert kept.trained_at is not None
    assert (kept.season.peaks, kept.season.errors) == (trained_one.season.peaks, trained_one.season.errors)
    assert kept.season.zone is BERLIN
    assert kept.season.mean_jobs == pytest.approx(trained_one.season.mean_jobs, abs=1e-4)
    assert (kept.season.weeks_seen, kept.season.is_better) == (3, True)
    assert (kept.source, kept.until_s) == ("a test", MONDAY * 60.0)
    assert kept.from_s == (MONDAY - 3 * WEEK_MINUTES) * 60.0
    assert (list(stored.seasons), stored.unfit) == (["a"], {})
    assert all_seasons(connection) == stored


@pytest.mark.parametrize(
    ("change", "why"),
    [("version = 999", "version 999"), ("time_zone = 'Europe/Atlantis'", "time zone 'Europe/Atlantis'")],
)
def test_a_row_that_does_not_fit_is_not_read_and_said(connection: SyncConnection, change: str, why: str) -> None:
    of_pool(connection, "a")
    recorded(connection, "a", mondays(weeks=2))
    assert train(connection) == 1
    connection.execute(f"update queue_seasons set {change}")
    stored = all_seasons(connection)
    assert stored.seasons == {}
    assert why in stored.unfit["a"]
    assert train(connection) == 1  # and it is learned anew at once
    assert list(all_seasons(connection).seasons) == ["a"]


def test_the_queues_of_profiles_are_learned_once_a_day(connection: SyncConnection) -> None:
    of_pool(connection, "a", "b", "young")
    recorded(connection, "a", mondays(weeks=2))
    recorded(connection, "b", {})
    recorded(connection, "nobody's", mondays(weeks=2))
    recorded(connection, "young", {MONDAY - 60: 1}, weeks=1)
    assert train(connection) == 2
    assert train(connection) == 0
    connection.execute("update queue_seasons set trained_at = now() - interval '25 hours' where queue = 'b'")
    assert train(connection) == 1
    stored = all_seasons(connection).seasons
    assert list(stored) == ["a", "b"]
    assert stored["a"].source == ROLLUPS
    assert stored["a"].season.peaks == {9 * HOUR_MINUTES: 50}
    assert train(connection, BERLIN) == 2  # the clock on another wall
    assert {each.season.zone for each in all_seasons(connection).seasons.values()} == {BERLIN}


def test_learning_stops_when_it_is_asked_to(connection: SyncConnection) -> None:
    of_pool(connection, "a")
    recorded(connection, "a", mondays(weeks=2))
    assert train_due(connection, UTC, is_stopping=lambda: True) == 0


def test_who_tends_the_rollups_learns_seasons(connection: SyncConnection, migrated_url: str) -> None:
    of_pool(connection, "a")
    recorded(connection, "a", mondays(weeks=2))
    rollups = Rollups({"conninfo": migrated_url}, lacks=MissingRights(), zone=BERLIN)
    rollups.start()
    try:
        for _ in range(200):
            if all_seasons(connection).seasons:
                break
            threading.Event().wait(0.05)
    finally:
        rollups.close()
    assert all_seasons(connection).seasons["a"].season.zone is BERLIN


def test_what_is_read_of_the_rollups_is_what_was_counted(connection: SyncConnection) -> None:
    """The rows are another form of the counts: the same season comes of both."""
    jobs = {MONDAY - WEEK_MINUTES * 2 + number * 37: 1 + number % 5 for number in range(500)}
    recorded(connection, "a", jobs)
    known = counted(connection, queues=["a"], until_s=MONDAY * 60.0 + 59.0)["a"]
    assert trained(known) == trained(ArrivalCounts(since=MONDAY - 2 * WEEK_MINUTES, until=MONDAY, minutes=jobs))
    assert known.end_hour - known.first_hour == 2 * WEEK_HOURS
