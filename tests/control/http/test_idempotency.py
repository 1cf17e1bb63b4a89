"""Writes that are sent again: the first answer again, whoever asks at the same time, and no more keys than are kept."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from control.http.conftest import Bound
from headway.control.auth.authenticator import Authenticator, Caller
from headway.control.http import idempotent_writes
from headway.errors import Unauthenticated
from headway.store.access import idempotency_keys
from headway.store.access.credentials import Role
from support.seed import Seed

MAIL = {"queues": ["redis/mail"], "template": "rq"}
KEY = {"Idempotency-Key": "deploy-1"}


class ByName(Authenticator):
    """Takes what is shown for the name of an operator."""

    async def who(self, secret: str | None) -> Caller:
        if not secret:
            raise Unauthenticated("nothing shown")
        role = Role.VIEWER if secret == "viewer" else Role.OPERATOR
        return Caller(role=role, name=secret, sha256="of " + secret)

    async def recheck(self, caller: Caller) -> None:
        """It is valid for ever."""


@pytest.fixture
async def named(api) -> AsyncIterator[httpx.AsyncClient]:
    """Callers by name."""
    app = api(token="shared", callers=ByName(token="shared"), address=Bound(host="0.0.0.0"))
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://headway.example") as client:
        yield client


def put(client: httpx.AsyncClient, body: dict[str, Any] = MAIL, **headers: str) -> Any:
    return client.put("/v1/profiles/mail", json=body, headers={**KEY, **headers})


def acts(seed: Seed) -> list[str]:
    return [action for (action,) in seed.rows("select action from audit_log order by acted_at")]


async def test_the_first_answer_comes_again_and_nothing_is_done_again(client: httpx.AsyncClient, seed: Seed) -> None:
    first = await put(client)
    again = await put(client)
    assert (first.status_code, again.status_code) == (201, 201)
    assert (again.content, again.headers["etag"]) == (first.content, first.headers["etag"])
    assert again.headers["content-type"] == first.headers["content-type"]
    assert ("idempotency-replayed" in first.headers, again.headers["idempotency-replayed"]) == (False, "true")
    assert again.headers["x-content-type-options"] == "nosniff"
    assert len(acts(seed)) == 1
    scale = {"workers": 3, "for_s": 60, "reason": "sale"}
    for _ in range(2):  # another key, another write; an answer without content
        answer = await client.put("/v1/pools/mail/override", json=scale, headers={"Idempotency-Key": "2"})
        assert answer.status_code == 200
        gone = await client.delete("/v1/profiles/mail", headers={"Idempotency-Key": "3", "If-Match": '"1"'})
        assert (gone.status_code, gone.content) == (204, b"")
    assert len(acts(seed)) == 3


async def test_a_refusal_is_an_answer_too(client: httpx.AsyncClient) -> None:
    wrong = {**MAIL, "workers_min": 9, "workers_max": 3}
    first, again = await put(client, wrong), await put(client, wrong)
    assert (first.status_code, again.status_code, again.content) == (422, 422, first.content)


@pytest.mark.parametrize(
    "other",
    [
        {"json": {**MAIL, "workers_max": 9}},
        {"headers": {**KEY, "If-Match": '"1"'}},
        {"url": "/v1/profiles/other"},
        {"url": "/v1/profiles/mail?dry_run=true"},
        {"method": "DELETE"},
    ],
)
async def test_another_request_under_the_same_key_is_refused(client: httpx.AsyncClient, other: dict[str, Any]) -> None:
    await put(client)
    asked: dict[str, Any] = {"method": "PUT", "url": "/v1/profiles/mail", "headers": KEY, "json": MAIL}
    answer = await client.request(**{**asked, **other})
    assert (answer.status_code, "another request" in answer.json()["detail"]) == (409, True)


async def test_a_key_belongs_to_its_caller(named: httpx.AsyncClient) -> None:
    ann, bob = ({"Authorization": f"Bearer {name}"} for name in ("ann", "bob"))
    assert (await put(named, **ann)).status_code == 201
    answer = await put(named, {**MAIL, "workers_max": 9}, **bob, **{"If-Match": '"1"'})
    assert (answer.status_code, "idempotency-replayed" in answer.headers) == (200, False)
    assert (await put(named, Authorization="Bearer viewer")).status_code == 403  # who may not, learns nothing
    assert (await named.put("/v1/profiles/mail", json=MAIL, headers=KEY)).status_code == 401


async def test_of_those_that_come_at_once_one_is_done(client: httpx.AsyncClient, seed: Seed) -> None:
    answers = await asyncio.gather(*(put(client) for _ in range(8)))
    assert {(answer.status_code, answer.content) for answer in answers} == {(201, answers[0].content)}
    assert sum("idempotency-replayed" in answer.headers for answer in answers) == 7
    assert len(acts(seed)) == 1


async def test_what_another_is_at_is_waited_for_and_taken_over_when_it_is_gone(
    client: httpx.AsyncClient, seed: Seed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(idempotent_writes, "WAIT_S", 0.1)
    await put(client)
    seed.execute("update idempotency_keys set status = null, headers = null, body = null")  # it never answered
    assert "still being carried out" in (await put(client)).json()["detail"]
    seed.execute("update idempotency_keys set claimed_at = now() - interval '61 seconds'")
    answer = await put(client)  # done anew: the profile is there by now
    assert (answer.status_code, "idempotency-replayed" in answer.headers) == (428, False)
    assert (await put(client)).headers["idempotency-replayed"] == "true"


async def test_a_key_of_yesterday_is_free(client: httpx.AsyncClient, seed: Seed) -> None:
    await put(client)
    seed.execute("update idempotency_keys set claimed_at = now() - interval '25 hours'")
    answer = await put(client, {**MAIL, "workers_max": 9}, **{"If-Match": '"1"'})
    assert (answer.status_code, "idempotency-replayed" in answer.headers) == (200, False)


async def test_an_answer_that_promises_nothing_may_be_tried_again(client: httpx.AsyncClient, seed: Seed) -> None:
    seed.execute("alter table profiles rename to away")
    assert (await put(client)).status_code >= 500
    seed.execute("alter table away rename to profiles")
    assert (await put(client)).status_code == 201


async def test_a_caller_has_so_many_keys_and_no_more(
    named: httpx.AsyncClient, seed: Seed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(idempotency_keys, "KEYS_PER_IDENTITY_MAX", 5)
    ann, bob = ({"Authorization": f"Bearer {name}"} for name in ("ann", "bob"))

    async def paused(key: int, caller: dict[str, str]) -> int:
        headers = {**caller, "Idempotency-Key": str(key)}
        return (await named.put("/v1/pools/none/pause", json={}, headers=headers)).status_code

    assert [await paused(number, ann) for number in range(8)] == [404] * 5 + [429] * 3
    assert await paused(0, ann) == 404  # what is kept is answered on
    assert await paused(0, bob) == 404
    assert seed.rows("select identity, count(*) from idempotency_keys group by 1 order by 1") == [
        ("of ann", 5), ("of bob", 1)
    ]  # fmt: skip


@pytest.mark.parametrize("method", ["TRACE", "PATCH"])
async def test_what_no_route_takes_uses_no_key_up(client: httpx.AsyncClient, method: str) -> None:
    """The key of another write was in its way: 409, where the method is not allowed."""
    assert (await put(client)).status_code == 201
    assert (await client.request(method, "/v1/profiles/mail", headers=KEY)).status_code == 405
    assert (await put(client)).headers["idempotency-replayed"] == "true"


async def test_a_large_answer_is_not_kept(
    client: httpx.AsyncClient, seed: Seed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(idempotent_writes, "ANSWER_BYTES_MAX", 100)
    assert (await put(client)).status_code == 201
    answer = await put(client)
    assert (answer.status_code, "answered 201" in answer.json()["detail"]) == (409, True)
    assert seed.rows("select body from idempotency_keys") == [(None,)]


@pytest.mark.parametrize("key", ["", "x" * 256])
async def test_a_wrong_key_is_refused(client: httpx.AsyncClient, key: str) -> None:
    assert (await put(client, **{"Idempotency-Key": key})).status_code == 422


async def test_no_secret_is_kept(client: httpx.AsyncClient, seed: Seed) -> None:
    made = {"role": "viewer", "name": "ann"}
    statuses = [(await client.post("/v1/tokens", json=made, headers=KEY)).status_code for _ in range(2)]
    assert statuses == [201, 409]  # a name is taken once, whatever the key
    assert (await client.get("/v1/profiles", headers=KEY)).status_code == 200  # nothing to be done twice
    assert seed.rows("select * from idempotency_keys") == []
