"""Claims, records, readings and the tie between a database and its event log, on a real Postgres."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import text

from headway.errors import Unavailable
from headway.scaling.model import DueJobs, QueueSample, WorkerActivity
from headway.scaling.model.event_row import EventRow
from headway.store.engine import Connection, Engine, transaction
from headway.store.events.batches import BatchKey, claim_batches, record_file, recorded_files
from headway.store.events.event_log import EventLog
from headway.store.events.recovery import attach, recover
from headway.store.events.telemetry import upsert_activities, upsert_samples
from headway.store.overview import read_samples

EVENT = EventRow(queue="q", kind="enqueued", at_s=1.0, received_at_s=1.0, producer="p", sequence=1)

ONE, TWO, THREE = BatchKey("app", 1), BatchKey("app", 2), BatchKey("web", 1)
BOUND_S = 30.0


async def rows(engine: Engine, query: str) -> list[tuple[Any, ...]]:
    async with transaction(engine) as connection:
        return [tuple(row) for row in await connection.execute(text(query))]


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("*.parquet"))


async def until_waiting_for_a_lock(engine: Engine) -> None:
    async with asyncio.timeout(BOUND_S):
        while not await rows(engine, "select 1 from pg_stat_activity where wait_event_type = 'Lock'"):  # noqa: ASYNC110
            await asyncio.sleep(0.005)


async def test_a_batch_is_claimed_once(engine: Engine) -> None:
    async with transaction(engine) as connection:
        assert await claim_batches(connection, {ONE: "f1", THREE: None}) == {ONE, THREE}
    async with transaction(engine) as connection:
        assert await claim_batches(connection, {ONE: "f2", TWO: "f2"}) == {TWO}
    assert await rows(engine, "select producer, sequence, file from event_batches order by 1, 2") == [
        ("app", 1, "f1"),
        ("app", 2, "f2"),
        ("web", 1, None),
    ]


@pytest.mark.parametrize("commits", [True, False])
async def test_of_two_that_claim_at_once_the_second_waits_for_what_becomes_of_the_first(
    engine: Engine, commits: bool
) -> None:
    async def second() -> set[BatchKey]:
        async with transaction(engine) as connection:
            return await claim_batches(connection, {TWO: "f2", ONE: "f2"})

    async with engine.connect() as first:
        await claim_batches(first, {ONE: "f1", TWO: "f1"})
        task = asyncio.create_task(second())
        await until_waiting_for_a_lock(engine)
        await (first.commit() if commits else first.rollback())
    assert await task == (set() if commits else {ONE, TWO})


async def record(connection: Connection, file: str) -> None:
    await record_file(connection, file=file, ingest="i", rows=1, size_bytes=10)


async def test_asking_what_is_recorded_records_nothing(engine: Engine) -> None:
    async with transaction(engine) as connection:
        await record(connection, "f1")
    async with transaction(engine) as connection:
        assert await recorded_files(connection, ["f2", "f1"]) == {"f1"}
    assert await rows(engine, "select file, ingest, rows, bytes from event_files") == [("f1", "i", 1, 10)]


@pytest.mark.parametrize("commits", [True, False])
async def test_a_dead_ingests_commit_that_is_still_under_way_is_waited_for(engine: Engine, commits: bool) -> None:
    """Deleting its file meanwhile would lose events that were about to be recorded."""

    async def ask() -> set[str]:
        async with transaction(engine) as connection:
            return await recorded_files(connection, ["f1"])

    async with engine.connect() as dying:
        await record(dying, "f1")
        task = asyncio.create_task(ask())
        await until_waiting_for_a_lock(engine)
        await (dying.commit() if commits else dying.rollback())
    assert await task == ({"f1"} if commits else set())


def sample(queue: str, at_s: float, waiting_jobs: int, **values: Any) -> QueueSample:
    return QueueSample(queue=queue, at_s=at_s, waiting_jobs=waiting_jobs, **values)


async def test_the_newest_reading_of_each_queue_stays(engine: Engine) -> None:
    async with transaction(engine) as connection:
        await upsert_samples(
            connection, [sample("b", 10.0, 1), sample("a", 12.0, 2, in_flight_jobs=5), sample("a", 11.0, 3)]
        )
    async with transaction(engine) as connection:
        await upsert_samples(connection, [sample("a", 11.5, 4), sample("b", 10.0, 5, oldest_age_s=0.5)])
        await upsert_samples(connection, [])
    query = "select queue, sampled_at_s, waiting_jobs, in_flight_jobs, delayed_jobs, oldest_age_s from queue_samples"
    assert await rows(engine, f"{query} order by queue") == [
        ("a", 12.0, 2, 5, None, None),  # 11.5 came later, and is older
        ("b", 10.0, 5, None, None, 0.5),  # of the same moment the later word counts
    ]


async def test_a_reading_is_read_as_it_was_written(engine: Engine) -> None:
    known = sample(
        "a",
        12.0,
        2,
        in_flight_jobs=5,
        delayed_jobs=1,
        oldest_age_s=3.0,
        reserved_jobs=4,
        oldest_age_max_s=3.5,
        reports_arrivals=False,
        reports_starts=True,
        reports_ends=True,
        poll_interval_s=2.5,
        listed_workers=3,
    )
    async with transaction(engine) as connection:
        await upsert_samples(connection, [known, sample("b", 10.0, 1)])
    async with transaction(engine) as connection:
        assert await read_samples(connection) == {"a": known, "b": sample("b", 10.0, 1)}


async def test_a_lower_bound_is_read_as_it_was_written(engine: Engine) -> None:
    known = QueueSample(queue="a", at_s=12.0, waiting_jobs=None, waiting_min_jobs=7, in_flight_min_jobs=2)
    async with transaction(engine) as connection:
        await upsert_samples(connection, [known])
    async with transaction(engine) as connection:
        assert await read_samples(connection) == {"a": known}


async def test_when_jobs_are_due_is_read_as_it_was_written(engine: Engine) -> None:
    due = (DueJobs(within_s=5.0, jobs=1), DueJobs(within_s=7.5, jobs=3))
    known = QueueSample(queue="a", at_s=12.0, waiting_jobs=0, delayed_jobs=4, due=due)
    async with transaction(engine) as connection:
        await upsert_samples(connection, [known, QueueSample(queue="b", at_s=12.0, waiting_jobs=0)])
    async with transaction(engine) as connection:
        assert (await read_samples(connection))["a"] == known
    gone = replace(known, at_s=13.0, delayed_jobs=0, due=())
    async with transaction(engine) as connection:
        await upsert_samples(connection, [gone])
    async with transaction(engine) as connection:
        assert (await read_samples(connection))["a"] == gone


async def test_the_last_word_on_each_worker_process_stays(engine: Engine) -> None:
    busy = WorkerActivity(host="a", pid=7, is_busy=True, busy_since_s=50.0)
    idle = WorkerActivity(host="a", pid=7, is_busy=False, ended_jobs=3, running_jobs=0)
    other = WorkerActivity(host="b", pid=7, is_busy=True)
    async with transaction(engine) as connection:
        await upsert_activities(connection, [busy, other])
        await upsert_activities(connection, [busy, idle])
        await upsert_activities(connection, [])
    query = "select host_name, pid, is_busy, busy_since_s, ended_jobs, running_jobs from worker_activities order by 1"
    assert await rows(engine, query) == [("a", 7, False, None, 3, 0), ("b", 7, True, None, None, None)]


async def test_a_word_on_a_worker_that_is_withdrawn_is_older_than_any_that_counts(engine: Engine) -> None:
    idle = WorkerActivity(host="a", pid=7, is_busy=False)
    query = "select is_busy, seen_at > now() - interval '1 year' from worker_activities"
    async with transaction(engine) as connection:
        await upsert_activities(connection, [idle])
        await upsert_activities(connection, [replace(idle, is_busy=True, is_withdrawn=True)])
    assert await rows(engine, query) == [(True, False)]
    async with transaction(engine) as connection:
        await upsert_activities(connection, [idle])
    assert await rows(engine, query) == [(False, True)]


async def test_the_first_use_introduces_database_and_folder_to_each_other(engine: Engine, tmp_path: Path) -> None:
    root = tmp_path / "events"
    logs = [EventLog(root) for _ in range(3)]
    await asyncio.gather(*(attach(engine, log) for log in logs))
    assert await rows(engine, "select event_log_marker, event_log_location from cluster") == [
        (logs[0].read_marker(), str(root))
    ]
    await attach(engine, EventLog(root))  # and it stays so


async def test_a_first_use_that_was_cut_short_is_taken_up_again(engine: Engine, tmp_path: Path) -> None:
    marker = uuid4()
    EventLog(tmp_path).create(marker)  # and then the power went, before Postgres knew
    await attach(engine, EventLog(tmp_path))
    assert await rows(engine, "select event_log_marker from cluster") == [(marker,)]


async def test_a_folder_with_another_databases_events_is_refused(engine: Engine, tmp_path: Path) -> None:
    marker = uuid4()
    log = EventLog(tmp_path)
    log.create(marker)
    log.open(marker)
    log.write_tmp("1-a-1.parquet", [EVENT])
    log.publish("1-a-1.parquet")
    with pytest.raises(Unavailable, match="holds the events of another database: name an empty folder"):
        await attach(engine, EventLog(tmp_path))
    assert await rows(engine, "select event_log_marker from cluster") == [(None,)]


async def test_a_folder_that_is_not_mounted_is_not_mistaken_for_a_first_use(engine: Engine, tmp_path: Path) -> None:
    await attach(engine, EventLog(tmp_path / "events"))
    with pytest.raises(Unavailable, match="has no marker"):
        await attach(engine, EventLog(tmp_path / "elsewhere"))
    assert not (tmp_path / "elsewhere").exists()


async def test_recovery_asks_the_database_which_leftovers_count(engine: Engine, tmp_path: Path) -> None:
    dead, log = EventLog(tmp_path), EventLog(tmp_path)
    await attach(engine, dead)
    await attach(engine, log)
    recorded, unrecorded = dead.new_name(1.0), dead.new_name(2.0)
    for name in (recorded, unrecorded):
        dead.write_tmp(name, [EVENT])
    async with transaction(engine) as connection:
        await record(connection, recorded)
    await recover(engine, log)  # it lives: nothing is touched
    assert files(tmp_path / "tmp") == [recorded, unrecorded]
    dead.close()
    await recover(engine, log)
    assert (files(tmp_path / "hot"), files(tmp_path / "tmp")) == ([recorded], [])


async def test_how_many_workers_a_broker_listed_is_kept_by_the_second(engine: Engine) -> None:
    listed = [(10.0, 3), (14.0, 3), (18.0, 2), (22.0, None), (26.0, 2), (30.0, 2), (100.0, 2), (104.0, 1)]
    for at_s, workers in listed:
        async with transaction(engine) as connection:
            await upsert_samples(connection, [sample("a", at_s, 0, listed_workers=workers)])
    query = "select from_s, until_s, workers from listed_workers order by from_s"
    assert await rows(engine, query) == [
        (10.0, 18.0, 3),
        (18.0, 22.0, 2),
        (26.0, 30.0, 2),  # nobody read it until 100: not known, and not zero
        (100.0, 104.0, 2),
    ]
    assert await rows(engine, "select listed_since_s, sampled_at_s, listed_workers from queue_samples") == [
        (104.0, 104.0, 1)
    ]
