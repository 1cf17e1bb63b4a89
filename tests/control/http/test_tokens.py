"""Tokens with roles over HTTP: what each may, how they end, and what the audit log says."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx
import pytest

from control.http.conftest import Bound
from headway.control.auth.authenticator import Authenticator
from headway.control.http.openapi import description
from headway.control.http.overview.broadcaster import Feed
from headway.control.http.permissions import RIGHTS, allows, needed_for
from headway.store.access.credentials import Role
from support.seed import Seed

SHARED = "shared"
MAIL = {"queues": ["redis/mail"], "template": "rq"}


@pytest.fixture
async def app(api, engine) -> Any:
    return api(
        token=SHARED,
        callers=Authenticator(token=SHARED, engine=engine),
        address=Bound(host="0.0.0.0"),
        feed=Feed(pause_s=0.01, refresh_s=0.05),  # whoever watches is told again, and asked who it is, at once
    )


@pytest.fixture
async def with_token(app) -> AsyncIterator[Callable[[str], httpx.AsyncClient]]:
    """Makes clients that show a token."""
    made: list[httpx.AsyncClient] = []

    def client(token: str) -> httpx.AsyncClient:
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        headers = {"Authorization": f"Bearer {token}"}
        made.append(httpx.AsyncClient(transport=transport, base_url="http://headway.example", headers=headers))
        return made[-1]

    yield client
    for each in made:
        await each.aclose()


async def made(admin: httpx.AsyncClient, **body: Any) -> str:
    answer = await admin.post("/v1/tokens", json=body)
    assert answer.status_code == 201, answer.text
    secret: str = answer.json()["secret"]
    return secret


def test_every_operation_of_the_api_says_who_may_ask_for_it() -> None:
    """A new route needs a row in control/http/permissions.py; without one only administrators reach it."""
    described = json.loads(description())["paths"]
    operations = {(method.upper(), path) for path, methods in described.items() for method in methods}
    assert operations - RIGHTS.keys() == set()


@pytest.mark.parametrize(
    ("role", "may"),
    [
        (Role.VIEWER, {Role.VIEWER}),
        (Role.OPERATOR, {Role.VIEWER, Role.OPERATOR}),
        (Role.ADMIN, {Role.VIEWER, Role.OPERATOR, Role.ADMIN, Role.INGEST, Role.AUDITOR}),
        (Role.INGEST, {Role.INGEST}),
        (Role.AUDITOR, {Role.AUDITOR}),
        (Role.HOST, set()),
    ],
)
def test_each_role_may_what_those_before_it_may(role: Role, may: set[Role]) -> None:
    needed = {Role.VIEWER, Role.OPERATOR, Role.ADMIN, Role.INGEST, Role.AUDITOR}
    assert {each for each in needed if allows(role, each)} == may


def test_what_has_no_row_is_an_administrators() -> None:
    assert needed_for("GET", "/v1/nowhere") is Role.ADMIN
    assert needed_for("POST", "/v1/profiles") is Role.ADMIN
    assert needed_for("HEAD", "/v1/profiles") is Role.VIEWER
    assert needed_for("GET", "/v1/queues/redis/mail/metrics") is Role.VIEWER
    assert needed_for("DELETE", "/v1/tokens/ci") is Role.ADMIN


async def test_a_token_may_what_its_role_says_and_the_audit_log_names_it(with_token, seed: Seed) -> None:
    admin = with_token(SHARED)
    secrets = {role: await made(admin, role=role, name=f"my {role}") for role in ("viewer", "operator", "ingest")}
    viewer, operator, ingest = (with_token(secrets[role]) for role in ("viewer", "operator", "ingest"))

    assert (await viewer.get("/v1/profiles")).status_code == 200
    refused = await viewer.put("/v1/profiles/mail", json=MAIL)
    assert (refused.status_code, refused.headers["content-type"]) == (403, "application/problem+json")
    assert "that takes the role operator, and its role is viewer" in refused.json()["detail"]
    assert (await operator.put("/v1/profiles/mail", json=MAIL)).status_code == 201
    assert (await operator.get("/v1/tokens")).status_code == 403
    assert (await operator.post("/v1/telemetry", json={})).status_code == 403
    assert (await ingest.get("/v1/profiles")).status_code == 403
    batch = {"producer": "p", "sequence": 1, "sent_at_s": 1.8e9}
    assert (await ingest.post("/v1/telemetry", json=batch)).status_code == 200
    assert (await ingest.get("/v1/health")).status_code == 200

    acts = seed.rows("select actor, action, subject from audit_log where action not like 'call%' order by acted_at")
    assert acts == [
        ("HEADWAY_TOKEN", "token created", "token my viewer"),
        ("HEADWAY_TOKEN", "token created", "token my operator"),
        ("HEADWAY_TOKEN", "token created", "token my ingest"),
        ("token my operator", "profile created", "profile mail"),
    ]
    refused = (await admin.get("/v1/tokens")).json()["refused_calls"]
    assert refused["that takes the role operator, and its role is viewer"] == 1
    refusals = seed.rows("select actor, subject from audit_log where action = 'call refused' order by acted_at")
    assert ("token my viewer", "PUT /v1/profiles/mail") in refusals


async def test_secrets_are_shown_once_and_kept_as_digests(with_token, seed: Seed) -> None:
    admin = with_token(SHARED)
    secret = await made(admin, role="viewer", name="v", for_s=60)
    listed = (await admin.get("/v1/tokens")).json()["tokens"]
    assert [(each["name"], each["role"], each["created_by"]) for each in listed] == [("v", "viewer", "HEADWAY_TOKEN")]
    assert listed[0]["expires_at_s"] - listed[0]["created_at_s"] == pytest.approx(60)
    everything = str(seed.rows("select c::text from credentials c")) + str(seed.rows("select a::text from audit_log a"))
    assert secret not in everything + json.dumps(listed)
    assert secret.removeprefix("hwt_") not in everything


@pytest.mark.parametrize("how", ["revoked", "expired"])
async def test_a_token_that_has_ended_is_not_taken(with_token, seed: Seed, how: str) -> None:
    admin = with_token(SHARED)
    holder = with_token(await made(admin, role="viewer", name="v"))
    assert (await holder.get("/v1/queues")).status_code == 200
    if how == "revoked":
        assert (await admin.delete("/v1/tokens/v")).status_code == 204
        assert (await admin.delete("/v1/tokens/v")).status_code == 404
    else:
        seed.execute("update credentials set expires_at = now()")
    answer = await holder.get("/v1/queues")
    assert (answer.status_code, "'v'" in answer.json()["detail"]) == (401, True)
    listed = [each["state"] for each in (await admin.get("/v1/tokens")).json()["tokens"]]
    assert listed == ([] if how == "revoked" else ["expired"])
    await made(admin, role="viewer", name="v")  # the name is free again


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({"role": "king", "name": "k"}, "role"),
        ({"role": "host", "name": "k"}, "role"),
        ({"role": "viewer"}, "name"),
        ({"role": "viewer", "name": "a/b"}, "name 'a/b': expected 1 to 200 printable characters without '/'"),
        ({"role": "viewer", "name": "v" * 201}, "expected 1 to 200 printable characters"),
        ({"role": "viewer", "name": "v", "uses": 2}, "uses"),
        ({"role": "viewer", "name": "v", "host": "a"}, "only a join token"),
        ({"role": "viewer", "name": "v", "for_s": 0}, "for_s"),
        ({"role": "join", "uses": 0}, "uses"),
    ],
)
async def test_a_token_that_cannot_be_is_refused(with_token, body: dict[str, Any], says: str) -> None:
    answer = await with_token(SHARED).post("/v1/tokens", json=body)
    assert answer.status_code == 422
    assert says in answer.json()["detail"]


async def test_a_name_that_is_taken_is_refused_and_a_join_token_needs_none(with_token) -> None:
    admin = with_token(SHARED)
    await made(admin, role="viewer", name="v")
    assert (await admin.post("/v1/tokens", json={"role": "admin", "name": "v"})).status_code == 409
    join = (await admin.post("/v1/tokens", json={"role": "join"})).json()
    assert (join["uses_left"], join["secret"][:4]) == (1, "hwj_")
    assert join["expires_at_s"] - join["created_at_s"] == pytest.approx(3600)
    assert (await with_token(join["secret"]).get("/v1/profiles")).status_code == 401  # it opens no other door


async def test_a_host_without_a_credential_has_none_to_replace_or_revoke(with_token, seed: Seed) -> None:
    admin = with_token(SHARED)
    seed.host("a")
    for what in ("rotate", "revoke"):
        assert (await admin.post(f"/v1/hosts/nobody/{what}")).status_code == 404
        answer = await admin.post(f"/v1/hosts/a/{what}")
        assert (answer.status_code, "has no credential of its own" in answer.json()["detail"]) == (404, True)


async def test_an_answer_under_way_ends_when_its_token_is_revoked(app, with_token) -> None:
    admin = with_token(SHARED)
    token = await made(admin, role="viewer", name="v")
    sent: list[dict[str, Any]] = []
    has_begun = asyncio.Event()

    async def receive() -> dict[str, Any]:
        await asyncio.Event().wait()
        raise AssertionError

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)
        if message["type"] == "http.response.body" and message.get("body"):
            has_begun.set()

    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": "/v1/events",
        "raw_path": b"/v1/events",
        "root_path": "",
        "query_string": b"",
        "headers": [(b"authorization", f"Bearer {token}".encode())],
        "client": ("10.0.0.9", 1),
        "server": ("headway.example", 80),
    }
    watching = asyncio.create_task(app(scope, receive, send))
    await asyncio.wait_for(has_begun.wait(), 60)
    await admin.delete("/v1/tokens/v")
    await asyncio.wait({watching}, timeout=60)
    assert watching.done()
