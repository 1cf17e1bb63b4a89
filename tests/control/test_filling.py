"""Reading much of what is new in parts, on a real Postgres."""

from typing import Any

import psycopg
import pytest

from headway.control.scheduler import bucket_backfill
from headway.control.scheduler.bucket_backfill import BACKFILL_PART_S, BucketBackfill
from headway.control.scheduler.bucket_cache import CACHED_S, BucketCache
from headway.errors import Unavailable
from headway.scaling.measure import BUCKET_S
from headway.store.engine import Engine

NOW_S = 1_000_000.0
QUEUE = "redis/mail"
JOBS = round((CACHED_S + 20.0) / BUCKET_S) + 1
PARTS = round(CACHED_S / BACKFILL_PART_S)


def write(url: str, *, from_s: float, until_s: float) -> None:
    """A job in every bucket."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "insert into queue_buckets (queue, bucket_s, arrived_jobs, service_sketch, revision) "
            "select %s, starts_s, 1, '{\"3\": 2}', nextval('bucket_revision') "
            "from generate_series(%s::numeric, %s, %s) as starts_s",
            [QUEUE, int(from_s), int(until_s), int(BUCKET_S)],
        )


@pytest.fixture(autouse=True)
def buckets(migrated_url: str) -> None:
    """Also one too old to be read, and some that were written for a moment yet to come."""
    write(migrated_url, from_s=NOW_S - CACHED_S - BUCKET_S, until_s=NOW_S + 20.0)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What is asked for."""
    asked: list[dict[str, Any]] = []
    read = bucket_backfill.read_buckets

    async def noted(connection: Any, **values: Any) -> Any:
        asked.append(values)
        return await read(connection, **values)

    monkeypatch.setattr(bucket_backfill, "read_buckets", noted)
    return asked


@pytest.fixture
def two_are_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bucket_backfill, "BACKFILL_ROWS_MAX", 2)


async def test_little_is_read_in_one_piece_before_the_first_evaluation(
    engine: Engine, asked: list[dict[str, Any]]
) -> None:
    recent = BucketCache()
    await BucketBackfill().keep_up(engine, recent, now_s=NOW_S)
    assert [(each["from_s"], each["until_s"]) for each in asked] == [(NOW_S - CACHED_S, None)]
    assert recent.arrived_jobs(QUEUE, from_s=0.0) == JOBS
    assert recent.revision == JOBS + 1


@pytest.mark.usefixtures("two_are_much")
async def test_much_is_read_in_parts_before_the_first_evaluation_and_each_is_reported(
    engine: Engine, asked: list[dict[str, Any]]
) -> None:
    """Ten thousand queues have more rows in minutes than Python makes before a transaction or a lease ends."""
    recent, parts = BucketCache(), []
    await BucketBackfill().keep_up(engine, recent, now_s=NOW_S, on_part=lambda: parts.append(1))
    assert [(each["from_s"], each["until_s"]) for each in asked[:-1]] == [
        (NOW_S - CACHED_S + BACKFILL_PART_S * part, NOW_S - CACHED_S + BACKFILL_PART_S * (part + 1))
        for part in range(PARTS - 1)
    ]
    assert (asked[-1]["from_s"], asked[-1]["until_s"]) == (NOW_S - BACKFILL_PART_S, None)
    assert len(parts) == PARTS
    assert recent.arrived_jobs(QUEUE, from_s=0.0) == JOBS
    assert recent.revision == JOBS + 1


@pytest.mark.usefixtures("two_are_much")
async def test_what_was_interrupted_goes_on_where_it_was(
    engine: Engine, asked: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A leader that begins anew each time, and fails each time, must not seem alive for it."""
    recent, begun = BucketCache(), BucketBackfill()
    read = bucket_backfill.read_buckets

    async def away_at_the_third(connection: Any, **values: Any) -> Any:
        if len(asked) == 2:
            raise Unavailable("Postgres restarts")
        return await read(connection, **values)

    monkeypatch.setattr(bucket_backfill, "read_buckets", away_at_the_third)
    with pytest.raises(Unavailable):
        await begun.keep_up(engine, recent, now_s=NOW_S)
    assert recent.revision == 0
    monkeypatch.setattr(bucket_backfill, "read_buckets", read)
    await begun.keep_up(engine, recent, now_s=NOW_S + 5.0)
    assert [each["from_s"] for each in asked[:4]] == [NOW_S - CACHED_S + BACKFILL_PART_S * part for part in range(4)]
    assert recent.arrived_jobs(QUEUE, from_s=0.0) == JOBS


@pytest.mark.usefixtures("two_are_much")
async def test_little_that_is_new_is_left_to_the_evaluation_and_much_of_it_is_read_in_parts(
    engine: Engine, migrated_url: str, asked: list[dict[str, Any]]
) -> None:
    """As after minutes without an evaluation, or when the pipeline writes minutes at once."""
    recent, begun = BucketCache(), BucketBackfill()
    await begun.keep_up(engine, recent, now_s=NOW_S)
    asked.clear()
    write(migrated_url, from_s=NOW_S + 25.0, until_s=NOW_S + 30.0)
    await begun.keep_up(engine, recent, now_s=NOW_S + 30.0)
    assert asked == []
    write(migrated_url, from_s=NOW_S + 35.0, until_s=NOW_S + 35.0)
    await begun.keep_up(engine, recent, now_s=NOW_S + 35.0)
    assert len(asked) == PARTS
    assert recent.arrived_jobs(QUEUE, from_s=NOW_S + 25.0) == 3


async def test_what_another_database_had_is_dropped(engine: Engine, migrated_url: str) -> None:
    """A restored one counts from an earlier revision on: what is new in it would never be read."""
    recent = BucketCache()
    recent.take((), revision=1_000_000)
    await BucketBackfill().keep_up(engine, recent, now_s=NOW_S)
    await BucketBackfill().keep_up(engine, recent, now_s=NOW_S)
    assert recent.arrived_jobs(QUEUE, from_s=0.0) == JOBS
