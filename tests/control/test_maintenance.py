"""Upkeep, whoever leads."""

import psycopg
import pytest

from headway.control.scheduler.maintenance import Maintenance, maintain
from headway.store import decision_partitions
from headway.store.engine import create_engine


async def test_a_part_that_postgres_does_not_do_now_is_one_line_and_keeps_no_other_from_being_done(
    migrated_url: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody reads decisions for long: to wait for the table would make each tick wait behind."""
    monkeypatch.setattr(decision_partitions, "PARTITION_DAYS_AHEAD", decision_partitions.PARTITION_DAYS_AHEAD + 1)
    engine = create_engine(migrated_url)
    with psycopg.connect(migrated_url, autocommit=True) as connection, psycopg.connect(migrated_url) as reading:
        connection.execute(
            "insert into queue_samples (queue, sampled_at_s, waiting_jobs, received_at) "
            "values ('gone', 1, 1, now() - interval '1 year')"
        )
        reading.execute("select count(*) from decisions")
        upkeep = Maintenance()
        await maintain(engine, upkeep)
        assert connection.execute("select count(*) from queue_samples").fetchone() == (0,)
        assert upkeep.failing == {}, "once may be chance"
        (line,) = [record for record in caplog.records if record.name == "headway.control.scheduler.maintenance"]
        await maintain(engine, upkeep)
        assert "Postgres did not do its part" in upkeep.failing["partitions"]
        reading.rollback()
        await maintain(engine, upkeep)
        assert upkeep.failing == {}
    assert line.getMessage().startswith("upkeep of partitions missed: Postgres did not do its part, try again:")
    assert line.exc_info is None
    await engine.dispose()


async def test_a_part_that_fails_altogether_keeps_no_other_from_being_done(
    migrated_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    """As where somebody took the table of decisions away by hand."""
    engine = create_engine(migrated_url)
    with psycopg.connect(migrated_url, autocommit=True) as connection:
        connection.execute("drop table decisions cascade")
        connection.execute(
            "insert into queue_samples (queue, sampled_at_s, waiting_jobs, received_at) "
            "values ('gone', 1, 1, now() - interval '1 year')"
        )
        upkeep = Maintenance()
        await maintain(engine, upkeep)
        assert connection.execute("select count(*) from queue_samples").fetchone() == (0,)
    assert upkeep.failing == {"partitions": 'relation "decisions" does not exist'}
    (line,) = [record for record in caplog.records if record.name == "headway.control.scheduler.maintenance"]
    assert line.getMessage() == "upkeep of partitions failed"
    assert line.exc_info is not None
    await engine.dispose()
