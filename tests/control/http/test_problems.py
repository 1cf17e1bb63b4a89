"""Every refusal is a problem, from one table, and is declared."""

import httpx
import pytest

from headway import errors
from headway.control.http.problems import STATUSES, status_of
from headway.control.http.schemas.responses import HealthOut
from headway.store.engine import create_engine


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/nowhere", 404),
        ("GET", "/v1/nowhere", 404),
        ("GET", "/static/nowhere.js", 404),
        ("GET", "/static/../app.py", 404),
        ("PATCH", "/v1/profiles/mail", 405),
        ("POST", "/", 405),
        ("GET", "/v1/profiles/mail", 404),
        ("GET", "/v1/decisions?limit=0", 422),
        ("GET", "/v1/decisions?before=x", 422),
        ("GET", "/v1/pools/mail/history", 404),
        ("GET", "/v1/pools/mail/history?minutes=1000", 422),
    ],
)
async def test_every_refusal_is_a_problem(client: httpx.AsyncClient, method: str, path: str, status: int) -> None:
    answer = await client.request(method, path)
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
    problem = answer.json()
    assert problem["status"] == status
    assert problem["title"]
    assert problem["detail"]
    if status == 405:
        assert answer.headers["Allow"]


@pytest.mark.parametrize(
    ("path", "methods"),
    [
        ("/v1/profiles/mail", "DELETE, GET, PUT"),
        ("/v1/pools/mail/restart", "GET, POST"),
        ("/v1/queues/x/metrics", "GET"),  # of the metrics of `x`: to forget the queue `x/metrics` is another operation
        ("/v1/queues/x", "DELETE"),
        ("/v1/queues/forget", "POST"),
        ("/v1/health", "GET"),
        ("/", "GET"),
    ],
)
async def test_a_refused_method_is_answered_with_the_methods_that_are_described_of_the_path(
    client: httpx.AsyncClient, path: str, methods: str
) -> None:
    answer = await client.request("PATCH", path)
    assert (answer.status_code, answer.headers["Allow"]) == (405, methods)


def test_every_error_of_the_tree_has_a_status() -> None:
    kinds = [each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, errors.HeadwayError)]
    assert {kind.__name__: status_of(kind).value for kind in kinds} == {
        "HeadwayError": 500,
        "Refused": 400,
        "Invalid": 422,
        "NotFound": 404,
        "Conflict": 409,
        "Unauthenticated": 401,
        "Forbidden": 403,
        "Misconfigured": 400,
        "Unavailable": 503,
        "Overloaded": 429,
    }
    assert len(set(STATUSES.values())) == len(STATUSES)


async def test_without_its_database_the_api_says_so_and_asks_to_retry(api) -> None:
    away = create_engine("postgresql://headway@127.0.0.1:1/headway")
    transport = httpx.ASGITransport(api(engine=away))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        for path in ("/v1/health", "/v1/profiles"):
            answer = await client.get(path)
            assert (answer.status_code, answer.headers["content-type"]) == (503, "application/problem+json")
            assert answer.headers["Retry-After"]
            assert "Postgres" in answer.json()["detail"]
        assert (await client.get("/v1/health/live")).json() == {"status": "ok"}
    await away.dispose()


async def test_a_bug_is_a_problem_too_and_reveals_no_internals(api, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*_: object, **__: object) -> HealthOut:
        raise ZeroDivisionError("secret")

    monkeypatch.setattr("headway.control.http.overview.overview_builder.OverviewBuilder.health", fail)
    transport = httpx.ASGITransport(api(), raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        answer = await client.get("/v1/health")
    assert (answer.status_code, answer.headers["content-type"]) == (500, "application/problem+json")
    assert "secret" not in answer.text
