"""Counters and histograms of jobs on `/metrics`: only what is reported, and never set back."""

import json

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from control.http.conftest import NOW_S
from headway.scaling.measure import merged, sketch_index
from headway.scaling.metrics.job_totals import JobTotals, within
from headway.scaling.model import Objective
from headway.scaling.profile import Profile
from headway.store.engine import Engine, transaction
from headway.store.pools.attainment import count_attainment
from support.seed import Seed

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


async def scraped(client: httpx.AsyncClient) -> Samples:
    answer = await client.get("/metrics")
    assert answer.status_code == 200
    families = text_string_to_metric_families(answer.text)
    return {(each.name, frozenset(each.labels.items())): each.value for family in families for each in family.samples}


def mail(seed: Seed) -> Profile:
    """Of one queue, whose jobs are to start within 7 s."""
    profile = Profile(pool="mail", queues=("redis/mail",), template="rq", objective=Objective(target_s=7.0))
    seed.profile(profile)
    return profile


def counted(seed: Seed, *, until_s: float = NOW_S - 900.0) -> None:
    seed.execute(f"update rollup_progress set totals_until_s = {until_s}")


async def test_jobs_are_counted_over_what_is_stored_and_what_is_new(api, client: httpx.AsyncClient, seed: Seed) -> None:
    mail(seed)
    counted(seed)
    sketch = json.dumps({sketch_index(1.0): 90, sketch_index(20.0): 10})
    seed.execute_with(
        "insert into queue_totals values ('redis/mail', 120, 100, 80, 20, 0, 50.0, %s, %s)", sketch, sketch
    )
    seed.bucket("redis/mail", at_s=NOW_S - 800, arrived_jobs=3, pickups_s=[1.0, 9.0])
    seed.bucket("redis/mail", at_s=NOW_S - 1000, arrived_jobs=1000)  # which the total has
    labels = {("queue", "redis/mail"), ("pool", "mail")}
    for again in range(2):
        samples = await scraped(client)
        found = {
            name: samples.get((f"headway_queue_{name}_jobs_total", frozenset(labels)))
            for name in ("enqueued", "started", "finished", "failed")
        }
        assert found == {"enqueued": 123 + again, "started": 102, "finished": 80, "failed": 20}
        promised = frozenset({*labels, ("objective_seconds", "7.0")})
        assert samples["headway_queue_measured_jobs_total", promised] == 102
        assert samples["headway_queue_late_jobs_total", promised] == 11
        waits = "headway_queue_pickup_time_seconds"
        assert samples[f"{waits}_bucket", frozenset({*labels, ("le", "7.0")})] == 91
        assert samples[f"{waits}_bucket", frozenset({*labels, ("le", "+Inf")})] == 102
        assert samples[f"{waits}_count", frozenset(labels)] == 102
        if not again:
            seed.bucket("redis/mail", at_s=NOW_S - 700, arrived_jobs=1)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(api()), base_url="http://127.0.0.1:8460") as another:
        assert await scraped(another) == await scraped(client), "of a control plane that has just begun"


async def test_what_nobody_reports_has_no_counter(client: httpx.AsyncClient, seed: Seed) -> None:
    mail(seed)
    counted(seed)
    seed.bucket("redis/mail", at_s=NOW_S - 5, waiting_jobs=4)
    seed.sample("redis/mail", at_s=NOW_S - 2, waiting_jobs=4, reports_arrivals=True, reports_ends=False)
    seed.bucket("redis/mail", at_s=NOW_S - 100, arrived_jobs=3, finished_jobs=2)
    names = {name for name, labels in await scraped(client) if ("queue", "redis/mail") in labels}
    jobs = {name for name in names if name.endswith("_jobs_total") or "_time_seconds" in name}
    assert jobs == {"headway_queue_enqueued_jobs_total"}


async def test_no_counter_is_shown_before_the_pipeline_counts(client: httpx.AsyncClient, seed: Seed) -> None:
    mail(seed)
    seed.bucket("redis/mail", at_s=NOW_S - 100, arrived_jobs=3)
    assert not [name for name, _ in await scraped(client) if name == "headway_queue_enqueued_jobs_total"]


async def test_attainment_is_of_the_objective_and_its_budget(
    client: httpx.AsyncClient, seed: Seed, engine: Engine
) -> None:
    profile = mail(seed)
    sketch = json.dumps({sketch_index(1.0): 995, sketch_index(8.0): 5})
    seed.execute_with(
        "insert into rollup_minutes (queue, bucket_s, pickup_sketch) values ('redis/mail', %s, %s)", NOW_S - 60, sketch
    )
    for _ in range(2):
        async with transaction(engine) as conn:
            await count_attainment(conn, [profile], now_s=NOW_S)
    samples = await scraped(client)
    hour = frozenset({("pool", "mail"), ("window", "1h")})
    assert samples["headway_pool_attainment_ratio", hour] == pytest.approx(0.995)
    assert samples["headway_pool_error_budget_left_ratio", hour] == pytest.approx(0.5)
    assert samples["headway_pool_error_budget_ratio", frozenset({("pool", "mail")})] == pytest.approx(0.01)


async def test_jobs_later_than_a_usual_objective_are_late_also_within_two_percent(
    client: httpx.AsyncClient, seed: Seed, engine: Engine
) -> None:
    """Of 147 late jobs 32 had waited for 10.1 s of the 10 s. A whole bucket 117 of an earlier version was in time."""
    profile = Profile(pool="mail", queues=("redis/mail",), template="rq", objective=Objective(target_s=10.0))
    seed.profile(profile)
    counted(seed)
    waits = {9.95: 500, 10.0: 353, 10.1: 32, 12.0: 115}
    sketch = merged({sketch_index(wait_s): jobs} for wait_s, jobs in waits.items())
    for after_s, found in ((0, sketch), (5, {117: 1000})):
        seed.bucket("redis/mail", at_s=NOW_S - 60 + after_s, started_jobs=1000, pickup_sketch=json.dumps(found))
        seed.execute_with(
            "insert into rollup_minutes (queue, bucket_s, pickup_sketch) values ('redis/mail', %s, %s)",
            NOW_S - 600 + 60 * after_s,
            json.dumps(found),
        )
    async with transaction(engine) as conn:
        await count_attainment(conn, [profile], now_s=NOW_S)
    samples = await scraped(client)
    promised = frozenset({("queue", "redis/mail"), ("pool", "mail"), ("objective_seconds", "10.0")})
    assert samples["headway_queue_late_jobs_total", promised] == 147
    hour = frozenset({("pool", "mail"), ("window", "1h")})
    assert samples["headway_pool_attainment_ratio", hour] == pytest.approx(1.0 - 147 / 2000)


@pytest.mark.parametrize(
    ("bounds_s", "jobs"),
    [
        ((1.0, 10.0), [(1.0, 2), (10.0, 5)]),  # 2 of 1 s, and 3 of 7 s
        ((7.0, 1.0, 7.0), [(1.0, 2), (7.0, 5)]),
        ((0.5,), [(0.5, 0)]),
    ],
)
def test_a_bound_counts_what_does_not_exceed_it(bounds_s: tuple[float, ...], jobs: list[tuple[float, int]]) -> None:
    sketch = {sketch_index(1.0): 2, sketch_index(7.0): 3}
    assert within(sketch, bounds_s) == jobs
    assert JobTotals(pickup_sketch=sketch).late(1.0) == 3
