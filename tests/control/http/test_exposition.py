"""`/metrics`: the overview in Prometheus's own format, read by its own parser."""

import asyncio
import re
import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from control.http.conftest import NOW_S
from control.http.values import BATCH
from headway.control.http.overview import overview_builder
from headway.scaling.allocation.host_demand import HostsWanted
from headway.scaling.conditions.host_facts import HostRow
from headway.scaling.metrics.behaviour import Behaviour, Spread
from headway.scaling.metrics.prediction_error import PredictionError
from headway.scaling.model import DayBudget, Decision, Objective
from headway.scaling.profile import Profile
from headway.store.engine import Connection, Engine, transaction
from headway.store.pools.behaviours import Learned
from headway.store.pools.host_demand import save_hosts_wanted
from support.seed import Seed
from support.tree import ROOT

DOCUMENT = ROOT / "docs/reference/metrics.md"
Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


async def scraped(client: httpx.AsyncClient) -> Samples:
    answer = await client.get("/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain; version=")
    families = text_string_to_metric_families(answer.text)
    return {(each.name, frozenset(each.labels.items())): each.value for family in families for each in family.samples}


def of(samples: Samples, name: str, **labels: str) -> float | None:
    return samples.get((name, frozenset(labels.items())))


async def test_pools_queues_and_hosts_are_exposed(client: httpx.AsyncClient, seed: Seed) -> None:
    seed.profile(Profile(pool="mail", queues=("redis/mail",), template="rq", objective=Objective(target_s=7.0)))
    seed.sample("redis/mail", at_s=NOW_S - 2.0, waiting_jobs=3, oldest_age_s=4.0)
    seed.host("a")
    seed.host("lost", lease_s=-1.0)
    seed.worker("a", "mail", 1)
    seed.worker("a", "mail", 2, state="draining")
    seed.worker("lost", "mail", 3)
    samples = await scraped(client)
    exposed = {
        state: of(samples, "headway_pool_workers", pool="mail", state=state)
        for state in ("running", "starting", "draining", "unknown")
    }
    assert exposed == {"running": 1, "starting": 0, "draining": 1, "unknown": 1}
    assert of(samples, "headway_pool_objective_seconds", pool="mail") == 7.0
    assert of(samples, "headway_queue_waiting_jobs", queue="redis/mail", pool="mail") == 3
    assert of(samples, "headway_queue_oldest_age_seconds", queue="redis/mail", pool="mail") == pytest.approx(6.0, abs=3)
    assert of(samples, "headway_hosts", state="serving") == 1
    assert of(samples, "headway_hosts", state="silent") == 1


async def test_workers_ended_by_force_are_counted_by_host_and_pool(client: httpx.AsyncClient, seed: Seed) -> None:
    for host in ("a", "b"):
        seed.host(host)
    seed.execute(
        "insert into forced_ends (host_id, pool, workers) select host_id, 'mail', 3 from hosts where name = 'a'"
    )
    samples = await scraped(client)
    assert of(samples, "headway_host_forced_workers_total", host="a", pool="mail") == 3
    assert not [
        labels for name, labels in samples if name.startswith("headway_host_forced") and ("host", "b") in labels
    ]
    (a, b) = (await client.get("/v1/hosts")).json()["hosts"]
    assert (a["forced_workers"], b["forced_workers"]) == ({"mail": 3}, {})


async def test_what_is_not_known_has_no_sample(client: httpx.AsyncClient, seed: Seed) -> None:
    seed.profile(Profile(pool="mail", queues=("redis/mail",), template="rq"))
    samples = await scraped(client)
    assert of(samples, "headway_pool_objective_seconds", pool="mail") == 10.0
    assert of(samples, "headway_pool_target_workers", pool="mail") is None
    assert of(samples, "headway_queue_waiting_jobs", queue="redis/mail", pool="mail") is None
    assert of(samples, "headway_leader_silent_seconds") is None


async def test_what_of_a_days_budget_is_paid_is_exposed_with_its_overrun(client: httpx.AsyncClient, seed: Seed) -> None:
    for pool in ("mail", "news"):
        seed.profile(Profile(pool=pool, queues=(f"redis/{pool}",), template="rq"))
    spent = DayBudget(day="2026-11-23", budget_worker_s=3600.0, paid_worker_s=4000.0, overrun_worker_s=400.0)
    seed.decision(Decision(pool="mail", at_s=NOW_S, target_workers=0, binding="budget", day_budget=spent))
    seed.decision(Decision(pool="news", at_s=NOW_S, target_workers=0, binding="idle"))
    samples = await scraped(client)
    for name, worker_s in (("budget", 3600), ("paid", 4000), ("overrun", 400)):
        assert of(samples, f"headway_pool_day_{name}_worker_seconds", pool="mail") == worker_s
        assert of(samples, f"headway_pool_day_{name}_worker_seconds", pool="news") is None


async def test_hosts_that_are_missing_are_exposed_with_what_they_must_have(
    client: httpx.AsyncClient, engine: Engine
) -> None:
    missing = HostsWanted(
        hosts=2,
        workers=5,
        labels={"disk": "ssd"},
        templates=("rq",),
        pools=("mail",),
        since_s=NOW_S - 30.0,
    )
    async with transaction(engine) as conn:
        await save_hosts_wanted(conn, [missing])
    samples = await scraped(client)
    labels = {"templates": "rq", "labels": "disk=ssd"}
    assert of(samples, "headway_hosts_wanted", **labels) == 2
    assert of(samples, "headway_hosts_wanted_workers", **labels) == 5
    assert of(samples, "headway_hosts_wanted_seconds", **labels) == 30


async def test_health_is_exposed(client: httpx.AsyncClient, seed: Seed) -> None:
    assert of(await scraped(client), "headway_healthy") == 0, "nobody has led yet"
    seed.leader(age_s=3.0)
    seed.pipeline()
    samples = await scraped(client)
    assert of(samples, "headway_healthy") == 1
    assert of(samples, "headway_leader_silent_seconds") == pytest.approx(3.0, abs=2)


async def test_what_ingest_has_counted_is_exposed(client: httpx.AsyncClient) -> None:
    for _ in range(2):
        assert (await client.post("/v1/telemetry", json=BATCH)).status_code == 200
    samples = await scraped(client)
    counted = ("batches", "duplicate_batches", "failed_batches", "events", "samples")
    assert [of(samples, f"headway_ingest_{name}_total") for name in counted] == [
        2,
        1,
        0,
        len(BATCH["events"]),
        len(BATCH["samples"]),
    ]


async def test_how_pools_and_templates_behave_is_exposed_by_quantile(client: httpx.AsyncClient, seed: Seed) -> None:
    seed.profile(Profile(pool="mail", queues=("redis/mail",), template="rq"))
    seed.profile(Profile(pool="news", queues=("redis/news",), template="rq"))
    seed.host("a")
    seed.start_up("a", "rq", 1.5)
    lag = Spread(p50_s=0.7, p95_s=1.9, count=50)
    seed.learned(
        "mail",
        Learned(
            body={},
            behaviour=Behaviour(sample_lag=lag, dispatch_overhead_s=0.034),
            prediction=PredictionError(p50_s=0.4, p95_s=2.1, bias_s=-0.2, count=118),
        ),
    )
    seed.learned("news", Learned(body={}))
    samples = await scraped(client)
    for quantile, lag_s, error_s in (("0.5", 0.7, 0.4), ("0.95", 1.9, 2.1)):
        assert of(samples, "headway_pool_sample_lag_seconds", pool="mail", quantile=quantile) == lag_s
        assert of(samples, "headway_pool_prediction_error_seconds", pool="mail", quantile=quantile) == error_s
        assert of(samples, "headway_template_start_up_seconds", template="rq", quantile=quantile) == 1.5
    assert of(samples, "headway_pool_prediction_bias_seconds", pool="mail") == -0.2
    assert of(samples, "headway_pool_dispatch_overhead_seconds", pool="mail") == 0.034
    assert of(samples, "headway_pool_dispatch_overhead_seconds", pool="news") is None, "unknown is not zero"


async def test_arrivals_that_no_source_reports_are_unknown_everywhere_and_not_zero(
    client: httpx.AsyncClient, seed: Seed
) -> None:
    seed.profile(Profile(pool="mail", queues=("redis/mail",), template="rq"))
    seed.bucket("redis/mail", at_s=NOW_S - 3.0, waiting_jobs=40)
    seed.sample("redis/mail", at_s=NOW_S - 2.0, waiting_jobs=41, in_flight_jobs=16, reserved_jobs=12)
    samples = await scraped(client)
    assert of(samples, "headway_queue_waiting_jobs", queue="redis/mail", pool="mail") == 41
    for name in ("arrivals", "completions", "failures"):
        assert of(samples, f"headway_queue_{name}_per_second", queue="redis/mail", pool="mail") is None
    (queue,) = (await client.get("/v1/queues")).json()["queues"]
    (pool,) = (await client.get("/v1/pools")).json()["pools"]
    for metrics in (queue["metrics"], pool["metrics"]):
        assert metrics["has_unknown_rates"] is True
        assert (metrics["arrival_rate_per_s"], metrics["start_rate_per_s"]) == (None, None)
        assert (metrics["in_flight_jobs"], metrics["reserved_jobs"]) == (16, 12)


async def test_the_document_names_every_metric(client: httpx.AsyncClient) -> None:
    answer = (await client.get("/metrics")).text
    exposed = set(re.findall(r"^# TYPE (headway_\S+) (?:gauge|counter|histogram)$", answer, re.MULTILINE))
    assert set(re.findall(r"^\| `(headway_\w+)` \|", DOCUMENT.read_text(), re.MULTILINE)) == exposed


async def test_a_restored_database_is_read_from_its_own_beginning(client: httpx.AsyncClient, seed: Seed) -> None:
    """It counts its rows from an earlier revision on: those that come after it would never be shown."""
    seed.profile(Profile(pool="mail", queues=("redis/mail",), template="rq"))
    seed.bucket("redis/mail", at_s=NOW_S - 20.0, arrived_jobs=600)
    seed.execute("update queue_buckets set revision = 1000")
    before = of(await scraped(client), "headway_queue_arrivals_per_second", queue="redis/mail", pool="mail")
    seed.execute("delete from queue_buckets")
    seed.bucket("redis/mail", at_s=NOW_S - 20.0, arrived_jobs=1200)
    after = of(await scraped(client), "headway_queue_arrivals_per_second", queue="redis/mail", pool="mail")
    assert before is not None
    assert after == pytest.approx(2 * before)


async def test_two_who_ask_at_once_are_answered_one_after_the_other(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is remembered of queues between two overviews changes with each: two at once would leave wrong sums."""
    both = threading.Barrier(2)
    met = []
    made = overview_builder.queues_now

    def queues_of(*given: Any, **named: Any) -> Any:
        with suppress(threading.BrokenBarrierError):
            met.append(both.wait(0.3))
        return made(*given, **named)

    monkeypatch.setattr(overview_builder, "queues_now", queues_of)
    await asyncio.gather(scraped(client), scraped(client))
    assert met == []


async def test_workers_are_counted_once_however_many_pools_there_are(
    client: httpx.AsyncClient, seed: Seed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten thousand pools that each read every worker take a quarter of an hour."""
    evaluations = []

    class Hosts(list[HostRow]):
        def __iter__(self) -> Iterator[HostRow]:
            evaluations.append(1)
            return super().__iter__()

    async def read_hosts(connection: Connection) -> Hosts:
        return Hosts(await made(connection))

    made = overview_builder.read_hosts
    monkeypatch.setattr(overview_builder, "read_hosts", read_hosts)
    seed.host("a")
    for number in range(10):
        seed.profile(Profile(pool=f"p{number}", queues=(f"redis/{number}",), template="rq"))
        seed.worker("a", f"p{number}", number)
    samples = await scraped(client)
    assert of(samples, "headway_pool_workers", pool="p7", state="running") == 1
    assert len(evaluations) < 10


async def test_how_long_ago_a_pool_was_decided_is_exposed(client: httpx.AsyncClient, seed: Seed) -> None:
    """One whose evaluation fails holds its target, and seems well otherwise."""
    seed.profile(Profile(pool="mail", queues=("redis/mail",), template="rq"))
    assert of(await scraped(client), "headway_pool_decided_age_seconds", pool="mail") is None
    seed.decision(Decision(pool="mail", at_s=NOW_S, target_workers=3, binding="idle"))
    ((decided_at_s,),) = seed.rows("select extract(epoch from decided_at) from decisions")
    exposed_s = of(await scraped(client), "headway_pool_decided_age_seconds", pool="mail")
    assert exposed_s == pytest.approx(NOW_S - float(decided_at_s))
