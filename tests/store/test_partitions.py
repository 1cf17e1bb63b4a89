"""Upkeep of the daily partitions of ``decisions``."""

import asyncio
from datetime import UTC, date, datetime, timedelta

import psycopg

from headway.store.decision_partitions import DAYS_KEPT, PARTITION_DAYS_AHEAD, keep_partitions
from headway.store.engine import create_engine


def partitions(url: str) -> list[str]:
    with psycopg.connect(url) as connection:
        rows = connection.execute(
            "select inhrelid::regclass::text from pg_inherits where inhparent = 'decisions'::regclass order by 1"
        )
        return [name for (name,) in rows]


def make(url: str, day: date) -> None:
    with psycopg.connect(url) as connection:
        connection.execute(
            f"create table decisions_{day:%Y%m%d} partition of decisions "
            f"for values from ('{day}') to ('{day + timedelta(days=1)}')"
        )


async def test_missing_days_are_made_and_expired_ones_dropped_and_doing_it_again_does_nothing(
    migrated_url: str,
) -> None:
    today = datetime.now(UTC).date()
    kept, expired = today - timedelta(days=DAYS_KEPT), today - timedelta(days=DAYS_KEPT + 1)
    with psycopg.connect(migrated_url) as connection:
        connection.execute("set timezone = 'UTC'")
        last = today + timedelta(days=PARTITION_DAYS_AHEAD)
        connection.execute(f"drop table decisions_{last:%Y%m%d}")
    for day in (kept, expired):
        make(migrated_url, day)
    engine = create_engine(migrated_url)

    assert await keep_partitions(engine) == ([f"decisions_{last:%Y%m%d}"], [f"decisions_{expired:%Y%m%d}"])

    assert await keep_partitions(engine) == ([], [])
    days = [kept, *(today + timedelta(days=ahead) for ahead in range(PARTITION_DAYS_AHEAD + 1))]
    assert partitions(migrated_url) == [f"decisions_{day:%Y%m%d}" for day in days]
    await engine.dispose()


async def test_control_planes_that_keep_them_at_once_do_not_meet(migrated_url: str) -> None:
    today = datetime.now(UTC).date()
    with psycopg.connect(migrated_url) as connection:
        for ahead in range(1, PARTITION_DAYS_AHEAD + 1):
            connection.execute(f"drop table decisions_{today + timedelta(days=ahead):%Y%m%d}")
    engine = create_engine(migrated_url)
    done = await asyncio.gather(*(keep_partitions(engine) for _ in range(3)))
    assert sorted(len(created) for created, _ in done) == [0, 0, PARTITION_DAYS_AHEAD]
    await engine.dispose()
