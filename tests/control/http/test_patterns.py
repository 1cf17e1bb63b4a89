"""Patterns over HTTP: what is refused, what a profile says of them, and which queue each has matched."""

import json
from typing import Any

import httpx
import psycopg

BODY = {"queues": ["redis/tenant-*"], "template": "rq"}


async def put(client: httpx.AsyncClient, pool: str, body: dict[str, Any], **headers: str) -> httpx.Response:
    return await client.put(f"/v1/profiles/{pool}", json=body, headers=headers)


def see(url: str, *queues: str) -> None:
    with psycopg.connect(url) as connection:
        for queue in queues:
            connection.execute(
                "insert into queue_samples (queue, sampled_at_s, waiting_jobs, in_flight_jobs, oldest_age_s)"
                " values (%s, 0, 0, 0, 0)",
                [queue],
            )


async def test_a_pattern_is_given_as_it_was_written_and_its_queues_by_name(
    client: httpx.AsyncClient, migrated_url: str
) -> None:
    see(migrated_url, "redis/tenant-b", "redis/tenant-a", "redis/mail")
    created = await put(client, "tenants", {"queues": ["redis/vip", "redis/tenant-*"], "template": "rq"})
    assert created.status_code == 201
    assert created.json()["profile"]["queues"] == ["redis/vip", "redis/tenant-*"]
    answer = await client.get("/v1/pools")
    assert answer.status_code == 200, answer.text
    pools = answer.json()["pools"]
    assert [each["queues"] for each in pools] == [["redis/vip", "redis/tenant-a", "redis/tenant-b"]]
    queues = (await client.get("/v1/queues")).json()["queues"]
    assert {each["queue"]: (each["pool"], each["pattern"]) for each in queues} == {
        "redis/mail": (None, None),
        "redis/tenant-a": ("tenants", "redis/tenant-*"),
        "redis/tenant-b": ("tenants", "redis/tenant-*"),
        "redis/vip": ("tenants", None),
    }


async def test_a_pattern_that_matches_nothing_yet_is_said(client: httpx.AsyncClient) -> None:
    created = await put(client, "tenants", BODY)
    assert (
        "no queue that was seen matches 'redis/tenant-*': until one does, the pool has no workers and no decision"
        in created.json()["notes"]
    )
    explained = await client.get("/v1/pools/tenants/explain")
    assert explained.json()["detail"] == (
        "pool 'tenants' has no decision yet: no queue that was seen matches 'redis/tenant-*'"
    )
    (pool,) = (await client.get("/v1/pools")).json()["pools"]
    assert (pool["state"], pool["causes"]) == (
        "unlisted",
        ["no queue that was seen matches redis/tenant-*"],
    ), "no page: there is nothing that anybody could read"


async def test_a_profile_of_which_pools_are_made_is_no_pool_and_names_them(
    client: httpx.AsyncClient, migrated_url: str
) -> None:
    see(migrated_url, "redis/a", "redis/b")
    created = await put(client, "sla_defaults", {"queues": ["redis/*"], "template": "rq", "pools_max": 1})
    assert "1 pool made of it, one for each queue that no pool names; at most 1 are" in created.json()["notes"]
    assert (
        "no pool is made for 1 queue beyond, and no worker serves redis/b: raise pools_max, or name them in a pool"
        in created.json()["notes"]
    )
    assert [each["pool"] for each in (await client.get("/v1/pools")).json()["pools"]] == ["redis.a"]
    assert (await client.get("/v1/profiles/redis.a")).json()["made_of"] == "sla_defaults"
    explained = (await client.get("/v1/pools/sla_defaults/explain")).json()["detail"]
    assert explained.endswith(": pools are made of its profile, one for each queue that no pool names")


async def test_the_same_patterns_again_change_nothing_and_queues_that_come_are_no_change(
    client: httpx.AsyncClient, migrated_url: str
) -> None:
    await put(client, "tenants", BODY)
    see(migrated_url, "redis/tenant-a")
    again = await put(client, "tenants", BODY, **{"If-Match": '"1"'})
    assert (again.status_code, again.headers["ETag"], again.json()["changes"]) == (200, '"1"', [])


async def test_patterns_that_cross_are_a_conflict_and_one_in_another_place_is_invalid(
    client: httpx.AsyncClient,
) -> None:
    await put(client, "tenants", BODY)
    crossing = await put(client, "mail", {"queues": ["redis/*-mail"], "template": "rq"})
    assert crossing.status_code == 409
    assert "neither lies within the other" in crossing.json()["detail"]
    misplaced = await put(client, "mail", {"queues": ["redis/mail"], "template": "rq-*"})
    assert misplaced.status_code == 422
    assert "template: 'rq-*' is a pattern, which only queues may hold" in misplaced.text


async def test_a_host_whose_workers_take_no_names_is_said(client: httpx.AsyncClient, migrated_url: str) -> None:
    """As one with an agent of an earlier version."""
    see(migrated_url, "redis/tenant-a", "redis/tenant-b")
    template = {"name": "rq", "content_hash": "1", "slots": 1, "cpu_cores": 0.1, "memory_bytes": 1_000_000}
    with psycopg.connect(migrated_url) as connection:
        for name, more in (("new", {"queues_allowed": ["tenant-a"]}), ("old", {})):
            connection.execute(
                "insert into hosts (host_id, name, cpu_cores, memory_bytes, templates, reported_at, lease_ends_at)"
                " values (%s, %s, 4, 1000000000, %s, now(), now() + interval '1 hour')",
                [name, name, json.dumps([template | more])],
            )
    notes = " ".join((await put(client, "tenants", BODY)).json()["notes"])
    assert "template 'rq' on old takes no names of queues" in notes
    with psycopg.connect(migrated_url) as connection:
        connection.execute("delete from hosts where name = 'old'")
    notes = " ".join((await client.get("/v1/profiles/tenants")).json()["notes"])
    assert "no host serves redis/tenant-b: queues_allowed of template 'rq' does not match it" in notes
