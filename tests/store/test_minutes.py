"""Arrivals by minute, from buckets to earlier days' counts, on a real Postgres."""

from collections.abc import AsyncIterator

import pytest
from sqlalchemy import text

from headway.scaling.recall import DAY_MINUTES
from headway.store.engine import Engine, create_engine, transaction
from headway.store.leadership import Superseded
from headway.store.minutes import MinuteCounts, keep_minutes, read_minutes
from headway.store.telemetry import forget_old

MINUTE = 28_000_000
MINUTE_S = MINUTE * 60.0


@pytest.fixture
async def engine(migrated_url: str) -> AsyncIterator[Engine]:
    engine = create_engine(migrated_url)
    yield engine
    await engine.dispose()


async def bucket(engine: Engine, queue: str, *, after_s: float, arrived_jobs: int, revision: int) -> None:
    """A bucket that starts ``after_s`` seconds after the minute, in the place of an older version of itself."""
    async with transaction(engine) as connection:
        await connection.execute(
            text(
                "insert into queue_buckets (queue, bucket_s, arrived_jobs, revision) "
                "values (:queue, :bucket_s, :arrived_jobs, :revision) on conflict (queue, bucket_s) do update "
                "set arrived_jobs = excluded.arrived_jobs, revision = excluded.revision"
            ),
            {
                "queue": queue,
                "bucket_s": MINUTE_S + after_s,
                "arrived_jobs": arrived_jobs,
                "revision": revision,
            },
        )


async def keep(engine: Engine, *, after_revision: int = 0, epoch: int = 0) -> int:
    return await keep_minutes(engine, after_revision=after_revision, from_s=MINUTE_S - 600.0, epoch=epoch)


async def kept(engine: Engine) -> list[tuple[str, int, int]]:
    async with transaction(engine) as connection:
        rows = await connection.execute(text("select queue, minute, arrived_jobs from queue_minutes order by 1, 2"))
        return [(row.queue, row.minute - MINUTE, row.arrived_jobs) for row in rows]


async def test_buckets_of_a_minute_are_summed_and_a_minute_without_arrivals_has_no_row(engine: Engine) -> None:
    for after_s, arrived_jobs in ((-5.0, 1), (0.0, 2), (55.0, 3), (60.0, 4), (65.0, 0)):
        await bucket(engine, "a", after_s=after_s, arrived_jobs=arrived_jobs, revision=1)
    await bucket(engine, "b", after_s=0.0, arrived_jobs=0, revision=1)
    await keep(engine)
    assert await kept(engine) == [("a", -1, 1), ("a", 0, 5), ("a", 1, 4)]


async def test_repeating_it_changes_nothing(engine: Engine) -> None:
    await bucket(engine, "a", after_s=0.0, arrived_jobs=2, revision=7)
    assert await keep(engine) == 7
    assert await keep(engine) == 7
    assert await keep(engine, after_revision=7) == 7
    assert await kept(engine) == [("a", 0, 2)]


async def test_a_late_bucket_raises_its_minute_however_long_ago_that_was_stored(engine: Engine) -> None:
    await bucket(engine, "a", after_s=0.0, arrived_jobs=2, revision=1)
    await bucket(engine, "a", after_s=5.0, arrived_jobs=1, revision=1)
    revision = await keep(engine)
    await bucket(engine, "a", after_s=5.0, arrived_jobs=4, revision=2)
    await bucket(engine, "a", after_s=300.0, arrived_jobs=9, revision=3)
    assert await keep(engine, after_revision=revision) == 3
    assert await kept(engine) == [("a", 0, 6), ("a", 5, 9)]


async def test_what_is_left_of_a_minute_does_not_replace_it(engine: Engine) -> None:
    await bucket(engine, "a", after_s=0.0, arrived_jobs=20, revision=1)
    revision = await keep(engine)
    async with transaction(engine) as connection:
        await connection.execute(text("delete from queue_buckets"))
    await bucket(engine, "a", after_s=5.0, arrived_jobs=1, revision=2)
    await keep(engine, after_revision=revision)
    assert await kept(engine) == [("a", 0, 20)]


async def test_a_superseded_leader_stores_no_minute(engine: Engine) -> None:
    await bucket(engine, "a", after_s=0.0, arrived_jobs=2, revision=1)
    with pytest.raises(Superseded):
        await keep(engine, epoch=1)
    assert await kept(engine) == []


async def test_minutes_are_read_for_the_queues_and_minutes_asked_for(engine: Engine) -> None:
    for queue, after_s in (("a", 0.0), ("a", 60.0), ("a", 120.0), ("b", 0.0), ("c", 60.0)):
        await bucket(engine, queue, after_s=after_s, arrived_jobs=2, revision=1)
    await keep(engine)
    async with transaction(engine) as connection:
        found = await read_minutes(connection, queues=["a", "b", "unknown"], minutes=[MINUTE + 1, MINUTE + 7])
    assert found == {
        "a": MinuteCounts(since=MINUTE, jobs={MINUTE + 1: 2}),
        "b": MinuteCounts(since=MINUTE, jobs={}),
    }


async def test_minutes_are_kept_a_day_longer_than_they_are_asked_for(engine: Engine) -> None:
    async with transaction(engine) as connection:
        await connection.execute(
            text(
                "insert into queue_minutes (queue, minute, arrived_jobs) "
                "select 'a', extract(epoch from now())::bigint / 60 - age, age "
                "from unnest(cast(:ages as bigint[])) as age"
            ),
            {"ages": [7 * DAY_MINUTES, 8 * DAY_MINUTES - 5, 8 * DAY_MINUTES + 1]},
        )
    assert await forget_old(engine) == 1
    assert [jobs for _, _, jobs in await kept(engine)] == [8 * DAY_MINUTES - 5, 7 * DAY_MINUTES]
