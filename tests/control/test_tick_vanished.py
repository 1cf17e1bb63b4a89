"""Ticks of a pool whose backlog leaves without a start, on a real Postgres: whose word it is that nothing began."""

import pytest

from control.ticks import Database, leading
from headway.scaling.model import Mode, QueueSample
from headway.store.engine import transaction
from headway.store.events.telemetry import upsert_samples
from support.engines import engine_to
from support.pools import NOW_S


async def read(url: str, *, at_s: float, waiting_jobs: int, listed_workers: int | None) -> None:
    """A collector's reading of a queue of which nobody reports an event."""
    engine = engine_to(url)
    async with transaction(engine) as connection:
        sample = QueueSample(
            queue="redis/mail",
            at_s=at_s,
            waiting_jobs=waiting_jobs,
            in_flight_jobs=0,
            reports_arrivals=False,
            reports_starts=False,
            reports_ends=False,
            listed_workers=listed_workers,
        )
        await upsert_samples(connection, [sample])
    await engine.dispose()


async def lost_jobs(url: str, database: Database, *, listed_workers: int | None) -> int:
    """How many of 100 jobs that leave at the second of three ticks are found to have vanished."""
    for later_s, waiting_jobs in ((0.0, 100), (5.0, 0), (10.0, 0)):
        at_s = NOW_S + later_s
        database.bucket(at_s=at_s, waiting_jobs=waiting_jobs, oldest_age_s=None)
        await read(url, at_s=at_s, waiting_jobs=waiting_jobs, listed_workers=listed_workers)
        async with leading(url, now_s=at_s + 0.5) as (ticker, epoch):
            await ticker.tick(epoch=epoch, is_all_due=True)
    return int(database.read("select coalesce((memory -> 'backlog' ->> 'vanished_jobs')::int, 0) from pool_states"))


@pytest.mark.parametrize(
    ("sources", "listed_workers", "jobs"),
    [
        (["reporter"], None, 100),
        (["reporter"], 1, 100),
        (["child"], None, 0),  # who knows what it began
        ([None], None, 0),
        (["reporter"], 2, 0),  # the broker lists another's worker, which reports nothing here
        ([], None, 0),  # others may run some
        ([], 0, 100),
    ],
)
async def test_where_workers_report_none_has_begun_what_none_reported(
    sources: list[str | None], listed_workers: int | None, jobs: int, migrated_url: str, database: Database
) -> None:
    database.profile()
    database.host()
    for source in sources:
        activity = "null" if source is None else f"'{source}'"
        database.run(
            "insert into workers (worker_id, host_id, pool, template, pid, state, activity_source, started_at, "
            "state_since) values ('w1', 'a', 'mail', 'mail', 1, 'running', "
            f"{activity}, now(), now() - interval '1 hour')"
        )
    assert await lost_jobs(migrated_url, database, listed_workers=listed_workers) == jobs
    notes = " ".join(note for of_decision in database.notes() for note in of_decision)
    assert ("100 jobs left without having been started" in notes) == bool(jobs)


async def test_of_a_pool_that_others_scale_nobody_knows_what_began(migrated_url: str, database: Database) -> None:
    """Its broker lists no worker, at that moment."""
    database.profile(mode=Mode.RECOMMEND)
    database.host()
    assert await lost_jobs(migrated_url, database, listed_workers=0) == 0
