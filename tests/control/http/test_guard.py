"""Who gets in: tokens off loopback, and on loopback no page of another site."""

from collections.abc import AsyncIterator

import httpx
import pytest

from control.http.conftest import Bound
from headway.control.auth.authenticator import Authenticator
from headway.control.http.dashboard import is_page
from headway.control.http.middleware import BODY_BYTES_MAX, PUBLIC_PATHS, PUBLIC_PREFIX
from headway.control.http.permissions import RIGHTS
from headway.control.refusal_throttle import RefusalThrottle

TOKEN = "0123456789abcdef"


@pytest.fixture
async def guarded(api) -> AsyncIterator[httpx.AsyncClient]:
    app = api(token=TOKEN, address=Bound(host="0.0.0.0"))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://headway.example") as client:
        yield client


@pytest.mark.parametrize("path", ["/", "/static/app.js", "/v1/health", "/v1/health/live"])
async def test_health_and_the_dashboards_files_need_no_token(guarded: httpx.AsyncClient, path: str) -> None:
    assert (await guarded.get(path)).status_code == 200


@pytest.mark.parametrize(
    "authorization",
    [None, "", "Bearer", "Bearer ", f"Basic {TOKEN}", f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}", b"Bearer \xff"],
)
async def test_without_the_token_nothing_else_is_answered(
    guarded: httpx.AsyncClient, authorization: str | bytes | None
) -> None:
    headers = {} if authorization is None else {"Authorization": authorization}
    for method, path in [
        ("GET", "/v1/profiles"),
        ("GET", "/v1/nowhere"),
        ("GET", "/v1/openapi.json"),
        ("GET", "/v1/events"),
        ("POST", "/v1/telemetry"),
    ]:
        answer = await guarded.request(method, path, headers=headers)
        assert (answer.status_code, answer.headers["content-type"]) == (401, "application/problem+json")
        assert answer.headers["WWW-Authenticate"].startswith("Bearer")


@pytest.mark.parametrize("path", ["/", "/static/app.js", "/v1/health", "/v1/health/live"])
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "TRACE"])
async def test_what_needs_no_token_is_only_read_and_says_so_to_anybody(
    guarded: httpx.AsyncClient, method: str, path: str
) -> None:
    answer = await guarded.request(method, path)
    assert (answer.status_code, answer.headers["content-type"]) == (405, "application/problem+json")
    assert "GET" in answer.headers["Allow"]


def test_no_operation_that_needs_a_token_has_a_path_that_needs_none() -> None:
    assert {
        method for method, path in RIGHTS if path in PUBLIC_PATHS or path.startswith(PUBLIC_PREFIX) or is_page(path)
    } == {"GET"}


async def test_with_the_token_a_request_is_answered_whatever_its_host(guarded: httpx.AsyncClient) -> None:
    answer = await guarded.get("/v1/profiles", headers={"Authorization": f"bearer {TOKEN}"})
    assert answer.status_code == 200


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:8460", "localhost:1", "[::1]:8460", "127.8.9.1"])
async def test_this_machines_names_are_let_in(client: httpx.AsyncClient, host: str) -> None:
    assert (await client.get("/v1/profiles", headers={"Host": host})).status_code == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "localhost@evil.example", "", "[", "10.0.0.1"]
)
async def test_a_name_that_only_resolves_to_this_machine_is_not(client: httpx.AsyncClient, host: str) -> None:
    answer = await client.get("/v1/profiles", headers={"Host": host})
    assert (answer.status_code, answer.headers["content-type"]) == (403, "application/problem+json")


async def test_a_page_of_another_site_changes_nothing(client: httpx.AsyncClient) -> None:
    body = {"queues": ["redis/mail"], "template": "rq"}
    for origin in ("http://evil.example", "null", "http://127.0.0.1:9999", "http://localhost:8460"):
        answer = await client.put("/v1/profiles/mail", json=body, headers={"Origin": origin})
        assert answer.status_code == 403, origin
        assert (await client.post("/v1/telemetry", json={}, headers={"Origin": origin})).status_code == 403
    own = await client.put("/v1/profiles/mail", json=body, headers={"Origin": "http://127.0.0.1:8460"})
    assert own.status_code == 201


async def test_a_body_beyond_the_bound_is_refused_with_its_length_stated_or_not(client: httpx.AsyncClient) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(20):
            yield b" " * (BODY_BYTES_MAX // 16)

    for content in (b" " * (BODY_BYTES_MAX + 1), chunks()):
        answer = await client.put("/v1/profiles/mail", content=content)
        assert (answer.status_code, answer.headers["content-type"]) == (413, "application/problem+json")


async def test_every_answer_forbids_scripts_of_others(client: httpx.AsyncClient) -> None:
    for path in ("/", "/static/app.js", "/v1/profiles", "/nowhere"):
        headers = (await client.get(path)).headers
        assert "script-src 'self'" in headers["Content-Security-Policy"]
        assert "unsafe" not in headers["Content-Security-Policy"]
        assert headers["X-Content-Type-Options"] == "nosniff"


async def test_a_refusal_waits_for_its_turn_and_nothing_else_does(api) -> None:
    held: list[str] = []

    class Noting(RefusalThrottle):
        async def hold(self, who: str, *, took_s: float, port: str, status: str) -> None:
            assert 0.0 < took_s < 60.0
            held.append(f"{who} {port} {status}")

    callers = Authenticator(token=TOKEN)
    callers.throttle = Noting()
    app = api(token=TOKEN, address=Bound(host="0.0.0.0"), callers=callers)
    transport = httpx.ASGITransport(app, client=("192.0.2.7", 1))
    async with httpx.AsyncClient(transport=transport, base_url="http://headway.example") as client:
        known = {"Authorization": f"Bearer {TOKEN}"}
        for path, headers, status in [
            ("/v1/health", {}, 200),
            ("/v1/profiles", {}, 401),
            ("/v1/profiles", known, 200),
            ("/v1/profiles/none", known, 404),
            ("/v1/audit?limit=0", known, 422),
        ]:
            assert (await client.get(path, headers=headers)).status_code == status, path
    assert held == ["192.0.2.7 http 401", "192.0.2.7 http 422"]
