"""What is stored of queues' weeks, shown to people."""

from zoneinfo import ZoneInfo

import psycopg
import pytest

from headway.__main__ import main
from headway.cli.backtesting.seasons import hour_name
from headway.scaling.history.daily import DAY_MINUTES
from headway.scaling.history.weekly import HOUR_MINUTES, WEEK_MINUTES, ArrivalCounts
from headway.store.metrics.seasons import learned, write_seasons

MONDAY = 2930 * WEEK_MINUTES + 4 * DAY_MINUTES


@pytest.fixture(autouse=True)
def stored(migrated_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A queue with a rush on Monday at nine, and one of which nothing came."""
    monkeypatch.setenv("HEADWAY_DATABASE_URL", migrated_url)
    since = MONDAY - 2 * WEEK_MINUTES
    rushes = {since + 9 * HOUR_MINUTES: 50, since + WEEK_MINUTES + 9 * HOUR_MINUTES: 50}
    known = {
        "redis/mail": ArrivalCounts(since=since, until=MONDAY, minutes=rushes),
        "redis/still": ArrivalCounts(since=since, until=MONDAY, minutes={}),
    }
    with psycopg.connect(migrated_url, autocommit=True) as connection:
        write_seasons(connection, learned(known, ZoneInfo("Etc/UTC"), source="a test"))


def test_every_queue_is_shown_with_its_errors_and_whether_it_is_believed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["seasons", "show"]) == 0
    mail, still = (line.split() for line in capsys.readouterr().out.splitlines() if line.startswith("redis/"))
    # Less two deviations of chance, 50 jobs are 36: thrice that by days and the last minute, and once what follows it.
    assert mail == ["redis/mail", "2", "Mon", "09", "0.8", "1", "36", "143", "143", "yes", "2026-03-02", "00:00"]
    assert still[-3:] == ["no", "2026-03-02", "00:00"]


def test_one_queue_is_shown_hour_by_hour_with_the_minutes_that_stand_out(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["seasons", "show", "--queue", "redis/mail"]) == 0
    printed = capsys.readouterr().out
    assert "Mon 09:00 brings 50 jobs within the minute" in printed
    assert next(line for line in printed.splitlines() if line.startswith("09:00")).split()[:3] == ["09:00", "0.8", "≤0"]
    assert "Etc/UTC" in printed


def test_a_queue_of_which_nothing_is_stored_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["seasons", "show", "--queue", "redis/none"]) == 2
    assert "nothing is stored of queue 'redis/none'; there is redis/mail, redis/still" in capsys.readouterr().err


def test_what_does_not_fit_is_named(migrated_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    with psycopg.connect(migrated_url) as connection:
        connection.execute("update queue_seasons set version = 7 where queue = 'redis/mail'")
    assert main(["seasons", "show"]) == 0
    out, err = capsys.readouterr()
    assert "redis/mail" not in out
    assert err.startswith("not used: redis/mail: it is of version 7")


@pytest.mark.parametrize(
    ("words", "printed"),
    [
        (["train", "--time-zone", "Europe/Atlantis"], "time zone 'Europe/Atlantis' is not known"),
        (["train", "--from", "2d"], "name it with --event-log"),
        (["train", "--cores", "0"], "--cores=0"),
        (["train", "--queues", "redis/none"], "nothing was learned of redis/none: it takes 2 whole weeks"),
        (["train"], "nothing was learned of any queue"),
    ],
)
def test_what_cannot_be_learned_is_refused_before_spark_starts(
    words: list[str], printed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["seasons", *words]) == 2
    assert printed in capsys.readouterr().err


def test_without_a_database_it_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("HEADWAY_DATABASE_URL")
    assert main(["seasons", "show"]) == 2
    assert "nor HEADWAY_DATABASE_URL set" in capsys.readouterr().err


def test_hours_are_named_from_monday_on() -> None:
    assert [hour_name(slot) for slot in (0, 33, 167)] == ["Mon 00", "Tue 09", "Sun 23"]
