"""Ticks of pools whose workers cannot help each other, on a real Postgres."""

from typing import Any

import pytest

from control.ticks import LATE, Database, leading
from headway.scaling.model import QueueSample
from headway.store.engine import transaction
from headway.store.events.telemetry import upsert_samples
from headway.store.overview import read_samples
from support.engines import engine_to
from support.pools import NOW_S

HELD_JOBS = 200


async def read(url: str, *, reports_starts: bool | None = False, **values: Any) -> None:
    """A collector's reading of the queue, as ingest stores it."""
    given: dict[str, Any] = {"waiting_jobs": 0, **values}
    sample = QueueSample(
        queue="redis/mail",
        at_s=NOW_S,
        reports_arrivals=False,
        reports_starts=reports_starts,
        reports_ends=False,
        **given,
    )
    engine = engine_to(url)
    async with transaction(engine) as connection:
        await upsert_samples(connection, [sample])
        assert (await read_samples(connection))["redis/mail"] == sample
    await engine.dispose()


def worker(database: Database) -> None:
    """One that has been running for long."""
    database.run(
        """
        insert into workers (worker_id, host_id, pool, template, pid, state, started_at, state_since, state_reported_at)
        values ('w1', 'a', 'mail', 'mail', 7, 'running', now() - interval '1 h', now() - interval '1 h',
            now() - interval '1 h')
        """
    )


async def test_one_worker_is_asked_for_where_the_broker_gives_jobs_to_one(
    migrated_url: str, database: Database
) -> None:
    database.profile()
    database.host()
    database.bucket(**LATE)
    await read(migrated_url, waiting_jobs=4, oldest_age_s=60.0, useful_workers=1)
    async with leading(migrated_url) as (ticker, epoch):
        await ticker.tick(epoch=epoch, is_all_due=True)
    assert database.decisions() == [("mail", 1, "useful_workers")]


async def test_due_jobs_that_no_worker_moves_into_the_queue_start_none(migrated_url: str, database: Database) -> None:
    database.profile()
    database.host("a", leaves_due_jobs=True)
    database.bucket(**LATE)
    await read(migrated_url, waiting_jobs=4, waiting_min_jobs=0, oldest_age_s=60.0)
    async with leading(migrated_url) as (ticker, epoch):
        await ticker.tick(epoch=epoch, is_all_due=True)
    assert database.decisions() == [("mail", 0, "idle")]
    assert any("add --with-scheduler" in note for note in database.notes()[-1])


@pytest.mark.parametrize("metrics_age_s", [0.0, 60.0])
async def test_jobs_that_one_consumer_has_taken_without_a_bound_ask_for_no_other(
    migrated_url: str, database: Database, metrics_age_s: float
) -> None:
    """Nor while metrics are stale, and depths come directly from the collector."""
    database.profile()
    database.host()
    worker(database)
    database.bucket(at_s=NOW_S - metrics_age_s, in_flight_jobs=HELD_JOBS)
    await read(migrated_url, in_flight_jobs=HELD_JOBS, listed_workers=1)
    async with leading(migrated_url) as (ticker, epoch):
        await ticker.tick(epoch=epoch, is_all_due=True)
    ((_, workers, _),) = database.decisions()
    assert workers == 1
    assert any("no other worker can have those" in note for note in database.notes()[0])
