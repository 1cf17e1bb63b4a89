"""The installation's parts at one moment: each with its age, and what is not known is null."""

import httpx

from headway.store.engine import Engine, transaction
from headway.store.events.event_sources import touch_collectors


async def test_a_new_installation_knows_no_ages(client: httpx.AsyncClient) -> None:
    seen = (await client.get("/v1/system")).json()
    assert [each["stage"] for each in seen["stages"]] == [
        "brokers",
        "event_log",
        "pipeline",
        "minutes",
        "scheduler",
        "agents",
    ]
    lags = {each["stage"]: each["lag_s"] for each in seen["stages"]}
    assert (lags["brokers"], lags["pipeline"], lags["scheduler"], lags["agents"]) == (None, None, None, None)
    assert (seen["leader"]["age_s"], seen["collectors"], seen["agents"]) == (None, [], [])
    assert not any(each["is_late"] for each in seen["stages"])


async def test_agents_and_collectors_have_their_versions_and_ages(
    client: httpx.AsyncClient, seed, engine: Engine
) -> None:
    seed.host("worker-1")
    async with transaction(engine) as conn:
        await touch_collectors(conn, [("redis", "collector-a")])
    seen = (await client.get("/v1/system")).json()
    (agent,), (collector,) = seen["agents"], seen["collectors"]
    assert (agent["host"], agent["is_known"]) == ("worker-1", True)
    assert agent["version"]
    assert 0 <= agent["report_age_s"] < 60
    assert (collector["connection"], collector["producer"], collector["is_silent"]) == ("redis", "collector-a", False)
    async with engine.begin() as conn:
        await conn.exec_driver_sql("update collectors set seen_at = now() - interval '1 hour'")
        await conn.exec_driver_sql(
            "update hosts set lease_ends_at = now() - interval '1 hour', reported_at = now() - interval '1 hour'"
        )
    seen = (await client.get("/v1/system")).json()
    assert seen["collectors"][0]["is_silent"]
    assert not seen["agents"][0]["is_known"]
    late = {each["stage"]: each["is_late"] for each in seen["stages"]}
    assert late["agents"]
