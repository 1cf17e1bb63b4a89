"""Series over HTTP, on rows as the pipeline and the leader leave them."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from control.http.conftest import NOW_S
from control.http.values import decision
from headway.scaling.measure import sketch_index
from headway.scaling.model import Objective, QueueMetrics
from headway.scaling.profile import Profile
from support.seed import Seed

MAIL = Profile(pool="mail", queues=("redis/mail",), template="rq", objective=Objective(target_s=5), workers_max=8)
BOTH = Profile(pool="mail", queues=("redis/mail", "redis/news"), template="rq", objective=Objective(target_s=5))
DAY_S = 86_400.0


def rolled(seed: Seed, table: str, at_s: float, *, queue: str = "redis/mail", **values: Any) -> None:
    """A minute or an hour; all that is older than the last hour is rolled up."""
    columns = ", ".join(values)
    seed.execute_with(
        f"insert into {table} (queue, bucket_s, {columns}) values (%s, %s, {', '.join(['%s'] * len(values))})",
        queue,
        at_s,
        *values.values(),
    )
    seed.execute_with(
        "update rollup_progress set minutes_until_s = %s, hours_until_s = %s", NOW_S - 60, NOW_S // 3600 * 3600 - 3600
    )


@asynccontextmanager
async def asked_at(api: Any, now_s: float) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(api(clock=lambda: now_s))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8460") as client:
        yield client


async def series(client: httpx.AsyncClient, path: str, **asked: Any) -> dict[str, Any]:
    answer = await client.get(f"/v1/{path}/series", params=asked)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    assert {len(column) for column in found["columns"].values()} == {len(found["columns"]["at_s"])}
    return found


def known(found: dict[str, Any], name: str) -> dict[float, float]:
    """When a column is known -> what it says."""
    pairs = zip(found["columns"]["at_s"], found["columns"][name], strict=True)
    return {at_s: value for at_s, value in pairs if value is not None}


async def test_the_last_quarter_of_an_hour_is_of_buckets(client: httpx.AsyncClient, seed: Seed) -> None:
    seed.profile(MAIL)
    seed.bucket("redis/mail", at_s=NOW_S - 100, arrived_jobs=4, waiting_jobs=7, oldest_age_s=2.5, pickups_s=[2.0, 3.0])
    found = await series(client, "queues/redis/mail", from_s=NOW_S - 900, points=180)
    assert (found["source"], found["step_s"], found["from_s"]) == ("raw", 5.0, NOW_S - 900)
    assert (found["pool"], found["queue"]) == ("mail", "redis/mail")
    assert known(found, "enqueued") == {NOW_S - 100: 4, NOW_S - 95: 0, NOW_S - 90: 0}
    assert known(found, "backlog_jobs")[NOW_S - 100] == 7
    assert known(found, "pickup_s") == {NOW_S - 100: pytest.approx(3.0, rel=0.01)}
    assert found["objective"]["target_s"] == 5


async def test_a_day_is_of_minutes_and_of_what_is_not_rolled_up_yet(seed: Seed, api: Any) -> None:
    seed.profile(MAIL)
    rolled(seed, "rollup_minutes", NOW_S - 7200, arrived_jobs=10, waiting_jobs=50, sampled_at_s=NOW_S - 7150)
    seed.bucket("redis/mail", at_s=NOW_S - 7200, arrived_jobs=10)  # in its minute already
    seed.bucket("redis/mail", at_s=NOW_S - 10, arrived_jobs=3)
    async with asked_at(api, NOW_S + 5) as client:
        found = await series(client, "pools/mail", from_s=NOW_S - DAY_S, until_s=NOW_S, points=24)
    assert (found["source"], found["step_s"]) == ("minutes", 3600.0)
    assert sum(known(found, "enqueued").values()) == 13
    assert max(known(found, "backlog_jobs").values()) == 50


async def test_400_days_are_of_hours_with_the_last_of_minutes_and_buckets(seed: Seed, api: Any) -> None:
    seed.profile(MAIL)
    sketch = json.dumps({sketch_index(40.0): 9})
    rolled(seed, "rollup_hours", (NOW_S - 300 * DAY_S) // 3600 * 3600, arrived_jobs=100, pickup_sketch=sketch)
    rolled(seed, "rollup_minutes", NOW_S // 3600 * 3600 - 3600, arrived_jobs=20)
    seed.bucket("redis/mail", at_s=NOW_S - 10, arrived_jobs=3)
    async with asked_at(api, NOW_S + 5) as client:
        found = await series(client, "queues/redis/mail", from_s=NOW_S - 400 * DAY_S, until_s=NOW_S, points=1000)
    assert (found["source"], found["step_s"]) == ("hours", 36_000.0)
    assert sum(known(found, "enqueued").values()) == 123
    assert max(known(found, "p95_s").values()) == pytest.approx(40.0, rel=0.01)


async def test_an_hour_that_goes_on_has_no_count_yet(seed: Seed, api: Any) -> None:
    seed.profile(MAIL)
    for at_s in (NOW_S - 10, NOW_S + 600):
        seed.bucket("redis/mail", at_s=at_s, arrived_jobs=3, waiting_jobs=7, sampled_at_s=at_s)
    async with asked_at(api, NOW_S + 700) as client:
        found = await series(client, "pools/mail", from_s=NOW_S - 82_800, until_s=NOW_S + 3600, points=24)
    assert known(found, "enqueued") == {NOW_S - 3600: 3}
    assert known(found, "backlog_jobs") == {NOW_S - 3600: 7, NOW_S: 7}


async def test_decisions_give_workers_and_show_that_an_empty_queue_was_read(seed: Seed, api: Any) -> None:
    """Decisions date from Postgres's clock, so that the API's goes by it here."""
    (now_s,) = seed.rows("select extract(epoch from now())::float8")[0]
    seed.profile(MAIL)
    metrics = (QueueMetrics(queue="redis/mail", sampled_at_s=now_s, waiting_jobs=0),)
    seed.decision(decision(3, metrics=metrics, running_workers=2, starting_workers=1, leaving_workers=4), ago_s=200.0)
    async with asked_at(api, now_s) as client:
        for path in ("pools/mail", "queues/redis/mail"):
            found = await series(client, path, from_s=now_s - 600, until_s=now_s, points=120)
            for name, workers in (("running", 2), ("starting", 1), ("draining", 4), ("target", 3)):
                assert set(known(found, f"{name}_workers").values()) == {workers}
            assert min(known(found, "target_workers")) > now_s - 200 - found["step_s"]  # nothing before the first
            assert set(known(found, "backlog_jobs").values()) == {0}
            assert set(found["columns"]["enqueued"]) == {None}  # nobody said that it reports events


async def test_events_that_nobody_reports_of_a_queue_are_null(client: httpx.AsyncClient, seed: Seed) -> None:
    """One queue is read by its depth alone, the other has events: their sum is not known."""
    seed.profile(BOTH)
    seed.bucket("redis/mail", at_s=NOW_S - 20, waiting_jobs=7)
    seed.sample("redis/mail", at_s=NOW_S - 1, waiting_jobs=7)
    seed.bucket("redis/news", at_s=NOW_S - 20, arrived_jobs=4, pickups_s=[1.0], oldest_age_s=0.0)
    found = await series(client, "pools/mail", from_s=NOW_S - 900)
    for name in ("enqueued", "started", "finished", "failed", "running_workers", "forecast_jobs_per_s"):
        assert known(found, name) == {}
    assert max(known(found, "backlog_jobs").values()) == 7
    assert known(await series(client, "queues/redis/news", from_s=NOW_S - 900), "enqueued") != {}


async def test_a_queue_that_shares_its_pool_has_no_workers_of_its_own(client: httpx.AsyncClient, seed: Seed) -> None:
    seed.profile(BOTH)
    seed.sample("other/x", at_s=NOW_S - 1)
    assert known(await series(client, "queues/redis/mail"), "ceiling_workers") == {}
    found = await series(client, "queues/other/x")
    assert (found["pool"], found["objective"], known(found, "pickup_s")) == (None, None, {})


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"from_s": "nan"}, "finite"),
        ({"until_s": "inf"}, "finite"),
        ({"from_s": -1}, "greater than or equal"),
        ({"from_s": NOW_S, "until_s": NOW_S - 1000}, "is not before"),
        ({"from_s": NOW_S - 401 * DAY_S}, "400 days at most"),
        ({"from_s": NOW_S - 5}, "60 s at least"),
        ({"from_s": NOW_S, "until_s": NOW_S + 30 * DAY_S}, "ahead of now"),
        ({"points": 1}, "greater than or equal"),
        ({"points": 1001}, "less than or equal"),
    ],
)
async def test_a_range_that_makes_no_sense_is_refused(
    client: httpx.AsyncClient, seed: Seed, asked: dict[str, Any], said: str
) -> None:
    seed.profile(MAIL)
    for path in ("pools/mail", "queues/redis/mail"):
        answer = await client.get(f"/v1/{path}/series", params=asked)
        assert answer.status_code == 422
        assert said in answer.text


async def test_what_nobody_knows_has_no_series(client: httpx.AsyncClient) -> None:
    assert (await client.get("/v1/queues/redis/none/series")).status_code == 404
    assert (await client.get("/v1/pools/none/series")).status_code == 404
