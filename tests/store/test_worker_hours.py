"""What budgets of the day are counted by, on a real Postgres."""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from headway.store.engine import Engine, transaction
from headway.store.worker_hours import WorkerHours

Connection = psycopg.Connection[tuple[object, ...]]
MIDNIGHT = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


@pytest.fixture
def connection(migrated_url: str) -> Iterator[Connection]:
    with psycopg.connect(migrated_url, autocommit=True) as connection:
        for day in (MIDNIGHT - timedelta(days=1), MIDNIGHT):
            partition = f"create table if not exists decisions_{day:%Y%m%d} partition of decisions for values "
            connection.execute(f"{partition} from ('{day}') to ('{day + timedelta(days=1)}')")
        yield connection


def decide(connection: Connection, workers: int, *, at: datetime, pool: str = "mail") -> None:
    body = {"running_workers": workers, "starting_workers": 0, "unknown_workers": 0, "mode": "act"}
    connection.execute(
        "insert into decisions (pool, epoch, target_workers, binding, decided_at, body) values (%s, 1, 0, '', %s, %s)",
        [pool, at, json.dumps(body)],
    )


async def hours(known: WorkerHours, engine: Engine, *pools: str) -> dict[str, float]:
    async with transaction(engine) as conn:
        return await known.today(conn, pools)


def since_midnight_h(connection: Connection) -> float:
    row = connection.execute("select extract(epoch from now() - %s) / 3600", [MIDNIGHT]).fetchone()
    assert row is not None
    return float(str(row[0]))


async def test_only_what_is_new_is_read_again(engine: Engine, connection: Connection) -> None:
    """A day of decisions of a hundred pools takes seconds to read, and a tick has five."""
    known = WorkerHours()
    passed = datetime.now(UTC) - MIDNIGHT
    decide(connection, 10, at=MIDNIGHT - timedelta(hours=1))
    decide(connection, 20, at=MIDNIGHT + passed / 4)
    decide(connection, 7, at=MIDNIGHT - timedelta(hours=2), pool="news")
    first = await hours(known, engine, "mail", "news", "never")
    passed_h = since_midnight_h(connection)
    assert first == {
        "mail": pytest.approx(10 * passed_h / 4 + 20 * passed_h * 3 / 4, abs=0.1),
        "news": pytest.approx(7 * passed_h, abs=0.1),
    }
    connection.execute("delete from decisions where decided_at < %s and pool = 'mail'", [MIDNIGHT])
    decide(connection, 0, at=MIDNIGHT + passed / 2)
    again = await hours(known, engine, "mail", "news")
    passed_h = since_midnight_h(connection)
    assert again["mail"] == pytest.approx(10 * passed_h / 4 + 20 * passed_h / 4, abs=0.1)
    assert await hours(known, engine, "mail") == {"mail": pytest.approx(again["mail"], abs=0.1)}


async def test_at_midnight_counting_begins_anew_with_what_holds(engine: Engine, connection: Connection) -> None:
    known = WorkerHours()
    decide(connection, 10, at=MIDNIGHT - timedelta(hours=3))
    decide(connection, 4, at=MIDNIGHT - timedelta(hours=1))
    await hours(known, engine, "mail")
    # As if it had last looked yesterday.
    yesterday = replace(known._known["mail"], day_began_at=MIDNIGHT - timedelta(days=1), ended_hours=20.0)
    known._known["mail"] = yesterday
    assert await hours(known, engine, "mail") == {"mail": pytest.approx(4 * since_midnight_h(connection), abs=0.1)}
