"""Profiles over HTTP: versions as ETags, and all breaches reported together."""

from typing import Any

import httpx
import psycopg
import pytest

from headway.scaling.model import Objective
from headway.scaling.profile import Profile, profile_to_mapping

BODY = {"queues": ["redis/mail"], "template": "rq", "workers_max": 8, "objective": {"target_s": 5}}


async def put(client: httpx.AsyncClient, body: Any = BODY, pool: str = "mail", **headers: str) -> httpx.Response:
    return await client.put(f"/v1/profiles/{pool}", json=body, headers=headers)


async def test_a_profile_is_created_read_and_listed(client: httpx.AsyncClient) -> None:
    created = await put(client, **{"If-None-Match": "*"})
    assert (created.status_code, created.headers["ETag"]) == (201, '"1"')
    read = await client.get("/v1/profiles/mail")
    assert (read.status_code, read.headers["ETag"], read.json()) == (200, '"1"', created.json())
    assert read.json()["profile"] == profile_to_mapping(
        Profile(pool="mail", queues=("redis/mail",), template="rq", workers_max=8, objective=Objective(target_s=5.0))
    )
    assert read.json()["profile"]["objective"] == {"target_s": 5.0, "percentile": 99.0, "window_s": 120.0}
    assert (await client.get("/v1/profiles")).json() == {"profiles": [read.json()]}


async def test_what_is_read_can_be_put_back(client: httpx.AsyncClient) -> None:
    profile = (await put(client)).json()["profile"]
    again = await put(client, profile, **{"If-Match": '"1"'})
    assert (again.status_code, again.headers["ETag"]) == (200, '"1"')


async def test_an_update_needs_the_version_that_was_read(client: httpx.AsyncClient) -> None:
    await put(client)
    updated = await put(client, BODY | {"workers_max": 9}, **{"If-Match": '"1"'})
    assert (updated.status_code, updated.headers["ETag"]) == (200, '"2"')
    refusals = {
        428: await put(client, BODY | {"workers_max": 10}),
        412: await put(client, BODY | {"workers_max": 10}, **{"If-Match": '"1"'}),
        422: await put(client, BODY | {"workers_max": 10}, **{"If-Match": "1"}),
    }
    assert {status: answer.status_code for status, answer in refusals.items()} == {428: 428, 412: 412, 422: 422}
    assert (await put(client, **{"If-None-Match": "*"})).status_code == 412
    assert "somebody changed it since you read it" in refusals[412].json()["detail"]


async def test_all_breaches_are_reported_together(client: httpx.AsyncClient) -> None:
    answer = await put(client, {"queues": [], "workers_max": "many", "objective": {"goal": 1}, "colour": "red"})
    assert (answer.status_code, answer.headers["content-type"]) == (422, "application/problem+json")
    said = "\n".join(answer.json()["breaches"])
    assert len(answer.json()["breaches"]) == 5
    for word in ("workers_max='many'", "'goal'", "'colour'", "template is missing", "at least one queue"):
        assert word in said


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"[1]", "expected an object, got list"),
        (b'{"queues": ["a\\u0000b"], "template": "rq"}', "cannot be stored"),
        (b'{"queues": ["a"], "template": "rq", "hold_down_s": 1e999}', "finite number"),
        (b'{"queues": ["a"], "template": "rq", "hold_down_s": NaN}', "not JSON"),
        (b'{"queues": ["a"], "template": "rq", "priority": 100000000000000000000}', "too large"),
        (b'{"queues": ["\\ud800"], "template": "rq"}', "not JSON"),
    ],
)
async def test_what_cannot_be_stored_is_refused_before_it_is_tried(
    client: httpx.AsyncClient, body: bytes, says: str
) -> None:
    answer = await client.put("/v1/profiles/mail", content=body)
    assert answer.status_code == 422
    assert says in answer.json()["detail"]


@pytest.mark.parametrize("pool", ["%00", "x" * 201])
async def test_an_impossible_pool_is_refused_everywhere(client: httpx.AsyncClient, pool: str) -> None:
    answers = [
        await client.get(f"/v1/profiles/{pool}"),
        await client.put(f"/v1/profiles/{pool}", json=BODY),
        await client.delete(f"/v1/profiles/{pool}", headers={"If-Match": '"1"'}),
        await client.get(f"/v1/pools/{pool}/history"),
        await client.get(f"/v1/decisions?pool={pool}"),
    ]
    assert [answer.status_code for answer in answers] == [422] * 5


async def test_a_queue_in_two_pools_is_a_conflict_that_names_both(client: httpx.AsyncClient) -> None:
    await put(client)
    answer = await put(client, pool="news")
    assert answer.status_code == 409
    assert "'mail'" in answer.json()["detail"]
    assert "'news'" in answer.json()["detail"]


async def test_a_strategy_that_is_not_installed_and_numbers_that_it_does_not_read_are_refused(
    client: httpx.AsyncClient,
) -> None:
    unknown = await put(client, BODY | {"strategy": "hybird"})
    assert (unknown.status_code, "strategy 'hybird' is not known" in unknown.json()["detail"]) == (422, True)
    odd = await put(client, BODY | {"strategy": "jobs_per_worker", "strategy_options": {"jobs": 5}})
    assert (odd.status_code, "strategy_options.jobs" in odd.json()["detail"]) == (422, True)
    taken = await put(client, BODY | {"strategy": "jobs_per_worker", "strategy_options": {"jobs_per_worker": 5}})
    assert taken.status_code == 201


async def test_a_forecast_policy_of_another_strategy_is_refused(client: httpx.AsyncClient) -> None:
    unread = await put(client, BODY | {"forecast": "hint"})
    assert (unread.status_code, "reads auto or off" in unread.json()["detail"]) == (422, True)
    assert (await put(client, BODY | {"forecast": "hint", "strategy": "hybrid_v3"})).status_code == 201


async def test_a_profile_is_deleted_with_its_version(client: httpx.AsyncClient, migrated_url: str) -> None:
    await put(client)
    assert (await client.delete("/v1/profiles/mail")).status_code == 428
    assert (await client.delete("/v1/profiles/mail", headers={"If-Match": '"2"'})).status_code == 412
    assert (await client.delete("/v1/profiles/mail", headers={"If-Match": '"1"'})).status_code == 204
    assert (await client.get("/v1/profiles/mail")).status_code == 404
    with psycopg.connect(migrated_url) as connection:
        actors = connection.execute("select actor, action from audit_log order by acted_at").fetchall()
    assert actors == [("local", "profile created"), ("local", "profile deleted")]
