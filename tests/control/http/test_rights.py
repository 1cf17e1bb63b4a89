"""Who may ask what of the HTTP API, written out and asked of the API itself: a row a route, a letter a role."""

import json
from collections.abc import Iterable
from typing import Any

import httpx
import pytest

from control.http.conftest import Bound
from headway.control.auth.authenticator import Authenticator, Caller
from headway.control.http.openapi import description
from headway.errors import Unauthenticated
from headway.store.access.credentials import Role

LETTERS = {"v": Role.VIEWER, "o": Role.OPERATOR, "a": Role.ADMIN, "i": Role.INGEST, "h": Role.HOST, "j": Role.JOIN}
LETTERS["u"] = Role.AUDITOR
READS, CHANGES, GOVERNS = "voa", "oa", "a"
EVERYBODY = "voaihju"
"""With any token, and without one."""
SIGNED_IN = EVERYBODY[::-1]
"""With any token."""

MAY = {
    "POST /v1/session": EVERYBODY,
    "DELETE /v1/session": SIGNED_IN,
    "GET /v1/account": SIGNED_IN,
    "GET /v1/audit": "ua",
    "GET /v1/audit/export": "ua",
    "GET /metrics": READS,
    "GET /v1/slo": READS,
    "GET /v1/slo/export": READS,
    "GET /v1/workers": READS,
    "POST /v1/workers/{worker_id}/kill": CHANGES,
    "GET /v1/cuts": READS,
    "GET /v1/decisions": READS,
    "GET /v1/decisions/latest": READS,
    "GET /v1/events": READS,
    "GET /v1/health": EVERYBODY,
    "GET /v1/health/live": EVERYBODY,
    "GET /v1/hosts": READS,
    "GET /v1/hosts/wanted": READS,
    "POST /v1/hosts/{host}/cordon": CHANGES,
    "POST /v1/hosts/{host}/uncordon": CHANGES,
    "POST /v1/hosts/{host}/drain": CHANGES,
    "POST /v1/hosts/{host}/forget": CHANGES,
    "POST /v1/hosts/{host}/rotate": GOVERNS,
    "POST /v1/hosts/{host}/revoke": GOVERNS,
    "GET /v1/openapi.json": READS,
    "GET /v1/pools/{pool}/behaviour": READS,
    "GET /v1/pools/{pool}/explain": READS,
    "GET /v1/pools/{pool}/history": READS,
    "GET /v1/pools/{pool}/metrics": READS,
    "GET /v1/pools/{pool}/restart": READS,
    "GET /v1/pools/{pool}/series": READS,
    "POST /v1/pools/{pool}/restart": CHANGES,
    "PUT /v1/pools/{pool}/override": CHANGES,
    "DELETE /v1/pools/{pool}/override": CHANGES,
    "PUT /v1/pools/{pool}/pause": CHANGES,
    "DELETE /v1/pools/{pool}/pause": CHANGES,
    "GET /v1/groups": READS,
    "GET /v1/groups/{name}": READS,
    "PUT /v1/groups/{name}": CHANGES,
    "DELETE /v1/groups/{name}": CHANGES,
    "GET /v1/profiles": READS,
    "GET /v1/profiles/{pool}": READS,
    "PUT /v1/profiles/{pool}": CHANGES,
    "DELETE /v1/profiles/{pool}": CHANGES,
    "GET /v1/pools": READS,
    "GET /v1/queues": READS,
    "GET /v1/queues/{queue}/metrics": READS,
    "GET /v1/queues/{queue}/series": READS,
    "DELETE /v1/queues/{queue}": CHANGES,
    "POST /v1/queues/forget": CHANGES,
    "POST /v1/telemetry": "ia",
    "GET /v1/system": READS,
    "GET /v1/alerts": READS,
    "GET /v1/silences": READS,
    "PUT /v1/silences/{name}": CHANGES,
    "DELETE /v1/silences/{name}": CHANGES,
    "GET /v1/tokens": GOVERNS,
    "POST /v1/tokens": GOVERNS,
    "DELETE /v1/tokens/{name}": GOVERNS,
    "GET /v1/nowhere": SIGNED_IN,  # 404
    "POST /metrics": GOVERNS,
}
HELD_OPEN = {"GET /v1/events"}  # answered for as long as somebody listens


class Shown(Authenticator):
    """Takes what is shown for the name of a role."""

    async def who(self, secret: str | None) -> Caller:
        if not secret:
            raise Unauthenticated("nothing shown")
        return Caller(role=Role(secret), name=secret, sha256="of " + secret)

    async def recheck(self, caller: Caller) -> None:
        """It is valid for ever."""


def asked(route: str) -> tuple[str, str]:
    method, path = route.split(" ")
    for name in ("pool", "queue", "host", "name"):
        path = path.replace(f"{{{name}}}", "redis/x" if name == "queue" else "x")
    return method, path


async def refused(client: httpx.AsyncClient, route: str, roles: Iterable[str]) -> str:
    found = ""
    for letter in roles:
        method, path = asked(route)
        answer = await client.request(method, path, headers={"Authorization": f"Bearer {LETTERS[letter].value}"})
        assert answer.status_code != 401, answer.text
        found += letter if answer.status_code == 403 else ""
    return found


@pytest.fixture
def app(api, engine) -> Any:
    return api(token="shared", callers=Shown(token="shared"), address=Bound(host="0.0.0.0"))


async def test_every_role_may_what_the_table_says_and_nothing_else(app: Any) -> None:
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://headway.example") as client:
        for route, may in MAY.items():
            roles = EVERYBODY if route not in HELD_OPEN else set(EVERYBODY) - set(may)
            assert sorted(await refused(client, route, roles)) == sorted(set(EVERYBODY) - set(may)), route
            if may != EVERYBODY:
                assert (await client.request(*asked(route))).status_code == 401, f"{route} with nothing shown"


def test_no_route_is_missing_from_the_table() -> None:
    described = json.loads(description())["paths"]
    operations = {f"{method.upper()} {path}" for path, methods in described.items() for method in methods}
    assert operations | {"GET /v1/openapi.json", "GET /v1/nowhere", "POST /metrics"} == MAY.keys()


async def test_what_is_not_there_is_nobodys_to_forbid(app: Any) -> None:
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://headway.example") as client:
        for path in ("/v1/profiles/a%2F..%2Fb", "/v1/nowhere", "/v2/pools"):
            assert (await client.get(path)).status_code == 401
            for role in ("viewer", "ingest", "admin"):
                answer = await client.get(path, headers={"Authorization": f"Bearer {role}"})
                assert (answer.status_code, "there is nothing at" in answer.json()["detail"]) == (404, True), path
        answer = await client.delete("/v1/pools", headers={"Authorization": "Bearer viewer"})
        assert answer.status_code == 403  # of what is there
