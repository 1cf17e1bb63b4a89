"""What earlier days had reaches a tick of exposed pools, and nobody else asks for it."""

import math
from collections.abc import AsyncIterator
from dataclasses import asdict
from datetime import UTC
from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb

from control.ticks import Database, leading
from headway.control.scheduler import history_cache
from headway.control.scheduler.history_cache import HistoryCache
from headway.scaling.demands.safety_stock import SafetyStock
from headway.scaling.explain import explained
from headway.scaling.forecasts.shortfalls import Shortfalls
from headway.scaling.history.daily import DAY_MINUTES
from headway.scaling.history.weekly import HOUR_MINUTES, WEEK_HOURS, Errors, Recalled, Season
from headway.scaling.mapping import from_mapping
from headway.scaling.model import Decision, Memory, Objective
from headway.scaling.profile import profile_to_mapping
from headway.scaling.profile_keys.schedule import hour_of_week
from headway.scaling.reading.gathered_view import with_past
from headway.store.engine import create_engine
from headway.store.metrics.seasons import Trained, write_seasons
from support.pools import NOW_S, profile, queue, view

MINUTE = math.floor(NOW_S / 60)  # has run for 40 s
OBJECTIVE_S = 10.0
START_UP_S = 30.0  # jobs may wait for 10 s: whoever is asked for when they come is late


@pytest.fixture
async def database(migrated_url: str) -> AsyncIterator[Database]:
    database = Database(migrated_url)
    yield database
    database.close()


def start_up(url: str) -> None:
    """A worker of the template has been seen to start, slowly."""
    with psycopg.connect(url) as connection:
        connection.execute(
            "insert into template_start_ups (host_id, template, start_up_s, starts) values ('a', 'mail', %s, 1)",
            [START_UP_S],
        )


def minutes(url: str, jobs: dict[int, int], *, queue: str = "redis/mail") -> None:
    """What came to ``queue`` by minute."""
    with psycopg.connect(url) as connection:
        for minute, arrived_jobs in jobs.items():
            connection.execute(
                "insert into rollup_minutes (queue, bucket_s, arrived_jobs) values (%s, %s, %s)",
                [queue, minute * 60.0, arrived_jobs],
            )


def taught_by_rushes(url: str) -> None:
    """The pool had seven rushes of a hundred jobs in a day, and the minutes of earlier days had predicted each."""
    by_rate, by_recall = Shortfalls(), Shortfalls()
    for _ in range(7):
        by_rate = by_rate.seen(100.0, jobs=100, span_s=12_000.0)
        by_recall = by_recall.seen(0.0, jobs=100, span_s=12_000.0)
    guard = SafetyStock(began_at_s=NOW_S - 86_400, at_s=NOW_S - 5, by_rate=by_rate)
    with psycopg.connect(url) as connection:
        connection.execute(
            "insert into pool_states (pool, target_workers, memory, epoch) values ('mail', 0, %s, 0)",
            [Jsonb(asdict(Memory(strategy_state={"guard": {**guard.stored(), "by_recall": by_recall}})))],
        )


def past_of(days: HistoryCache, arrived_jobs: dict[str, int], *, ahead_s: float) -> Recalled:
    """What is recalled of a pool whose queues have had ``arrived_jobs`` in this minute, and none before."""
    # An evaluation each 5 s, and 0.5 s from a ready worker to its first job: so long a start is late by ``ahead_s``.
    exposed = view(*(queue(queue=name) for name in arrived_jobs), start_up_s=OBJECTIVE_S + ahead_s - 5.5)
    past = {name: days.past(name, arrived_jobs=jobs) for name, jobs in arrived_jobs.items()}
    found = with_past(exposed, past, now_s=NOW_S)
    return Recalled(jobs=found.recalled_jobs, weeks=found.recalled_weeks)


def week(url: str, *, jobs: int, judged: Errors, queue: str = "redis/mail") -> None:
    """A season in which this minute of the week has ``jobs``, with these errors."""
    hour = hour_of_week(MINUTE // HOUR_MINUTES, UTC)
    season = Season(
        mean_jobs=(0.0,) * WEEK_HOURS,
        high_jobs=(0.0,) * WEEK_HOURS,
        weeks=(3,) * WEEK_HOURS,
        peaks={hour * HOUR_MINUTES + MINUTE % HOUR_MINUTES: jobs},
        errors=judged,
    )
    with psycopg.connect(url) as connection:
        write_seasons(connection, [Trained(queue=queue, season=season, source="a test", from_s=0.0, until_s=1.0)])


BETTER, WORSE = Errors(season=1.0, recent=9.0, days=9.0), Errors(season=9.0, recent=9.0, days=1.0)


@pytest.mark.parametrize(("yesterday", "expected"), [({MINUTE - DAY_MINUTES: 40}, 40), ({}, 0)])
async def test_an_exposed_pool_stands_ready_for_what_yesterday_brought_at_this_time(
    migrated_url: str, database: Database, yesterday: dict[int, int], expected: int
) -> None:
    database.profile()
    database.host()
    start_up(migrated_url)
    taught_by_rushes(migrated_url)
    minutes(migrated_url, {MINUTE - DAY_MINUTES - 3: 99} | yesterday)  # what came three minutes earlier is over
    database.bucket()
    async with leading(migrated_url) as (ticker, epoch):
        await ticker.tick(epoch=epoch, is_all_due=True)
    assert database.read("select target_workers from decisions") == expected
    assert database.assigned() == ({("mail", "a"): expected} if expected else {})


async def test_earlier_days_of_a_member_whose_objective_lets_it_wait_do_not_count(
    migrated_url: str, database: Database
) -> None:
    queues, own = ("redis/mail", "redis/bulk"), {"redis/bulk": Objective(target_s=900.0)}
    policy = profile(queues=queues, member_objectives=own)
    database.body("mail", profile_to_mapping(policy))
    with psycopg.connect(migrated_url) as connection:
        connection.execute("insert into profile_queues values (%s, 'mail', 0), (%s, 'mail', 1)", queues)
    database.host()
    start_up(migrated_url)
    taught_by_rushes(migrated_url)
    minutes(migrated_url, {MINUTE - DAY_MINUTES: 12})
    minutes(migrated_url, {MINUTE - DAY_MINUTES: 40}, queue="redis/bulk")
    database.bucket()
    database.bucket("bulk")
    async with leading(migrated_url) as (ticker, epoch):
        await ticker.tick(epoch=epoch, is_all_due=True)
    assert database.read("select body->'recalled_jobs' from decisions") == 12
    assert database.read("select target_workers from decisions") == 12


@pytest.mark.parametrize(
    ("judged", "expected", "predicted"),
    [
        (BETTER, 25, "This hour of the week, known from 3 earlier weeks, predicts 25 jobs more."),
        (WORSE, 40, "The same minute of earlier days predicts 40 jobs more."),
    ],
)
async def test_a_week_takes_the_place_of_days_where_it_has_been_less_wrong_and_the_decision_says_so(
    migrated_url: str, database: Database, judged: Errors, expected: int, predicted: str
) -> None:
    database.profile()
    database.host()
    start_up(migrated_url)
    taught_by_rushes(migrated_url)
    minutes(migrated_url, {MINUTE - DAY_MINUTES: 40})
    week(migrated_url, jobs=25, judged=judged)
    database.bucket()
    async with leading(migrated_url) as (ticker, epoch):
        await ticker.tick(epoch=epoch, is_all_due=True)
    assert database.read("select target_workers from decisions") == expected
    decision = from_mapping(Decision, database.read("select body from decisions"))
    assert decision.recalled_weeks == (3 if judged is BETTER else None)
    assert predicted in explained(decision)


async def test_a_season_of_another_version_is_not_used_and_said_once(
    migrated_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    minutes(migrated_url, {MINUTE - DAY_MINUTES: 40})
    week(migrated_url, jobs=25, judged=BETTER)
    with psycopg.connect(migrated_url) as connection:
        connection.execute("update queue_seasons set version = 2")
    engine, days = create_engine(migrated_url), HistoryCache()
    for later_s in (0.0, 700.0):
        await days.read(engine, {"redis/mail": 30.0}, now_s=NOW_S + later_s)
    await engine.dispose()
    why = "it is of version 2, and this program reads version 1"
    assert [record.message for record in caplog.records] == [
        f"season not used, earlier days are: queue=redis/mail reason={why}"
    ]


async def test_seasons_are_read_again_after_ten_minutes_and_for_a_pool_that_is_new(migrated_url: str) -> None:
    engine, days = create_engine(migrated_url), HistoryCache()
    exposed_s = {"redis/mail": 30.0}

    async def predicted(queue: str, *, later_s: float) -> float | None:
        await days.read(engine, exposed_s, now_s=NOW_S + later_s)
        return past_of(days, {queue: 0}, ahead_s=10.0).jobs

    assert await predicted("redis/mail", later_s=0.0) is None
    week(migrated_url, jobs=25, judged=BETTER)
    week(migrated_url, jobs=7, judged=BETTER, queue="redis/new")
    assert await predicted("redis/mail", later_s=599.0) is None
    assert await predicted("redis/mail", later_s=600.0) == 25
    assert await predicted("redis/new", later_s=601.0) is None
    exposed_s["redis/new"] = 30.0
    assert await predicted("redis/new", later_s=602.0) == 7
    await engine.dispose()


async def test_members_with_and_without_weeks_add_up(migrated_url: str) -> None:
    minutes(migrated_url, {MINUTE - DAY_MINUTES: 40}, queue="daily")
    week(migrated_url, jobs=25, judged=BETTER, queue="weekly")
    engine, days = create_engine(migrated_url), HistoryCache()
    await days.read(engine, {"daily": 30.0, "weekly": 30.0}, now_s=NOW_S)
    await engine.dispose()
    assert past_of(days, {"daily": 4, "weekly": 5}, ahead_s=10.0) == Recalled(jobs=36 + 20, weeks=3)


async def test_without_a_pool_that_is_exposed_nobody_asks_and_with_one_once_a_minute(
    migrated_url: str, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    async def read(_connection: Any, *, queues: Any, minutes: Any) -> dict[str, Any]:
        asked.append((queues, max(minutes)))
        return {}

    monkeypatch.setattr(history_cache, "read_minutes", read)
    now_s = [NOW_S]
    database.profile()
    database.body("broken", {"queues": ["redis/broken"], "template": "mail", "no_such_key": 1})
    database.host()
    database.bucket()
    async with leading(migrated_url) as (ticker, epoch):
        ticker._clock = lambda: now_s[0]
        await ticker.tick(epoch=epoch, is_all_due=True)
        assert asked == []
        start_up(migrated_url)
        for now_s[0] in (NOW_S + 20, NOW_S + 25, NOW_S + 79, NOW_S + 80):  # minutes begin at 20 and at 80
            await ticker.tick(epoch=epoch, is_all_due=True)
    yesterday = MINUTE - DAY_MINUTES
    # At its end the minute is looked ahead from by 26.5 s.
    assert asked == [(["redis/mail"], yesterday + 2), (["redis/mail"], yesterday + 3)]


async def test_the_members_of_a_pool_add_up_and_what_came_today_is_taken_off(migrated_url: str) -> None:
    yesterday = MINUTE - DAY_MINUTES
    minutes(migrated_url, {yesterday: 5, yesterday + 1: 20}, queue="a")
    minutes(migrated_url, {yesterday: 7, yesterday - 1: 1}, queue="b")
    engine, days = create_engine(migrated_url), HistoryCache()

    def recalled(queues: list[str], *, ahead_s: float, arrived_jobs: int = 0) -> float | None:
        found = past_of(days, {queues[0]: arrived_jobs} | dict.fromkeys(queues[1:], 0), ahead_s=ahead_s)
        assert found.weeks is None
        return found.jobs

    assert recalled(["a"], ahead_s=10.0) is None  # nobody has read
    await days.read(engine, {"a": 30.0, "b": 30.0, "new": 1.0}, now_s=NOW_S)
    await engine.dispose()
    assert recalled(["a", "b"], ahead_s=10.0) == 12
    assert recalled(["a", "b"], ahead_s=10.0, arrived_jobs=9) == 3
    assert recalled(["a", "b"], ahead_s=20.0, arrived_jobs=9) == 20  # the next minute has none today
    assert recalled(["b", "new"], ahead_s=10.0) == 7
    assert recalled(["new"], ahead_s=10.0) is None
