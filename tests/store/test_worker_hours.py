"""Where counting a day's budget begins, on a real Postgres."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from headway.store.engine import Engine, transaction
from headway.store.hosts.worker_hours import worker_hours_since

Connection = psycopg.Connection[tuple[object, ...]]
MIDNIGHT = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


@pytest.fixture
def connection(migrated_url: str) -> Iterator[Connection]:
    with psycopg.connect(migrated_url, autocommit=True) as connection:
        for day in (MIDNIGHT - timedelta(days=1), MIDNIGHT):
            partition = f"create table if not exists decisions_{day:%Y%m%d} partition of decisions for values "
            connection.execute(f"{partition} from ('{day}') to ('{day + timedelta(days=1)}')")
        yield connection


def decide(
    connection: Connection, workers: int, *, at: datetime, pool: str = "mail", leaving: int | None = None
) -> None:
    body = {"running_workers": workers, "starting_workers": 0, "unknown_workers": 0, "mode": "act"}
    if leaving is not None:  # older rows say nothing of it
        body["leaving_workers"] = leaving
    connection.execute(
        "insert into decisions (pool, epoch, target_workers, binding, decided_at, body) values (%s, 1, 0, '', %s, %s)",
        [pool, at, json.dumps(body)],
    )


async def hours(engine: Engine, began: datetime, *pools: str) -> dict[str, float]:
    async with transaction(engine) as conn:
        return await worker_hours_since(conn, dict.fromkeys(pools, began.timestamp()))


def since_h(connection: Connection, began: datetime) -> float:
    row = connection.execute("select extract(epoch from now() - %s) / 3600", [began]).fetchone()
    assert row is not None
    return float(str(row[0]))


async def test_a_decision_counts_until_the_next_and_from_midnight_on(engine: Engine, connection: Connection) -> None:
    passed = datetime.now(UTC) - MIDNIGHT
    decide(connection, 10, at=MIDNIGHT - timedelta(hours=1))
    decide(connection, 20, at=MIDNIGHT + passed / 4)
    decide(connection, 7, at=MIDNIGHT - timedelta(hours=2), pool="news")
    found = await hours(engine, MIDNIGHT, "mail", "news")
    passed_h = since_h(connection, MIDNIGHT)
    assert found == {
        "mail": pytest.approx(10 * passed_h / 4 + 20 * passed_h * 3 / 4, abs=0.1),
        "news": pytest.approx(7 * passed_h, abs=0.1),
    }


async def test_each_pool_has_a_day_of_its_own(engine: Engine, connection: Connection) -> None:
    """Of another time zone, whose midnight was two hours before."""
    decide(connection, 10, at=MIDNIGHT - timedelta(hours=5))
    began = MIDNIGHT - timedelta(hours=2)
    assert await hours(engine, began, "mail") == {"mail": pytest.approx(10 * since_h(connection, began), abs=0.1)}


async def test_workers_that_leave_are_paid_as_well(engine: Engine, connection: Connection) -> None:
    decide(connection, 1, at=MIDNIGHT - timedelta(hours=1), leaving=3)
    assert await hours(engine, MIDNIGHT, "mail") == {"mail": pytest.approx(4 * since_h(connection, MIDNIGHT), abs=0.1)}


async def test_a_pool_that_was_never_decided_has_run_nothing(engine: Engine, connection: Connection) -> None:
    """Unlike one whose last decision is of long ago: what that has run is not known."""
    decide(connection, 10, at=MIDNIGHT - timedelta(hours=1), pool="old")
    began = datetime.now(UTC) + timedelta(days=2)
    assert await hours(engine, began, "mail", "old") == {"mail": 0.0}
