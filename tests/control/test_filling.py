"""The first look at the last minutes, on a real Postgres."""

import psycopg
import pytest

from headway.control import filling
from headway.control.filling import PART_S, Filling
from headway.control.recent import KEPT_S, RecentBuckets
from headway.errors import Unavailable
from headway.scaling.measure import BUCKET_S
from headway.store.engine import Engine

NOW_S = 1_000_000.0
QUEUE = "redis/mail"


@pytest.fixture(autouse=True)
def buckets(migrated_url: str) -> None:
    """A job in every bucket of the last minutes, and one that was written for a moment yet to come."""
    with psycopg.connect(migrated_url, autocommit=True) as connection:
        connection.execute(
            "insert into queue_buckets (queue, bucket_s, arrived_jobs, service_sketch, revision) "
            "select %s, starts_s, 1, '{\"3\": 2}', nextval('bucket_revision') "
            "from generate_series(%s::numeric, %s, %s) as starts_s",
            [QUEUE, int(NOW_S - KEPT_S - BUCKET_S), int(NOW_S + 20.0), int(BUCKET_S)],
        )


async def test_the_last_minutes_are_read_in_parts_each_of_which_is_told_of(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten thousand queues have more rows in them than Python makes before a transaction or a lease ends."""
    asked: list[tuple[float, float | None]] = []
    read = filling.read_buckets

    async def noted(connection, *, from_s, until_s):
        asked.append((from_s, until_s))
        return await read(connection, from_s=from_s, until_s=until_s)

    monkeypatch.setattr(filling, "read_buckets", noted)
    recent, parts, begun = RecentBuckets(), [], Filling()
    await begun.go_on(engine, recent, now_s=NOW_S, on_part=lambda: parts.append(1))
    spans = [until_s - from_s for from_s, until_s in asked if until_s is not None]
    assert spans == [PART_S] * (round(KEPT_S / PART_S) - 1)
    assert asked[-1] == (NOW_S - PART_S, None)
    assert len(parts) == len(asked)
    assert begun.is_done
    assert recent.arrived_jobs(QUEUE, from_s=0.0) == (KEPT_S + 20.0) / BUCKET_S + 1
    assert recent.revision == (KEPT_S + 20.0) / BUCKET_S + 2


async def test_what_was_interrupted_goes_on_where_it_was(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A leader that begins anew each time, and fails each time, must not look alive for it."""
    asked: list[float] = []
    read = filling.read_buckets

    async def away_at_the_third(connection, *, from_s, until_s):
        asked.append(from_s)
        if len(asked) == 3:
            raise Unavailable("Postgres restarts")
        return await read(connection, from_s=from_s, until_s=until_s)

    monkeypatch.setattr(filling, "read_buckets", away_at_the_third)
    recent, begun = RecentBuckets(), Filling()
    with pytest.raises(Unavailable):
        await begun.go_on(engine, recent, now_s=NOW_S)
    assert recent.revision == 0
    await begun.go_on(engine, recent, now_s=NOW_S + 5.0)
    assert asked[:4] == [NOW_S - KEPT_S + PART_S * part for part in (0, 1, 2, 2)]
    assert recent.arrived_jobs(QUEUE, from_s=0.0) == (KEPT_S + 20.0) / BUCKET_S + 1
