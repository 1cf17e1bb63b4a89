"""What ticks on a real Postgres find there, and who makes them."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import psycopg
import pytest

from headway.control.scheduler.leader import Leadership
from headway.control.scheduler.ticker import Ticker
from headway.scaling.profile import profile_to_mapping
from headway.scaling.strategies import BUILT_IN
from headway.scaling.strategy import Strategy
from headway.store.leadership import LeaderSession
from headway.store.outbox.pool_events import Subscribers, no_subscribers
from support.engines import engine_to
from support.pools import NOW_S, profile

LATE: Any = {"waiting_jobs": 4, "oldest_age_s": 60.0}  # past the objective: a slot each, for no job has finished yet

TEMPLATE = {"name": "mail", "content_hash": "1", "slots": 1, "cpu_cores": 0.1, "memory_bytes": 1_000_000}


class Database:
    """What a test writes in the place of people, agents and Spark, and reads in the place of agents."""

    def __init__(self, url: str) -> None:
        self._connection = psycopg.connect(url, autocommit=True)
        self._revision = 0

    def close(self) -> None:
        self._connection.close()

    def profile(self, pool: str = "mail", **values: Any) -> None:
        body = profile_to_mapping(profile(pool=pool, queues=(f"redis/{pool}",), **values))
        self.body(pool, body)
        self._connection.execute("insert into profile_queues values (%s, %s, 0)", [f"redis/{pool}", pool])

    def body(self, pool: str, body: dict[str, Any]) -> None:
        self._connection.execute("insert into profiles (pool, body) values (%s, %s)", [pool, json.dumps(body)])

    def host(self, name: str = "a", *, cpu_cores: float = 10.0, lease_s: float = 3600.0, **of_template: Any) -> None:
        self._connection.execute(
            """
            insert into hosts (host_id, name, cpu_cores, memory_bytes, templates, reported_at, lease_ends_at)
            values (%s, %s, %s, 1000000000000, %s, now(), now() + make_interval(secs => %s))
            """,
            [name, name, cpu_cores, json.dumps([TEMPLATE | of_template]), lease_s],
        )

    def bucket(self, pool: str = "mail", *, at_s: float = NOW_S, **values: Any) -> None:
        self._revision += 1
        row = {
            "queue": f"redis/{pool}",
            "bucket_s": at_s // 5 * 5,
            "sampled_at_s": at_s,
            "waiting_jobs": 0,
            "in_flight_jobs": 0,
            "oldest_age_s": 0.0,
            "revision": self._revision,
            **values,
        }
        columns = ", ".join(row)
        self._connection.execute(
            f"insert into queue_buckets ({columns}) values ({', '.join(['%s'] * len(row))})", list(row.values())
        )

    def assigned(self) -> dict[tuple[str, str], int]:
        rows = self._connection.execute("select pool, host_id, base_workers from assignments").fetchall()
        return {(pool, host): workers for pool, host, workers in rows}

    def revision_of(self, host: str = "a") -> int:
        row = self._connection.execute("select assignment_revision from hosts where host_id = %s", [host]).fetchone()
        assert row is not None
        return int(row[0])

    def decisions(self) -> list[tuple[str, int, str]]:
        return self._connection.execute(
            "select pool, target_workers, binding from decisions order by decided_at, decision_id"
        ).fetchall()

    def notes(self) -> list[list[str]]:
        rows = self._connection.execute("select body -> 'notes' from decisions order by decided_at, decision_id")
        return [notes for (notes,) in rows.fetchall()]

    def run(self, sql: str) -> None:
        self._connection.execute(sql)

    def read(self, sql: str) -> Any:
        row = self._connection.execute(sql).fetchone()
        assert row is not None
        return row[0]


@pytest.fixture
async def database(migrated_url: str) -> AsyncIterator[Database]:
    database = Database(migrated_url)
    yield database
    database.close()


@asynccontextmanager
async def leading(
    url: str,
    *,
    now_s: float = NOW_S,
    strategies: Mapping[str, Strategy] = BUILT_IN,
    recommends_only: bool = False,
    subscribers_of: Subscribers = no_subscribers,
) -> AsyncIterator[tuple[Ticker, int]]:
    """A ticker and the epoch it leads under, at ``now_s``."""
    engine, session = engine_to(url), await LeaderSession.open(url)
    async with asyncio.timeout(60):
        # The server gives a closed session's lock back in its own time.
        while (epoch := await session.try_lead("test")) is None:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    leadership = Leadership(database_url=url, name="test", clock=lambda: now_s)
    try:
        ticker = Ticker(
            engine=engine,
            leadership=leadership,
            clock=lambda: now_s,
            strategies=strategies,
            recommends_only=recommends_only,
            subscribers_of=subscribers_of,
        )
        yield ticker, epoch
    finally:
        await session.close()
        await engine.dispose()
