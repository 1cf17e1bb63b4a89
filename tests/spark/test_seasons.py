"""Seasons learned on Spark are those of the definition, of whatever histories."""

from collections import Counter
from contextlib import nullcontext
from datetime import UTC
from pathlib import Path
from random import Random
from zoneinfo import ZoneInfo

import psycopg
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from headway.__main__ import main
from headway.scaling.history.daily import DAY_MINUTES, minute_of
from headway.scaling.history.weekly import HOUR_MINUTES, WEEK_HOURS, WEEK_MINUTES, ArrivalCounts, Season, trained
from headway.scaling.history.weekly_codec import season_from_mapping, season_to_mapping
from headway.scaling.model import EventKind, JobEvent
from headway.scaling.profile_keys.schedule import Zone
from headway.store.metrics.seasons import all_seasons
from headway_spark.studies.history import held_events, jobs_of
from headway_spark.studies.seasons import counts_of, given_counts, learned
from spark.events import publish, table

pytestmark = pytest.mark.timeout(600)

MONDAY = 2930 * WEEK_MINUTES + 4 * DAY_MINUTES
WEEKS = 3
BEGIN = MONDAY - WEEKS * WEEK_MINUTES
LENGTH_S = WEEKS * WEEK_MINUTES * 60.0


def history(number: int) -> list[float]:
    """When jobs came to a queue, Unix seconds: chance, rushes at some hours of the week, a day without any."""
    chance = Random(f"history/{number}")
    at_s = [chance.random() * LENGTH_S for _ in range(chance.choice([0, 3, 200, 2000]))]
    for _ in range(chance.randrange(6)):
        minute, jobs = chance.randrange(WEEK_MINUTES), chance.randrange(1, 60)
        for week in range(WEEKS):
            if chance.random() < 0.8:
                begins_s = (week * WEEK_MINUTES + minute) * 60.0
                at_s += [begins_s + chance.choice([0.0, 59.9999999, chance.random() * 60]) for _ in range(jobs)]
    quiet_s = chance.randrange(WEEKS * 7) * DAY_MINUTES * 60.0
    return [BEGIN * 60.0 + each for each in at_s if not quiet_s <= each < quiet_s + DAY_MINUTES * 60.0]


HISTORIES = {f"redis/{number}": history(number) for number in range(24)}
# Somebody is always there at the edges of what is known.
HISTORIES["redis/edges"] = [BEGIN * 60.0 + 3500.0, MONDAY * 60.0 - 0.5]


def defined(zone: Zone) -> dict[str, Season]:
    """What plain Python learns of the same jobs."""
    found = {}
    for queue, at_s in HISTORIES.items():
        if at_s:
            season = trained(ArrivalCounts(since=BEGIN, until=MONDAY, minutes=Counter(map(minute_of, at_s))), zone=zone)
            assert season is not None
            found[queue] = season_from_mapping(season_to_mapping(season), zone)
    return found


@pytest.mark.parametrize("zone", [UTC, ZoneInfo("America/New_York")])
def test_what_spark_learns_of_jobs_is_what_the_definition_learns(spark: SparkSession, zone: Zone) -> None:
    rows = [(queue, at_s) for queue, every in HISTORIES.items() for at_s in every]
    queues, moments = zip(*rows, strict=True)
    jobs = spark.createDataFrame(pa.table({"queue": list(queues), "at_s": list(moments)}))
    found = learned(counts_of(jobs), zone=zone)
    assert {queue: season for queue, (season, _, _) in found.items()} == defined(zone)
    assert {(from_s, until_s) for _, from_s, until_s in found.values()} == {(BEGIN * 60.0, MONDAY * 60.0)}


def test_counts_by_minute_and_hour_that_are_handed_in_are_learned_alike(spark: SparkSession, tmp_path: Path) -> None:
    chance = Random(7)
    since = MONDAY - 2 * WEEK_MINUTES
    first = since // HOUR_MINUTES
    counted = {
        f"redis/{number}": ArrivalCounts(
            since=since,
            until=MONDAY + number % 60,
            minutes={since + chance.randrange(2 * WEEK_MINUTES): chance.randrange(1, 90) for _ in range(500)},
            hours_since=first - number * WEEK_HOURS if number else None,
            hours={first - 1 - chance.randrange(WEEK_HOURS): 30 for _ in range(20)} if number else {},
        )
        for number in range(6)
    }
    young = {"redis/young": ArrivalCounts(since=since + 60, until=MONDAY, minutes={})}
    found = learned(given_counts(spark, {**counted, **young}, folder=tmp_path), zone=UTC)
    for queue, counts in counted.items():
        season = trained(counts)
        assert season is not None
        assert found.pop(queue) == (
            season_from_mapping(season_to_mapping(season), UTC),
            counts.known_from_s,
            counts.known_until_s,
        )
    assert found == {}


def test_the_event_log_holds_weeks(spark: SparkSession, tmp_path: Path) -> None:
    """Enqueued jobs, and a job of which only the start was seen, which says when it came."""
    rushes = [(BEGIN + week * WEEK_MINUTES + 9 * HOUR_MINUTES) * 60.0 for week in range(WEEKS)]
    events = [
        JobEvent(kind=EventKind.ENQUEUED, at_s=begins_s + number, queue="redis/mail", job_id=f"{begins_s}/{number}")
        for begins_s in [BEGIN * 60.0, *rushes]
        for number in range(20)
    ]
    events += [
        JobEvent(
            kind=EventKind.STARTED,
            at_s=begins_s + 90.0,
            enqueued_at_s=begins_s + 30.0,
            queue="redis/mail",
            job_id=f"started/{begins_s}",
        )
        for begins_s in [*rushes, MONDAY * 60.0 - 31.0]
    ]
    publish(tmp_path, "1.parquet", table(events))
    with held_events(spark, tmp_path) as log:
        found = learned(counts_of(jobs_of(log)), zone=UTC)
    season, from_s, until_s = found["redis/mail"]
    assert (season.peaks, season.weeks_seen) == ({9 * HOUR_MINUTES: 21}, WEEKS)
    assert (from_s, until_s) == (BEGIN * 60.0, MONDAY * 60.0)


def test_the_command_learns_what_postgres_keeps_or_the_log_holds_and_stores_it(
    spark: SparkSession,
    migrated_url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("headway.cli.backtesting.backtest_options.bulk_session", lambda *_, **__: nullcontext(spark))
    monkeypatch.setenv("HEADWAY_DATABASE_URL", migrated_url)
    rushes = [(MONDAY - week * WEEK_MINUTES + 9 * HOUR_MINUTES) * 60.0 for week in (1, 2)]
    with psycopg.connect(migrated_url, autocommit=True) as connection:
        connection.execute("insert into profiles (pool, body) values ('mail', '{}')")
        connection.execute("insert into profile_queues (queue, pool, rank) values ('redis/mail', 'mail', 0)")
        for begins_s in [(MONDAY - 2 * WEEK_MINUTES) * 60.0, *rushes]:
            for table_, start_s in (("minutes", begins_s), ("hours", begins_s)):
                connection.execute(
                    f"insert into rollup_{table_} (queue, bucket_s, arrived_jobs) values ('redis/mail', %s, 50)",
                    [start_s],
                )
        connection.execute("update rollup_progress set minutes_until_s = %s", [MONDAY * 60.0])

        assert main(["seasons", "train", "--dry-run"]) == 0
        assert not all_seasons(connection).seasons
        assert main(["seasons", "train", "--time-zone", "Europe/Berlin"]) == 0
        kept = all_seasons(connection).seasons["redis/mail"]
        assert (kept.source, kept.season.zone) == ("rollups", ZoneInfo("Europe/Berlin"))
        assert kept.season.peaks == {10 * HOUR_MINUTES: 50}  # an hour ahead of UTC

        events = [
            JobEvent(kind=EventKind.ENQUEUED, at_s=at_s, queue="redis/log", job_id=f"{number}")
            for number, at_s in enumerate([(MONDAY - 2 * WEEK_MINUTES) * 60.0, *rushes * 30, MONDAY * 60.0 - 1])
        ]
        publish(tmp_path, "1.parquet", table(events))
        assert main(["seasons", "train", "--event-log", str(tmp_path), "--queues", "redis/log"]) == 0
        assert set(all_seasons(connection).seasons) == {"redis/mail", "redis/log"}
        assert all_seasons(connection).seasons["redis/log"].source == f"event log {tmp_path}"
    out, err = capsys.readouterr()
    assert "redis/log" in out
    assert "1 queue of 1 will be believed" in err
