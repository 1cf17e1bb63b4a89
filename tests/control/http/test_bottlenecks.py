"""What keeps more workers from starting or from helping: named in every view, a ticket, and nobody's page."""

from dataclasses import replace
from typing import Any

import httpx
import pytest

from control.http.conftest import NOW_S
from headway.control.http.overview.alerting import conditions_of
from headway.control.http.overview.overview_builder import OverviewBuilder
from headway.scaling.decisions.bottlenecks import bottlenecks_of
from headway.scaling.model import Decision, HostCapacity, StartFailure, Step, Template, Worker, WorkerState
from headway.scaling.profile import Profile
from headway.store.engine import Engine, transaction
from headway.store.hosts.host_reports import HostReport, Outcome, record_reports
from support.seed import Seed


@pytest.fixture(autouse=True)
def _mail(seed: Seed) -> None:
    seed.leader()
    seed.pipeline()
    seed.host("a")
    seed.profile(Profile(pool="mail", queues=("redis/mail",), template="rq"))
    seed.sample("redis/mail", at_s=NOW_S)
    seed.bucket("redis/mail", at_s=NOW_S - 5.0)


def worker(worker_id: str, state: WorkerState, start_failure: StartFailure | None = None) -> Worker:
    return Worker(
        worker_id=worker_id,
        pool="mail",
        template="rq",
        pid=7,
        state=state,
        started_at_s=NOW_S - 60.0,
        start_failure=start_failure,
    )


async def reported(engine: Engine, *workers: Worker, sequence: int = 1) -> None:
    report = HostReport(
        host_id="id-a",
        boot_id="b",
        sequence=sequence,
        epoch_seen=1,
        received_at_s=NOW_S,
        capacity=HostCapacity(cpu_cores=1.0, memory_bytes=10**9),
        templates=(Template(name="rq", content_hash="h"),),
        workers=workers,
    )
    async with transaction(engine) as conn:
        assert await record_reports(conn, [report]) == {"id-a": Outcome.TAKEN}


async def seen_rules(engine: Engine) -> dict[tuple[str, str], str]:
    """Rule and severity -> summary, of every condition."""
    overviews = OverviewBuilder(engine=engine, clock=lambda: NOW_S)
    found = conditions_of(await overviews.of_pools())
    return {(key.rule, each.severity): each.summary for key, each in found.items() if key.kind != "host"}


async def pool_of(client: httpx.AsyncClient) -> dict[str, Any]:
    (pool,) = (await client.get("/v1/pools")).json()["pools"]
    return dict(pool)


async def test_workers_that_fail_to_start_beside_others_are_named_and_page_nobody(
    engine: Engine, client: httpx.AsyncClient, seed: Seed
) -> None:
    cause = StartFailure.MAXCLIENTS
    await reported(engine, worker("w1", WorkerState.RUNNING), worker("w2", WorkerState.BACKING_OFF, cause))
    seed.execute("update hosts set failing = jsonb_build_object('rq', extract(epoch from now()))")
    pool = await pool_of(client)
    assert (pool["state"], pool["start_failure"], pool["unstarted_workers"]) == ("bottleneck", "maxclients", 0)
    assert pool["bottlenecks"] == [cause.text]
    assert f"workers fail to start on a: {cause.text}; one is tried at a time" in pool["causes"]
    health = (await client.get("/v1/health")).json()
    assert f"1 pool has a bottleneck: {cause.text}: see `headway top`" in health["reasons"]
    metrics = (await client.get("/metrics")).text
    assert 'headway_pool_state{pool="mail",state="bottleneck"} 1.0' in metrics
    assert 'headway_health_reason{reason="bottleneck"} 1.0' in metrics
    rules = await seen_rules(engine)
    assert rules["pool_bottleneck", "ticket"] == cause.text
    assert not any(severity == "page" and rule != "degraded" for rule, severity in rules)
    assert ("degraded", "page") not in {key for key, summary in rules.items() if "bottleneck" in summary}
    _, backing_off = (await client.get("/v1/workers")).json()["workers"]
    assert backing_off["start_failure"] == "maxclients"


async def test_where_all_fail_the_crash_loop_names_its_cause(engine: Engine, client: httpx.AsyncClient) -> None:
    await reported(engine, worker("w1", WorkerState.BACKING_OFF, StartFailure.OUT_OF_MEMORY))
    pool = await pool_of(client)
    assert pool["state"] == "crash_loop"
    assert "out of memory (maxmemory)" in " ".join(pool["causes"])
    assert {"crash_loop", "bottleneck"} <= set((await client.get("/v1/health")).json()["kinds"])


async def test_one_that_is_tried_in_a_crash_loop_ends_no_page(
    engine: Engine, client: httpx.AsyncClient, seed: Seed
) -> None:
    """It is ready for a moment each time, and ends."""
    cause = StartFailure.CONNECTION_REFUSED
    seed.decision(Decision(pool="mail", at_s=NOW_S, target_workers=2, binding="crash_loop", is_failing=True))
    backing_off = worker("w1", WorkerState.BACKING_OFF, cause)
    tried = replace(worker("w2", WorkerState.RUNNING), started_at_s=NOW_S - 2.0)
    for sequence, workers in enumerate([(backing_off,), (backing_off, tried)]):
        await reported(engine, *workers, sequence=1 + sequence)
        assert (await pool_of(client))["state"] == "crash_loop"
        assert ("pool_broken", "page") in await seen_rules(engine)


async def test_a_cause_ends_with_the_report_that_no_longer_names_it(engine: Engine, client: httpx.AsyncClient) -> None:
    await reported(engine, worker("w1", WorkerState.STARTING, StartFailure.CONNECTION_REFUSED))
    assert (await pool_of(client))["start_failure"] == "connection_refused"
    await reported(engine, worker("w1", WorkerState.STARTING), sequence=2)
    assert (await pool_of(client))["bottlenecks"] == []


async def test_workers_that_would_only_wait_are_named_and_page_nobody(
    engine: Engine, client: httpx.AsyncClient, seed: Seed
) -> None:
    steps = (Step(name="wanted", workers=8), Step(name="useful_workers", workers=1))
    decision = Decision(pool="mail", at_s=NOW_S, target_workers=1, binding="useful_workers", steps=steps)
    seed.decision(decision)
    seed.execute("update queue_samples set useful_workers = 1")
    await reported(engine, worker("w1", WorkerState.RUNNING))
    pool = await pool_of(client)
    assert (pool["state"], pool["bottlenecks"]) == ("bottleneck", list(bottlenecks_of(decision)))
    assert set(pool["bottlenecks"]) <= set(pool["causes"])
    (queue,) = (await client.get("/v1/queues")).json()["queues"]
    assert queue["useful_workers"] == 1
    assert "bottleneck" in (await client.get("/v1/health")).json()["kinds"]
    assert ("pool_bottleneck", "ticket") in await seen_rules(engine)
