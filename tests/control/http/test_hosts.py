"""Hosts over HTTP: what is set of them, by hand."""

import json

import httpx
import pytest
from sqlalchemy import insert

from control.http.conftest import NOW_S
from headway.scaling.allocation.host_demand import HostsWanted
from headway.store.engine import Engine, transaction
from headway.store.pools.host_demand import save_hosts_wanted
from headway.store.tables import hosts_wanted
from support.seed import Seed


async def shown(client: httpx.AsyncClient, name: str = "a") -> dict:
    hosts = (await client.get("/v1/hosts")).json()["hosts"]
    return next(host for host in hosts if host["name"] == name)


@pytest.mark.parametrize(("what", "state"), [("cordon", "cordoned"), ("drain", "draining")])
async def test_a_host_is_shut_for_a_reason_and_serves_again(
    client: httpx.AsyncClient, seed: Seed, what: str, state: str
) -> None:
    seed.host("a")
    answer = await client.post(f"/v1/hosts/a/{what}", json={"reason": "new disk"})
    assert answer.status_code == 200
    assert answer.json() == await shown(client)
    assert (answer.json()["state"], answer.json()["cordoned_by"]) == (state, "local")
    assert answer.json()["cordon_reason"] == "new disk"
    assert (await client.post("/v1/hosts/a/uncordon")).json()["state"] == "serving"


@pytest.mark.parametrize(("what", "state"), [("cordon", "cordoned"), ("drain", "draining")])
async def test_a_host_that_is_shut_for_a_while_serves_again_by_itself(api, seed: Seed, what: str, state: str) -> None:
    (now_s,) = seed.rows("select extract(epoch from now())::float8")[0]
    seed.host("a")
    transport = httpx.ASGITransport(api(clock=lambda: now_s))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8460") as client:
        for body in ({"for_s": 0}, {"until_s": now_s - 1}, {"for_s": 32 * 86_400}, {"for_s": 9, "until_s": now_s + 9}):
            assert (await client.post(f"/v1/hosts/a/{what}", json={"reason": "x", **body})).status_code == 422
        answer = await client.post(f"/v1/hosts/a/{what}", json={"reason": "new disk", "for_s": 600})
        assert (answer.json()["state"], answer.json()["cordoned_until_s"]) == (state, now_s + 600)
        seed.execute("update hosts set cordoned_until_s = cordoned_until_s - 601")
        host = await shown(client)
    said = ("cordoned_at_s", "cordoned_by", "cordon_reason", "cordoned_until_s")
    assert (host["state"], *(host[name] for name in said)) == ("serving", None, None, None, None)


@pytest.mark.parametrize("what", ["cordon", "drain", "forget"])
@pytest.mark.parametrize("body", [{}, {"reason": ""}, {"reason": "x", "colour": "red"}])
async def test_without_a_reason_nothing_is_set(client: httpx.AsyncClient, seed: Seed, what: str, body: dict) -> None:
    seed.host("a")
    assert (await client.post(f"/v1/hosts/a/{what}", json=body)).status_code == 422
    assert (await shown(client))["state"] == "serving"


@pytest.mark.parametrize("what", ["cordon", "drain", "uncordon", "forget"])
async def test_a_host_that_nobody_knows_is_not_found(client: httpx.AsyncClient, what: str) -> None:
    answer = await client.post(f"/v1/hosts/a/{what}", json={"reason": "x"})
    assert (answer.status_code, "no host 'a'" in answer.json()["detail"]) == (404, True)


async def test_only_a_host_that_is_silent_can_be_forgotten(client: httpx.AsyncClient, seed: Seed) -> None:
    seed.host("a")
    answer = await client.post("/v1/hosts/a/forget", json={"reason": "burnt"})
    assert (answer.status_code, "still reports" in answer.json()["detail"]) == (409, True)
    seed.host("lost", lease_s=-1.0)
    assert (await client.post("/v1/hosts/lost/forget", json={"reason": "burnt"})).status_code == 204
    assert [host["name"] for host in (await client.get("/v1/hosts")).json()["hosts"]] == ["a"]


MISSING = HostsWanted(
    hosts=2,
    workers=5,
    labels={"disk": "ssd"},
    templates=("rq",),
    pools=("mail", "news"),
    since_s=NOW_S - 60.0,
)


@pytest.mark.parametrize(
    ("wanted", "why"),
    [
        (MISSING, "no capacity for 5 workers of mail, news on a host with disk=ssd"),
        (
            HostsWanted(hosts=None, workers=1, templates=("rq",), pools=("mail",)),
            "no capacity for 1 worker of mail on a host, and no known host with template rq is large enough",
        ),
    ],
)
async def test_hosts_that_are_missing_are_reported_with_their_reason(
    client: httpx.AsyncClient, engine: Engine, api, wanted: HostsWanted, why: str
) -> None:
    assert (await client.get("/v1/hosts/wanted")).json() == {"at_s": NOW_S, "wanted": []}
    async with transaction(engine) as conn:
        await save_hosts_wanted(conn, (wanted,))
    (listed,) = (await client.get("/v1/hosts/wanted")).json()["wanted"]
    assert (listed["hosts"], listed["since_s"], listed["why"]) == (wanted.hosts, wanted.since_s, why)
    assert json.loads(await api().state.context.overviews.json())["hosts_wanted"] == [listed]


async def test_of_a_record_of_0_1_0_the_missing_hosts_are_read(client: httpx.AsyncClient, engine: Engine) -> None:
    shared = {"workers": 0, "labels": {}, "templates": ["rq"], "pools": ["mail"], "since_s": NOW_S}
    body = [
        {**shared, "sign": "missing", "hosts": 2, "host_names": []},
        {**shared, "sign": "spare", "hosts": 1, "host_names": ["a"]},
    ]
    async with transaction(engine) as conn:
        await conn.execute(insert(hosts_wanted).values(key="now", body=body))
    (listed,) = (await client.get("/v1/hosts/wanted")).json()["wanted"]
    assert listed["hosts"] == 2
